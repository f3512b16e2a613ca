//! Tests which events become notices, without sending them.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use tokio::time::Instant;

use super::follow::{Follow, LocalTime};
use super::*;
use crate::model::{
    AgentId, AgentState, AgentStatus, BlockedStatus, ConflictId, ConflictKind, ConflictStatus,
    Event, STALLED, SessionId, SessionKey, SessionMode, Spent, TurnEnd,
};

const AFTER: Duration = Duration::from_secs(10);

fn channel(causes: &[Cause]) -> Channel {
    Channel { way: Way::Desktop, after: AFTER, causes: causes.to_vec(), quiet: Vec::new() }
}

fn access(id: &str, status: BlockedStatus) -> Event {
    Event::Blocked(blocked(id, status))
}

fn status(state: AgentState, reason: Option<&str>) -> AgentStatus {
    AgentStatus {
        agent: AgentId::new("ui"),
        state,
        pid: None,
        reason: reason.map(str::to_owned),
        restarts: 0,
        candidate: None,
        timestamp_ms: 0,
    }
}

/// The messages that are due after some seconds, with the channel of each.
fn due(follow: &mut Follow, start: Instant, seconds: u64) -> Vec<(usize, String)> {
    let due = follow.due(start + Duration::from_secs(seconds));
    due.into_iter().map(|(channel, notice)| (channel, notice.message)).collect()
}

#[test]
fn a_team_is_done_once_its_last_turn_has_ended() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    follow.set_channels(&[channel(&[Cause::Done])]);
    let turn = |stop_reason: &str| {
        Event::Turn(TurnEnd {
            key: SessionKey::new(AgentId::new("ui"), SessionId::new("s")),
            mode: SessionMode::SingleAgent,
            turn: 1,
            stop_reason: stop_reason.into(),
            reason: None,
            spent: Spent::default(),
        })
    };
    follow.event(&turn("end_turn"), start);
    assert!(!follow.is_done(start + Duration::from_secs(9)));
    assert!(follow.is_done(start + AFTER));
    // Another agent works: that is looked at again.
    follow.goes_on(start + AFTER);
    assert!(!follow.is_done(start + AFTER * 2));
    assert_eq!(due(&mut follow, start, 20), []);
    follow.event(&turn("cancelled"), start + AFTER * 2);
    let done = || [(0, "the team is done: no agent works any more".to_owned())];
    assert_eq!(due(&mut follow, start, 30), done());
    // Once for each time that it is.
    assert!(!follow.is_done(start + AFTER * 9));
    assert_eq!(due(&mut follow, start, 90), []);
    follow.event(&turn("end_turn"), start + AFTER * 9);
    assert_eq!(due(&mut follow, start, 100), done());
}

#[test]
fn a_notice_waits_for_the_end_of_a_quiet_time() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    let spans = ["22:00-23:00", "23:00-07:00"].map(|span| QuietSpan::parse(span).unwrap());
    let quiet = Channel { quiet: spans.to_vec(), ..channel(&[Cause::Pending]) };
    follow.set_channels(&[quiet, channel(&[Cause::Pending])]);
    // It is 22:30.
    let at = |seconds: u64| {
        let day = u64::from(22 * 3600 + 1800_u32) + seconds;
        move || LocalTime {
            at: start + Duration::from_secs(seconds),
            second: u32::try_from(day % 86_400).unwrap(),
        }
    };
    follow.set_time(at(0));
    follow.event(&access("b1", BlockedStatus::Pending), start);
    follow.event(&access("b2", BlockedStatus::Pending), start);
    assert_eq!(due(&mut follow, start, 10).iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1, 1]);
    let morning = 8 * 3600 + 1800;
    assert_eq!(follow.next(), Some(start + Duration::from_secs(morning)));
    // What is decided meanwhile is none in the morning.
    follow.event(&access("b2", BlockedStatus::Allowed), start + AFTER);
    follow.set_time(at(morning - 1));
    assert_eq!(due(&mut follow, start, morning - 1), []);
    follow.set_time(at(morning));
    let notices = due(&mut follow, start, morning);
    assert_eq!((notices.len(), notices[0].0, notices[0].1.contains("(b1)")), (1, 0, true));
    // One that is due when a quiet time begins waits, too.
    follow.set_time(at(86_400 - 1800 - 5));
    let now = start + Duration::from_secs(86_400 - 1800 - 5);
    follow.event(&access("b3", BlockedStatus::Pending), now);
    assert_eq!(follow.next(), Some(now + AFTER));
    assert!(follow.due(now + AFTER).iter().all(|(to, _)| *to == 1));
}

