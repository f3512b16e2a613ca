//! A person's view and wishes: panes, selections, typed text, and the requests that keys stand for.
//! Knows no terminal and no connection.

mod journal;
mod typed_line;

use std::collections::HashMap;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use tokio::time::Instant;

use super::activity::{Activity, AgentRow};
use super::inbox::{InboxPane, Reaction};
use super::past::Past;
use super::review::ReviewPane;
use super::said::Transcript;
use super::wish::{AgentOrder, Asking, Input, StatusLine, TeamCall, Wish};
use crate::cli::blocked::{self, SeenAccesses};
use crate::cli::ps::AgentFigures;
use crate::model::now_ms;
use crate::view::TeamView;
use crate::wire::{AgentDetails, ServerLine, TurnLine};

/// Agents whose transcripts are kept.
const MOST_TRANSCRIPTS: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pane {
    Team,
    Review,
    Map,
    Log,
    Inbox,
}

impl Pane {
    /// The panes, with their keys.
    pub(super) const ALL: [(char, Self, &str); 5] = [
        ('1', Self::Team, "Team"),
        ('2', Self::Review, "Review"),
        ('3', Self::Map, "Map"),
        ('4', Self::Log, "Log"),
        ('i', Self::Inbox, "Inbox"),
    ];
}

pub(super) struct Screen {
    pub(super) view: TeamView,
    pub(super) team: String,
    pub(super) pane: Pane,
    /// The pane before the inbox. None: nobody has pressed a key yet, and the inbox comes up by itself.
    before: Option<Pane>,
    pub(super) activity: Activity,
    pub(super) review: ReviewPane,
    /// The agents' figures are shown, and not what they do.
    pub(super) figures: bool,
    /// The agents have the focus, and not the pane.
    pub(super) on_agents: bool,
    pub(super) agent: Option<String>,
    pub(super) inbox: InboxPane,
    /// The last shown line of log and transcript, by number; None: it follows.
    pub(super) held_at: Option<usize>,
    pub(super) input: Option<Input>,
    pub(super) notice: Option<StatusLine>,
    /// The first row of the help that is shown; None: there is no help.
    pub(super) help: Option<usize>,
    /// The log shows each line, also those that are folded else.
    pub(super) outside: bool,
    transcripts: HashMap<String, Transcript>,
    past: Past,
    seen: SeenAccesses,
}

impl Screen {
    pub(super) fn new(team: &str) -> Self {
        Self {
            view: TeamView::default(),
            team: team.to_owned(),
            pane: Pane::Team,
            before: None,
            activity: Activity::default(),
            review: ReviewPane::default(),
            figures: false,
            on_agents: false,
            agent: None,
            inbox: InboxPane::default(),
            held_at: None,
            input: None,
            notice: None,
            help: None,
            outside: false,
            transcripts: HashMap::new(),
            past: Past::default(),
            seen: SeenAccesses::default(),
        }
    }

    /// The ids of the agents, as they are shown.
    pub(super) fn agents(&self) -> Vec<String> {
        let agents = self.view.agents();
        agents.iter().map(|(agent, _)| agent.status.agent_id.to_string()).collect()
    }

    /// The agents as they are shown, with whether a turn of theirs runs.
    pub(super) fn rows(&self) -> Vec<AgentRow> {
        let agents = self.view.agents().into_iter();
        let row =
            |it: &AgentDetails<'_>| (it.status.agent_id.to_string(), AgentFigures(it).is_running());
        agents.map(|(agent, _)| row(agent)).collect()
    }

    /// Moves selections off what is gone. `width`: that of a frame that shows the selected card, if
    /// its pane is shown.
    pub(super) fn settle(&mut self, now: Instant, width: Option<usize>) {
        let agents = self.agents();
        if self.agent.as_ref().is_none_or(|agent| !agents.contains(agent)) {
            self.agent = agents.into_iter().next();
        }
        if self.before.is_none() && self.view.waiting().next().is_some() {
            self.pane = Pane::Inbox;
        }
        let is_visible = self.pane == Pane::Inbox && self.help.is_none();
        self.inbox.settle(&self.view, now, width.filter(|_| is_visible));
    }

