//! What a person looks at and asks for: panes, selections, typed text, and the requests that keys
//! stand for. Knows no terminal and no connection.

use std::collections::HashMap;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::said::Transcript;
use crate::view::TeamView;

/// A card takes no key before a person can have read it.
const UNREAD: Duration = Duration::from_millis(500);

/// Agents whose transcripts are kept.
const MOST_TRANSCRIPTS: usize = 1000;

/// Bytes of typed text.
const LONGEST_INPUT: usize = 64 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pane {
    Inbox,
    Heat,
    Transcript,
    Log,
}

impl Pane {
    pub(super) const ALL: [Self; 4] = [Self::Inbox, Self::Heat, Self::Transcript, Self::Log];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Inbox => "Inbox",
            Self::Heat => "Heat",
            Self::Transcript => "Transcript",
            Self::Log => "Log",
        }
    }
}

/// What the typed line is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asking {
    /// A prompt for this agent.
    Prompt(String),
    /// Content in place of this access.
    Answer(String),
    /// The message of a denial.
    Denial(String),
    /// Whether to do this with an agent: a method, and the agent.
    Sure(&'static str, String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Input {
    pub(super) asking: Asking,
    pub(super) text: String,
}

/// What a key asks for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Wish {
    Quit,
    /// A request to the team, and in words what it does.
    Call {
        method: &'static str,
        params: Value,
        what: String,
    },
}

/// A line of the last request's outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StatusLine {
    pub(super) text: String,
    pub(super) is_error: bool,
}

pub(super) struct Screen {
    pub(super) view: TeamView,
    pub(super) team: String,
    pub(super) pane: Pane,
    /// The agents have the focus, and not the pane.
    pub(super) on_agents: bool,
    pub(super) agent: Option<String>,
    pub(super) card: Option<String>,
    /// Since when this card is shown as the selected one.
    card_shown: Option<(String, Instant)>,
    /// The card whose decision is on its way.
    sent: Option<String>,
    /// The last shown line of log and transcript, by number; None: it follows.
    pub(super) held_at: Option<usize>,
    pub(super) input: Option<Input>,
    pub(super) notice: Option<StatusLine>,
    pub(super) helps: bool,
    transcripts: HashMap<String, Transcript>,
}

impl Screen {
    pub(super) fn new(team: &str) -> Self {
        Self {
            view: TeamView::default(),
            team: team.to_owned(),
            pane: Pane::Inbox,
            on_agents: false,
            agent: None,
            card: None,
            card_shown: None,
            sent: None,
            held_at: None,
            input: None,
            notice: None,
            helps: false,
            transcripts: HashMap::new(),
        }
    }

    /// The ids of the agents, as they are shown.
    pub(super) fn agents(&self) -> Vec<String> {
        let agents = self.view.agents();
        let ids = agents.iter().filter_map(|(agent, _)| agent["agent_id"].as_str());
        ids.map(str::to_owned).collect()
    }

    /// Moves selections off what is gone. `has_room`: a frame drawn now shows the selected card, if
    /// its pane is shown.
    pub(super) fn settle(&mut self, now: Instant, has_room: bool) {
        let agents = self.agents();
        if self.agent.as_ref().is_none_or(|agent| !agents.contains(agent)) {
            self.agent = agents.into_iter().next();
        }
        let mut waiting = self.view.pending().map(|(id, _)| id);
        let is_there = |card: &String| self.view.pending().any(|(id, _)| id == card);
        if !self.card.as_ref().is_some_and(is_there) {
            self.card = waiting.next().map(str::to_owned);
        }
        let is_visible = has_room && self.pane == Pane::Inbox && !self.helps;
        let visible = self.card.as_ref().filter(|_| is_visible);
        if self.card_shown.as_ref().map(|(card, _)| card) != visible {
            self.card_shown = visible.map(|card| (card.clone(), now));
        }
    }

    /// Adds an update to the transcript of an agent.
    pub(super) fn update(&mut self, agent: &str, session: &str, update: &Value, now: Instant) {
        let Some(transcript) = self.transcript_mut(agent) else { return };
        let lines = transcript.fold.update(agent, session, update, now);
        transcript.add(lines);
    }