#[test]
fn a_pending_access_is_notified_once() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    follow.set_channels(&[channel(&[Cause::Pending]), channel(&[Cause::Error])]);
    follow.event(&access("b1", BlockedStatus::Pending), start);
    follow.event(&access("b2", BlockedStatus::Pending), start);
    follow.event(&access("b3", BlockedStatus::Denied), start);
    assert_eq!(follow.next(), Some(start + AFTER));
    assert_eq!(due(&mut follow, start, 9), []);
    follow.event(&access("b2", BlockedStatus::Allowed), start);
    // Its line may come again.
    follow.event(&access("b1", BlockedStatus::Pending), start + AFTER);
    let notices = due(&mut follow, start, 10);
    assert_eq!(
        notices,
        [(0, "ui wants to read `src/api/cart.rs`, and waits for a decision (b1)".to_owned())]
    );
    assert_eq!(due(&mut follow, start, 100), []);
    assert_eq!(follow.next(), None);
}

#[test]
fn a_reminder_comes_once_before_the_time_to_decide_is_over() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    follow.set_channels(&[channel(&[Cause::Pending])]);
    // Of eighty seconds a quarter is left; of ten minutes half a minute.
    for (id, seconds, reminded) in [("b1", 80, 60), ("b2", 600, 570)] {
        let (timestamp_ms, owners) = (now_ms(), vec![AgentId::new("api")]);
        let until_ms = Some(timestamp_ms + seconds * 1000);
        let of = blocked(id, BlockedStatus::Pending);
        let access = BlockedAccess { owners, until_ms, timestamp_ms, ..of };
        follow.event(&Event::Blocked(access.clone()), start);
        let first = follow.due(start + AFTER);
        let told = first[0].1.for_people();
        assert!(told.contains("\nowned by api; ") && told.ends_with(" left"), "{told}");
        // Its line may come again.
        follow.event(&Event::Blocked(access), start + AFTER);
        assert_eq!(due(&mut follow, start, reminded - 2), []);
        let reminder = due(&mut follow, start, reminded);
        assert!(
            reminder.len() == 1 && reminder[0].1.starts_with("the time to decide"),
            "{reminder:?}"
        );
        assert_eq!(due(&mut follow, start, reminded + 60), []);
        follow.event(&Event::Blocked(blocked(id, BlockedStatus::Allowed)), start);
    }
    // What is decided needs none.
    let until_ms = Some(now_ms() + 60_000);
    let access = BlockedAccess { until_ms, ..blocked("b3", BlockedStatus::Pending) };
    follow.event(&Event::Blocked(access), start);
    follow.event(&Event::Blocked(blocked("b3", BlockedStatus::Denied)), start);
    assert_eq!(follow.next(), None);
}

#[tokio::test(start_paused = true)]
async fn reasons_are_asked_at_once() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    follow.set_channels(&[channel(&[Cause::Pending]), channel(&[Cause::Pending])]);
    for id in ["b1", "b2", "b3"] {
        follow.event(&access(id, BlockedStatus::Pending), start);
    }
    let mut due = follow.due(start + AFTER);
    let why: WhyWaits = Box::new(|id| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Some(format!("why {id}"))
        })
    });
    explain(&mut due, &why).await;
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert!(due.iter().all(|(_, it)| it.why == it.id.as_ref().map(|id| format!("why {id}"))));
    assert_eq!(due.len(), 6);
}

