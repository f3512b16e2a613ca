//! Which contents of files a client gets: the one place that decides it, for whatever shows some. An agent
//! sees what its own zone would open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::Caller;
use super::shared::Shared;
use crate::acp::{self, CallUpdate};
use crate::journal::{self, EventType};
use crate::model::{Action, AgentId, Event, SessionKey, TeamUpdate, wire_path};
use crate::serve::Refused;
use crate::tokens::TokenRight;
use crate::zone::Zone;

/// Fields of an event that have what a call read or wrote.
const CONTENTS: [&str; 6] = ["input", "content", "output", "error", "update", "entries"];

/// Bytes of a text that may be a path.
const LONGEST_PATH: usize = 4_096;

/// The files whose contents a caller may see.
#[derive(Clone, Debug)]
pub(super) enum Sight {
    /// All: a person's, and an agent's that has no zone.
    All,
    /// The files that an agent's zone lets it read.
    Zone(Arc<Zone>),
    /// The files of the workspace that no agent is denied: for a token that is no agent's.
    Workspace { root: Option<PathBuf>, zones: Arc<[Arc<Zone>]> },
    /// None: without a token.
    Nothing,
}

impl Sight {
    pub(super) async fn of(shared: &Shared, caller: Option<&Caller>) -> Self {
        let Some(caller) = caller else { return Self::Nothing };
        if caller.is_person() {
            return Self::All;
        }
        // Who controls the team can have anything run.
        if matches!(caller, Caller::Holder(it) if it.may(TokenRight::Control)) {
            return Self::All;
        }
        if let Some(agent) = caller.agent() {
            return Self::of_agent(shared, agent).await;
        }
        let zones = shared.sources.zones().await;
        Self::Workspace { root: shared.sources.workspace(), zones: zones.into_values().collect() }
    }

    /// The files whose contents an agent may see.
    pub(super) async fn of_agent(shared: &Shared, agent: &AgentId) -> Self {
        let zones = shared.sources.zones().await;
        zones.get(agent).map_or(Self::All, |zone| Self::Zone(Arc::clone(zone)))
    }

    /// Whether the content of a file may be seen; its path as events and tool calls have it. Reads the disk.
    pub(super) fn opens(&self, path: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Zone(zone) => zone.check(&zone.workspace().join(path), Action::Read).is_ok(),
            Self::Workspace { root, zones } => {
                let path = match root {
                    Some(root) => wire_path(root, root, path),
                    None => path.to_string_lossy().into_owned(),
                };
                let is_inside = !path.starts_with('/') && !path.starts_with("..");
                is_inside && zones.iter().all(|zone| zone.denied_by(&path).is_none())
            }
        }
    }

    /// Fails where [`Self::opens`] is false.
    pub(super) fn permit(&self, path: &Path) -> Result<(), Refused> {
        if self.opens(path) {
            return Ok(());
        }
        let path = path.display();
        Err(Refused::new(403, format!("the content of `{path}` is not for this token: {WHY}")))
    }

    /// Whether all files may be seen that some JSON names as paths. What is no JSON may not.
    pub(super) fn opens_all_of(&self, json: &str) -> bool {
        if matches!(self, Self::All) {
            return true;
        }
        serde_json::from_str(json).is_ok_and(|value| self.opens_all_in(&value))
    }

    fn opens_all_in(&self, value: &Value) -> bool {
        let mut paths = Vec::new();
        add_paths(value, false, &mut paths);
        paths.sort_unstable();
        paths.dedup();
        paths.into_iter().all(|path| self.opens(Path::new(path)))
    }

    /// Whether all of an event may be seen.
    pub(super) fn opens_event(&self, event: &journal::Event) -> bool {
        !has_contents(&event.kind) || self.opens_all_of(event.payload.get())
    }

    /// Takes out of an event what may not be seen.
    pub(super) fn reduce(&self, event: &mut journal::Event) {
        if self.opens_event(event) {
            return;
        }
        let read = serde_json::from_str::<Map<String, Value>>(event.payload.get());
        let mut payload = read.unwrap_or_default();
        for field in CONTENTS {
            payload.shift_remove(field);
        }
        payload.insert("withheld".to_owned(), true.into());
        event.payload = to_raw_value(&payload).unwrap_or_else(|_| RawValue::NULL.to_owned());
    }
}

