#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::super::spec::tests::run;
use super::super::{RunState, RunStatus};
use super::*;
use eisen_base::task;

fn names(agents: &[&str]) -> Vec<String> {
    agents.iter().map(|agent| (*agent).to_owned()).collect()
}

/// Starts a run on disk too.
fn start(runs: &TeamRuns, agent: &str, above: &[&str]) -> RunId {
    let id = RunId::generate();
    runs.begin(id, agent, &names(above)).unwrap();
    let parent = runs.name(&names(above));
    let state =
        RunState { team: runs.team().to_owned(), ..run(&id.to_string(), parent.as_deref()) };
    runs.folder(id).unwrap().keep(&state).unwrap();
    id
}

fn end(runs: &TeamRuns, id: RunId) {
    let folder = runs.folder(id).unwrap();
    folder.keep_answer("done").unwrap();
    let state = folder.state().unwrap();
    folder.keep(&RunState { status: RunStatus::Succeeded, ..state }).unwrap();
    runs.ended(id, Some("end_turn".to_owned()));
}

#[test]
fn a_run_is_named_by_the_run_or_the_agent_that_started_it() {
    let home = tempfile::tempdir().unwrap();
    let shop = TeamRuns::new(home.path().to_owned(), "shop", 0);
    let first = start(&shop, "ui-h1", &["ui"]).to_string();
    let second = start(&shop, "ui-h1-h2", &["ui-h1", "ui"]).to_string();
    let chain = names(&["ui-h1-h2", "ui-h1", "ui"]);
    assert_eq!(shop.names(&chain), [&*second, &first, "shop/ui"]);
    assert_eq!(shop.name(&chain[1..]).unwrap(), first);
    assert_eq!(shop.name(&chain[2..]).unwrap(), "shop/ui");
    // A helper that is no run is below the run of its parent.
    let helper = names(&["ui-h1-h3", "ui-h1", "ui"]);
    assert_eq!(shop.name(&helper).unwrap(), first);
    assert_eq!(shop.names(&helper), ["shop/ui-h1-h3", &first, "shop/ui"]);
    let told = |agents: &[&str]| shop.variables(&names(agents));
    assert_eq!(told(&["ui"]), []);
    let of = |run: &str, parent: &str| {
        vec![("EISEN_RUN", run.to_owned()), ("EISEN_PARENT", parent.to_owned())]
    };
    assert_eq!(told(&["ui-h1", "ui"]), of(&first, "shop/ui"));
    assert_eq!(told(&["ui-h1-h2", "ui-h1", "ui"]), of(&second, &first));
    assert_eq!(told(&["ui-h1-h3", "ui-h1", "ui"]), of(&first, "shop/ui"));
    assert_eq!(shop.depth_of(2), 2);

    let top = RunId::generate();
    let team = TeamRuns::new(home.path().to_owned(), &top.team(), 1);
    let below = start(&team, "codex-h1", &["codex"]).to_string();
    let top = top.to_string();
    assert_eq!(team.names(&names(&["codex-h1", "codex"])), [&*below, &top]);
    assert_eq!(team.variables(&names(&["codex"])), [("EISEN_RUN", top.clone())]);
    assert_eq!(team.variables(&names(&["codex-h1", "codex"])), of(&below, &top));
    assert_eq!(team.depth_of(1), 2);
}

#[tokio::test(start_paused = true)]
async fn an_agent_finds_the_runs_below_it_and_no_others() {
    let home = tempfile::tempdir().unwrap();
    let runs = TeamRuns::new(home.path().to_owned(), "shop", 0);
    let mine = start(&runs, "ui-h1", &["ui"]);
    let below = start(&runs, "ui-h1-h2", &["ui-h1", "ui"]);
    let others = start(&runs, "api-h3", &["api"]);
    let now = Instant::now();
    let found = async |by: Option<&str>, wanted: &[String]| {
        let found = runs.wait(by, wanted, false, now).await?;
        Ok::<_, FindError>(found.runs.into_iter().map(|run| run.state.id).collect::<Vec<_>>())
    };
    let [mine, below, others] = [mine, below, others].map(|id| id.to_string());
    assert_eq!(found(Some("ui"), &[]).await.unwrap(), [&*mine, &below]);
    assert_eq!(found(Some("ui-h1"), &[]).await.unwrap(), [&*below]);
    assert_eq!(found(None, &[]).await.unwrap(), [&*mine, &below, &others]);
    for (by, foreign) in [("ui", &others), ("ui-h1", &mine), ("ui-h1-h2", &below)] {
        let error = found(Some(by), std::slice::from_ref(foreign)).await.unwrap_err();
        assert!(matches!(error, FindError::Unknown(_)), "{by}: {error}");
    }
    let wanted = [others.to_lowercase()];
    assert_eq!(found(Some("api"), &wanted).await.unwrap(), [&*others]);
    let error = found(None, &["0".to_owned()]).await.unwrap_err();
    assert!(matches!(error, FindError::Ambiguous { found, .. } if found.len() == 3));
    assert_eq!(runs.workers(Some("ui"), &[]).unwrap(), ["ui-h1", "ui-h1-h2"]);
}

#[tokio::test]
async fn a_wait_ends_with_the_run_and_says_the_same_again() {
    let home = tempfile::tempdir().unwrap();
    let runs = TeamRuns::new(home.path().to_owned(), "shop", 0);
    let (first, second) = (start(&runs, "ui-h1", &["ui"]), start(&runs, "ui-h2", &["ui"]));
    let late = runs.wait(Some("ui"), &[first.to_string()], false, Instant::now()).await.unwrap();
    assert!(late.timed_out && late.runs[0].answer.is_none());
    let hour = Instant::now() + Duration::from_hours(1);
    let both = [first.to_string(), second.to_string()];
    let waiting = task::spawn({
        let (runs, both) = (runs.clone(), both.clone());
        async move { runs.wait(Some("ui"), &both, true, hour).await.unwrap() }
    });
    tokio::task::yield_now().await;
    end(&runs, second);
    let any = waiting.await.unwrap();
    let answers: Vec<_> = any.runs.iter().map(|run| run.answer.as_deref()).collect();
    assert_eq!((any.timed_out, answers), (false, vec![None, Some("done")]));
    end(&runs, first);
    for _ in 0..2 {
        let all = runs.wait(Some("ui"), &both, false, hour).await.unwrap();
        assert!(all.runs.iter().all(|run| run.state.status == RunStatus::Succeeded));
        assert_eq!(all.runs[0].stop_reason.as_deref(), Some("end_turn"));
    }
    runs.settled().await;
}

#[test]
fn what_is_ended_by_somebody_says_why_and_an_ended_team_starts_nothing() {
    let home = tempfile::tempdir().unwrap();
    let runs = TeamRuns::new(home.path().to_owned(), "shop", 0);
    let (first, second) = (start(&runs, "ui-h1", &["ui"]), start(&runs, "ui-h2", &["ui"]));
    runs.ends("ui-h1", "killed");
    runs.ends("ui-h1", "later");
    runs.ends("ui", "it is no run");
    runs.close("its team has ended");
    assert_eq!(runs.ending(first).as_deref(), Some("killed"));
    assert_eq!(runs.ending(second).as_deref(), Some("its team has ended"));
    assert!(runs.begin(RunId::generate(), "ui-h3", &names(&["ui"])).is_err());
    runs.forget(second);
    assert_eq!(runs.ending(second), None);
}
