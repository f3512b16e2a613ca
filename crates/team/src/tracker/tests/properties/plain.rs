//! The rules, rendered with no thought of cost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::settings;
use crate::model::{
    ActivityKind, AgentId, FileNode, Lines, Origin, SessionKey, Source, TimestampMs, Touch,
};
use crate::tracker::testing::{Functions, key};
use crate::tracker::{OrchestratorView, Symbols as _};

pub(super) struct Plain {
    pub(super) sessions: Vec<PlainSession>,
    /// Prompts that outlive their session: (its next turn, how many run).
    closing: BTreeMap<SessionKey, (u64, u64)>,
    pub(super) view: Option<SessionKey>,
    designated: Option<AgentId>,
    pub(super) ended: Vec<(SessionKey, u64)>,
    /// Whose nodes are those of the disk.
    disk: PlainSession,
    unclaimed: BTreeMap<String, TimestampMs>,
}

pub(super) struct PlainSession {
    key: SessionKey,
    /// With whether the node was shown as it is.
    nodes: BTreeMap<String, (FileNode, bool)>,
    /// When nodes were claimed to be written, and seen to be.
    writes: BTreeMap<String, [Option<TimestampMs>; 2]>,
    turn: u64,
    running: u64,
    used: u64,
    has_compacted: bool,
}

