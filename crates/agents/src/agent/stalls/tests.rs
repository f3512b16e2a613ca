#![allow(clippy::unwrap_used)]
//! Tests on paused time when a stall is reported.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::model::{Activity, ActivityKind, SessionId};
use eisen_base::task;

struct Bench {
    vitals: Arc<Vitals>,
    cpu_ms: Arc<AtomicU64>,
    reported: watch::Receiver<Option<String>>,
}

fn bench(after: u64) -> Bench {
    let (vitals, cpu_ms) = (Vitals::new(), Arc::new(AtomicU64::new(7000)));
    let (report, reported) = watch::channel(None);
    let used = cpu_ms.clone();
    let cpu = move || used.load(Ordering::Relaxed);
    task::spawn(watch_over(vitals.clone(), Duration::from_secs(after), cpu, report));
    Bench { vitals, cpu_ms, reported }
}

impl Bench {
    fn report(&self, kind: ActivityKind) {
        self.vitals.update(&Activity { session: SessionId::new("s"), kind });
    }

    fn turn_begins(&self) {
        self.report(ActivityKind::TurnBegan);
    }

    fn turn_ends(&self, reason: Option<&str>) {
        let reason = reason.map(Into::into);
        self.report(ActivityKind::TurnEnded { stop_reason: "x".into(), reason });
    }

