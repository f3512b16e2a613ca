#![allow(clippy::unwrap_used)]
//! The relay with a protocol of words instead of ACP: it must not matter which.

mod bench;
mod kernel;

use eisen_base::task;
use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use self::bench::{Options, ZONED, bench, line};
use super::*;
use crate::bus::Received;
use crate::model::{BlockedId, BlockedStatus, Event, GrantSpan};
use crate::routing::Decision;

#[tokio::test]
async fn every_byte_passes_both_ways_without_a_zone() {
    let mut bench = bench(&Options { zoned: false, ..ZONED });
    let odd = b"read 1 s out/x\r\n\xff\xfe not UTF-8\n\n{\"torn\n no newline at the end";
    bench.agent.write_all(odd).await.unwrap();
    bench.agent.shutdown().await.unwrap();
    bench.client.write_all(odd).await.unwrap();
    bench.client.shutdown().await.unwrap();
    let mut heard = Vec::new();
    bench.agent.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, odd);
    bench.ended.send("done".to_owned()).unwrap();
    heard.clear();
    bench.client.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, odd);
    bench.relay.await.unwrap().0.unwrap();
    assert_eq!(bench.tally.flows(), [(5, odd.len() as u64); 2]);
}

#[tokio::test]
async fn a_long_line_passes_through_small_pipes_while_neither_side_waits_for_the_other() {
    let bench = bench(&Options { buffer: 64, ..ZONED });
    let long = format!("{}\n", "x".repeat(3 << 20));
    let (mut agent, mut client) = (Vec::new(), Vec::new());
    let (from_agent, to_agent) = tokio::io::split(bench.agent.into_inner());
    let (from_client, to_client) = tokio::io::split(bench.client.into_inner());
    let write = |mut to: tokio::io::WriteHalf<DuplexStream>, text: String| async move {
        to.write_all(text.as_bytes()).await.unwrap();
        to
    };
    let mut from_agent = from_agent.take(long.len() as u64);
    let mut from_client = from_client.take(long.len() as u64);
    // Both write before either is known to read: directions do not wait for each other.
    let _kept = tokio::join!(
        write(to_agent, long.clone()),
        write(to_client, long.clone()),
        from_agent.read_to_end(&mut agent),
        from_client.read_to_end(&mut client),
    );
    assert!(agent == long.as_bytes() && client == long.as_bytes());
    bench.ended.send(String::new()).unwrap();
}

#[tokio::test]
async fn a_flood_of_short_lines_leaves_the_thread_to_others() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let flood = "x\n".repeat(1 << 20);
    let mut bench = bench(&Options { zoned: false, buffer: flood.len(), ..ZONED });
    bench.agent_says(&flood).await;
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = task::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut heard = vec![0; flood.len()];
    bench.client.read_exact(&mut heard).await.unwrap();
    other.abort();
    assert!(heard == flood.as_bytes());
    let turns = turns.load(Ordering::Relaxed);
    assert!(turns >= 16, "others had {turns} turns beside two megabytes of lines");
}

#[tokio::test]
async fn what_the_zone_denies_is_refused_and_all_else_passes_in_order() {
    let mut bench = bench(&ZONED);
    bench.agent_says("one\nread 1 s in/a\ntwo\nread 2 s out/b\nambiguous 3\nthree\n").await;
    for expected in ["one\n", "read 1 s in/a\n", "two\n", "three\n"] {
        assert_eq!(line(&mut bench.client).await, expected);
    }
    let mut replies = [line(&mut bench.agent).await, line(&mut bench.agent).await];
    replies.sort();
    assert_eq!(replies, ["invalid 3\n", "outside 2 out/b\n"]);
    let permit = bench.permits.take("1").unwrap();
    assert!(permit[0].real.ends_with("in/a"));
    assert!(bench.permits.take("2").is_none());
}

#[tokio::test]
async fn a_held_request_leaves_the_stream_and_passes_once_all_of_it_is_allowed() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.agent_says("read 1 s out/a in/b out/c\nlater\n").await;
    assert_eq!(line(&mut bench.client).await, "later\n");
    assert_eq!(bench.blocked().await, (BlockedId::new("b1"), BlockedStatus::Pending));
    bench.allow("b1").await;
    assert_eq!(bench.blocked().await.1, BlockedStatus::Allowed);
    assert_eq!(bench.blocked().await, (BlockedId::new("b2"), BlockedStatus::Pending));
    bench.allow("b2").await;
    assert_eq!(line(&mut bench.client).await, "read 1 s out/a in/b out/c\n");
    assert_eq!(bench.permits.take("1").unwrap().len(), 3);
}

