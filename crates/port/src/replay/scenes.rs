//! Turns events of a journal into scenes: activities of agents, statuses, blocked accesses. Tool
//! calls go through the extractor, as in a running team, so that their paths are read alike.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::updates::updates;
use crate::extract::{self, DiskWorkspace, Extractor};
use crate::journal::{
    self, BlockedPayload, Event, MessagePayload, StatePayload, TurnPayload, UpdatePayload,
    UsagePayload,
};
use crate::line::Direction;
use crate::model::{
    AccessRule, Activity, ActivityKind, AgentId, AgentState, AgentStatus, BlockedAccess, BlockedId,
    BlockedStatus, Cost, Lines, Model, SeenBy, SessionId, SessionKey, SessionMode, Source, Touch,
    Usage, Variants,
};

/// The workspace of a journal that does not name its own: it is empty.
const UNKNOWN: &str = "/dev/null/workspace";

/// A part of the run to show.
pub(super) enum Scene {
    Did(AgentId, Activity),
    /// With whether its path gets warm.
    Blocked(Box<BlockedAccess>, bool),
    Agent(AgentStatus),
    /// A file was written without a known author.
    DiskWrote(Arc<str>),
}

/// The payload of `session.end`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EndPayload {
    reason: Option<String>,
}

/// The fields that are read of a payload of `file.…`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FilePayload {
    path: Option<Arc<str>>,
    by: Option<String>,
}

pub(super) struct Scenes {
    /// By the journal's ids.
    sessions: HashMap<String, SessionKey>,
    opened: HashSet<SessionKey>,
    workspace: Arc<DiskWorkspace>,
    root: PathBuf,
    extractors: HashMap<AgentId, Box<dyn Extractor>>,
    /// Only this agent is shown.
    only: Option<String>,
}

impl Scenes {
    pub(super) fn new(
        sessions: HashMap<String, SessionKey>,
        root: Option<PathBuf>,
        only: Option<String>,
    ) -> Self {
        let root = root.unwrap_or_else(|| PathBuf::from(UNKNOWN));
        let workspace = Arc::new(DiskWorkspace::new(root.clone()));
        let (opened, extractors) = (HashSet::new(), HashMap::new());
        Self { sessions, opened, workspace, root, extractors, only }
    }

    pub(super) fn of(&mut self, event: &Event) -> Vec<Scene> {
        let key = event.session_id.as_ref().and_then(|session| self.sessions.get(session)).cloned();
        let Some(key) = key else { return self.outside(event) };
        let mut scenes = Vec::new();
        if self.opened.insert(key.clone()) {
            did(&mut scenes, &key, ActivityKind::Opened { is_new: false });
        }
        self.inside(event, &key, &mut scenes);
        scenes
    }

