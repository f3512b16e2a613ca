//! Shows the output of terminals to who watches the agent's sessions, and to the journal.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::{
    Activity, ActivityKind, AgentId, MOST_OUTPUT, SessionId, TeamUpdate, TerminalExit, UpdateDetail,
};
use crate::tracker::TrackerHandle;

/// The least time between two outputs of a terminal that runs.
const PAUSE: Duration = Duration::from_millis(500);

/// The way of an agent's terminals to those who watch.
#[derive(Clone, Debug)]
pub struct Screens {
    tracker: TrackerHandle,
    agent: AgentId,
}

impl Screens {
    pub fn new(tracker: TrackerHandle, agent: AgentId) -> Self {
        Self { tracker, agent }
    }

    pub(super) fn of(&self, session: SessionId, terminal: String) -> Screen {
        Screen { screens: self.clone(), session, terminal, shown: None, due: None }
    }
}

/// The screen of one terminal.
#[derive(Debug)]
pub(super) struct Screen {
    screens: Screens,
    session: SessionId,
    terminal: String,
    /// The time of the last output that was shown.
    shown: Option<Instant>,
    /// The time to show the next one; None: there is nothing new, or nobody watches.
    due: Option<Instant>,
}

impl Screen {
    /// Bytes of an output's end that are enough, also where its first line is torn.
    pub(super) const MOST: usize = MOST_OUTPUT + 1;

    /// Notes that there is more output. It costs nothing while nobody watches.
    pub(super) fn changed(&mut self) {
        if self.due.is_none() && self.screens.tracker.update_detail() == UpdateDetail::Each {
            let now = Instant::now();
            self.due = Some(self.shown.map_or(now, |shown| now.max(shown + PAUSE)));
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether anybody wants the output at the end: the journal does, too.
    pub(super) fn wants_end(&self) -> bool {
        self.screens.tracker.wants_updates()
    }

    /// Shows the output so far, and whether its beginning was dropped.
    pub(super) fn show(&mut self, (output, dropped): (String, bool), exit: Option<TerminalExit>) {
        (self.shown, self.due) = (Some(Instant::now()), None);
        let update = TeamUpdate::terminal(&self.terminal, &output, dropped, exit);
        let kind = ActivityKind::Update(update.to_json());
        let activity = Activity { session: self.session.clone(), kind };
        self.screens.tracker.record(&self.screens.agent, activity);
    }
}

#[cfg(test)]
mod tests {
    use eisen_base::task;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::bus::{Backlog, Bus};
    use crate::model::{Event, SessionKey, Topic};
    use crate::tracker::{OrchestratorView, Settings};

    #[tokio::test(start_paused = true)]
    async fn outputs_come_twice_a_second_at_most_and_only_while_somebody_watches() {
        let bus = Bus::new(Backlog::of(100));
        let agent = AgentId::new("ui");
        let none = OrchestratorView::None(SessionKey::new(agent.clone(), SessionId::new("")));
        let settings = Settings {
            context_turns: 3,
            compaction_threshold: 0.5,
            decay_rate: 0.95,
            tick: Duration::from_millis(10),
            idle_tick: Duration::from_millis(10),
        };
        let cancel = CancellationToken::new();
        let (tracker, task) = TrackerHandle::spawn(settings, none, bus.clone(), cancel);
        task::spawn(task);
        let mut screen = Screens::new(tracker, agent).of(SessionId::new("s"), "term_1".to_owned());
        screen.changed();
        assert_eq!((screen.due(), screen.wants_end()), (None, false), "nobody watches");

        let mut events = bus.subscribe();
        events.want(Topic::Record);
        screen.changed();
        assert_eq!((screen.due(), screen.wants_end()), (None, true), "the journal has the end");

        events.want(Topic::SessionUpdate);
        screen.changed();
        let begun = Instant::now();
        assert_eq!(screen.due(), Some(begun));
        screen.show(("one".to_owned(), false), None);
        assert_eq!(screen.due(), None);
        screen.changed();
        screen.changed();
        assert_eq!(screen.due(), Some(begun + PAUSE));
        tokio::time::advance(PAUSE * 3).await;
        screen.show(("one two".to_owned(), true), Some(TerminalExit::default()));
        let mut shown = Vec::new();
        while shown.len() < 2 {
            if let Event::SessionUpdate { update, .. } = &**events.event().await {
                shown.push(update.clone());
            }
        }
        let one = TeamUpdate::terminal("term_1", "one", false, None);
        let two = TeamUpdate::terminal("term_1", "one two", true, Some(TerminalExit::default()));
        assert_eq!(shown, [one.to_json(), two.to_json()]);
    }
}