#[tokio::test]
async fn content_answers_in_place_of_the_client() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.agent_says("read 7 s out/a\n").await;
    bench.blocked().await;
    let decision = Decision::Answer { content: "text".to_owned() };
    bench
        .routing
        .resolve(BlockedId::new("b1"), decision, crate::routing::Decider::Person)
        .await
        .unwrap();
    assert_eq!(line(&mut bench.agent).await, "content 7 text\n");
}

#[tokio::test]
async fn cancelling_lets_go_of_what_is_held() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.agent_says("read 1 s out/a\nread 2 other out/a\nread 3 s out/b\n").await;
    for _ in 0..3 {
        bench.blocked().await;
    }
    bench.client.write_all(b"cancel s\n").await.unwrap();
    for expected in ["cancel s\n", "cancelled 1\n", "cancelled 3\n"] {
        assert_eq!(line(&mut bench.agent).await, expected);
    }
    let mut expired = [bench.blocked().await, bench.blocked().await];
    expired.sort_by_key(|(id, _)| id.clone());
    let status = BlockedStatus::Expired;
    assert_eq!(expired, [(BlockedId::new("b1"), status), (BlockedId::new("b3"), status)]);
    bench.agent_says("drop 2 other\n").await;
    assert_eq!(line(&mut bench.agent).await, "cancelled 2\n");
    assert_eq!(bench.blocked().await, (BlockedId::new("b2"), status));
}

#[tokio::test]
async fn what_is_denied_right_before_the_end_of_its_turn_is_denied_and_reported() {
    let mut bench = bench(&ZONED);
    bench.client.write_all(b"prompt s\n").await.unwrap();
    assert_eq!(line(&mut bench.agent).await, "prompt s\n");
    bench.agent_says("read 1 s out/a\ndone s\n").await;
    assert_eq!(line(&mut bench.agent).await, "outside 1 out/a\n");
    assert_eq!(bench.blocked().await, (BlockedId::new("b1"), BlockedStatus::Denied));
}

#[tokio::test]
async fn an_agent_that_is_to_end_holds_nothing_and_is_sent_nothing() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.agent_says("read 1 s out/a\n").await;
    bench.blocked().await;
    bench.handle.close_agent().await;
    assert_eq!(line(&mut bench.agent).await, "cancelled 1\n");
    assert_eq!(line(&mut bench.agent).await, "", "its input is closed");
    assert_eq!(bench.blocked().await, (BlockedId::new("b1"), BlockedStatus::Expired));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_closes_its_output_and_lives_is_of_no_use() {
    let bench = bench(&ZONED);
    drop(bench.agent);
    assert!(matches!(bench.relay.await.unwrap().0, Err(ProxyError::OutputClosed)));
}

#[tokio::test]
async fn the_death_of_the_agent_ends_its_turns_and_what_it_held() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.client.write_all(b"prompt s\n").await.unwrap();
    assert_eq!(line(&mut bench.agent).await, "prompt s\n");
    bench.agent_says("read 1 s out/a\n").await;
    bench.blocked().await;
    bench.agent_says("last words\n").await;
    bench.ended.send("was killed".to_owned()).unwrap();
    drop(bench.agent);
    assert_eq!(line(&mut bench.client).await, "last words\n");
    bench.relay.await.unwrap().0.unwrap();
    let (mut expired, mut reason) = (false, None);
    while !expired || reason.is_none() {
        match &**bench.events.event().await {
            Event::Blocked(access) => expired = access.status == BlockedStatus::Expired,
            Event::Turn(turn) => reason = turn.reason.clone(),
            _ => {}
        }
    }
    assert_eq!(reason.as_deref(), Some("was killed"));
}

#[tokio::test]
async fn an_access_past_the_gate_is_reported() {
    let mut bench = bench(&ZONED);
    bench.agent_says("did s in/a\ndid s out/a\n").await;
    assert_eq!(bench.blocked().await, (BlockedId::new("b1"), BlockedStatus::Observed));
}

