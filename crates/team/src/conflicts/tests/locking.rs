//! Locks, waits for them, claims, and what ends them.

use super::*;
use crate::conflicts::claims::{ClaimError, LockClaim};
use crate::model::DecidedBy;
use crate::tasks::WaitKind;
use eisen_base::task;

fn claim(paths: &[&str], ttl: u64) -> LockClaim {
    let ttl = Some(Duration::from_secs(ttl));
    LockClaim { paths: paths.iter().map(|path| Arc::from(*path)).collect(), ttl }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_denied_while_another_has_the_file_locked() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, false);
    assert!(conflicts.writes_by("a", "f").passes());
    assert!(conflicts.writes_by("a", "f").passes() && conflicts.writes_by("b", "g").passes());
    assert!(
        conflicts.blocks(&AgentId::new("b"), "f") && !conflicts.blocks(&AgentId::new("a"), "f")
    );
    let refused = conflicts.writes_by("b", "f").refusal();
    assert_eq!(refused.message, "`a` has `f` locked: write it once its turn is over, or ask it");
    // A repeated attempt is the same conflict.
    assert_eq!(conflicts.writes_by("b", "f").refusal().id, refused.id);
    assert_eq!(conflicts.shown(), ["c1 denied denied b a"]);
    // Another's turn frees nothing.
    conflicts.turn_over(&AgentId::new("b"), &SessionId::new("s"));
    assert!(conflicts.blocks(&AgentId::new("b"), "f"));
    conflicts.turn_over(&AgentId::new("a"), &SessionId::new("s"));
    assert!(conflicts.writes_by("b", "f").passes());
}

#[tokio::test(start_paused = true)]
async fn a_lock_lasts_while_its_holder_works() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, false);
    let output = Arc::new(parking_lot::Mutex::new(Instant::now()));
    let seen = Arc::clone(&output);
    let _run = conflicts.run_began(AgentId::new("a"), 1, Arc::new(move || *seen.lock()));
    assert!(conflicts.writes_by("a", "f").passes());
    for _ in 0..4 {
        sleep(LOCK / 2).await;
        *output.lock() = Instant::now();
    }
    assert!(conflicts.blocks(&AgentId::new("b"), "f"));
    // A read is work too.
    sleep(LOCK / 2).await;
    conflicts.read(&key("a"), &path("g"));
    sleep(LOCK / 2).await;
    assert!(conflicts.blocks(&AgentId::new("b"), "f"));
    sleep(LOCK).await;
    assert!(!conflicts.blocks(&AgentId::new("b"), "f"));
}

#[tokio::test(start_paused = true)]
async fn locks_end_with_the_run_that_has_them() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, false);
    let began = Instant::now();
    let run = conflicts.run_began(AgentId::new("a"), 1, Arc::new(move || began));
    assert!(conflicts.writes_by("a", "f").passes());
    conflicts.claim(&key("a"), claim(&["g"], 600)).unwrap();
    let next = conflicts.run_began(AgentId::new("a"), 2, Arc::new(move || began));
    assert!(conflicts.writes_by("b", "f").passes(), "another process is not the holder");
    // The late end of the first run ends nothing of the second.
    assert!(conflicts.writes_by("a", "h").passes());
    drop(run);
    assert!(conflicts.blocks(&AgentId::new("b"), "h"));
    drop(next);
    assert!(!conflicts.blocks(&AgentId::new("b"), "h"));
}

#[tokio::test(start_paused = true)]
async fn a_held_write_goes_on_with_the_lock_when_it_ends() {
    let (conflicts, mut events) = conflicts(ConflictStrategy::FirstWriterWins, true);
    assert!(conflicts.writes_by("a", "f").passes());
    let (second, third) =
        (conflicts.writes_by("b", "f").wait(), conflicts.writes_by("c", "f").wait());
    let third = task::spawn(third.settled());
    let second = task::spawn(second.settled());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(conflicts.shown(), ["c1 held pending b a", "c2 held pending c a"]);
    conflicts.turn_over(&AgentId::new("a"), &SessionId::new("s"));
    second.await.unwrap().unwrap();
    assert!(conflicts.blocks(&AgentId::new("a"), "f"), "the first in the queue has the lock");
    assert!(!third.is_finished());
    conflicts.turn_over(&AgentId::new("b"), &SessionId::new("s"));
    third.await.unwrap().unwrap();
    assert_eq!(conflicts.shown(), ["c1 held allowed b a", "c2 held allowed c a"]);
    let mut published = Vec::new();
    while let Some(crate::bus::Received::Event(_, event)) = events.try_recv() {
        let Event::Conflict(conflict) = &**event else { continue };
        published.push(shown(conflict));
    }
    assert_eq!(published.len(), 4, "{published:?}");
}