    /// Returns the first word of the report after this number of seconds.
    async fn after(&self, seconds: u64) -> String {
        sleep(Duration::from_secs(seconds)).await;
        let reported = self.reported.borrow().clone().unwrap_or_default();
        reported.split(' ').next().unwrap_or_default().to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn silence_without_cpu_in_a_turn_is_a_stall_until_something_is_said() {
    let mut bench = bench(300);
    // Between turns it may be silent for ever.
    assert_eq!(bench.after(10_000).await, "");
    bench.turn_begins();
    assert_eq!(bench.after(200).await, "");
    bench.vitals.record_activity();
    assert_eq!(bench.after(290).await, "");
    assert_eq!(bench.after(45).await, "stalled:");
    bench.reported.mark_unchanged();
    assert_eq!(bench.after(10_000).await, "stalled:");
    assert!(!bench.reported.has_changed().unwrap(), "it is reported once");
    bench.vitals.record_activity();
    assert_eq!(bench.after(2).await, "");
    assert_eq!(bench.after(335).await, "stalled:");
    bench.turn_ends(None);
    assert_eq!(bench.after(1).await, "");
}

#[tokio::test(start_paused = true)]
async fn work_is_no_stall_and_housekeeping_no_work() {
    let bench = bench(100);
    bench.turn_begins();
    for _ in 0..100 {
        bench.cpu_ms.fetch_add(1000, Ordering::Relaxed);
        assert_eq!(bench.after(10).await, "");
    }
    // A thousandth of a core.
    for _ in 0..13 {
        bench.cpu_ms.fetch_add(10, Ordering::Relaxed);
        bench.after(10).await;
    }
    assert_eq!(bench.after(0).await, "stalled:");
    bench.cpu_ms.fetch_add(9000, Ordering::Relaxed);
    assert_eq!(bench.after(20).await, "");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_somebody_else_does_not_stall() {
    let bench = bench(60);
    bench.turn_begins();
    bench.after(50).await;
    let (held, asked) = (bench.vitals.wait(), bench.vitals.wait());
    assert_eq!(bench.after(10_000).await, "");
    drop(held);
    assert_eq!(bench.after(10_000).await, "");
    drop(asked);
    assert_eq!(bench.after(50).await, "");
    assert_eq!(bench.after(20).await, "stalled:");
}

#[tokio::test(start_paused = true)]
async fn a_failed_turn_is_reported_until_one_goes_well() {
    let bench = bench(60);
    bench.turn_begins();
    bench.turn_ends(Some(&"overloaded (transient): x".repeat(100)));
    bench.after(1).await;
    let reported = bench.reported.borrow().clone().unwrap();
    assert!(reported.starts_with("its last turn failed: overloaded (transient)"), "{reported}");
    assert!(reported.ends_with('…') && reported.len() < 400, "{reported}");
    bench.turn_begins();
    assert_eq!(bench.after(1).await, "its");
    assert_eq!(bench.after(70).await, "stalled:");
    bench.turn_ends(None);
    assert_eq!(bench.after(1).await, "");
}

fn is_since_prompt(silence: &Silence) -> bool {
    matches!(silence, Silence::Lasted { since_prompt: true, .. })
}

#[tokio::test(start_paused = true)]
async fn who_shows_no_progress_in_a_turn_is_silent_unless_a_tool_runs_or_somebody_is_asked() {
    let bench = bench(0);
    let calls = Arc::new(LiveCalls::default());
    let (vitals, running) = (bench.vitals.clone(), calls.clone());
    let minute = Duration::from_mins(1);
    let began = Instant::now();
    let silent = task::spawn(async move {
        let silence = silence(&vitals, &running, minute).await;
        (is_since_prompt(&silence), began.elapsed().as_secs())
    });
    bench.after(1000).await;
    bench.turn_begins();
    bench.after(50).await;
    bench.vitals.record_activity();
    let call = |kind| calls.update(&Activity { session: SessionId::new("s"), kind });
    let cwd: Arc<std::path::Path> = Arc::from(std::path::Path::new("/"));
    call(ActivityKind::Runs { call: "prompt 3".into(), cwd: cwd.clone(), said: vec!["x".into()] });
    call(ActivityKind::Runs { call: "1".into(), cwd, said: vec!["make".into()] });
    bench.after(1000).await;
    call(ActivityKind::Ran { call: "1".into(), failed: false });
    bench.vitals.record_activity();
    bench.after(50).await;
    let asked = bench.vitals.wait();
    bench.after(1000).await;
    drop(asked);
    assert_eq!(silent.await.unwrap(), (false, 3160));

    // Of a later turn none has come.
    bench.turn_ends(None);
    bench.after(10).await;
    let (vitals, running) = (bench.vitals.clone(), calls.clone());
    let silent = async move { is_since_prompt(&silence(&vitals, &running, minute).await) };
    let silent = task::spawn(silent);
    bench.turn_begins();
    assert!(silent.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_is_not_waited_for_whatever_the_agent_says() {
    let bench = bench(0);
    bench.turn_begins();
    let asked = bench.vitals.wait();
    bench.vitals.set_back("no credit: the provider".into());
    bench.report(ActivityKind::Troubled { why: "it tries again".into() });
    bench.vitals.troubled("connection failed".into());
    let (vitals, calls) = (bench.vitals.clone(), LiveCalls::default());
    let minute = Duration::from_mins(1);
    let silent = task::spawn(async move { silence(&vitals, &calls, minute).await });
    bench.after(1000).await;
    let began = Instant::now();
    drop(asked);
    assert_eq!(silent.await.unwrap(), Silence::Refused("no credit: the provider".into()));
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Progress ends it.
    bench.vitals.set_back("no credit".into());
    bench.vitals.record_activity();
    let state = bench.vitals.watch().borrow().clone();
    assert_eq!((state.set_back, state.trouble), (None, None));
}

#[tokio::test(start_paused = true)]
async fn zero_is_for_ever() {
    let bench = bench(0);
    bench.turn_begins();
    assert_eq!(bench.after(1_000_000).await, "");
    bench.turn_ends(Some("x"));
    assert_eq!(bench.after(1).await, "its");
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_is_waited_for_is_named_and_one_made_at_once_is_not() {
    let vitals = Vitals::new();
    let (report, mut reported) = watch::channel(None);
    task::spawn(publish_held(vitals.clone(), report));
    let long = vitals.wait_for("read tools/a.sh");
    reported.changed().await.unwrap();
    let why = reported.borrow_and_update().clone().unwrap();
    assert!(why.contains("read tools/a.sh") && why.contains("eisen-core inbox"), "{why}");
    drop(vitals.wait_for("read tools/b.sh"));
    drop(long);
    reported.changed().await.unwrap();
    assert_eq!(*reported.borrow_and_update(), None);
    drop(vitals.wait_for("read tools/c.sh"));
    sleep(Duration::from_secs(10)).await;
    assert!(!reported.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_an_agent_waits_for_others_does_not_count() {
    let vitals = Vitals::new();
    let minute = Duration::from_mins(1);
    assert_eq!(vitals.within(minute, sleep(Duration::from_secs(61))).await, None);
    let began = Instant::now();
    let work = async {
        sleep(Duration::from_secs(30)).await;
        let waits = vitals.wait_for("read x");
        sleep(Duration::from_hours(1)).await;
        drop(waits);
        sleep(Duration::from_secs(31)).await;
    };
    assert_eq!(vitals.within(minute, work).await, None);
    assert_eq!(began.elapsed(), Duration::from_secs(3600 + 60));
    assert_eq!(vitals.within(minute, async { 7 }).await, Some(7));
}
