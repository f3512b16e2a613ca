//! Counts of the hot paths: relayed lines, and system calls that the kernel stopped. Whoever counts
//! never waits and needs no lock. Nothing is counted before somebody reads it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::catalog::{Metric, MetricKind};
use super::histogram::Histogram;
use super::series::Series;
use crate::line::Direction;

/// Buckets of [`Metric::DoorbellCallDuration`], with the infinite one.
const BUCKETS: usize = 12;

/// Shared by all relays and doorbells of a team. Until it is read it costs each of them one look.
#[derive(Default, Debug)]
pub struct Tally {
    is_read: AtomicBool,
    to_agent: Flow,
    to_client: Flow,
    doorbell: [AtomicU64; BUCKETS],
    doorbell_nanos: AtomicU64,
}

#[derive(Default, Debug)]
struct Flow {
    lines: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    /// Counts from now on.
    pub(super) fn start(&self) {
        self.is_read.store(true, Ordering::Relaxed);
    }

    /// Whether it counts; what is costly to measure is measured only then.
    pub fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Relaxed)
    }

    /// Counts the lines of a block that a relay forwards or withholds.
    pub fn relayed(&self, direction: Direction, block: &[u8]) {
        if !self.is_read() {
            return;
        }
        let flow = match direction {
            Direction::ToAgent => &self.to_agent,
            Direction::ToClient => &self.to_client,
        };
        let ends = memchr::memchr_iter(b'\n', block).count();
        let torn = usize::from(block.last().is_some_and(|last| *last != b'\n'));
        flow.lines.fetch_add((ends + torn) as u64, Ordering::Relaxed);
        flow.bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
    }

    /// Counts a stopped call that kept its doorbell for a time.
    pub fn rang(&self, time: Duration) {
        if !self.is_read() {
            return;
        }
        let seconds = time.as_secs_f64();
        let at = bounds().iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS - 1);
        if let Some(count) = self.doorbell.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.doorbell_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// One that somebody reads.
    pub fn started() -> std::sync::Arc<Self> {
        let tally = std::sync::Arc::<Self>::default();
        tally.start();
        tally
    }

    /// The lines and bytes to the agents, and to the clients.
    pub fn flows(&self) -> [(u64, u64); 2] {
        [&self.to_agent, &self.to_client]
            .map(|flow| (flow.lines.load(Ordering::Relaxed), flow.bytes.load(Ordering::Relaxed)))
    }

    /// The stopped calls.
    pub fn calls(&self) -> u64 {
        self.doorbell.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn add_to(&self, series: &mut Series) {
        for (direction, flow) in [("to_agent", &self.to_agent), ("to_client", &self.to_client)] {
            let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
            series.add(Metric::RelayLines, [direction.into()], of(&flow.lines));
            series.add(Metric::RelayBytes, [direction.into()], of(&flow.bytes));
        }
        let mut calls = Histogram::new(bounds());
        for ((_, sum), count) in calls.buckets.iter_mut().zip(&self.doorbell) {
            *sum = count.load(Ordering::Relaxed);
        }
        calls.sum = Duration::from_nanos(self.doorbell_nanos.load(Ordering::Relaxed)).as_secs_f64();
        series.set_histogram(Metric::DoorbellCallDuration, calls);
    }
}

fn bounds() -> &'static [f64] {
    match Metric::DoorbellCallDuration.spec().kind {
        MetricKind::Histogram(bounds) => bounds,
        _ => &[],
    }
}
