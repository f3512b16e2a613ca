//! Turns events of a journal into scenes: activities of agents, statuses, blocked accesses. Tool
//! calls go through the extractor, as in a running team, so that their paths are read alike.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::updates::updates;
use crate::extract::{self, DiskWorkspace, Extractor};
use crate::journal::{self, Event};
use crate::line::Direction;
use crate::model::{
    AccessRule, Action, Activity, ActivityKind, AgentId, AgentState, AgentStatus, BlockedAccess,
    BlockedId, BlockedStatus, Cost, Decide, DecidedBy, Lines, Model, SessionId, SessionKey,
    SessionMode, Source, Touch, Usage, Via,
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
        let payload: Value = serde_json::from_str(event.payload.get()).unwrap_or_default();
        let key = event.session_id.as_ref().and_then(|session| self.sessions.get(session)).cloned();
        let Some(key) = key else { return self.outside(event, &payload) };
        let mut scenes = Vec::new();
        if self.opened.insert(key.clone()) {
            did(&mut scenes, &key, ActivityKind::Opened { is_new: false });
        }
        self.inside(event, &payload, &key, &mut scenes);
        scenes
    }

    /// An event of no session.
    fn outside(&self, event: &Event, payload: &Value) -> Vec<Scene> {
        let is_shown = self.only.is_none() || self.only == event.agent_id;
        let agent = event.agent_id.as_deref().map(AgentId::new).filter(|_| is_shown);
        match (event.kind.as_str(), agent) {
            ("agent.state", Some(agent)) => {
                let named = |state: &AgentState| payload["state"] == state.as_str();
                let state = AgentState::ALL.into_iter().find(named);
                let state = state.unwrap_or(AgentState::Stopped);
                let number = |name: &str| payload[name].as_u64().and_then(|it| it.try_into().ok());
                vec![Scene::Agent(AgentStatus {
                    agent,
                    state,
                    pid: number("pid"),
                    reason: payload["reason"].as_str().map(str::to_owned),
                    restarts: number("restarts").unwrap_or_default(),
                    candidate: None,
                    timestamp_ms: event.timestamp,
                })]
            }
            ("blocked", Some(agent)) => {
                let key = SessionKey::new(agent, SessionId::new(""));
                blocked(payload, &key, event.timestamp).into_iter().collect()
            }
            (kind, None) if self.only.is_none() && kind.starts_with("file.") && writes(kind) => {
                payload["path"]
                    .as_str()
                    .map(|path| Scene::DiskWrote(path.into()))
                    .into_iter()
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn inside(
        &mut self,
        event: &Event,
        payload: &Value,
        key: &SessionKey,
        scenes: &mut Vec<Scene>,
    ) {
        let text = |name: &str| payload[name].as_str().map(Arc::<str>::from);
        match event.kind.as_str() {
            "session.end" if payload["reason"] == "closed" => {
                self.opened.remove(key);
                did(scenes, key, ActivityKind::Closed);
            }
            "message.user" => {
                did(scenes, key, ActivityKind::TurnBegan);
                // Reads the paths that a prompt names; without an id the line is no request.
                let blocks = payload["blocks"].as_array().cloned().unwrap_or_default();
                let params = json!({ "sessionId": key.session.as_str(), "prompt": blocks });
                let line = json!({ "method": "session/prompt", "params": params }).to_string();
                self.observe(Direction::ToAgent, &line, key, scenes);
            }
            "usage" => {
                did(scenes, key, ActivityKind::Usage { usage: usage(payload), is_past: false });
            }
            "usage.spent" => {
                let spent = journal::spending(event.payload.get());
                did(scenes, key, ActivityKind::Spent(spent));
            }
            "compact" => did(scenes, key, ActivityKind::Compacted),
            "turn.end" | "turn.failed" => {
                let stop_reason = text("stop_reason").unwrap_or_else(|| "error".into());
                let reason = text("reason");
                did(scenes, key, ActivityKind::TurnEnded { stop_reason, reason });
            }
            "blocked" => scenes.extend(blocked(payload, key, event.timestamp)),
            "update" => {
                if let Some(id) = payload["model"]["id"].as_str() {
                    let name = payload["model"]["name"].as_str().unwrap_or_default();
                    let model = Model { id: id.into(), name: name.into() };
                    did(scenes, key, ActivityKind::Model(model));
                }
            }
            kind if kind.starts_with("file.") => file(kind, payload, key, scenes),
            _ => {}
        }
        for update in updates(&event.kind, payload) {
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
fn file(kind: &str, payload: &Value, key: &SessionKey, scenes: &mut Vec<Scene>) {
    let Some(path) = payload["path"].as_str().map(Arc::<str>::from) else { return };
    let by_client = payload["by"] == "client_host";
    let source = if by_client { Source::Request } else { Source::Kernel };
    let touch = if writes(kind) { Touch::Write } else { Touch::Read };
    let touched =
        ActivityKind::Touched { path: path.clone(), touch, source, lines: Lines::default() };
    did(scenes, key, touched);
    if writes(kind) && by_client {
        did(scenes, key, ActivityKind::Written { path });
    }
}

fn usage(payload: &Value) -> Usage {
    let number = |name: &str| payload[name].as_u64().unwrap_or_default();
    let cost = payload["cost"]["amount"].as_f64().map(|amount| Cost {
        amount,
        currency: payload["cost"]["currency"].as_str().unwrap_or_default().into(),
    });
    Usage { used: number("used"), size: number("size"), cost }
}

fn rule(payload: &Value) -> Option<AccessRule> {
    let number = NonZeroU32::new(u32::try_from(payload["rule"].as_u64()?).ok()?)?;
    let name = payload["decide"].as_str()?;
    let decide = Decide::ALL.into_iter().find(|decide| decide.as_str() == name)?;
    Some(AccessRule { number, decide })
}

fn decided_by(payload: &Value) -> Option<DecidedBy> {
    payload["decided_by"].as_str()?.parse().ok()
}

fn blocked(payload: &Value, key: &SessionKey, timestamp_ms: u64) -> Option<Scene> {
    let text = |name: &str| payload[name].as_str();
    let status = BlockedStatus::ALL.into_iter().find(|it| text("status") == Some(it.as_str()))?;
    let owners = payload["owners"].as_array().into_iter().flatten();
    let access = BlockedAccess {
        id: BlockedId::new(text("blocked_id")?),
        key: key.clone(),
        mode: SessionMode::SingleAgent,
        path: text("path")?.into(),
        action: Action::ALL.into_iter().find(|it| text("action") == Some(it.as_str()))?,
        via: Via::ALL.into_iter().find(|it| text("via") == Some(it.as_str()))?,
        status,
        owners: owners.filter_map(Value::as_str).map(AgentId::new).collect(),
        orchestrator: None,
        sweep: payload["sweep"].as_u64(),
        denied_by: text("denied_by").map(Into::into),
        rule: rule(payload),
        decided_by: decided_by(payload),
        owner_answer: None,
        reason: text("reason").map(Into::into),
        completed: payload["completed"] == true,
        timestamp_ms,
    };
    let is_first =
        matches!(status, BlockedStatus::Pending | BlockedStatus::Denied | BlockedStatus::Observed);
    let is_named = is_first && access.sweep.is_none() && !key.session.as_str().is_empty();
    Some(Scene::Blocked(Box::new(access), is_named))
}