    pub(super) fn turn(&mut self, agent: &str, session: &str, line: &Value) {
        let Some(transcript) = self.transcript_mut(agent) else { return };
        let lines = transcript.fold.turn(agent, session, line);
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
        if let Some(input) = self.input.take() {
            return self.typed(input, key);
        }
        // Only plain letters stand for something.
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        if std::mem::take(&mut self.helps) || !is_plain {
            return None;
        }
        match key.code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('?') | KeyCode::F(1) => self.helps = true,
            KeyCode::Tab | KeyCode::BackTab => self.on_agents = !self.on_agents,
            KeyCode::Char(digit @ '1'..='4') => {
                let at = usize::from(digit as u8 - b'1');
                self.show(Pane::ALL[at]);
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-10),
            KeyCode::PageDown => self.step(10),
            KeyCode::End | KeyCode::Char('G') => self.held_at = None,
            KeyCode::Enter if self.on_agents => self.show(Pane::Transcript),
            KeyCode::Char(letter) if self.on_agents => self.agent_key(letter),
            KeyCode::Char(letter) if self.pane == Pane::Inbox => {
                return self.card_key(letter, now);
            }
            _ => {}
        }
        None
    }

    fn show(&mut self, pane: Pane) {
        (self.pane, self.on_agents, self.held_at) = (pane, false, None);
    }

    fn step(&mut self, by: isize) {
        if self.on_agents {
            let agents = self.agents();
            self.agent = moved(&agents, self.agent.as_ref(), by);
            self.held_at = None;
            return;
        }
        match self.pane {
            Pane::Inbox => {
                let cards: Vec<_> = self.view.pending().map(|(id, _)| id.to_owned()).collect();
                self.card = moved(&cards, self.card.as_ref(), by);
            }
            Pane::Heat => {}
            Pane::Transcript | Pane::Log => {
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
            'c' => Asking::Sure("cancel", agent),
            'S' => Asking::Sure("start_agent", agent),
            'x' => Asking::Sure("stop_agent", agent),
            'R' => Asking::Sure("restart_agent", agent),
            _ => return,
        };
        self.input = Some(Input { asking, text: String::new() });
    }

    fn card_key(&mut self, letter: char, now: Instant) -> Option<Wish> {
        if !matches!(letter, 'a' | 's' | 'd' | 'D' | 'r') {
            return None;
        }
        let Some((card, since)) = self.card_shown.clone() else {
            let text = match self.card {
                Some(_) => "no card is shown: the terminal is too small",
                None => "nothing waits for a decision",
            };
            self.notice = Some(StatusLine::error(text.to_owned()));
            return None;
        };
        if self.sent.as_ref() == Some(&card) {
            let text = format!("the decision of {card} is on its way");
            self.notice = Some(StatusLine::error(text));
            return None;
        }
        if now.duration_since(since) < UNREAD {
            let text = format!("{card} has just come up: read it first");
            // A key that is held decides nothing.
            self.card_shown = Some((card, now));
            self.notice = Some(StatusLine::error(text));
            return None;
        }
        let asking = match letter {
            'D' => Asking::Denial(card),
            'r' => Asking::Answer(card),
            'd' => return Some(self.decide(&card, "denied", json!({ "decision": "deny" }))),
            's' => {
                let params = json!({ "decision": "allow", "scope": "session" });
                return Some(self.decide(&card, "allowed for the session", params));
            }
            _ => return Some(self.decide(&card, "allowed", json!({ "decision": "allow" }))),
        };
        self.input = Some(Input { asking, text: String::new() });
        None
    }

    /// The decision of a person about a card.
    fn decide(&mut self, card: &str, what: &str, mut params: Value) -> Wish {
        self.sent = Some(card.to_owned());
        params["id"] = card.into();
        params["at_terminal"] = true.into();
        Wish::Call { method: "resolve_blocked", params, what: format!("{card}: {what}") }
    }

    /// Takes the answer of the team to a wish, or nothing more comes.
    pub(super) fn answered(&mut self, notice: StatusLine) {
        self.sent = None;
        self.notice = Some(notice);
    }

    /// Takes pasted text, which is never keys.
    pub(super) fn pasted(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            let room = LONGEST_INPUT.saturating_sub(input.text.len());
            input.text += &text[..text.floor_char_boundary(room)];
        }
    }

    fn typed(&mut self, mut input: Input, key: KeyEvent) -> Option<Wish> {
        match (key.code, &input.asking) {
            (KeyCode::Char('y'), Asking::Sure(method, agent)) => {
                let what = format!("{}: {agent}", method.trim_end_matches("_agent"));
                return Some(Wish::Call { method, params: json!({ "agent_id": agent }), what });
            }
            (KeyCode::Esc, _) | (_, Asking::Sure(..)) => return None,
            (KeyCode::Enter, _) if input.text.trim().is_empty() => return None,
            (KeyCode::Enter, Asking::Prompt(agent)) => {
                let params = json!({ "agent_id": agent, "text": input.text });
                let what = format!("the turn of {agent} ended");
                return Some(Wish::Call { method: "prompt", params, what });
            }
            (KeyCode::Enter, Asking::Answer(card)) => {
                let params = json!({ "decision": "answer", "content": input.text });
                return Some(self.decide(&card.clone(), "answered", params));
            }
            (KeyCode::Enter, Asking::Denial(card)) => {
                let params = json!({ "decision": "deny", "message": input.text });
                return Some(self.decide(&card.clone(), "denied", params));
            }
            (KeyCode::Backspace, _) => drop(input.text.pop()),
            (KeyCode::Char('u'), _) if key.modifiers.contains(KeyModifiers::CONTROL) => {
                input.text.clear();
            }
            (KeyCode::Char(typed), _) if input.text.len() < LONGEST_INPUT => input.text.push(typed),
            _ => {}
        }
        self.input = Some(input);
        None
    }
}

impl StatusLine {
    pub(super) fn done(text: String) -> Self {
        Self { text, is_error: false }
    }

    pub(super) fn error(text: String) -> Self {
        Self { text, is_error: true }
    }
}

/// The item `by` places behind the selected one.
fn moved(items: &[String], selected: Option<&String>, by: isize) -> Option<String> {
    let at = selected.and_then(|it| items.iter().position(|item| item == it)).unwrap_or(0);
    let last = items.len().checked_sub(1)?;
    items.get(at.saturating_add_signed(by).min(last)).cloned()
}
