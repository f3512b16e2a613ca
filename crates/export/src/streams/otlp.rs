//! Sends lines to a collector as log records, by OTLP over HTTP. Blocks its thread.

use std::time::Duration;

use prost::Message as _;

use super::batch::StreamLine;
use super::health::Failure;
use super::webhook::failure;
use crate::model::{OtlpTarget, now_ms, one_line};
use crate::otlp::{
    AnyValue, ExportLogsServiceRequest, ExportLogsServiceResponse, InstrumentationScope, LogRecord,
    Resource, ResourceLogs, ScopeLogs, SeverityNumber, Value, attribute, text_value,
};
use crate::post::Post;

/// The path of logs below a collector's address.
const PATH: &str = "/v1/logs";

const TIMEOUT: Duration = Duration::from_secs(10);

const SERVICE: &str = "eisen-core";

/// Types of events that say of a failure.
const FAILURES: [&str; 3] = ["turn.failed", "lost", "gap"];

#[derive(Debug)]
pub(super) struct Otlp {
    target: OtlpTarget,
    team: String,
    /// The log has said that the collector took only a part.
    is_partial: bool,
}

impl Otlp {
    pub(super) fn new(target: OtlpTarget, team: &str) -> Self {
        Self { target, team: team.to_owned(), is_partial: false }
    }

    pub(super) fn deliver(&mut self, lines: &[StreamLine]) -> Result<(), Failure> {
        let url = format!("{}{PATH}", self.target.url.reveal().trim_end_matches('/'));
        let headers = self.target.headers.iter();
        let mut headers: Vec<_> =
            headers.map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
        headers.push(("content-type".to_owned(), "application/x-protobuf".to_owned()));
        let body = encode(&self.team, lines);
        let (url, headers, body) = (&*url, &*headers, &*body);
        let post = Post { url, headers, body, timeout: TIMEOUT, redirects: 0 };
        let answer = post.send().map_err(failure)?;
        // Anything else in the answer has no meaning here.
        let answer = ExportLogsServiceResponse::decode(&*answer).unwrap_or_default();
        let partial = answer.partial_success.unwrap_or_default();
        let (rejected, why) = (partial.rejected_log_records, one_line(&partial.error_message));
        if rejected > 0 && !std::mem::replace(&mut self.is_partial, true) {
            // It must not be sent again, as the protocol has it.
            tracing::warn!(rejected, why, "the collector did not take all events of the stream");
        }
        Ok(())
    }
}

/// The body of a request.
fn encode(team: &str, lines: &[StreamLine]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let attributes =
        [("service.name", SERVICE), ("service.version", version), ("eisen.team.name", team)];
    let attributes = attributes.map(|(name, text)| attribute(name, text_value(text))).to_vec();
    let scope = InstrumentationScope { name: SERVICE.to_owned(), version: version.to_owned() };
    let now = nanoseconds(now_ms());
    let log_records = lines.iter().map(|line| record(line, now)).collect();
    let logs = ScopeLogs { scope: Some(scope), log_records };
    let resource = Some(Resource { attributes });
    let logs = ResourceLogs { resource, scope_logs: vec![logs] };
    ExportLogsServiceRequest { resource_logs: vec![logs] }.encode_to_vec()
}

fn record(line: &StreamLine, now: u64) -> LogRecord {
    let fields = line.fields();
    let mut attributes = vec![attribute("eisen.event.id", text_value(&line.id))];
    let texts = [
        ("gen_ai.agent.name", fields.agent_id.as_deref()),
        ("eisen.journal.session.id", fields.session_id.as_deref()),
        ("eisen.replay.id", fields.origin.as_ref().map(|origin| &*origin.replay_id)),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text_value(text?))));
    let numbers = [("eisen.event.number", fields.number), ("eisen.turn.number", fields.turn)];
    let numbers = numbers.into_iter().filter_map(|(name, number)| {
        Some((name, Value::IntValue(i64::try_from(number?).unwrap_or(i64::MAX))))
    });
    attributes.extend(texts.chain(numbers).map(|(name, value)| attribute(name, value)));
    let is_failure = FAILURES.contains(&&*fields.kind);
    let severity = if is_failure { SeverityNumber::Warn } else { SeverityNumber::Info };
    LogRecord {
        time_unix_nano: nanoseconds(fields.timestamp),
        observed_time_unix_nano: now,
        severity_number: severity.into(),
        event_name: fields.kind.to_string(),
        body: Some(AnyValue {
            value: Some(text_value(fields.payload.map_or(&line.json, |payload| payload.get()))),
        }),
        attributes,
    }
}

fn nanoseconds(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}