#[tokio::test]
async fn terminals_can_be_refused_and_permissions_left_to_the_orchestrator() {
    let mut bench = bench(&Options { terminals: false, orchestrator_permits: true, ..ZONED });
    bench.agent_says("run 1 s in/a\n").await;
    assert_eq!(line(&mut bench.agent).await, "no terminals 1\n");
    bench.agent_says("may 2 s in/a\n").await;
    assert_eq!(bench.blocked().await, (BlockedId::new("b1"), BlockedStatus::Pending));
    bench.allow("b1").await;
    assert_eq!(line(&mut bench.client).await, "may 2 s in/a\n");
}

#[tokio::test]
async fn a_line_over_the_limit_breaks_the_relay_off_with_its_reason() {
    let mut bench = bench(&Options { buffer: 1 << 20, ..ZONED });
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..=64 {
        if bench.agent.write_all(&chunk).await.is_err() {
            break;
        }
    }
    let (relayed, streams) = bench.relay.await.unwrap();
    let error = relayed.unwrap_err();
    assert!(matches!(error, ProxyError::Line { side: "the agent", .. }), "{error}");
    // Until then the reason can be reported, and not only the agent's end.
    assert!(line(&mut bench.agent).now_or_never().is_none(), "its streams are open");
    drop(streams);
    assert_eq!(line(&mut bench.agent).await, "");
}

#[tokio::test]
async fn settled_means_that_what_was_relayed_is_with_the_tracker() {
    let mut bench = bench(&ZONED);
    bench.agent_says("talk\n").await;
    assert_eq!(line(&mut bench.client).await, "talk\n");
    bench.handle.settled().await;
    bench.tracker.settled().await;
    let mut reported = std::iter::from_fn(|| bench.events.try_recv());
    let is_talk =
        |event: &Event| matches!(event, Event::Delta(delta) if &*delta.updates[0].path == "talk");
    assert!(
        reported.any(|received| matches!(received, Received::Event(_, event) if is_talk(&event)))
    );
}

#[tokio::test]
async fn an_access_past_the_gate_ends_its_turn_once_if_it_is_to() {
    let mut bench = bench(&Options { on_violation: OnViolation::Cancel, ..ZONED });
    // Outside of turns there is nothing to end.
    bench.agent_says("did s out/a\n").await;
    bench.blocked().await;
    line(&mut bench.client).await;
    for turn in ["first", "second"] {
        bench.client.write_all(b"prompt s\nprompt other\n").await.unwrap();
        assert_eq!(line(&mut bench.agent).await, "prompt s\n", "{turn}");
        assert_eq!(line(&mut bench.agent).await, "prompt other\n");
        bench.agent_says("did s in/a\ndid s out/b\ndid s out/c\n").await;
        assert_eq!(line(&mut bench.agent).await, "cancel s\n");
        bench.blocked().await;
        bench.blocked().await;
        // Its client would still give permissions.
        bench.agent_says("may 1 s in/a\nmay 2 other in/a\n").await;
        assert_eq!(line(&mut bench.agent).await, "cancelled 1\n");
        bench.agent_says("done s\ndone other\n").await;
        for expected in ["did s in/a", "did s out/b", "did s out/c", "may 2 other in/a", "done s"] {
            assert_eq!(line(&mut bench.client).await, format!("{expected}\n"));
        }
        line(&mut bench.client).await;
    }
    // What was reported right before the end of its turn cancels no later one.
    bench.client.write_all(b"prompt s\n").await.unwrap();
    assert_eq!(line(&mut bench.agent).await, "prompt s\n");
    bench.agent_says("did s out/d\ndone s\n").await;
    bench.blocked().await;
    bench.client.write_all(b"prompt s\n").await.unwrap();
    bench.handle.settled().await;
    assert_eq!(line(&mut bench.agent).await, "prompt s\n");
    bench.client.write_all(b"the end\n").await.unwrap();
    assert_eq!(line(&mut bench.agent).await, "the end\n");
}

#[tokio::test]
async fn an_access_past_the_gate_ends_the_agent_if_it_is_to() {
    let mut bench = bench(&Options { on_violation: OnViolation::Stop, ..ZONED });
    bench.client.write_all(b"prompt s\n").await.unwrap();
    bench.agent_says("did s in/a\ndid s out/a\n").await;
    let why = "it read `out/a`, outside its zone (b1), and is stopped for it";
    assert_eq!(bench.relay.await.unwrap().0.unwrap_err().to_string(), why);
    loop {
        if let Event::Turn(turn) = &**bench.events.event().await {
            assert_eq!(turn.reason.as_deref(), Some(why));
            return;
        }
    }
}