    /// An event of no session.
    fn outside(&self, event: &Event) -> Vec<Scene> {
        let is_shown = self.only.is_none() || self.only == event.agent_id;
        let agent = event.agent_id.as_deref().map(AgentId::new).filter(|_| is_shown);
        match (event.kind.as_str(), agent) {
            ("agent.state", Some(agent)) => {
                let StatePayload { state, pid, reason, restarts } = event.read();
                vec![Scene::Agent(AgentStatus {
                    agent,
                    state: named(&state).unwrap_or(AgentState::Stopped),
                    pid,
                    reason,
                    restarts,
                    candidate: None,
                    timestamp_ms: event.timestamp,
                })]
            }
            ("blocked", Some(agent)) => {
                let key = SessionKey::new(agent, SessionId::new(""));
                blocked(event, &key).into_iter().collect()
            }
            (kind, None) if self.only.is_none() && kind.starts_with("file.") && writes(kind) => {
                let FilePayload { path, .. } = event.read();
                path.map(Scene::DiskWrote).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn inside(&mut self, event: &Event, key: &SessionKey, scenes: &mut Vec<Scene>) {
        match event.kind.as_str() {
            "session.end" => {
                let EndPayload { reason } = event.read();
                if reason.as_deref() == Some("closed") {
                    self.opened.remove(key);
                    did(scenes, key, ActivityKind::Closed);
                }
            }
            "message.user" => {
                did(scenes, key, ActivityKind::TurnBegan);
                // Reads the paths that a prompt names; without an id the line is no request.
                let MessagePayload { blocks, .. } = event.read();
                let blocks = blocks.filter(Value::is_array).unwrap_or_else(|| json!([]));
                let params = json!({ "sessionId": key.session.as_str(), "prompt": blocks });
                let line = json!({ "method": "session/prompt", "params": params }).to_string();
                self.observe(Direction::ToAgent, &line, key, scenes);
            }
            "usage" => {
                let usage = usage(event.read());
                did(scenes, key, ActivityKind::Usage { usage, is_past: false });
            }
            "usage.spent" => {
                let spent = journal::spending(event.payload.get());
                did(scenes, key, ActivityKind::Spent(spent));
            }
            "compact" => did(scenes, key, ActivityKind::Compacted),
            "turn.end" | "turn.failed" => {
                let TurnPayload { stop_reason, reason, .. } = event.read();
                let stop_reason = stop_reason.map_or_else(|| "error".into(), Into::into);
                let reason = reason.map(Into::into);
                did(scenes, key, ActivityKind::TurnEnded { stop_reason, reason });
            }
            "blocked" => scenes.extend(blocked(event, key)),
            "update" => {
                let UpdatePayload { model, .. } = event.read();
                if let Some(model) = model {
                    let model = Model { id: model.id.into(), name: model.name.into() };
                    did(scenes, key, ActivityKind::Model(model));
                }
            }
            kind if kind.starts_with("file.") => file(kind, event.read(), key, scenes),
            _ => {}
        }
        for update in updates(event) {
            let params = json!({ "sessionId": key.session.as_str(), "update": update });
            let line = json!({ "method": "session/update", "params": params }).to_string();
            self.observe(Direction::ToClient, &line, key, scenes);
        }
    }

    /// Has the extractor read a line of the agent's protocol.
    fn observe(
        &mut self,
        direction: Direction,
        line: &str,
        key: &SessionKey,
        scenes: &mut Vec<Scene>,
    ) {
        let extractor = self.extractors.entry(key.agent.clone()).or_insert_with(|| {
            let workspace: Arc<dyn extract::Workspace> = self.workspace.clone();
            extract::acp(workspace, self.root.clone())
        });
        let mut activities = Vec::new();
        extractor.observe(direction, line.as_bytes(), &mut activities);
        let agent = &key.agent;
        scenes.extend(activities.into_iter().map(|activity| Scene::Did(agent.clone(), activity)));
    }
}

fn did(scenes: &mut Vec<Scene>, key: &SessionKey, kind: ActivityKind) {
    let activity = Activity { session: key.session.clone(), kind };
    scenes.push(Scene::Did(key.agent.clone(), activity));
}

fn writes(kind: &str) -> bool {
    kind != "file.read"
}

/// A file that an agent read or wrote, as its client, the kernel or the disk saw it.
fn file(kind: &str, payload: FilePayload, key: &SessionKey, scenes: &mut Vec<Scene>) {
    let Some(path) = payload.path else { return };
    let by_client = payload.by.as_deref() == Some(SeenBy::ClientHost.as_str());
    let source = if by_client { Source::Request } else { Source::Kernel };
    let touch = if writes(kind) { Touch::Write } else { Touch::Read };
    let touched =
        ActivityKind::Touched { path: path.clone(), touch, source, lines: Lines::default() };
    did(scenes, key, touched);
    if writes(kind) && by_client {
        did(scenes, key, ActivityKind::Written { path });
    }
}

fn usage(payload: UsagePayload) -> Usage {
    let cost = payload.cost.and_then(|cost| {
        let currency = cost.currency.into();
        Some(Cost { amount: cost.amount?, currency })
    });
    Usage { used: payload.used, size: payload.size, cost }
}

/// The variant with this name.
fn named<T: Variants>(name: &str) -> Option<T> {
    T::all().iter().copied().find(|it| it.name() == name)
}

fn blocked(event: &Event, key: &SessionKey) -> Option<Scene> {
    let payload: BlockedPayload = event.read();
    let status = named(&payload.status)?;
    let rule = payload.rule.and_then(NonZeroU32::new);
    let decide = payload.decide.as_deref().and_then(named);
    let access = BlockedAccess {
        id: BlockedId::new(payload.blocked_id?),
        key: key.clone(),
        mode: SessionMode::SingleAgent,
        path: payload.path?.into(),
        action: named(&payload.action)?,
        via: named(&payload.via)?,
        status,
        owners: payload.owners.into_iter().map(AgentId::new).collect(),
        orchestrator: None,
        sweep: payload.sweep,
        harmless: payload.harmless,
        denied_by: payload.denied_by.map(Into::into),
        rule: rule.zip(decide).map(|(number, decide)| AccessRule { number, decide }),
        decided_by: payload.decided_by.and_then(|by| by.parse().ok()),
        message: None,
        owner_answer: None,
        reason: payload.reason.map(Into::into),
        tool_call: None,
        offered: None,
        until_ms: None,
        ended: None,
        completed: payload.completed,
        timestamp_ms: event.timestamp,
    };
    let is_first =
        matches!(status, BlockedStatus::Pending | BlockedStatus::Denied | BlockedStatus::Observed);
    let is_named = is_first && access.sweep.is_none() && !key.session.as_str().is_empty();
    Some(Scene::Blocked(Box::new(access), is_named))
}
