//! The changes of the selected agent: which diff is asked for, and what is shown of it.

use super::file::ShownFile;
use super::turn::LastTurn;
use crate::wire::{Diff, GetDiffParams};

/// Milliseconds between two questions about changes that go on.
const BETWEEN: u64 = 2000;

/// The subject of a diff.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ReviewOf {
    agent: String,
    only_last: bool,
    /// The state of its last turn: its name, and how often something of it ended.
    named: Option<(String, u64)>,
    ended: u64,
}

#[derive(Default)]
pub(super) struct ReviewPane {
    /// Only the last turn is shown.
    pub(super) only_last: bool,
    asked: Option<(ReviewOf, u64)>,
    is_open: bool,
    file: Option<ShownFile>,
    width: usize,
}

impl ReviewPane {
    /// The question for what is looked at, if it has to be asked.
    pub(super) fn wanted(
        &mut self,
        agent: &str,
        turn: Option<&LastTurn>,
        now_ms: u64,
    ) -> Option<(ReviewOf, GetDiffParams)> {
        let of = ReviewOf {
            agent: agent.to_owned(),
            only_last: self.only_last,
            named: turn.and_then(|turn| turn.named.clone()),
            ended: turn.map_or(0, |turn| turn.ended),
        };
        let is_same =
            |known: &ReviewOf| (&known.agent, known.only_last) == (&of.agent, of.only_last);
        match &self.asked {
            Some((known, _)) if *known == of => return None,
            Some((known, at)) if is_same(known) => {
                if self.is_open || now_ms.saturating_sub(*at) < BETWEEN {
                    return None;
                }
            }
            _ => self.file = None,
        }
        let params = if of.only_last {
            turn.and_then(|turn| turn.changes(agent))
        } else {
            let agent_id = Some(agent.to_owned().into());
            turn.map(|_| GetDiffParams { agent_id, ..GetDiffParams::default() })
        };
        self.asked = Some((of.clone(), now_ms));
        if params.is_none() {
            self.file = Some(ShownFile::of_no_turn());
        }
        self.is_open = params.is_some();
        params.map(|params| (of, params))
    }

    /// Takes the answer to a question, if it still is about what is looked at.
    pub(super) fn take(&mut self, of: &ReviewOf, diff: Result<&Diff, &str>) {
        if self.asked.as_ref().is_none_or(|(asked, _)| asked != of) {
            return;
        }
        self.is_open = false;
        let at = self.file.as_ref().map_or(0, ShownFile::first);
        let mut file = match diff {
            Ok(diff) => ShownFile::of_diff(diff),
            Err(why) => ShownFile::refused(why),
        };
        file.fit(self.width);
        file.scroll(isize::try_from(at).unwrap_or(0));
        self.file = Some(file);
    }

    /// Breaks what is shown into rows of this width.
    pub(super) fn fit(&mut self, width: usize) {
        self.width = width;
        if let Some(file) = &mut self.file {
            file.fit(width);
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        if let Some(file) = &mut self.file {
            file.scroll(by);
        }
    }

    /// The diff, once it is there.
    pub(super) fn file(&self) -> Option<&ShownFile> {
        self.file.as_ref()
    }

    /// Nothing that was asked for is answered any more.
    pub(super) fn joined(&mut self) {
        (self.asked, self.is_open) = (None, false);
    }
}
