//! Reads what an agent used from the journal.

use std::collections::{BTreeSet, HashMap, HashSet};

use indexmap::IndexSet;
use serde::Deserialize;
use serde_json::Value;

use crate::journal::{
    BlockedPayload, CallPayload, Event, Filter, OpenError, PathUsePayload, Store,
};
use crate::learn::UsedPath;
use crate::model::{Action, Via};

/// Programs that read what they come across, and pass over what they may not.
const SEARCHES: [&str; 15] = [
    "rg", "grep", "egrep", "fgrep", "ugrep", "ag", "ack", "find", "fd", "fdfind", "ls", "tree",
    "du", "wc", "git",
];

/// Files that the agent's own program reads in a turn without their being named, from which on it searches.
const MOST_UNNAMED: usize = 20;

/// Characters of a tool call's title.
const LONGEST_TITLE: usize = 60;

/// The paths that an agent used.
#[derive(Default)]
pub(super) struct PastUses {
    pub(super) uses: Vec<UsedPath>,
    pub(super) turns: usize,
    /// Each use is in the journal, with its program.
    pub(super) is_whole: bool,
    /// Folders that the agent made.
    pub(super) made: BTreeSet<String>,
}

/// The fields of `file.*` events that count here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileEvent {
    path: Option<String>,
    from: Option<String>,
    by: String,
    cause: String,
    tool_call_id: Option<String>,
    before: Option<KindOfState>,
    after: Option<KindOfState>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KindOfState {
    kind: String,
}

/// A tool call.
struct PastCall {
    title: String,
    is_search: bool,
    /// Its input and the places that it names, as JSON.
    said: String,
}

#[derive(Default)]
struct UseReader {
    past: PastUses,
    turns: IndexSet<(Option<String>, Option<u64>)>,
    calls: HashMap<(Option<String>, String), PastCall>,
    /// Turns of which each use is known.
    whole: HashSet<u64>,
    /// Uses that only count in other turns.
    seen: Vec<UsedPath>,
    deleted: HashSet<String>,
    /// Blocked accesses, by their id, path and action.
    blocked: HashMap<(String, String, String), usize>,
}

/// Reads the uses of the filter's agent. `own` are the names of its own program.
pub(super) fn past_uses(
    store: &Store,
    filter: &Filter,
    own: &HashSet<String>,
) -> Result<PastUses, OpenError> {
    let types = ["tool.call", "path.use", "file", "blocked"].map(str::to_owned).to_vec();
    let mut filter = Filter { types, limit: 1_000, ..filter.clone() };
    let mut reading = UseReader::default();
    loop {
        let page = store.events(&filter)?;
        page.events.iter().for_each(|event| reading.take(event));
        let Some(next) = page.next else { break };
        filter.after = Some(next);
    }
    Ok(reading.end(own))
}

impl UseReader {
    fn take(&mut self, event: &Event) {
        match event.kind.as_str() {
            "tool.call" => self.call(event),
            "path.use" => self.used(event),
            "blocked" => self.was_blocked(event),
            _ => self.file(event),
        }
    }

    /// Marks what the agent's own program read beside what its tool calls name, where it read much.
    fn find_own_searches(&mut self, own: &HashSet<String>) {
        let is_own = |used: &UsedPath| {
            let program = used.program.as_deref().unwrap_or_default();
            used.action == Action::Read
                && !used.is_meant
                && program.split(' ').any(|word| own.contains(word))
        };
        let mut read: HashMap<u64, HashSet<&str>> = HashMap::new();
        for used in self.past.uses.iter().filter(|used| is_own(used)) {
            read.entry(used.turn).or_default().insert(&used.path);
        }
        let much = read.into_iter().filter(|(_, paths)| paths.len() >= MOST_UNNAMED);
        let much: HashSet<u64> = much.map(|(turn, _)| turn).collect();
        for used in &mut self.past.uses {
            used.by_search |= is_own(used) && much.contains(&used.turn);
        }
    }

    fn end(mut self, own: &HashSet<String>) -> PastUses {
        let seen = std::mem::take(&mut self.seen);
        let whole = &self.whole;
        self.past.uses.extend(seen.into_iter().filter(|used| !whole.contains(&used.turn)));
        self.find_own_searches(own);
        let turns: HashSet<u64> = self.past.uses.iter().map(|used| used.turn).collect();
        let counts = |used: &&UsedPath| !used.is_refused && !used.path.starts_with('/');
        let mut used = self.past.uses.iter().filter(counts);
        PastUses {
            turns: turns.len(),
            is_whole: used.all(|used| self.whole.contains(&used.turn)),
            ..self.past
        }
    }

    fn turn(&mut self, event: &Event) -> u64 {
        self.turns.insert_full((event.session_id.clone(), event.turn)).0 as u64
    }

    fn call(&mut self, event: &Event) {
        let call: CallPayload = event.read();
        let Some(id) = call.tool_call_id else { return };
        let said = [Some(&call.locations), call.input.as_ref(), call.content.as_ref()];
        let said: Vec<String> = said.into_iter().flatten().map(Value::to_string).collect();
        let title = call.title.flatten().unwrap_or_default();
        let call = PastCall {
            title: title.chars().take(LONGEST_TITLE).collect(),
            is_search: call.kind.as_deref() == Some("search"),
            said: said.join("\n"),
        };
        self.calls.insert((event.session_id.clone(), id), call);
    }

