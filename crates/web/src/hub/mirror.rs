//! The state of all teams as their lines say it. Each change goes on the hub's bus under the same lock, so
//! that a client that joins misses nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lines::{self, HubLine};
use crate::bus::{Bus, Rendered};
use crate::line::{lenient, or_default};
use crate::model::{Delta, Event, FileNode, Relayed, SessionKey, SessionMode, Snapshot};
use crate::tracker::Snapshots;

/// The beginnings of subjects.
const AGENT: &str = "agent ";
const BLOCKED: &str = "blocked ";
const CONFLICT: &str = "conflict ";

#[derive(Debug)]
pub(super) struct Mirror {
    bus: Bus,
    hosts: Mutex<IndexMap<String, MirroredHost>>,
}

#[derive(Default, Debug)]
struct MirroredHost {
    maps: IndexMap<SessionKey, MirroredMap>,
    /// By subject.
    standing: IndexMap<Arc<str>, Relayed>,
    /// The maps and subjects that a new feed has not repeated yet.
    stale_maps: HashSet<SessionKey>,
    stale: HashSet<Arc<str>>,
    /// As `list_agents` answered when the feed began.
    agents: Value,
}

#[derive(Debug)]
struct MirroredMap {
    mode: SessionMode,
    seq: u64,
    nodes: HashMap<Arc<str>, FileNode>,
    omitted: u64,
    /// The map is not complete.
    is_partial: bool,
    /// Changes with the next number, of which there are more.
    pending: Option<Delta>,
}

/// Why a feed can't be followed any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum FeedError {
    #[error("a line can't be read: {0}")]
    Line(#[from] serde_json::Error),
    #[error("the changes of a map are not in order")]
    Order,
}

/// The work that is left after a line.
#[derive(PartialEq, Debug)]
pub(super) enum AfterLine {
    Nothing,
    /// The state is whole; these accesses and writes do not wait any more, and it is not known why.
    Settled(Vec<Relayed>),
}

impl Mirror {
    pub(super) fn new(bus: Bus) -> Self {
        Self { bus, hosts: Mutex::default() }
    }

    /// A feed begins: what it does not repeat is gone.
    pub(super) fn begin(&self, host: &str) {
        let mut hosts = self.hosts.lock();
        let host = hosts.entry(host.to_owned()).or_default();
        host.stale_maps = host.maps.keys().cloned().collect();
        host.stale = host.standing.keys().cloned().collect();
    }

    pub(super) fn line(&self, name: &str, line: &[u8]) -> Result<AfterLine, FeedError> {
        let mut hosts = self.hosts.lock();
        let host = hosts.entry(name.to_owned()).or_default();
        let mode_of = |key: &SessionKey| host.maps.get(key).map(|map| map.mode);
        match lines::read(line, name, mode_of)? {
            HubLine::Map { key, mode, seq, nodes, omitted, more } => {
                host.stale_maps.remove(&key);
                let nodes = nodes.into_iter().map(|node| (Arc::clone(&node.path), node)).collect();
                let map =
                    MirroredMap { mode, seq, nodes, omitted, is_partial: more, pending: None };
                if !more {
                    self.bus.publish(Event::Snapshot(map.snapshot(&key)));
                }
                host.maps.insert(key, map);
            }
            HubLine::Changes { key, seq, updates, removed, more } => {
                let map = host.maps.get_mut(&key).ok_or(FeedError::Order)?;
                if let Some(event) = map.change(key, seq, updates, removed, more)? {
                    self.bus.publish(event);
                }
            }
            HubLine::Relayed { relayed, stands } => {
                if let Some(subject) = &relayed.subject {
                    host.stale.remove(subject);
                    if stands == Some(true) {
                        host.standing.insert(Arc::clone(subject), relayed.clone());
                    } else {
                        host.standing.shift_remove(subject);
                    }
                }
                self.bus.publish(Event::Relayed(relayed));
            }
            HubLine::Joined(agents) => {
                host.agents = agents;
                return Ok(AfterLine::Settled(self.sweep(host)));
            }
            HubLine::Nothing => {}
        }
        Ok(AfterLine::Nothing)
    }

