//! The questions of the screen to the journal, and the changes by its answers.

use super::{Pane, Screen};
use crate::cli::top::past::{self, Past};
use crate::cli::top::review::ReviewOf;
use crate::wire::{Events, GetDiffParams, ListEventsParams};

impl Screen {
    /// The request for events from before, if there is one to make: at first, and when a person looks at
    /// the first line that there is.
    pub(in crate::cli::top) fn wanted_past(&mut self) -> Option<ListEventsParams> {
        let is_at_start = || self.held_at.is_some_and(|at| at == self.lines().1);
        let is_wanted = matches!(self.past, Past::Last { .. }) || is_at_start();
        if is_wanted { self.past.ask() } else { None }
    }

    /// Takes events from before; None: the team has none.
    pub(in crate::cli::top) fn take_past(&mut self, page: Option<Events<'_>>) {
        let Some(Events { mut events, next }) = page else {
            self.past = Past::Over;
            return;
        };
        self.past.take(&mut events, next.as_deref());
        self.activity.earlier(&events);
        self.view.earlier(events.iter().filter_map(past::entry).collect());
        for (agent, lines) in past::lines(&events) {
            if let Some(transcript) = self.transcript_mut(&agent) {
                transcript.earlier(lines);
            }
        }
    }

    /// The next question about what agents do, once the first page of the journal is there.
    pub(in crate::cli::top) fn wanted_prompt(
        &mut self,
        now_ms: u64,
    ) -> Option<(String, ListEventsParams)> {
        if !self.past.is_there() {
            return None;
        }
        let rows = self.rows();
        self.activity.wanted_prompt(&rows, now_ms)
    }

    /// The next question about what a turn changed.
    pub(in crate::cli::top) fn wanted_changes(
        &mut self,
        now_ms: u64,
    ) -> Option<(String, GetDiffParams)> {
        let rows = self.rows();
        self.activity.wanted_changes(&rows, now_ms)
    }

    /// The next question for the diff that a person looks at.
    pub(in crate::cli::top) fn wanted_review(
        &mut self,
        now_ms: u64,
    ) -> Option<(ReviewOf, GetDiffParams)> {
        let agent = self.agent.as_ref().filter(|_| self.pane == Pane::Review)?;
        self.review.wanted(agent, self.activity.of(agent), now_ms)
    }

    /// Takes the answer about an agent's prompt; None: the team has no journal.
    pub(in crate::cli::top) fn take_prompt(&mut self, agent: &str, page: Option<Events<'_>>) {
        let events = page.map(|page| page.events);
        if !self.activity.take_prompt(agent, events.as_deref()) {
            return;
        }
        let lines = past::prompt(events.as_deref().unwrap_or_default());
        if let Some(transcript) = self.transcript_mut(agent) {
            transcript.prompted(lines);
        }
    }
}