#[test]
fn a_conflict_that_waits_is_notified_once() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    follow.set_channels(&[channel(&[Cause::Pending])]);
    let event = |id, status| Event::Conflict(conflict(id, status));
    follow.event(&event("c1", ConflictStatus::Pending), start);
    follow.event(&event("c2", ConflictStatus::Pending), start);
    follow.event(&event("c3", ConflictStatus::Denied), start);
    // The lock ended before anybody was needed.
    follow.event(&event("c2", ConflictStatus::Allowed), start);
    assert_eq!(due(&mut follow, start, 9), []);
    let told = "ui waits to write `src/x`, in conflict with api (c1)";
    assert_eq!(due(&mut follow, start, 10), [(0, told.to_owned())]);
    follow.event(&event("c1", ConflictStatus::Pending), start);
    assert_eq!(due(&mut follow, start, 100), []);
    // After events were missed.
    let conflicts = vec![conflict("c1", ConflictStatus::Pending)];
    follow.event(&event("c4", ConflictStatus::Pending), start);
    follow.resync(&Current { conflicts, ..Current::default() }, start);
    assert_eq!(due(&mut follow, start, 100), []);
}

#[test]
fn stalls_and_errors_are_distinguished_and_resolved_ones_forgotten() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    follow.set_channels(&[channel(&[Cause::Stall]), channel(&[Cause::Error])]);
    let stalled = format!("{STALLED} nothing goes on");
    for (state, reason) in [
        (AgentState::Ready, Some(stalled.as_str())),
        (AgentState::Ready, None),
        (AgentState::Ready, Some(stalled.as_str())),
    ] {
        follow.event(&Event::Agent(status(state, reason)), start);
    }
    assert_eq!(due(&mut follow, start, 10), [(0, format!("ui {stalled}"))]);
    let failed = status(AgentState::Ready, Some("its last turn failed: no money"));
    follow.event(&Event::Agent(failed), start);
    let failed = "ui has a problem: its last turn failed: no money".to_owned();
    assert_eq!(due(&mut follow, start, 10), [(1, failed)]);
    for _ in 0..2 {
        follow.event(&Event::Agent(status(AgentState::Error, Some("exit status 1"))), start);
    }
    assert_eq!(due(&mut follow, start, 10), [(1, "ui is in error: exit status 1".to_owned())]);
    follow.event(&Event::Agent(status(AgentState::Stopped, None)), start);
    assert_eq!(due(&mut follow, start, 100), []);
}

#[test]
fn a_new_channel_is_notified_of_open_issues_and_an_old_one_is_not() {
    let start = Instant::now();
    let mut follow = Follow::new("shop".to_owned());
    let (first, second) = (channel(&[Cause::Pending]), channel(&[Cause::Pending, Cause::Error]));
    follow.set_channels(std::slice::from_ref(&first));
    follow.event(&access("b1", BlockedStatus::Pending), start);
    assert_eq!(due(&mut follow, start, 10).len(), 1);
    follow.set_channels(&[second, first]);
    assert_eq!(due(&mut follow, start, 11)[0].0, 0);
    assert_eq!(due(&mut follow, start, 100), []);
    // After events were missed only what still stands counts.
    follow.event(&access("b2", BlockedStatus::Pending), start);
    let pending = vec![blocked("b3", BlockedStatus::Pending)];
    follow.resync(&Current { pending, ..Current::default() }, start);
    let notices: Vec<_> = follow.due(start + AFTER).into_iter().filter_map(|it| it.1.id).collect();
    assert_eq!(notices, ["b3", "b3"]);
}

fn conflict(id: &str, status: ConflictStatus) -> Conflict {
    Conflict {
        id: ConflictId::new(id),
        path: "src/x".into(),
        kind: ConflictKind::Held,
        status,
        agents: ["ui", "api"].map(AgentId::new).to_vec(),
        session: SessionId::new("s"),
        message: "`api` has `src/x` locked, and `ui` waits to write it".into(),
        decided_by: None,
        timestamp_ms: 0,
    }
}

fn blocked(id: &str, status: BlockedStatus) -> crate::model::BlockedAccess {
    eisen_testing::blocked_access(
        id,
        SessionKey::new(AgentId::new("ui"), SessionId::new("s")),
        status,
    )
}
