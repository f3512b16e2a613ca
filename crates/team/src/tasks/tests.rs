//! Tasks over their life, and a model of the waits.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::tempdir;
use tokio::time::Instant;

use super::*;
use crate::bus::Backlog;
use crate::model::{AgentState, AgentStatus, BlockedStatus, SessionKey};

fn agent(name: &str) -> AgentId {
    AgentId::new(name)
}

fn new(by: &str, to: &str, key: Option<&str>) -> NewTask {
    NewTask {
        by: agent(by),
        owner: None,
        agent: agent(to),
        text: "Do it".to_owned(),
        files: Vec::new(),
        key: key.map(str::to_owned),
    }
}

fn done(text: &str) -> Ended {
    Ended { text: text.to_owned(), ..Ended::without_answer(TaskState::Done, None) }
}

fn tasks(folder: Option<&std::path::Path>) -> Tasks {
    Tasks::open(folder.map(Into::into), Bus::new(Backlog::of(64)))
}

fn states(found: &FoundTasks) -> Vec<&'static str> {
    found.tasks.iter().map(|task| task.state.as_str()).collect()
}

fn pending(id: &str, to: &str, session: &str, status: BlockedStatus) -> BlockedAccess {
    eisen_testing::blocked_access(id, SessionKey::new(agent(to), SessionId::new(session)), status)
}

fn stalled(name: &str) -> AgentStatus {
    AgentStatus {
        agent: agent(name),
        state: AgentState::Ready,
        pid: None,
        reason: Some(format!("{} for long", crate::model::STALLED)),
        restarts: 0,
        candidate: None,
        timestamp_ms: 0,
    }
}

#[tokio::test]
async fn a_result_outlives_the_team_until_it_is_acknowledged() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join("tasks");
    let first = tasks(Some(&folder));
    let [a, b] = [first.begin(new("lead", "ui", None)), first.begin(new("lead", "api", None))];
    let (a, b) = (a.await.unwrap().id, b.await.unwrap().id);
    first.end(&a, done("All is there.")).await;
    // A second end changes nothing.
    first.end(&a, Ended::without_answer(TaskState::Lost, None)).await;
    let cursor = first.list(None, &[]).unwrap().cursor;
    drop(first);
    std::fs::write(folder.join(".draft-0"), "{").unwrap();

    let second = tasks(Some(&folder));
    assert!(!folder.join(".draft-0").exists());
    let found = second.list(Some(&agent("lead")), &[]).unwrap();
    // A lead goes on with its cursor.
    assert!(found.cursor > cursor, "{} > {cursor}", found.cursor);
    assert_eq!(states(&found), ["done", "lost"]);
    let kept = second.get(Some(&agent("lead")), &a).unwrap();
    assert_eq!((&*kept.result, kept.said), ("All is there.", 13));
    assert_eq!(second.get(None, &b).unwrap().reason.unwrap(), "the team ended before its turn did");
    second.acknowledge(None, &a).await.unwrap();
    // Whoever did not get the answer may ask again.
    assert_eq!(second.get(None, &a).unwrap().result, "All is there.");
    drop(second);
    let third = tasks(Some(&folder));
    assert_eq!(third.get(None, &a), Err(TaskError::Unknown(a)));
    assert_eq!(states(&third.list(None, &[b]).unwrap()), ["lost"]);
}

#[tokio::test]
async fn an_owner_is_kept_and_an_older_file_has_none() {
    let dir = tempdir().unwrap();
    let adas = NewTask { owner: Some("ada".to_owned()), ..new("lead", "ui", None) };
    let id = tasks(Some(dir.path())).begin(adas).await.unwrap().id;
    let owner = || tasks(Some(dir.path())).list(None, &[]).unwrap().tasks[0].owner.clone();
    assert_eq!(owner().as_deref(), Some("ada"));
    let file = dir.path().join(format!("{id}.json"));
    let mut older: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    older.as_object_mut().unwrap().shift_remove("owner").unwrap();
    std::fs::write(&file, older.to_string()).unwrap();
    assert_eq!(owner(), None);
}