    /// Removes what a feed did not repeat, and says that of agents; returns what waited for a decision.
    fn sweep(&self, host: &mut MirroredHost) -> Vec<Relayed> {
        for key in std::mem::take(&mut host.stale_maps) {
            if let Some(map) = host.maps.shift_remove(&key) {
                self.bus.publish(Event::Delta(map.emptied(key)));
            }
        }
        let mut gone = Vec::new();
        for subject in std::mem::take(&mut host.stale) {
            let Some(relayed) = host.standing.shift_remove(&subject) else { continue };
            if subject.starts_with(AGENT) {
                self.stopped(relayed, "it is not in its team any more");
            } else if waits(&subject) {
                gone.push(relayed);
            }
        }
        gone
    }

    fn stopped(&self, relayed: Relayed, why: &str) {
        self.again(relayed, &StoppedAgent { state: "stopped", pid: None, reason: why });
    }

    /// Publishes a line once more, with other fields.
    fn again(&self, relayed: Relayed, fields: &impl Serialize) {
        let Ok(mut line) = serde_json::from_str(&relayed.line) else { return };
        replace(&mut line, fields);
        let line = lines::ended(&line);
        self.bus.publish(Event::Relayed(Relayed { line, ..relayed }));
    }

    /// Says what became of what waited: as its team lists it, else it has expired with its team.
    pub(super) fn settled(&self, host: &str, waited: Relayed, listed: &[Value]) {
        let WaitingLine { id, path, .. } = or_default(&waited.line);
        let LineType { kind } = or_default(&waited.line);
        let id = id.as_deref().and_then(|id| id.split_once('/')).map(|(_, id)| id);
        let listed = listed.iter().map(|line| (line, WaitingLine::of(line)));
        let is_it =
            |known: &WaitingLine| id.is_some() && known.id.as_deref() == id && known.path == path;
        match listed.into_iter().find(|(_, known)| is_it(known)) {
            Some((_, known)) if known.status == "pending" => {}
            Some((known, _)) => {
                let mut line = known.clone();
                replace(&mut line, &LineType { kind });
                let line = lines::read(line.to_string().as_bytes(), host, |_| None);
                if let Ok(HubLine::Relayed { relayed, .. }) = line {
                    self.bus.publish(Event::Relayed(relayed));
                }
            }
            None => self.again(waited, &EXPIRED),
        }
    }

    /// The team of a host is away: its agents say so.
    pub(super) fn away(&self, host: &str, why: &str) {
        let mut hosts = self.hosts.lock();
        let Some(host) = hosts.get_mut(host) else { return };
        for (subject, relayed) in &mut host.standing {
            let Ok(mut value) = serde_json::from_str::<Value>(&relayed.line) else { continue };
            if subject.starts_with(AGENT) {
                replace(&mut value, &AwayAgent { reason: why });
                relayed.line = lines::ended(&value);
                self.bus.publish(Event::Relayed(relayed.clone()));
            }
        }
    }

    /// The team of a host has ended: nothing of it stays.
    pub(super) fn end(&self, name: &str) {
        let mut hosts = self.hosts.lock();
        let Some(mut host) = hosts.shift_remove(name) else { return };
        host.stale_maps = host.maps.keys().cloned().collect();
        self.sweep(&mut host);
        for (subject, relayed) in host.standing {
            if subject.starts_with(AGENT) {
                self.stopped(relayed, "its team has ended");
            } else if waits(&subject) {
                self.again(relayed, &EXPIRED);
            }
        }
    }

    pub(super) fn snapshots(&self) -> Snapshots {
        let hosts = self.hosts.lock();
        let maps = hosts.values().flat_map(|host| &host.maps);
        let whole = maps.filter(|(_, map)| !map.is_partial);
        let sessions = whole.map(|(key, map)| Arc::new(Rendered::new(map.snapshot(key)))).collect();
        Snapshots { as_of: self.bus.position(), sessions }
    }

    pub(super) fn standing(&self) -> Vec<Relayed> {
        let hosts = self.hosts.lock();
        hosts.values().flat_map(|host| host.standing.values().cloned()).collect()
    }

