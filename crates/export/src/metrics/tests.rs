#![allow(clippy::unwrap_used)]

mod docs;
mod folding;
mod hostile;
mod pages;
mod scraping;

use std::sync::Arc;

use super::accept::Format;
use super::catalog::Metric;
use super::fold::MetricsFold;
use super::page::MetricsPage;
use super::series::Series;
use crate::model::{
    AgentId, BlockedAccess, BlockedStatus, Charge, Cost, Decided, DecidedBy, Event, Figure, Record,
    SessionId, SessionKey, SessionMode, Spending, Spent, TimestampMs, TokenKind, Tokens, TurnEnd,
    Via,
};

/// Folds events whose times the test says.
#[derive(Default)]
struct Bench {
    fold: MetricsFold,
    now: TimestampMs,
}

impl Bench {
    /// Lets time pass.
    fn pass(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self
    }

    fn event(&mut self, event: &Event) -> &mut Self {
        self.fold.event(event, self.now);
        self
    }

    fn record(&mut self, session: &str, record: Record) -> &mut Self {
        let (key, timestamp_ms) = (key(session), self.now);
        self.event(&Event::Record { key, record, turn: None, timestamp_ms })
    }

    fn update(&mut self, session: &str, update: &str) -> &mut Self {
        self.record(session, Record::Update(update.into()))
    }

    fn tool(&mut self, session: &str, id: &str, fields: &str) -> &mut Self {
        let update =
            format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}",{fields}}}"#);
        self.update(session, &update)
    }

    fn ends(&mut self, session: &str, stop_reason: &str) -> &mut Self {
        self.event(&Event::Turn(TurnEnd {
            key: key(session),
            mode: SessionMode::SingleAgent,
            turn: 0,
            stop_reason: stop_reason.into(),
            reason: None,
            spent: Spent::default(),
        }))
    }

    fn blocked(&mut self, access: &BlockedAccess) -> &mut Self {
        self.event(&Event::Blocked(access.clone()))
    }

    fn decided(&mut self, access: &BlockedAccess) -> &mut Self {
        let decided = Decided {
            access: BlockedAccess { decided_by: Some(DecidedBy::Person), ..access.clone() },
            message: None,
            scope: crate::model::GrantSpan::Once,
            pattern: None,
            ttl: None,
        };
        self.record("s", Record::Decided(Box::new(decided)))
    }

    /// The samples of some metrics in the text format that have begun, without help and buckets.
    fn samples(&self, metrics: &[Metric]) -> String {
        let mut lines: Vec<_> = text(self.fold.series().clone())
            .lines()
            .filter(|line| !line.starts_with('#') && !line.contains("_bucket{"))
            .filter(|line| !line.ends_with(" 0"))
            .map(|line| format!("{line}\n"))
            .collect();
        lines.retain(|line| metrics.iter().any(|metric| line.starts_with(metric.spec().name)));
        lines.concat()
    }
}

fn text(series: Series) -> String {
    MetricsPage::new(series).render(Format::Text).body
}

fn key(session: &str) -> SessionKey {
    SessionKey::new(AgentId::new("ui"), SessionId::new(session))
}

fn access(id: &str, status: BlockedStatus, timestamp_ms: TimestampMs) -> BlockedAccess {
    BlockedAccess {
        path: "secret/path.rs".into(),
        timestamp_ms,
        ..eisen_testing::blocked_access(id, key("s"), status)
    }
}

/// A report of input, output with some reasoning, and a cost.
fn spending(model: &str, currency: &str, amount: f64) -> Spending {
    let tokens = Tokens::of(|kind| match kind {
        TokenKind::Input => Figure::Measured(100),
        TokenKind::Output => Figure::Estimated { least: 20, most: 20 },
        TokenKind::Reasoning => Figure::Measured(5),
        TokenKind::Total => Figure::Measured(150),
        TokenKind::CachedRead | TokenKind::CachedWrite => Figure::Unknown,
    });
    Spending {
        model: Some(Arc::from(model)),
        tokens: Some(tokens),
        cost: Some(Charge::Measured(Cost { amount, currency: currency.into() })),
    }
}
