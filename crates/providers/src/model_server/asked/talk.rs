//! The conversation so far, folded message by message.

use super::super::ids::CALL;

/// Texts that agents add to the results of tools by themselves begin with it.
const REMINDER: &str = "<system-reminder>";

/// A conversation up to now.
#[derive(Default)]
pub(super) struct Talk {
    pub(super) prompt: String,
    pub(super) round: usize,
    pub(super) result: String,
    last: Option<TalkTurn>,
    /// The beginning of the last call's id, which the calls of one answer have in common.
    step: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TalkTurn {
    User,
    Model,
    Call,
    Result,
}

impl Talk {
    /// A message of the user. Several in a row are one prompt.
    pub(super) fn user(&mut self, text: &str) {
        if self.last == Some(TalkTurn::User) {
            self.prompt.push('\n');
            self.prompt.push_str(text);
        } else {
            *self = Self { prompt: text.to_owned(), last: Some(TalkTurn::User), ..Self::default() };
        }
    }

    /// A text that came with results of tools.
    pub(super) fn beside_results(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && !text.starts_with(REMINDER) {
            self.user(text);
        }
    }

    pub(super) fn model(&mut self) {
        self.last = Some(TalkTurn::Model);
    }

    /// A call of a tool. Calls in a row are one round, and so are calls of one answer of this server.
    pub(super) fn call(&mut self, id: Option<&str>) {
        let step = id.filter(|id| id.starts_with(CALL));
        let step = step.and_then(|id| id.rsplit_once('_')).map(|(step, _)| step.to_owned());
        let is_same = self.last == Some(TalkTurn::Call) || step.is_some() && step == self.step;
        if !is_same {
            self.round += 1;
        }
        self.step = step;
        self.last = Some(TalkTurn::Call);
    }

    pub(super) fn result(&mut self, text: String) {
        self.result = text;
        self.last = Some(TalkTurn::Result);
    }
}