/// Which lines of what agents do a client gets.
#[derive(Debug)]
pub(super) struct UpdateSight {
    sight: Sight,
    /// Calls that name files which may not be seen: later updates of a call need not name them again.
    hidden: IndexSet<(SessionKey, String)>,
    /// The call that shows each terminal: what the terminal prints is seen as its call is.
    terminals: IndexMap<(SessionKey, String), String>,
}

impl UpdateSight {
    pub(super) fn new(sight: Sight) -> Self {
        Self { sight, hidden: IndexSet::new(), terminals: IndexMap::new() }
    }

    /// Whether the line of an event may be seen.
    pub(super) fn opens(&mut self, event: &Event) -> bool {
        let Event::SessionUpdate { key, update, .. } = event else { return true };
        if matches!(self.sight, Sight::All) {
            return true;
        }
        let Ok(value) = serde_json::from_str::<Value>(update) else { return false };
        if let Ok(TeamUpdate::Terminal(shown)) = TeamUpdate::deserialize(&value) {
            let opens = self.opens_terminal(key, &shown.terminal_id);
            if shown.exit_status.is_some() {
                // A later terminal may have its id.
                self.terminals.shift_remove(&(key.clone(), shown.terminal_id.into_owned()));
            }
            return opens;
        }
        let call = value["toolCallId"].as_str().map(|id| (key.clone(), id.to_owned()));
        let is_open = self.sight.opens_all_in(&value)
            && call.as_ref().is_none_or(|call| !self.hidden.contains(call));
        if let Some((_, id)) = &call {
            self.shows_terminals(key, id, &value);
        }
        if let Some(call) = call.filter(|_| !is_open) {
            if self.hidden.len() >= MOST_HIDDEN {
                self.hidden.shift_remove_index(0);
            }
            self.hidden.insert(call);
        }
        is_open
    }

    /// Remembers the terminals that an update of a call shows.
    fn shows_terminals(&mut self, key: &SessionKey, call: &str, update: &Value) {
        let CallUpdate { content, .. } = acp::read(update);
        for terminal in content.0.into_iter().filter_map(|it| it.terminal_id) {
            if self.terminals.len() >= MOST_HIDDEN {
                self.terminals.shift_remove_index(0);
            }
            self.terminals.insert((key.clone(), terminal), call.to_owned());
        }
    }

    /// Whether the output of a terminal may be seen: not before a call shows it, which may name what is hidden.
    fn opens_terminal(&self, key: &SessionKey, terminal: &str) -> bool {
        let call = self.terminals.get(&(key.clone(), terminal.to_owned()));
        call.is_some_and(|call| !self.hidden.contains(&(key.clone(), call.clone())))
            && !matches!(self.sight, Sight::Nothing)
    }
}

/// Calls that are remembered as hidden, and terminals that calls show; past that the oldest, which has ended long
/// ago, is forgotten.
const MOST_HIDDEN: usize = 4_096;

/// Why a content is not shown.
pub(super) const WHY: &str = "it shows what its own zone would open, and one with a scope shows files of \
                              the workspace that no agent is denied";

/// Whether events of a type may have contents of files.
fn has_contents(kind: &str) -> bool {
    [EventType::TOOL_CALL, EventType::TOOL_RESULT, EventType::UPDATE, EventType::PERMISSION]
        .iter()
        .any(|known| known.as_str() == kind)
}

/// Adds the texts of fields that name files: ACP's locations and diffs, and the inputs of tools.
fn add_paths<'a>(value: &'a Value, is_path: bool, paths: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if is_path => {
            let path = text.strip_prefix("file://").unwrap_or(text);
            if !path.is_empty() && path.len() <= LONGEST_PATH && !path.contains(['\n', '\0']) {
                paths.push(path);
            }
        }
        Value::Array(all) => all.iter().for_each(|one| add_paths(one, is_path, paths)),
        Value::Object(fields) => {
            for (name, value) in fields {
                add_paths(value, names_paths(name), paths);
            }
        }
        _ => {}
    }
}