#[tokio::test]
async fn what_a_dead_agent_said_last_is_judged_like_all_else() {
    let mut bench = bench(&Options { on_violation: OnViolation::Stop, ..ZONED });
    bench.agent_says("did s out/a\nread 1 s out/b\n").await;
    bench.ended.send("exited with status 0".to_owned()).unwrap();
    bench.agent.shutdown().await.unwrap();
    let why = "it read `out/a`, outside its zone (b1), and is stopped for it";
    assert_eq!(bench.relay.await.unwrap().0.unwrap_err().to_string(), why);
    let mut reported = Vec::new();
    while reported.len() < 2 {
        if let Event::Blocked(access) = &**bench.events.event().await {
            reported.push(access.status);
        }
    }
    assert_eq!(reported, [BlockedStatus::Observed, BlockedStatus::Denied]);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_anew_as_its_agent_dies_is_not_waited_for() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    bench.agent_says("read 1 s out/a\n").await;
    bench.blocked().await;
    let allow = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    bench
        .routing
        .resolve(BlockedId::new("b1"), allow, crate::routing::Decider::Person)
        .await
        .unwrap();
    bench.blocked().await;
    assert_eq!(line(&mut bench.client).await, "read 1 s out/a\n");
    // The first path is allowed at once.
    bench.agent_says("read 2 s out/a out/b\n").await;
    bench.ended.send("was killed".to_owned()).unwrap();
    bench.agent.shutdown().await.unwrap();
    bench.relay.await.unwrap().0.unwrap();
    let reported = std::iter::from_fn(|| bench.events.try_recv()).filter_map(|received| {
        let Received::Event(_, event) = received else { return None };
        let Event::Blocked(access) = &**event else { return None };
        Some(access.status)
    });
    assert!(reported.eq([BlockedStatus::Pending, BlockedStatus::Expired]));
}

#[tokio::test]
async fn an_agent_waits_while_a_request_of_its_is_held() {
    let mut bench = bench(&Options { hold: true, ..ZONED });
    let mut state = bench.vitals.watch();
    bench.client.write_all(b"prompt s\n").await.unwrap();
    state.wait_for(ProxyState::is_at_work).await.unwrap();
    bench.agent_says("read 1 s out/a\nread 2 s out/b\n").await;
    state.wait_for(|state| !state.is_at_work()).await.unwrap();
    bench.blocked().await;
    bench.blocked().await;
    bench.allow("b1").await;
    assert_eq!(line(&mut bench.client).await, "read 1 s out/a\n");
    assert!(!state.borrow().is_at_work());
    bench.allow("b2").await;
    state.wait_for(ProxyState::is_at_work).await.unwrap();
    bench.agent_says("done s\n").await;
    state.wait_for(|state| state.turns == 0).await.unwrap();
}

#[tokio::test]
async fn a_turn_that_ends_on_a_denied_permission_says_so() {
    let mut bench = bench(&ZONED);
    let turns = [
        ("may 1 s out/a\n", "done s\n"),
        ("may 2 s out/a\n", "call s x\ndone s\n"),
        ("may 3 s in/a\n", "done s\n"),
        ("read 4 s out/a\n", "done s\n"),
    ];
    let mut reasons = Vec::new();
    for (said, then) in turns {
        bench.client.write_all(b"prompt s\n").await.unwrap();
        assert_eq!(line(&mut bench.agent).await, "prompt s\n");
        bench.agent_says(said).await;
        if said.contains("out/a") {
            assert!(line(&mut bench.agent).await.starts_with("outside"));
        }
        bench.agent_says(then).await;
        while line(&mut bench.client).await != "done s\n" {}
        bench.handle.settled().await;
        let end = bench.handle.turn_end(crate::model::SessionId::new("s")).await;
        reasons.push(end.unwrap().reason);
    }
    let why = "it ended after a permission was denied: `out/a` (b1)";
    assert_eq!(reasons, [Some(why.into()), None, None, None]);
    bench.tracker.settled().await;
    loop {
        if let Event::Turn(end) = &**bench.events.event().await {
            assert_eq!(end.reason.as_deref(), Some(why));
            break;
        }
    }
}
