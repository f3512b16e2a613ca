//! Tool calls of a session: one line each, once the call has ended.

use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;
use tokio::time::Instant;

use super::{LineKind, ShownLine};
use crate::acp::{self, CallUpdate};
use crate::cli::format;

/// Maximum open calls of a session; past that, the oldest is shown unfinished.
const MOST_CALLS: usize = 200;
/// Maximum accesses that the line of a call names.
const MOST_REFUSED: usize = 5;
/// Maximum bytes of a title, and of the reason of a failure.
const LONGEST_TITLE: usize = 400;

#[derive(Debug, Default)]
pub(super) struct OpenCalls(IndexMap<String, OpenCall>);

#[derive(Debug)]
struct OpenCall {
    title: String,
    began: Instant,
    announced: bool,
    /// The refused accesses of the call: their ids, and what they are.
    refused: Vec<(String, String)>,
}

impl OpenCalls {
    /// Adds a `tool_call` or a `tool_call_update`.
    pub(super) fn update(&mut self, update: &Value, now: Instant, lines: &mut Vec<ShownLine>) {
        let update: CallUpdate = acp::read(update);
        let id = match &update.tool_call_id {
            Value::String(id) => id.clone(),
            id => id.to_string(),
        };
        if self.0.len() >= MOST_CALLS
            && !self.0.contains_key(&id)
            && let Some((_, call)) = self.0.shift_remove_index(0)
        {
            lines.push(ShownLine { kind: LineKind::Call, text: format!("> {}", call.title) });
        }
        let call = self.0.entry(id.clone()).or_insert_with(|| OpenCall {
            title: update.kind.as_deref().map_or_else(|| "tool call".to_owned(), first_line),
            began: now,
            announced: false,
            refused: Vec::new(),
        });
        if let Some(title) = update.title.as_ref().filter(|title| !title.trim().is_empty()) {
            call.title = first_line(title);
        }
        let status = update.status.as_deref().unwrap_or_default();
        if !matches!(status, "completed" | "failed" | "cancelled") {
            return;
        }
        let took = now.duration_since(call.began);
        let took = if took >= Duration::from_secs(1) {
            format!(" ({})", format::duration(took))
        } else {
            String::new()
        };
        let (kind, end) = match status {
            "completed" if !call.refused.is_empty() => {
                let refused: Vec<_> = call.refused.iter().map(|(_, it)| it.as_str()).collect();
                (LineKind::FailedCall, format!("done, but refused: {}", refused.join(", ")))
            }
            "completed" => (LineKind::Call, "done".to_owned()),
            status => (LineKind::FailedCall, failure(status, &update)),
        };
        lines.push(ShownLine { kind, text: format!("> {}: {end}{took}", call.title) });
        self.0.shift_remove(&id);
    }

    /// Notes that an access of a call was refused, or that it was not after all.
    pub(super) fn refuse(&mut self, id: &str, (access, named): (&str, &str), is_refused: bool) {
        let Some(call) = self.0.get_mut(id) else { return };
        call.refused.retain(|(known, _)| known != access);
        if is_refused && call.refused.len() < MOST_REFUSED {
            call.refused.push((access.to_owned(), named.to_owned()));
        }
    }

    /// Shows calls that run longer than `after`.
    pub(super) fn announce(&mut self, now: Instant, after: Duration, lines: &mut Vec<ShownLine>) {
        for call in self.0.values_mut().filter(|call| !call.announced) {
            if now.duration_since(call.began) >= after {
                call.announced = true;
                let text = format!("> {} …", call.title);
                lines.push(ShownLine { kind: LineKind::Call, text });
            }
        }
    }

    /// Shows the calls whose end was not reported.
    pub(super) fn end(&mut self, lines: &mut Vec<ShownLine>) {
        let calls = std::mem::take(&mut self.0);
        lines.extend(calls.into_values().map(|call| ShownLine {
            kind: LineKind::Call,
            text: format!("> {}: no end was reported", call.title),
        }));
    }
}

fn failure(status: &str, update: &CallUpdate) -> String {
    let mut texts = update.content.0.iter().filter_map(|item| item.content.text.as_deref());
    match texts.find(|text| !text.trim().is_empty()) {
        Some(why) => format!("{status}: {}", first_line(why)),
        None => status.to_owned(),
    }
}

/// The first line that is not empty, with `…` if more text follows.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let cut = first.floor_char_boundary(LONGEST_TITLE);
    let more = if cut < first.len() || lines.next().is_some() { " …" } else { "" };
    format!("{}{more}", &first[..cut])
}