    /// Adds an update to the transcript of an agent.
    pub(super) fn update(&mut self, agent: &str, session: &str, update: &Value, now: Instant) {
        let begins = self.activity.update(agent, update, now_ms());
        let Some(transcript) = self.transcript_mut(agent) else { return };
        if begins {
            transcript.begin();
        }
        let lines = transcript.fold.update(agent, session, update, now);
        transcript.add(lines);
    }

    pub(super) fn turn(&mut self, turn: &TurnLine<'_>) {
        self.activity.ended(turn);
        let Some(transcript) = self.transcript_mut(&turn.agent_id) else { return };
        let lines = transcript.fold.turn(&turn.agent_id, &turn.session_id, turn);
        transcript.add(lines);
    }

    /// Shows what agents have not finished for a while; true if there was something.
    pub(super) fn show_overdue(&mut self, now: Instant) -> bool {
        let mut is_new = false;
        for transcript in self.transcripts.values_mut() {
            let lines = transcript.fold.overdue(now);
            is_new |= !lines.is_empty();
            transcript.add(lines);
        }
        is_new
    }

    /// Marks in all transcripts that lines are missing here.
    pub(super) fn missed(&mut self, why: &str) {
        for transcript in self.transcripts.values_mut() {
            transcript.mark(why);
        }
    }

    /// Takes the state of a new connection, whose lists are on their way.
    pub(super) fn joined(&mut self) {
        self.view.joined();
        self.inbox.joined();
        self.review.joined();
    }

    /// Says that the connection was lost, and with it how these requests went.
    pub(super) fn reconnected(&mut self, unknown: &[String]) {
        self.missed("the connection was lost: lines may be missing here");
        let mut text = "the connection was lost, and there is a new one".to_owned();
        if !unknown.is_empty() {
            text = format!("{text}; not known whether it was done: {}", unknown.join(", "));
            self.notice = Some(StatusLine::error(text.clone()));
        }
        self.view.note(&text);
    }

    /// Takes a line of an access or a conflict, before the view does.
    pub(super) fn decided(&mut self, line: &ServerLine<'_>) {
        if let Some(text) = self.inbox.decided(line) {
            self.notice = Some(StatusLine::done(text));
        }
        let ServerLine::Blocked(access) = line else { return };
        // A sweep that grows is told of once.
        if self.seen.is_news(access)
            && !access.is_noise()
            && access.sweep.is_none_or(|count| count < 2)
            && let Some(transcript) = self.transcript_mut(&access.session.agent_id)
        {
            let text = anstream::adapter::strip_str(&blocked::describe(access)).to_string();
            let lines = transcript.fold.blocked(access, text);
            transcript.add(lines);
        }
    }

    fn transcript_mut(&mut self, agent: &str) -> Option<&mut Transcript> {
        if !self.transcripts.contains_key(agent) && self.transcripts.len() == MOST_TRANSCRIPTS {
            return None;
        }
        Some(self.transcripts.entry(agent.to_owned()).or_default())
    }

    /// The transcript of the selected agent.
    pub(super) fn transcript(&self) -> Option<&Transcript> {
        self.transcripts.get(self.agent.as_ref()?)
    }

    /// The number behind the last line of the pane that scrolls, and that of its first.
    fn lines(&self) -> (usize, usize) {
        match self.pane {
            Pane::Log => (self.view.log().first() + self.view.log().len(), self.view.log().first()),
            _ => self.transcript().map_or((0, 0), |it| (it.first + it.lines.len(), it.first)),
        }
    }

