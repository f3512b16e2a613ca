//! Whatever happens, a client that follows the events sees what the server has, and the server has
//! what a slow and simple rendering of the rules says.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::inbox::{Inbox, Message};
use super::sessions::Sessions;
use super::testing::{Client, SETTINGS, activity, key};
use super::told::Told;
use super::{OrchestratorView, Settings};
use crate::model::{
    ActivityKind, AgentId, Event, FileNode, SessionKey, Source, TimestampMs, Touch, TurnEnd,
};

#[derive(Clone, Debug)]
enum Step {
    Tell(&'static str, String),
    Tick,
    /// Asks for snapshots.
    Look,
    Orchestrate(&'static str),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let session = select(vec!["a/s", "a/t", "b/s", "lead/l", "lead/m", "lead/"]);
    let touch = (
        select(vec![
            "read",
            "write",
            "search",
            "blocked",
            "user_provided",
            "seen read",
            "seen write",
        ]),
        select(vec!["w", "x", "y", "z"]),
    )
        .prop_map(|(touch, path)| format!("{touch} {path}"));
    let usage = (0u64..20).prop_map(|used| format!("usage {used}/20"));
    let other = select(vec!["opened", "closed", "compacted", "update {}"]).prop_map(str::to_owned);
    let turn = select(vec!["began", "began", "ended", "ended", "ended"]).prop_map(str::to_owned);
    let activity = prop_oneof![12 => touch, 2 => usage, 1 => other, 4 => turn];
    let step = prop_oneof![
        12 => (session, activity).prop_map(|(name, line)| Step::Tell(name, line)),
        6 => Just(Step::Tick),
        1 => Just(Step::Look),
        1 => select(vec!["lead/l", "lead/m", "a/s"]).prop_map(Step::Orchestrate),
    ];
    vec(step, 1..120)
}

fn view() -> impl Strategy<Value = OrchestratorView> {
    select(vec![
        OrchestratorView::None(key("a/")),
        OrchestratorView::External(key("orchestrator/team-t")),
        OrchestratorView::Agent(AgentId::new("lead")),
    ])
}

fn settings() -> Settings {
    // 0.2 is cold after three ticks, so that nodes come and go within one run.
    Settings { context_turns: 1, decay_rate: 0.2, ..SETTINGS }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_client_that_follows_sees_what_the_server_has(view in view(), steps in steps()) {
        let mut plain = Plain::new(&view);
        let mut sessions = Sessions::new(settings(), view);
        let mut client = Client::default();
        let mut turns = Vec::new();
        for (at, step) in (1..).zip(steps.into_iter().chain([Step::Look])) {
            match &step {
                Step::Tell(name, line) => {
                    plain.tell(&key(name), activity(line), at);
                    sessions.tell(&key(name), Told::from_activity(activity(line)).unwrap(), at);
                }
                Step::Tick => {
                    plain.tick();
                    sessions.tick();
                }
                Step::Look => {
                    plain.show_all();
                    sessions.flush();
                }
                Step::Orchestrate(name) => {
                    plain.orchestrate(&key(name));
                    sessions.orchestrate(key(name));
                }
            }
            for event in sessions.take_events() {
                client.follow(&event);
                if let Event::Turn(TurnEnd { key, turn, .. }) = event {
                    turns.push((key, turn));
                }
            }
            if let Step::Look = step {
                let snapshots = sessions.snapshots();
                client.compare(&snapshots);
                let mut nodes: Vec<_> =
                    snapshots.iter().map(|it| (it.key.clone(), it.nodes.clone())).collect();
                if plain.view.is_none() && plain.sessions.is_empty() {
                    prop_assert_eq!(nodes.pop(), Some((key("a/"), Vec::new())));
                }
                prop_assert_eq!(plain.snapshots(), nodes);
                prop_assert_eq!(&plain.ended, &turns);
            }
        }
    }

    /// However the news are batched, merging them in the inbox changes nothing.
    #[test]
    fn merged_news_come_to_the_same(
        view in view(),
        steps in steps(),
        takes in vec(any::<bool>(), 120),
    ) {
        let mut each = Sessions::new(settings(), view.clone());
        let mut merged = Sessions::new(settings(), view);
        let inbox = Inbox::default();
        let take = |sessions: &mut Sessions| {
            for message in inbox.take() {
                let Message::Told(key, told, at) = message else { unreachable!() };
                sessions.tell(&key, told, at);
            }
        };
        let mut usages = [None, None];
        for (at, (step, is_taken)) in (1..).zip(steps.into_iter().zip(takes)) {
            let Step::Tell(name, line) = step else { continue };
            let told = Told::from_activity(activity(&line)).unwrap();
            each.tell(&key(name), told.clone(), at);
            inbox.tell(key(name), told, at);
            if is_taken {
                take(&mut merged);
                merged.flush();
                each.flush();
            }
        }
        take(&mut merged);
        let mut turns = [Vec::new(), Vec::new()];
        for (place, sessions) in [&mut each, &mut merged].into_iter().enumerate() {
            sessions.flush();
            usages[place] = Some(sessions.usages());
            let told = sessions.take_events().into_iter();
            turns[place].extend(told.filter_map(|event| match event {
                Event::Turn(turn) => Some(turn),
                _ => None,
            }));
        }
        let nodes = |sessions: &mut Sessions| {
            let snapshots = sessions.snapshots();
            let all = snapshots.iter().map(|it| (it.key.clone(), it.mode, it.nodes.clone()));
            all.collect::<Vec<_>>()
        };
        prop_assert_eq!(nodes(&mut each), nodes(&mut merged));
        prop_assert_eq!(&usages[0], &usages[1]);
        prop_assert_eq!(&turns[0], &turns[1]);
    }
}

/// The rules, rendered with no thought of cost.
struct Plain {
    sessions: Vec<PlainSession>,
    /// Prompts that outlive their session: (its next turn, how many run).
    closing: BTreeMap<SessionKey, (u64, u64)>,
    view: Option<SessionKey>,
    designated: Option<AgentId>,
    ended: Vec<(SessionKey, u64)>,
}

struct PlainSession {
    key: SessionKey,
    /// With whether the node was shown as it is.
    nodes: BTreeMap<String, (FileNode, bool)>,
    turn: u64,
    running: u64,
    used: u64,
}

impl Plain {
    fn new(view: &OrchestratorView) -> Self {
        let (view, designated) = match view {
            OrchestratorView::None(_) => (None, None),
            OrchestratorView::External(key) => (Some(key.clone()), None),
            OrchestratorView::Agent(agent) => (Some(key("lead/")), Some(agent.clone())),
        };
        Self { sessions: Vec::new(), closing: BTreeMap::new(), view, designated, ended: Vec::new() }
    }

    fn tell(&mut self, key: &SessionKey, kind: ActivityKind, at: TimestampMs) {
        let place = self.sessions.iter().position(|session| session.key == *key);
        if let Some((turn, running)) = self.closing.get_mut(key) {
            match kind {
                ActivityKind::TurnEnded { .. } => {
                    self.ended.push((key.clone(), *turn));
                    (*turn, *running) = (*turn + 1, *running - 1);
                    if *running == 0 {
                        self.closing.remove(key);
                    }
                    return;
                }
                ActivityKind::TurnBegan if place.is_none() => *running += 1,
                _ => {}
            }
            if place.is_none() && kind != ActivityKind::Opened {
                return;
            }
        }
        let place = place.unwrap_or_else(|| {
            if !matches!(
                kind,
                ActivityKind::Closed
                    | ActivityKind::Compacted
                    | ActivityKind::TurnEnded { .. }
                    | ActivityKind::Update(_)
            ) {
                if kind == ActivityKind::Opened
                    && self.view == self.designated.as_ref().map(unopened)
                {
                    self.orchestrate(key);
                }
                self.sessions.push(PlainSession {
                    key: key.clone(),
                    nodes: BTreeMap::new(),
                    turn: 0,
                    running: 0,
                    used: 0,
                });
                return self.sessions.len() - 1;
            }
            usize::MAX
        });
        let Some(session) = self.sessions.get_mut(place) else { return };
        match kind {
            ActivityKind::Touched { path, touch, source } => {
                session.touch(&path, touch, source, at);
            }
            ActivityKind::Usage(usage) => {
                if usage.used * 2 <= session.used && session.used > 0 {
                    session.leave(|_| true);
                }
                session.used = usage.used;
            }
            ActivityKind::Compacted => session.leave(|_| true),
            ActivityKind::TurnBegan => session.running += 1,
            ActivityKind::TurnEnded { .. } if session.running > 0 => {
                let turn = session.turn;
                session.leave(|node| turn > node.turn_accessed + 1);
                session.show();
                session.running -= 1;
                session.turn += 1;
                self.ended.push((key.clone(), turn));
            }
            ActivityKind::Closed => {
                let PlainSession { turn, running, .. } = self.sessions.remove(place);
                if running > 0 {
                    self.closing.entry(key.clone()).or_insert((turn, 0)).1 += running;
                }
                if let Some(agent) = &self.designated
                    && self.view.as_ref() == Some(key)
                {
                    self.orchestrate(&unopened(agent));
                }
            }
            _ => {}
        }
    }

    fn orchestrate(&mut self, key: &SessionKey) {
        if self.designated.as_ref() == Some(&key.agent) && self.view.as_ref() != Some(key) {
            self.view = Some(key.clone());
            self.show_all();
        }
    }

    fn tick(&mut self) {
        for session in &mut self.sessions {
            for (node, is_shown) in session.nodes.values_mut() {
                if *is_shown && !node.in_context {
                    node.heat *= settings().decay_rate;
                }
            }
            session.nodes.retain(|_, (node, _)| node.heat >= 0.01);
        }
        self.show_all();
    }

    fn show_all(&mut self) {
        self.sessions.iter_mut().for_each(PlainSession::show);
    }

    fn snapshots(&self) -> Vec<(SessionKey, Vec<FileNode>)> {
        let view = self.view.clone().map(|key| (key, self.merged()));
        let others =
            self.sessions.iter().filter(|session| self.view.as_ref() != Some(&session.key));
        let others = others.map(|session| {
            (session.key.clone(), session.nodes.values().map(|(node, _)| node.clone()).collect())
        });
        let mut all: Vec<_> = view.into_iter().chain(others).collect();
        if self.view.is_none() {
            all.sort_by_key(|(key, _)| key.session.as_str().is_empty());
        }
        all
    }

    fn merged(&self) -> Vec<FileNode> {
        let mut whole: BTreeMap<String, FileNode> = BTreeMap::new();
        for (path, (node, _)) in self.sessions.iter().flat_map(|session| &session.nodes) {
            let Some(known) = whole.get_mut(path) else {
                whole.insert(path.clone(), node.clone());
                continue;
            };
            // Two steps never happen at the same time here.
            let is_later = node.timestamp_ms > known.timestamp_ms;
            let latest = if is_later { node } else { &*known }.clone();
            *known = FileNode {
                heat: known.heat.max(node.heat),
                in_context: known.in_context || node.in_context,
                ..latest
            };
        }
        whole.into_values().collect()
    }
}

impl PlainSession {
    fn touch(&mut self, path: &str, touch: Touch, source: Source, at: TimestampMs) {
        let known = self.nodes.get(path).map(|(node, _)| node);
        let was_in_context = known.is_some_and(|node| node.in_context);
        let is_access = touch != Touch::Blocked && source != Source::Kernel;
        if source == Source::Kernel && touch == Touch::Read && was_in_context {
            return;
        }
        let turn_accessed = match known {
            Some(node) if was_in_context && !is_access => node.turn_accessed,
            _ => self.turn,
        };
        let node = FileNode {
            path: path.into(),
            heat: 1.0,
            in_context: was_in_context || is_access,
            last_action: touch,
            turn_accessed,
            timestamp_ms: at,
        };
        self.nodes.insert(path.to_owned(), (node, false));
    }

    fn leave(&mut self, is_leaving: impl Fn(&FileNode) -> bool) {
        for (node, is_shown) in self.nodes.values_mut() {
            if node.in_context && is_leaving(node) {
                node.in_context = false;
                *is_shown = false;
            }
        }
    }

    fn show(&mut self) {
        self.nodes.values_mut().for_each(|(_, is_shown)| *is_shown = true);
    }
}

fn unopened(agent: &AgentId) -> SessionKey {
    key(&format!("{agent}/"))
}
