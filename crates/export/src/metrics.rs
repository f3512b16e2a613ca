//! Metrics of a team, for Prometheus: a fold of bus events, counts of the hot paths, figures that are
//! read for each scrape, and their text. Knows no HTTP.
//!
//! ```text
//! bus ─▶ fold ──────────▶ series ┐
//! relays, doorbells ─▶ tally ────┼─▶ page ─▶ text format 0.0.4, or OpenMetrics
//! owners of state ─▶ figures ────┘
//! ```
//!
//! Every label is bounded: its values are those of a closed list, or the first few that came, and
//! all others are `other`. No path, session or call is ever a label.

mod accept;
mod catalog;
mod cpu;
mod figures;
mod fold;
mod histogram;
mod labels;
mod page;
mod series;
mod tally;
#[cfg(test)]
mod tests;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::cpu::CpuClock;
use self::fold::MetricsFold;
use self::page::MetricsPage;
use self::series::Series;
use crate::bus::{Received, Subscriber};
use crate::model::{Topic, now_ms};

pub use figures::{AgentFigures, Figures, JournalFigures, PortFigures};
pub use page::Rendered;
pub use tally::Tally;

/// How long figures serve further scrapes: to measure agents reads every process of the machine.
const FRESH: Duration = Duration::from_secs(1);

/// How long the owners of state may take to answer; a scraper mostly waits for ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the figures of this moment.
pub type Look = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Figures> + Send>> + Send + Sync>;

/// The metrics of a team; cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<MetricsState>);

struct MetricsState {
    fold: Mutex<MetricsFold>,
    tally: Arc<Tally>,
    look: Look,
    seen: tokio::sync::Mutex<SeenFigures>,
}

/// The figures that were read last.
#[derive(Default)]
struct SeenFigures {
    at: Option<Instant>,
    /// None: they could not be read in time.
    figures: Option<Figures>,
    cpu: CpuClock,
}

impl Metrics {
    /// Starts to count, the tally too. The future follows the bus until `cancel`, or until the bus is closed.
    pub fn start(
        mut events: Subscriber,
        tally: Arc<Tally>,
        look: Look,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        events.want(Topic::Record);
        tally.start();
        let (fold, seen) = (Mutex::new(MetricsFold::default()), tokio::sync::Mutex::default());
        let metrics = Self(Arc::new(MetricsState { fold, tally, look, seen }));
        let this = metrics.clone();
        let following = async move {
            while let Some(Some(received)) = cancel.run_until_cancelled(events.recv()).await {
                let mut fold = this.0.fold.lock();
                match received {
                    Received::Event(_, event) => fold.event(&event, now_ms()),
                    Received::Missed(missed) => fold.missed(missed),
                }
            }
        };
        (metrics, following)
    }

    /// Returns the text of a scrape, in the format that the request's header `Accept` asks for.
    pub async fn render(&self, accept: Option<&str>) -> Rendered {
        MetricsPage::new(self.series().await).render(accept::format(accept))
    }

    async fn series(&self) -> Series {
        let inner = &self.0;
        let mut seen = inner.seen.lock().await;
        if seen.at.is_none_or(|at| at.elapsed() >= FRESH) {
            let figures = timeout(PATIENCE, (inner.look)()).await.ok();
            if let Some(figures) = &figures {
                seen.cpu.measure(&figures.agents);
            } else {
                tracing::warn!("a scrape lacks figures: the agents did not answer in time");
            }
            (seen.at, seen.figures) = (Some(Instant::now()), figures);
        }
        let mut series = inner.fold.lock().series().clone();
        inner.tally.add_to(&mut series);
        if let Some(figures) = &seen.figures {
            figures.add_to(&mut series);
            seen.cpu.add_to(&mut series);
        }
        series
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