#[tokio::test]
async fn tasks_of_one_instant_keep_their_order() {
    let dir = tempdir().unwrap();
    let first = tasks(Some(dir.path()));
    for _ in 0..20 {
        first.begin(new("lead", "ui", None)).await.unwrap();
    }
    let ids = |tasks: &Tasks| {
        let found = tasks.list(None, &[]).unwrap();
        found.tasks.into_iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&tasks(Some(dir.path()))), ids(&first));
}

#[tokio::test]
async fn what_an_agent_says_is_kept_within_bounds_and_read_again() {
    let dir = tempdir().unwrap();
    let first = tasks(Some(dir.path()));
    let id = first.begin(new("lead", "ui", None)).await.unwrap().id;
    // JSON has six bytes for each of these.
    let text = "\u{1}".repeat(MOST_TEXT + 1);
    let reason = Some("\u{e9}".repeat(100_000));
    first.end(&id, Ended { text, ..Ended::without_answer(TaskState::Failed, reason) }).await;
    let kept = tasks(Some(dir.path())).get(None, &id).unwrap();
    assert_eq!((kept.result.len(), kept.said), (MOST_TEXT, MOST_TEXT + 1));
    assert_eq!(kept.reason.unwrap(), "\u{e9}".repeat(512));
}

#[tokio::test]
async fn files_of_others_in_the_folder_are_left_alone() {
    let dir = tempdir().unwrap();
    for (name, text) in [("t-1.json", "{"), ("t-2.json", "{\"id\":\"t-3\"}"), ("x.txt", "")] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    assert_eq!(tasks(Some(dir.path())).list(None, &[]).unwrap().tasks, []);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn a_key_makes_a_repeated_call_the_same_and_nobody_sees_anothers_task() {
    let tasks = tasks(None);
    let first = tasks.begin(new("lead", "ui", Some("k"))).await.unwrap();
    let again = tasks.begin(new("lead", "ui", Some("k"))).await.unwrap();
    assert_eq!((first.is_new, again.is_new, &first.id), (true, false, &again.id));
    let other = tasks.begin(new("api", "ui", Some("k"))).await.unwrap();
    assert_ne!(other.id, first.id);
    assert!(tasks.get(Some(&agent("api")), &first.id).is_err());
    assert_eq!(tasks.list(Some(&agent("api")), &[]).unwrap().tasks.len(), 1);
}

#[tokio::test]
async fn so_many_tasks_are_kept_and_no_more() {
    let tasks = tasks(None);
    for _ in 0..MOST {
        tasks.begin(new("lead", "ui", None)).await.unwrap();
    }
    assert_eq!(tasks.begin(new("lead", "ui", None)).await.unwrap_err(), TaskError::Full);
    let id = tasks.list(None, &[]).unwrap().tasks[7].id.clone();
    tasks.end(&id, done("")).await;
    tasks.acknowledge(None, &id).await.unwrap();
    tasks.begin(new("lead", "ui", None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_a_task_ends_or_needs_help_or_in_time() {
    let tasks = tasks(None);
    let a = tasks.begin(new("lead", "ui", None)).await.unwrap().id;
    let b = tasks.begin(new("lead", "api", None)).await.unwrap().id;
    let ids = [a.clone(), b.clone()];
    let wait = async |mode, cursor| {
        let deadline = Instant::now() + LONGEST_WAIT;
        tasks.wait(None, &ids, mode, cursor, deadline).await.unwrap()
    };
    let begun = Instant::now();
    let found = wait(Mode::All, None).await;
    assert!(found.timed_out && begun.elapsed() == LONGEST_WAIT);

    tasks.sent(&a, SessionId::new("s"));
    let blocked = |status| {
        let access = pending("b1", "ui", "s", status);
        tasks.change(|board| board.blocked(&access, status == BlockedStatus::Pending));
    };
    let (found, ()) = tokio::join!(wait(Mode::All, None), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        blocked(BlockedStatus::Pending);
    });
    assert_eq!((states(&found), found.timed_out), (vec!["needs_approval", "running"], false));
    // It is known by now, so the wait goes on.
    let cursor = Some(found.cursor);
    let (found, ()) = tokio::join!(wait(Mode::First, cursor), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        blocked(BlockedStatus::Allowed);
        tasks.end(&b, done("")).await;
    });
    assert_eq!(states(&found), ["running", "done"]);
    let cursor = Some(found.cursor);
    tasks.change(|board| board.agent(&stalled("ui")));
    let found = wait(Mode::First, cursor).await;
    assert_eq!((states(&found), found.timed_out), (vec!["stalled", "done"], false));
    tasks.end(&a, done("")).await;
    assert!(!wait(Mode::All, None).await.timed_out);
}

#[tokio::test]
async fn whoever_gave_work_is_woken_by_what_is_stopped_anywhere_below() {
    let tasks = tasks(None);
    for (at, (by, to)) in
        [("lead", "ui"), ("ui", "h1"), ("h1", "h2"), ("lead", "api")].into_iter().enumerate()
    {
        let id = tasks.begin(new(by, to, None)).await.unwrap().id;
        tasks.sent(&id, SessionId::new(at.to_string()));
    }
    let access = pending("b1", "h2", "2", BlockedStatus::Pending);
    tasks.change(|board| board.blocked(&access, true));
    let now = || states(&tasks.list(None, &[]).unwrap());
    assert_eq!(now(), ["needs_approval", "needs_approval", "needs_approval", "running"]);
    tasks.change(|board| board.blocked(&access, false));
    assert_eq!(now(), ["running"; 4]);
}

#[tokio::test]
async fn a_task_is_seen_to_wait_also_where_events_were_missed_or_turns_run_side_by_side() {
    let tasks = tasks(None);
    let [a, b] = [tasks.begin(new("lead", "ui", None)), tasks.begin(new("lead", "ui", None))];
    let (a, b) = (a.await.unwrap().id, b.await.unwrap().id);
    tasks.sent(&a, SessionId::new("s1"));
    let now = || states(&tasks.list(None, &[]).unwrap());
    // It belongs to no session, since several turns may run; the second has not begun.
    let access = pending("b1", "ui", "", BlockedStatus::Pending);
    tasks.change(|board| board.stand_anew(std::slice::from_ref(&access), &[]));
    assert_eq!(now(), ["needs_approval", "running"]);
    tasks.sent(&b, SessionId::new("s2"));
    assert_eq!(now(), ["needs_approval", "needs_approval"]);
    tasks.change(|board| board.stand_anew(&[], &[stalled("ui")]));
    assert_eq!(now(), ["stalled", "stalled"]);
    tasks.change(|board| board.stand_anew(&[], &[]));
    assert_eq!(now(), ["running", "running"]);
}

#[test]
fn a_circle_is_named() {
    let waits = Waits::default();
    let [lead, ui, api] = ["lead", "ui", "api"].map(agent);
    let first = waits.begin(&lead, &[ui.clone(), api.clone()], WaitKind::Task).unwrap();
    let second = waits.begin(&ui, std::slice::from_ref(&api), WaitKind::Answer).unwrap();
    let refused = waits.begin(&api, std::slice::from_ref(&ui), WaitKind::Answer).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the wait would never end, since each waits for the next: `api` → `ui` → `api`"
    );
    drop(second);
    drop(waits.begin(&api, std::slice::from_ref(&ui), WaitKind::Answer).unwrap());
    // The lead is woken by what its own task needs, and by nothing else.
    let decision =
        |from: &AgentId| waits.begin(from, std::slice::from_ref(&lead), WaitKind::Decision);
    drop(decision(&ui).unwrap());
    let _asks = waits.begin(&api, &[agent("db")], WaitKind::Answer).unwrap();
    assert_eq!(decision(&agent("db")).unwrap_err(), Circle(vec![agent("db"), lead.clone(), api]));
    drop(first);
    assert!(decision(&agent("db")).is_ok());
    assert!(waits.begin(&ui, std::slice::from_ref(&ui), WaitKind::Answer).is_err());
}

/// Agents, and waits that begin and end.
const AGENTS: usize = 50;

/// For each agent its waits.
type Model = BTreeMap<usize, Vec<(usize, WaitKind, WaitGuard)>>;

fn kind() -> impl Strategy<Value = WaitKind> {
    prop_oneof![
        3 => Just(WaitKind::Task),
        1 => Just(WaitKind::Answer),
        2 => Just(WaitKind::Decision),
        1 => Just(WaitKind::Lock),
    ]
}

/// Whether a wait would close a circle, by another search than the graph's: the waits along each way
/// are counted by their kind, one step at a time from all that are reached. A circle of tasks and one
/// decision is none.
fn closes(model: &Model, from: usize, to: usize, kind: WaitKind) -> bool {
    let count = |kind, (decisions, others): (usize, bool)| match kind {
        WaitKind::Task => (decisions, others),
        WaitKind::Decision => (2.min(decisions + 1), others),
        WaitKind::Answer | WaitKind::Lock => (decisions, true),
    };
    let mut reached = BTreeSet::from([(to, count(kind, (0, false)))]);
    loop {
        let steps = reached.iter().filter(|(at, _)| *at != from).flat_map(|(at, counted)| {
            let waits = model.get(at).into_iter().flatten();
            waits.map(|(other, waits, _)| (*other, count(*waits, *counted)))
        });
        let next: BTreeSet<_> = reached.iter().copied().chain(steps).collect();
        if next.len() == reached.len() {
            let is_circle = |counted| from == to || counted != (1, false);
            return reached.iter().any(|(at, counted)| *at == from && is_circle(*counted));
        }
        reached = next;
    }
}

/// Whether one agent waits for tasks down to another one.
fn gave_work(model: &Model, above: usize, below: usize) -> bool {
    let (mut open, mut seen) = (vec![above], BTreeSet::new());
    while let Some(at) = open.pop() {
        let waits = model.get(&at).into_iter().flatten();
        open.extend(
            waits
                .filter(|(_, kind, _)| *kind == WaitKind::Task)
                .map(|it| it.0)
                .filter(|it| seen.insert(*it)),
        );
    }
    seen.contains(&below)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn there_is_no_deadlock_and_no_wait_is_refused_without_a_circle(
        steps in proptest::collection::vec((0..AGENTS, 0..AGENTS, any::<bool>(), kind()), 1..120),
    ) {
        let waits = Waits::default();
        let name = |at: usize| agent(&at.to_string());
        // The waits by a graph of its own.
        let mut model: Model = BTreeMap::new();
        for (from, to, ends, kind) in steps {
            if ends && let Some(own) = model.get_mut(&from).filter(|own| !own.is_empty()) {
                own.remove(to % own.len());
                continue;
            }
            let closes = closes(&model, from, to, kind);
            match waits.begin(&name(from), &[name(to)], kind) {
                Ok(guard) => {
                    prop_assert!(!closes, "{from} waits for {to}, which waits for it");
                    model.entry(from).or_default().push((to, kind, guard));
                }
                Err(Circle(circle)) => {
                    prop_assert!(closes, "refused without a circle: {circle:?}");
                    // Each but the first waits for the next, and the last for the first.
                    prop_assert_eq!(&circle[0], &name(from));
                    let next = circle.iter().cycle().skip(1);
                    for (one, other) in circle.iter().zip(next).skip(1) {
                        let one: usize = one.as_str().parse().unwrap();
                        let waits = model.get(&one).into_iter().flatten();
                        prop_assert!(waits.map(|(next, ..)| name(*next)).any(|it| it == *other));
                    }
                }
            }
        }
        // Somebody can always go on: once those that wait for nobody, or are woken by the one that they
        // wait for, are done, so are the next, until none is left.
        while !model.is_empty() {
            let goes_on = |from: &usize| {
                model[from].iter().all(|(to, kind, _)| {
                    !model.contains_key(to)
                        || *kind == WaitKind::Decision && gave_work(&model, *to, *from)
                })
            };
            let done: Vec<_> = model.keys().filter(|from| goes_on(from)).copied().collect();
            prop_assert!(!done.is_empty(), "all wait: {model:?}");
            model.retain(|from, _| !done.contains(from));
        }
    }
}
