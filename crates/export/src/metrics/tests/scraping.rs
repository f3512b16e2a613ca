use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use eisen_base::task;
use tokio::time::advance;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::bus::{Backlog, Bus};
use crate::line::Direction;
use crate::metrics::{FRESH, Figures, Look, Metrics, PATIENCE, Tally};

/// Metrics of a bus, whose figures say how often they were read.
fn start(bus: &Bus, cancel: &CancellationToken) -> (Metrics, tokio::task::JoinHandle<()>) {
    let reads = AtomicUsize::new(0);
    let look: Look = Box::new(move || {
        let pending = reads.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move { Figures { pending, ..Figures::default() } })
    });
    let tally = Arc::new(Tally::default());
    let (metrics, following) = Metrics::start(bus.subscribe(), tally, look, cancel.clone());
    (metrics, task::spawn(following))
}

fn pending_in(page: &str) -> &str {
    let line = page.lines().find_map(|line| line.strip_prefix("eisen_decisions_pending "));
    line.unwrap_or_else(|| panic!("nothing pending in {page}"))
}

#[tokio::test(start_paused = true)]
async fn what_is_published_is_on_the_next_page() {
    let (bus, cancel) = (Bus::new(Backlog::of(10)), CancellationToken::new());
    let (metrics, following) = start(&bus, &cancel);
    bus.publish(Event::Blocked(access("b1", BlockedStatus::Denied, 0)));
    let record = Record::Spent(spending("m", "USD", 0.5));
    bus.publish(Event::Record { key: key("s"), record, turn: None, timestamp_ms: 0 });
    tokio::task::yield_now().await;
    let page = metrics.render(None).await;
    assert_eq!(page.content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(page.body.contains("eisen_accesses_blocked_total{via=\"fs\",status=\"denied\"} 1\n"));
    assert!(page.body.contains("eisen_cost_total{model=\"m\",currency=\"USD\"} 0.5\n"));
    let page = metrics.render(Some("application/openmetrics-text")).await;
    assert!(page.body.ends_with("# EOF\n"));
    cancel.cancel();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn relays_and_doorbells_count_from_the_start_of_the_metrics() {
    let (bus, tally) = (Bus::new(Backlog::of(10)), Arc::new(Tally::default()));
    // Both are handed out before anybody may read what they count.
    let work = || {
        tally.relayed(Direction::ToAgent, b"{}\n");
        tally.rang(Duration::from_millis(1));
        tally.is_read()
    };
    assert!(!work());
    let look: Look = Box::new(|| Box::pin(async { Figures::default() }));
    let cancel = CancellationToken::new();
    let (metrics, _following) = Metrics::start(bus.subscribe(), Arc::clone(&tally), look, cancel);
    assert!(work());
    let page = metrics.render(None).await.body;
    for counted in [
        "eisen_relay_lines_total{direction=\"to_agent\"} 1\n",
        "eisen_doorbell_call_duration_seconds_count 1\n",
    ] {
        assert!(page.contains(counted), "{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_says_how_much_it_missed() {
    let (bus, cancel) = (Bus::new(Backlog::of(10)), CancellationToken::new());
    let (metrics, _following) = start(&bus, &cancel);
    for number in 0..25 {
        bus.publish(Event::Blocked(access(&format!("b{number}"), BlockedStatus::Denied, 0)));
    }
    tokio::task::yield_now().await;
    let page = metrics.render(None).await.body;
    let of = |name: &str| {
        let value = page.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or_else(|| panic!("no {name}in {page}")).parse::<u64>().unwrap()
    };
    let missed = of("eisen_metrics_missed_events_total ");
    let counted = of("eisen_accesses_blocked_total{via=\"fs\",status=\"denied\"} ");
    assert_eq!((missed > 0, missed + counted), (true, 25));
}

#[tokio::test(start_paused = true)]
async fn scrapes_that_follow_at_once_measure_once() {
    let (bus, cancel) = (Bus::new(Backlog::of(10)), CancellationToken::new());
    let (metrics, _following) = start(&bus, &cancel);
    let (first, second) = tokio::join!(metrics.render(None), metrics.render(None));
    assert_eq!((pending_in(&first.body), pending_in(&second.body)), ("1", "1"));
    advance(FRESH).await;
    assert_eq!(pending_in(&metrics.render(None).await.body), "2");
}

#[tokio::test(start_paused = true)]
async fn agents_that_do_not_answer_do_not_hold_up_a_scrape() {
    let bus = Bus::new(Backlog::of(10));
    let look: Look = Box::new(|| Box::pin(pending()));
    let tally = Arc::new(Tally::default());
    let (metrics, following) =
        Metrics::start(bus.subscribe(), tally, look, CancellationToken::new());
    let began = tokio::time::Instant::now();
    let page = metrics.render(None).await.body;
    assert_eq!(began.elapsed(), PATIENCE);
    assert!(page.contains("eisen_relay_lines_total{direction=\"to_agent\"} 0\n"), "{page}");
    assert!(!page.contains("eisen_decisions_pending"), "{page}");
    drop(following);
}

#[tokio::test]
async fn the_end_of_the_bus_ends_it() {
    let (bus, cancel) = (Bus::new(Backlog::of(10)), CancellationToken::new());
    let (_metrics, following) = start(&bus, &cancel);
    drop(bus);
    following.await.unwrap();
}