#[tokio::test(start_paused = true)]
async fn a_held_write_is_denied_in_time_and_expires_with_its_turn() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, true);
    conflicts.claim(&key("a"), claim(&["f"], 3600)).unwrap();
    let late = conflicts.writes_by("b", "f").wait();
    drop(conflicts.writes_by("c", "f").wait());
    assert!(late.settled().await.unwrap_err().message.contains("in time"));
    assert_eq!(conflicts.shown(), ["c1 held denied b a", "c2 held expired c a"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_close_a_circle_is_refused() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, true);
    assert!(conflicts.writes_by("a", "f").passes() && conflicts.writes_by("b", "g").passes());
    let wait = conflicts.writes_by("b", "f").wait();
    let refused = conflicts.writes_by("a", "g").refusal();
    assert!(refused.message.contains("`a` → `b` → `a`"), "{}", refused.message);
    // With other kinds of waits, too.
    let (c, b) = (AgentId::new("c"), AgentId::new("b"));
    let asked = conflicts.0.waits.begin(&c, std::slice::from_ref(&b), WaitKind::Answer).unwrap();
    assert!(conflicts.writes_by("c", "h").passes());
    drop((wait, asked));
    assert!(matches!(conflicts.writes_by("b", "h"), WriteGate::Waits(_)));
}

#[tokio::test(start_paused = true)]
async fn a_person_decides_where_the_strategy_says_so() {
    let (conflicts, _events) = conflicts(ConflictStrategy::Person, false);
    assert!(conflicts.writes_by("a", "f").passes());
    let first = task::spawn(conflicts.writes_by("b", "f").wait().settled());
    let second = task::spawn(conflicts.writes_by("b", "f").wait().settled());
    conflicts.turn_over(&AgentId::new("a"), &SessionId::new("s"));
    sleep(Duration::from_secs(1)).await;
    assert!(!first.is_finished(), "the lock's end decides nothing");
    let ids: Vec<_> = conflicts.list(None).iter().map(|it| it.id.clone()).collect();
    let person = DecidedBy::Person;
    conflicts.resolve(&ids[0], HeldDecision::Allow, person.clone()).unwrap();
    let no = HeldDecision::Deny { message: Some("Not now.".to_owned()) };
    conflicts.resolve(&ids[1], no.clone(), DecidedBy::Web).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(second.await.unwrap().unwrap_err().message, "Not now.");
    let late = conflicts.resolve(&ids[1], no, person).unwrap_err();
    let why = "c2 does not wait for a decision: it is denied by a person on the web";
    assert_eq!(late.to_string(), why);
    assert_eq!(conflicts.shown(), ["c1 held allowed b a", "c2 held denied b a"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_writer_wins_and_is_reported() {
    let (conflicts, _events) = conflicts(ConflictStrategy::LastWriterWins, true);
    assert!(conflicts.writes_by("a", "f").passes() && conflicts.writes_by("b", "f").passes());
    assert!(conflicts.writes_by("b", "f").passes());
    assert!(!conflicts.blocks(&AgentId::new("a"), "f"));
    assert_eq!(conflicts.shown(), ["c1 lost_update allowed b a"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_lasts_for_its_time_and_covers_a_folder() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, false);
    let claimed = conflicts.claim(&key("a"), claim(&["src", "f"], 60)).unwrap();
    assert_eq!(claimed.locks, [(path("src"), 1), (path("f"), 2)]);
    for (of, blocked) in [("src/x/y", true), ("src", true), ("srcs", false), ("f/g", true)] {
        assert_eq!(conflicts.blocks(&AgentId::new("b"), of), blocked, "{of}");
    }
    assert!(matches!(
        conflicts.claim(&key("b"), claim(&["free", "src/x"], 60)),
        Err(ClaimError::HeldBy(_))
    ));
    assert!(!conflicts.blocks(&AgentId::new("a"), "free"), "all or nothing");
    assert!(conflicts.writes_by("b", "lib/x").passes());
    assert!(matches!(conflicts.claim(&key("a"), claim(&["lib"], 60)), Err(ClaimError::HeldBy(_))));
    // It outlasts the turn, and a write to it.
    assert!(conflicts.writes_by("a", "f").passes());
    conflicts.turn_over(&AgentId::new("a"), &SessionId::new("s"));
    assert!(conflicts.blocks(&AgentId::new("b"), "f"));
    sleep(Duration::from_mins(1)).await;
    assert!(!conflicts.blocks(&AgentId::new("b"), "f"));
}

#[tokio::test(start_paused = true)]
async fn a_late_holder_releases_nothing_of_the_next() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, false);
    let claimed = conflicts.claim(&key("a"), claim(&["f"], 1)).unwrap();
    let fence = claimed.locks[0].1;
    sleep(Duration::from_secs(2)).await;
    conflicts.claim(&key("b"), claim(&["f"], 60)).unwrap();
    let release = |by: &str, fence| conflicts.release(&key(by), &[path("f")], fence);
    assert_eq!(release("a", Some(fence)), Err(ClaimError::NotHeld(path("f"))));
    assert_eq!(release("b", Some(fence)), Err(ClaimError::NotHeld(path("f"))));
    assert!(conflicts.blocks(&AgentId::new("a"), "f"));
    assert_eq!(release("b", Some(fence + 1)), Ok(vec![path("f")]));
    assert!(!conflicts.blocks(&AgentId::new("a"), "f"));
}

#[tokio::test(start_paused = true)]
async fn one_agents_locks_are_bounded() {
    let (conflicts, _events) = conflicts(ConflictStrategy::FirstWriterWins, false);
    for n in 0..1500 {
        assert!(conflicts.writes_by("a", &format!("f{n}")).passes());
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert_eq!(conflicts.locks().len(), 1000);
    assert!(conflicts.blocks(&AgentId::new("b"), "f1499"));
    assert!(!conflicts.blocks(&AgentId::new("b"), "f0"), "the oldest made room");
    assert!(conflicts.writes_by("b", "f0").passes());
}