    /// Takes a key; returns what it asks for.
    pub(super) fn key(&mut self, key: KeyEvent, now: Instant) -> Option<Wish> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Some(Wish::Quit);
        }
        self.notice = None;
        self.before.get_or_insert(Pane::Team);
        if let Some(input) = self.input.take() {
            return self.typed(input, key);
        }
        // Only plain letters stand for something.
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if let Some(at) = self.help.take() {
            match key.code {
                KeyCode::Up | KeyCode::PageUp => self.help = Some(at.saturating_sub(3)),
                KeyCode::Down | KeyCode::PageDown => self.help = Some(at + 3),
                _ => {}
            }
            return None;
        }
        if !is_plain {
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('?') | KeyCode::F(1) => self.help = Some(0),
            KeyCode::Tab | KeyCode::BackTab => self.on_agents = !self.on_agents,
            KeyCode::Char(key @ ('1'..='4' | 'i')) => self.pane_key(key),
            KeyCode::Char('f') => self.figures = !self.figures,
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.page(-10),
            KeyCode::PageDown => self.page(10),
            KeyCode::End | KeyCode::Char('G') => self.held_at = None,
            KeyCode::Char('l') if self.pane == Pane::Review => {
                self.review.only_last = !self.review.only_last;
            }
            KeyCode::Char('o') if !self.on_agents => self.outside = !self.outside,
            KeyCode::Enter if self.on_agents => self.show(Pane::Team),
            KeyCode::Char(letter) if self.on_agents => self.agent_key(letter),
            KeyCode::Char(letter @ ('a' | 's' | 'm' | 't' | 'd' | 'D' | 'r'))
                if self.pane == Pane::Inbox =>
            {
                match self.inbox.key(letter, &self.view, now) {
                    Ok(Reaction::Call(call)) => return Some(Wish::Call(call)),
                    Ok(Reaction::Type(asking)) => self.input = Some(Input::empty(asking)),
                    Ok(Reaction::Change(asking, text)) => self.input = Some(Input { asking, text }),
                    Err(why) => self.notice = Some(StatusLine::error(why)),
                }
            }
            _ => {}
        }
        None
    }

    fn show(&mut self, pane: Pane) {
        (self.pane, self.on_agents, self.held_at) = (pane, false, None);
    }

    fn pane_key(&mut self, key: char) {
        let Some((_, pane, _)) = Pane::ALL.into_iter().find(|(of, ..)| *of == key) else { return };
        if pane == Pane::Inbox && self.pane == pane {
            return self.show(self.before.unwrap_or(Pane::Team));
        }
        if self.pane != Pane::Inbox {
            self.before = Some(self.pane);
        }
        self.show(pane);
    }

    /// Moves by several lines: of the card's file in the inbox.
    fn page(&mut self, by: isize) {
        if !self.on_agents && self.pane == Pane::Inbox {
            self.inbox.scroll(by);
        } else {
            self.step(by);
        }
    }

    fn step(&mut self, by: isize) {
        if self.on_agents {
            let agents = self.agents();
            self.agent = moved(&agents, self.agent.as_ref(), by);
            self.held_at = None;
            return;
        }
        match self.pane {
            Pane::Inbox => self.inbox.step(&self.view, by),
            Pane::Map => {}
            Pane::Review => self.review.scroll(by),
            Pane::Team | Pane::Log => {
                let (behind, first) = self.lines();
                let last = behind.saturating_sub(1);
                let at = self.held_at.unwrap_or(last).saturating_add_signed(by);
                self.held_at = (at < last).then(|| at.max(first));
            }
        }
    }

    fn agent_key(&mut self, letter: char) {
        let Some(agent) = self.agent.clone() else { return };
        let asking = match letter {
            'p' => Asking::Prompt(agent),
            'c' => Asking::Sure(AgentOrder::Cancel, agent),
            'S' => Asking::Sure(AgentOrder::Start, agent),
            'x' => Asking::Sure(AgentOrder::Stop, agent),
            'R' => Asking::Sure(AgentOrder::Restart, agent),
            _ => return,
        };
        self.input = Some(Input::empty(asking));
    }

    /// Takes the answer of the team to a call.
    pub(super) fn answered(&mut self, call: &TeamCall, notice: StatusLine) {
        if let Some(card) = &call.card {
            self.inbox.answered(card, notice.is_error);
        }
        self.notice = Some(notice);
    }
}

/// The item `by` places behind the selected one.
fn moved(items: &[String], selected: Option<&String>, by: isize) -> Option<String> {
    let at = selected.and_then(|it| items.iter().position(|item| item == it)).unwrap_or(0);
    let last = items.len().checked_sub(1)?;
    items.get(at.saturating_add_signed(by).min(last)).cloned()
}