    fn used(&mut self, event: &Event) {
        let used: PathUsePayload = event.read();
        let Some((path, action)) = used.path.clone().zip(action_of(&used.action)) else { return };
        let known = self.of(event, used.tool_call_id.as_ref(), path, action);
        self.note(used, known);
    }

    fn note(&mut self, used: PathUsePayload, mut known: UsedPath) {
        // Of what a client or a tool call says the programs are not known.
        if used.via == Via::Kernel.as_str() {
            self.whole.insert(known.turn);
        }
        known.is_meant = used.named;
        known.by_search |= used.program.as_deref().is_some_and(|it| SEARCHES.contains(&it));
        known.program = used.program;
        self.past.uses.push(known);
    }

    fn file(&mut self, event: &Event) {
        let file: FileEvent = event.read();
        let Some(path) = file.path else { return };
        let is_folder =
            [&file.before, &file.after].into_iter().flatten().any(|state| state.kind == "folder");
        let is_read = event.kind == "file.read";
        if !is_read && file.cause != "agent" {
            return;
        }
        if is_folder {
            match event.kind.as_str() {
                "file.create" if !self.deleted.contains(&path) => drop(self.past.made.insert(path)),
                "file.delete" => drop(self.deleted.insert(path)),
                _ => {}
            }
            return;
        }
        let action = if is_read { Action::Read } else { Action::Write };
        let call = file.tool_call_id.as_ref();
        let mut used = self.of(event, call, path.clone(), action);
        match event.kind.as_str() {
            "file.read" if file.by == "doorbell" => return self.seen.push(used),
            "file.delete" => drop(self.deleted.insert(path)),
            // What was there before is not the agent's.
            "file.create" | "file.rename" => used.is_made = !self.deleted.contains(&path),
            _ => {}
        }
        if let Some(from) = file.from {
            let moved = self.of(event, call, from.clone(), Action::Write);
            self.past.uses.push(moved);
            self.deleted.insert(from);
        }
        self.past.uses.push(used);
    }

    /// An access that waited, or was denied: used if it was allowed in the end.
    fn was_blocked(&mut self, event: &Event) {
        let blocked: BlockedPayload = event.read();
        let (Some(id), Some(path)) = (blocked.blocked_id, blocked.path) else { return };
        let Some(action) = action_of(&blocked.action) else { return };
        let is_refused = blocked.status != "allowed";
        // Each start of a team counts its ids anew.
        let access = (id, path.clone(), blocked.action);
        if let Some(known) = self.blocked.get(&access) {
            self.past.uses[*known].is_refused = is_refused;
            return;
        }
        let mut used = self.of(event, None, path, action);
        used.is_meant = blocked.sweep.is_none();
        used.is_refused = is_refused;
        self.blocked.insert(access, self.past.uses.len());
        self.past.uses.push(used);
    }

    fn of(
        &mut self,
        event: &Event,
        call: Option<&String>,
        path: String,
        action: Action,
    ) -> UsedPath {
        let turn = self.turn(event);
        let call = call.and_then(|id| self.calls.get(&(event.session_id.clone(), id.clone())));
        UsedPath {
            action,
            turn,
            is_meant: call.is_some_and(|call| call.said.contains(&path)),
            by_search: call.is_some_and(|call| call.is_search),
            is_made: false,
            is_refused: false,
            tool: call.map(|call| call.title.clone()).filter(|title| !title.is_empty()),
            program: None,
            path,
        }
    }
}

fn action_of(name: &str) -> Option<Action> {
    [Action::Read, Action::Write].into_iter().find(|action| action.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: String, program: &str, is_meant: bool) -> UsedPath {
        UsedPath {
            action: Action::Read,
            turn: 0,
            is_meant,
            by_search: false,
            is_made: false,
            is_refused: false,
            tool: None,
            program: Some(program.to_owned()),
            path,
        }
    }

    #[test]
    fn a_turn_is_whole_by_what_the_kernel_saw() {
        let is_whole = |via: &str| {
            let payload = format!(r#"{{"path":"a","action":"read","via":"{via}"}}"#);
            let mut reader = UseReader::default();
            reader.note(
                serde_json::from_str(&payload).unwrap_or_default(),
                UsedPath { program: None, ..read("a".to_owned(), "", true) },
            );
            reader.end(&HashSet::new()).is_whole
        };
        assert_eq!(
            (is_whole("kernel"), is_whole("terminal"), is_whole("tool")),
            (true, false, false)
        );
    }

    #[test]
    fn what_an_agents_own_program_reads_in_masses_is_a_search() {
        let searched = |count: usize| {
            let mut reader = UseReader::default();
            let own = (0..count).map(|at| read(format!("src/{at}"), "node opencode", false));
            let others = [
                read("src/named".to_owned(), "node opencode", true),
                read("src/other".to_owned(), "cat", false),
            ];
            reader.past.uses = own.chain(others).collect();
            reader.find_own_searches(&HashSet::from(["opencode".to_owned()]));
            reader.past.uses.iter().filter(|used| used.by_search).count()
        };
        assert_eq!((searched(MOST_UNNAMED), searched(MOST_UNNAMED - 1)), (MOST_UNNAMED, 0));
    }
}