impl Plain {
    pub(super) fn new(view: &OrchestratorView) -> Self {
        let (view, designated) = match view {
            OrchestratorView::None(_) => (None, None),
            OrchestratorView::External(key) => (Some(key.clone()), None),
            OrchestratorView::Agent(agent) => (Some(key("lead/")), Some(agent.clone())),
        };
        Self {
            sessions: Vec::new(),
            closing: BTreeMap::new(),
            view,
            designated,
            ended: Vec::new(),
            disk: PlainSession::new(key("/")),
            unclaimed: BTreeMap::new(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "it is the whole model, in one piece")]
    pub(super) fn input(&mut self, key: &SessionKey, kind: ActivityKind, at: TimestampMs) {
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
            if place.is_none() && !matches!(kind, ActivityKind::Opened { .. }) {
                return;
            }
        }
        let place = place.unwrap_or_else(|| {
            if !matches!(
                kind,
                ActivityKind::Closed
                    | ActivityKind::Compacted
                    | ActivityKind::Performed { .. }
                    | ActivityKind::Written { .. }
                    | ActivityKind::TurnEnded { .. }
                    | ActivityKind::Update(_)
            ) {
                if matches!(kind, ActivityKind::Opened { .. })
                    && self.view == self.designated.as_ref().map(unopened)
                {
                    self.orchestrate(key);
                }
                self.sessions.push(PlainSession::new(key.clone()));
                return self.sessions.len() - 1;
            }
            usize::MAX
        });
        let Some(session) = self.sessions.get_mut(place) else { return };
        match kind {
            ActivityKind::Touched { path, touch, source, lines } => {
                session.touch(&path, touch, source, &lines, at);
                if touch == Touch::Write {
                    let by_kernel = source == Source::Kernel;
                    self.wrote(place, &path, !by_kernel, by_kernel, at);
                }
            }
            ActivityKind::Performed { path, .. } => self.wrote(place, &path, true, false, at),
            ActivityKind::Written { path } => self.wrote(place, &path, true, true, at),
            ActivityKind::Usage { usage, .. } => {
                let is_drop = usage.used * 2 <= session.used && session.used > 0;
                if is_drop && !std::mem::take(&mut session.has_compacted) {
                    session.leave(|_| true);
                }
                session.has_compacted = false;
                session.used = usage.used;
            }
            ActivityKind::Compacted => {
                session.has_compacted = true;
                session.leave(|_| true);
            }
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

    pub(super) fn orchestrate(&mut self, key: &SessionKey) {
        if self.designated.as_ref() == Some(&key.agent) && self.view.as_ref() != Some(key) {
            self.view = Some(key.clone());
            self.show_all();
        }
    }

    pub(super) fn tick(&mut self) {
        for session in self.sessions.iter_mut().chain([&mut self.disk]) {
            for (node, is_shown) in session.nodes.values_mut() {
                if *is_shown && !node.in_context {
                    node.heat *= settings().decay_rate;
                }
            }
            session.nodes.retain(|_, (node, _)| node.heat >= 0.01);
            session.writes.retain(|path, _| session.nodes.contains_key(path));
        }
        self.show_all();
    }

    pub(super) fn show_all(&mut self) {
        self.sessions.iter_mut().chain([&mut self.disk]).for_each(PlainSession::show);
    }

    pub(super) fn snapshots(&self) -> Vec<(SessionKey, Vec<FileNode>)> {
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

    pub(super) fn disk_wrote(&mut self, path: &str, at: TimestampMs) {
        let mut is_claimed = false;
        for session in &mut self.sessions {
            let times = session.writes.get(path).copied().unwrap_or_default();
            if times.into_iter().flatten().any(|time| at - time <= 5_000) {
                is_claimed = true;
                session.wrote(path, false, true, at);
            }
        }
        if !is_claimed {
            self.unclaimed.insert(path.to_owned(), at);
            if self.view.is_some() {
                self.disk.touch(path, Touch::Write, Source::Kernel, &Lines::default(), at);
                self.disk.wrote(path, false, true, at);
            }
        }
    }

    fn wrote(&mut self, place: usize, path: &str, claimed: bool, seen: bool, at: TimestampMs) {
        let session = &mut self.sessions[place];
        if !session.nodes.contains_key(path) {
            return;
        }
        session.wrote(path, claimed, seen, at);
        self.disk.nodes.remove(path);
        self.disk.writes.remove(path);
        if let Some(shown) = self.unclaimed.remove(path).filter(|shown| at - shown <= 5_000) {
            session.wrote(path, false, true, shown);
        }
    }

    fn all(&self) -> impl Iterator<Item = &PlainSession> {
        self.sessions.iter().chain([&self.disk])
    }

    fn merged(&self) -> Vec<FileNode> {
        let mut whole: BTreeMap<String, FileNode> = BTreeMap::new();
        for (path, (node, _)) in self.all().flat_map(|session| &session.nodes) {
            let Some(known) = whole.get_mut(path) else {
                whole.insert(path.clone(), node.clone());
                continue;
            };
            // Two steps never happen at the same time here.
            let is_later = node.timestamp_ms > known.timestamp_ms;
            let latest = if is_later { node } else { &*known }.clone();
            let symbols = known.symbols.iter().chain(&node.symbols).flat_map(|all| all.iter());
            let symbols: BTreeSet<_> = symbols.cloned().collect();
            *known = FileNode {
                heat: known.heat.max(node.heat),
                in_context: known.in_context || node.in_context,
                symbols: listed(symbols),
                origin: match (known.origin, node.origin) {
                    (Some(one), Some(other)) if one != other => Some(Origin::Confirmed),
                    (one, other) => one.or(other),
                },
                ..latest
            };
        }
        whole.into_values().collect()
    }
}

impl PlainSession {
    fn new(key: SessionKey) -> Self {
        let (nodes, writes) = (BTreeMap::new(), BTreeMap::new());
        Self { key, nodes, writes, turn: 0, running: 0, used: 0, has_compacted: false }
    }

    fn wrote(&mut self, path: &str, claimed: bool, seen: bool, at: TimestampMs) {
        let times = self.writes.entry(path.to_owned()).or_default();
        for (time, is_set) in times.iter_mut().zip([claimed, seen]) {
            if is_set {
                *time = Some(at);
            }
        }
        let origin = match *times {
            [Some(claimed), Some(seen)] if claimed.abs_diff(seen) <= 5_000 => Origin::Confirmed,
            // Nothing is later than none.
            [claimed, seen] if claimed > seen => Origin::Claimed,
            _ => Origin::Observed,
        };
        let (node, is_shown) = self.nodes.get_mut(path).unwrap();
        *is_shown &= node.origin == Some(origin);
        node.origin = Some(origin);
    }

    fn touch(&mut self, path: &str, touch: Touch, source: Source, lines: &Lines, at: TimestampMs) {
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
        let symbols = known.and_then(|node| node.symbols.clone());
        let mut symbols: BTreeSet<_> = symbols.iter().flat_map(|all| all.iter()).cloned().collect();
        symbols.extend(Functions::default().covered(path, lines));
        let node = FileNode {
            path: path.into(),
            heat: 1.0,
            in_context: was_in_context || is_access,
            last_action: touch,
            turn_accessed,
            timestamp_ms: at,
            symbols: listed(symbols),
            origin: known.and_then(|node| node.origin),
        };
        self.nodes.insert(path.to_owned(), (node, false));
    }

    fn leave(&mut self, is_leaving: impl Fn(&FileNode) -> bool) {
        for (node, is_shown) in self.nodes.values_mut() {
            if node.in_context && is_leaving(node) {
                (node.in_context, node.symbols) = (false, None);
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

fn listed(symbols: BTreeSet<Arc<str>>) -> Option<Arc<[Arc<str>]>> {
    (!symbols.is_empty()).then(|| symbols.into_iter().collect())
}
