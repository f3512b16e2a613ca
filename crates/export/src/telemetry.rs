//! OpenTelemetry: spans of what agents do, sent to a collector by OTLP over HTTP.
//!
//! ```text
//! bus ─▶ fold (events → spans, pure) ─▶ outbox (bounded) ─▶ sender ─▶ collector
//! ```
//!
//! The protocol's official types are encoded and posted here. The SDK's exporter would bring an HTTP
//! client of its own, and its spans begin and end when it is called, with ids that it makes; here
//! times and ids come from events.

mod complaints;
mod fold;
mod names;
mod outbox;
mod sender;
mod span;
#[cfg(test)]
mod tests;
mod traceparent;

use std::time::Duration;

use crate::bus::{Received, Subscriber};
use crate::model::{Topic, now_ms};
use fold::SpanFold;
use sender::{Collector, Sender};

pub use fold::{AgentFacts, FoldSettings};
pub use names::REVISION;
pub use traceparent::Traceparent;

/// The path of traces below a collector's address.
const PATH: &str = "/v1/traces";

/// How long the last spans may take at the end of a team.
const LAST: Duration = Duration::from_millis(1_500);

/// The settings of spans and their collector.
#[derive(Debug)]
pub struct Settings {
    /// The base address of a collector.
    pub otlp: String,
    pub headers: Vec<(String, String)>,
    pub spans: FoldSettings,
    /// The span that the team's run is a part of.
    pub parent: Option<Traceparent>,
}

/// Follows the bus from now on. Returns the context for agents, and a future that ends when the bus
/// is closed and the last spans are sent.
pub fn start(
    settings: Settings,
    mut events: Subscriber,
) -> (Traceparent, impl Future<Output = ()> + Send) {
    events.want(Topic::Record);
    events.want(Topic::Task);
    let url = format!("{}{PATH}", settings.otlp.trim_end_matches('/'));
    let mut headers = settings.headers;
    headers.push(("content-type".to_owned(), "application/x-protobuf".to_owned()));
    let team = settings.spans.team.clone();
    let ids = Box::new(|| fastrand::u64(1..));
    let fold = SpanFold::new(settings.spans, ids, settings.parent, now_ms());
    let sender = Sender::new(Collector { url, headers: headers.into(), team });
    (fold.run_context(), follow(fold, sender, events))
}

async fn follow(mut fold: SpanFold, mut sender: Sender, mut events: Subscriber) {
    let mut has_missed = false;
    loop {
        tokio::select! {
            received = events.recv() => match received {
                Some(Received::Event(_, event)) => {
                    fold.event(&event, now_ms());
                    tokio::task::consume_budget().await;
                }
                Some(Received::Missed(missed)) => {
                    if !std::mem::replace(&mut has_missed, true) {
                        tracing::warn!(missed, "events were missed: spans may be incomplete");
                    }
                    fold.missed();
                }
                None => break,
            },
            () = sender.progress() => {}
        }
        sender.add(fold.take());
    }
    fold.end(now_ms());
    sender.add(fold.take());
    sender.finish(LAST).await;
}
