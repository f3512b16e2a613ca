//! Owns what the answers of the port change on the screen.

use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::file::ShownFile;
use super::wish::StatusLine;
use super::{Live, OpenRequest};
use crate::acp::{self, Complaint};
use crate::line::lenient;
use crate::wire::{Diff, Events, Prompted};

/// An answer of the port.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AnswerParts {
    #[serde(deserialize_with = "lenient")]
    id: Option<u64>,
    /// Any JSON.
    result: Value,
    #[serde(deserialize_with = "lenient")]
    error: Complaint,
}

impl Live {
    /// Takes the answer to a request; true if something that is shown changed.
    pub(super) fn answer(&mut self, line: &[u8]) -> bool {
        let Ok(answer) = serde_json::from_slice::<Value>(line) else { return false };
        let AnswerParts { id, result, error } = acp::read(&answer);
        let Some(asked) = id.and_then(|id| self.open.remove(&id)) else { return false };
        let (result, error) = (&result, error.message.as_deref());
        let (screen, now) = (&mut self.screen, Instant::now());
        match (asked, error) {
            (OpenRequest::Wish(call), Some(error)) => {
                screen.answered(&call, StatusLine::error(error.to_owned()));
            }
            (OpenRequest::Wish(call), None) => {
                // Of a prompt: how its turn ended.
                let stop = Prompted::deserialize(result).map(|it| format!(": {}", it.stop_reason));
                let what = call.what.clone() + &stop.unwrap_or_default();
                screen.answered(&call, StatusLine::done(what));
            }
            (OpenRequest::Shown(card), Some(why)) => {
                screen.inbox.take_file(&card, ShownFile::refused(why), now);
            }
            (OpenRequest::Shown(card), None) => {
                let shown = ShownFile::read(card.kind, result);
                screen.inbox.take_file(&card, shown, now);
            }
            (OpenRequest::Past, error) => {
                let page = Events::deserialize(result).ok().filter(|_| error.is_none());
                screen.take_past(page);
            }
            (OpenRequest::Prompt(agent), error) => {
                let page = Events::deserialize(result).ok().filter(|_| error.is_none());
                screen.take_prompt(&agent, page);
            }
            (OpenRequest::Changes(agent, turn), None) => {
                let diff = Diff::deserialize(result).unwrap_or_default();
                screen.activity.take_changes(&agent, turn, &diff);
            }
            // The journal knows nothing of that turn.
            (OpenRequest::Changes(..), Some(_)) => {}
            (OpenRequest::Review(of), None) => {
                let diff = Diff::deserialize(result).unwrap_or_default();
                screen.review.take(&of, Ok(&diff));
            }
            (OpenRequest::Review(of), Some(why)) => screen.review.take(&of, Err(why)),
            (_, Some(error)) => screen.notice = Some(StatusLine::error(error.to_owned())),
            (OpenRequest::Agents, None) => screen.view.set_agents(result),
            (OpenRequest::Blocked, None) => screen.view.set_pending(result),
            (OpenRequest::Conflicts, None) => screen.view.set_conflicts(result),
            (OpenRequest::Budgets, None) => screen.view.set_budgets(result),
        }
        true
    }
}