fn names_paths(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("path") || name.ends_with("file") || name.ends_with("files") || name == "uri"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::{SessionId, SessionMode};
    use crate::zone::{GitAccess, ZoneSpec};

    fn zone(workspace: &Path, readable: &[&str], denied: &[&str]) -> Arc<Zone> {
        let owned = |globs: &[&str]| globs.iter().map(ToString::to_string).collect();
        let spec = ZoneSpec {
            workspace: workspace.to_owned(),
            allowed: Vec::new(),
            shared: Vec::new(),
            denied: owned(denied),
            asked: Vec::new(),
            readable: owned(readable),
            git: GitAccess::Read,
            branch: None,
            beside: Vec::new(),
            terminals: false,
            eisen_dir: workspace.join("eisen"),
            sealed: Vec::new(),
            journals: Vec::new(),
        };
        Arc::new(Zone::compile(&spec).unwrap())
    }

    #[test]
    fn contents_are_shown_as_far_as_the_readers_zone_opens_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("ui")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("ui/link")).unwrap();
        let lead = Sight::Zone(zone(&root, &["ui/**"], &[]));
        let zones = [zone(&root, &["**"], &["*.env"])].into();
        let token = Sight::Workspace { root: Some(root.clone()), zones };
        let inside = root.join("ui/a");
        let inside = inside.to_str().unwrap();
        for (path, by_lead, by_token) in [
            ("ui/a", true, true),
            (inside, true, true),
            ("api/b", false, true),
            ("prod.env", false, false),
            ("/home/ada/.codex/auth.json", false, false),
            ("ui/../../secret", false, false),
            ("eisen/run/team.json", false, true),
        ] {
            let path = Path::new(path);
            let opened = [&lead, &token].map(|sight| sight.opens(path));
            assert_eq!(opened, [by_lead, by_token], "{}", path.display());
            assert!(Sight::All.opens(path) && !Sight::Nothing.opens(path));
        }
        assert!(!lead.opens(Path::new("ui/link")));
        for hidden in [
            r#"{"locations":[{"path":"ui/a"},{"path":"/etc/shadow"}],"output":"x"}"#,
            r#"{"input":{"file_path":"/etc/shadow"}}"#,
            r#"{"content":[{"type":"diff","path":"/etc/shadow","newText":"x"}]}"#,
            r#"{"input":{"paths":["ui/a","/etc/shadow"]}}"#,
            r#"{"content":[{"resource":{"uri":"file:///etc/shadow"}}]}"#,
        ] {
            assert!(!lead.opens_all_of(hidden) && !token.opens_all_of(hidden), "{hidden}");
        }
        let mut updates = UpdateSight::new(lead.clone());
        let mut sees = |update: &str| {
            let key = SessionKey::new(AgentId::new("ui"), SessionId::new("s"));
            let (mode, update) = (SessionMode::SingleAgent, update.into());
            updates.opens(&Event::SessionUpdate { key, mode, update })
        };
        assert!(sees(
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","locations":[{"path":"ui/a"}]}"#
        ));
        assert!(!sees(
            r#"{"sessionUpdate":"tool_call","toolCallId":"2","locations":[{"path":"/etc/x"}]}"#
        ));
        for (id, seen) in [("1", true), ("2", false)] {
            let result =
                format!(r#"{{"toolCallId":"{id}","content":[{{"text":"what it read"}}]}}"#);
            assert_eq!(sees(&result), seen, "the result of call {id}");
        }
        // What a terminal prints is seen as the call that shows it, and not before there is one.
        let prints = |id: &str| TeamUpdate::terminal(id, "x", false, None).to_json();
        for (call, terminal, seen) in [("1", "t1", true), ("2", "t2", false)] {
            assert!(!sees(&prints(terminal)));
            let content = format!(r#"[{{"type":"terminal","terminalId":"{terminal}"}}]"#);
            assert_eq!(sees(&format!(r#"{{"toolCallId":"{call}","content":{content}}}"#)), seen);
            assert_eq!(sees(&prints(terminal)), seen, "{terminal}");
        }
        let shown = r#"{"locations":[{"path":"ui/a"}],"input":{"command":"ls /etc"}}"#;
        assert!(lead.opens_all_of(shown) && token.opens_all_of(shown));
    }
}
