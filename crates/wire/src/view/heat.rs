//! The heat of files over all sessions of the agents.

use std::collections::HashMap;

use serde::Deserialize;

/// Sessions that are kept; the port drops those that end.
const MOST_SESSIONS: usize = 10_000;

/// A file, with the agents that were there.
#[derive(Clone, PartialEq, Debug)]
pub struct HotFile<'a> {
    pub path: &'a str,
    /// 0 to 1: the highest of its agents.
    pub heat: f32,
    /// The last action there.
    pub action: &'a str,
    pub timestamp_ms: u64,
    /// With whether an agent has the file in its context, by name.
    pub agents: Vec<(&'a str, bool)>,
}

/// The maps of all sessions but the merged ones.
#[derive(Debug, Default)]
pub(super) struct HeatMap(HashMap<(String, String), HashMap<String, HeatNode>>);

#[derive(Deserialize, Debug)]
struct HeatNode {
    path: String,
    heat: f32,
    in_context: bool,
    last_action: String,
    timestamp_ms: u64,
}

#[derive(Deserialize)]
struct SnapshotLine {
    agent_id: String,
    session_id: String,
    session_mode: String,
    nodes: HashMap<String, HeatNode>,
}

#[derive(Deserialize)]
struct DeltaLine {
    agent_id: String,
    session_id: String,
    session_mode: String,
    updates: Vec<HeatNode>,
    removed: Vec<String>,
}

impl HeatMap {
    /// Takes a `snapshot` line; true if it concerns an agent's own map.
    pub(super) fn snapshot(&mut self, line: &[u8]) -> bool {
        let Ok(SnapshotLine { agent_id, session_id, session_mode, nodes }) =
            serde_json::from_slice(line)
        else {
            return false;
        };
        if is_merged(&session_mode) || session_id.is_empty() {
            return false;
        }
        let key = (agent_id, session_id);
        if nodes.is_empty() {
            self.0.remove(&key);
        } else if self.0.len() < MOST_SESSIONS || self.0.contains_key(&key) {
            self.0.insert(key, nodes);
        }
        true
    }

    /// Takes a `delta` line, as above.
    pub(super) fn delta(&mut self, line: &[u8]) -> bool {
        let Ok(DeltaLine { agent_id, session_id, session_mode, updates, removed }) =
            serde_json::from_slice(line)
        else {
            return false;
        };
        let key = (agent_id, session_id);
        if is_merged(&session_mode) || self.0.len() >= MOST_SESSIONS && !self.0.contains_key(&key) {
            return false;
        }
        let nodes = self.0.entry(key.clone()).or_default();
        for path in removed {
            nodes.remove(&path);
        }
        nodes.extend(updates.into_iter().map(|node| (node.path.clone(), node)));
        if nodes.is_empty() {
            self.0.remove(&key);
        }
        true
    }

    /// The `most` hottest files; of equal ones the last accessed first.
    pub(super) fn hottest(&self, most: usize) -> Vec<HotFile<'_>> {
        let mut files = HashMap::<&str, HotFile<'_>>::new();
        for ((agent, _), nodes) in &self.0 {
            for node in nodes.values() {
                let file = files.entry(&node.path).or_insert_with(|| HotFile {
                    path: &node.path,
                    heat: 0.0,
                    action: &node.last_action,
                    timestamp_ms: 0,
                    agents: Vec::new(),
                });
                file.add(agent, node);
            }
        }
        let mut files: Vec<_> = files.into_values().collect();
        let order = |a: &HotFile<'_>, b: &HotFile<'_>| {
            let hotter = b.heat.total_cmp(&a.heat).then(b.timestamp_ms.cmp(&a.timestamp_ms));
            hotter.then_with(|| a.path.cmp(b.path))
        };
        if files.len() > most {
            files.select_nth_unstable_by(most, order);
            files.truncate(most);
        }
        files.sort_unstable_by(order);
        for file in &mut files {
            file.agents.sort_unstable();
        }
        files
    }
}

impl<'a> HotFile<'a> {
    fn add(&mut self, agent: &'a str, node: &'a HeatNode) {
        self.heat = self.heat.max(node.heat);
        if node.timestamp_ms >= self.timestamp_ms {
            (self.timestamp_ms, self.action) = (node.timestamp_ms, &node.last_action);
        }
        match self.agents.iter_mut().find(|(known, _)| *known == agent) {
            Some((_, in_context)) => *in_context |= node.in_context,
            None => self.agents.push((agent, node.in_context)),
        }
    }
}

/// Whether a session's map merges those of the others.
fn is_merged(mode: &str) -> bool {
    mode == "orchestrator"
}