    /// Keeps how a host listed its agents.
    pub(super) fn listed(&self, host: &str, agents: &Value) {
        self.hosts.lock().entry(host.to_owned()).or_default().agents = agents.clone();
    }

    /// The agents of a host as it listed them last, with what their lines say since; None: it never did.
    pub(super) fn agents(&self, host: &str) -> Option<Value> {
        let hosts = self.hosts.lock();
        let host = hosts.get(host)?;
        let mut agents = host.agents.clone();
        for agent in agents.as_array_mut()? {
            let ListedAgent { agent_id } = ListedAgent::deserialize(&*agent).unwrap_or_default();
            let subject = format!("{AGENT}{agent_id}");
            let Some(relayed) = host.standing.get(subject.as_str()) else { continue };
            let Ok(now) = serde_json::from_str::<AgentNow>(&relayed.line) else { continue };
            replace(agent, &now);
        }
        Some(agents)
    }
}

#[derive(Serialize)]
struct StoppedAgent<'a> {
    state: &'static str,
    pid: Option<u32>,
    reason: &'a str,
}

#[derive(Serialize)]
struct AwayAgent<'a> {
    reason: &'a str,
}

#[derive(Serialize)]
struct Settled {
    status: &'static str,
}

const EXPIRED: Settled = Settled { status: "expired" };

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LineType {
    #[serde(rename = "type")]
    kind: Value,
}

/// A blocked access, or a conflict.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WaitingLine {
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    path: Value,
    #[serde(deserialize_with = "lenient")]
    status: String,
}

impl WaitingLine {
    fn of(line: &Value) -> Self {
        Self::deserialize(line).unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedAgent {
    #[serde(deserialize_with = "lenient")]
    agent_id: String,
}

/// The news of an agent's line, as it came.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct AgentNow {
    state: Value,
    pid: Value,
    reason: Value,
    restarts: Value,
    timestamp_ms: Value,
}

/// Replaces fields of a line; all others stay, also those of another version.
fn replace(line: &mut Value, fields: &impl Serialize) {
    let fields = serde_json::to_value(fields).unwrap_or_default();
    if let (Value::Object(line), Value::Object(fields)) = (line, fields) {
        line.extend(fields);
    }
}

/// Whether this is an access, or a write in conflict, that waits for a decision.
fn waits(subject: &str) -> bool {
    subject.starts_with(BLOCKED) || subject.starts_with(CONFLICT)
}

impl MirroredMap {
    fn snapshot(&self, key: &SessionKey) -> Snapshot {
        let nodes = self.nodes.values().cloned().collect();
        Snapshot { key: key.clone(), mode: self.mode, seq: self.seq, nodes, omitted: self.omitted }
    }

    /// Applies changes; returns the event of them once they are whole.
    fn change(
        &mut self,
        key: SessionKey,
        seq: u64,
        updates: Vec<FileNode>,
        removed: Vec<Arc<str>>,
        more: bool,
    ) -> Result<Option<Event>, FeedError> {
        let wanted = if self.is_partial { self.seq } else { self.seq + 1 };
        if seq != wanted {
            return Err(FeedError::Order);
        }
        for node in &updates {
            self.nodes.insert(Arc::clone(&node.path), node.clone());
        }
        for path in &removed {
            self.nodes.remove(path);
        }
        if self.is_partial {
            self.is_partial = more;
            return Ok((!more).then(|| Event::Snapshot(self.snapshot(&key))));
        }
        let empty = Delta { key, mode: self.mode, seq, updates: Vec::new(), removed: Vec::new() };
        let delta = self.pending.get_or_insert(empty);
        delta.updates.extend(updates);
        delta.removed.extend(removed);
        if more {
            return Ok(None);
        }
        self.seq = seq;
        Ok(self.pending.take().map(Event::Delta))
    }

    /// The last change of a session that has ended.
    fn emptied(self, key: SessionKey) -> Delta {
        let removed = self.nodes.into_keys().collect();
        Delta { key, mode: self.mode, seq: self.seq + 1, updates: Vec::new(), removed }
    }
}
