//! The work on a branch as the journals tell it: its prompts, and what was refused meanwhile.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::journal::{BlockedPayload, Event, Filter, MessagePayload, Store};
use crate::tree::Worktree;

/// Events of one journal that are read.
const MOST_EVENTS: usize = 20_000;

/// Prompts and refusals that are kept; of all others their number.
const MOST_PROMPTS: usize = 50;
const MOST_REFUSED: usize = 50;

/// The statuses of an access that was refused.
const REFUSED: [&str; 2] = ["denied", "expired"];

/// A journal in which work on a branch is told.
#[derive(Clone, Debug)]
pub(super) struct WorkSource {
    /// A run, or `TEAM/AGENT`.
    pub(super) name: String,
    /// The agent of a team whose events are of the branch; None: all are.
    pub(super) agent: Option<String>,
    pub(super) journal: PathBuf,
    /// The folder that stands before the paths of files.
    pub(super) above: PathBuf,
}

/// The work on a branch.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BranchWork {
    /// How many prompts the agents got.
    pub turns: usize,
    /// The first of them, oldest first.
    pub prompts: Vec<String>,
    /// Accesses that were refused, and how often, by `ACTION PATH`.
    pub refused: BTreeMap<String, usize>,
}

/// Reads what the journals tell of a worktree. One that can't be read tells nothing.
pub(super) fn told(tree: &Worktree, sources: &[WorkSource]) -> BranchWork {
    let mut work = BranchWork::default();
    // The newest run is the first.
    for source in sources.iter().rev() {
        let filter = Filter {
            agent_id: source.agent.clone(),
            types: ["message.user", "blocked"].map(str::to_owned).to_vec(),
            since: Some(tree.made_at_ms),
            ..Filter::default()
        };
        let read =
            Store::open(&source.journal).and_then(|store| each(&store, filter, tree, &mut work));
        if let Err(error) = read {
            tracing::debug!(%error, journal = %source.journal.display(), "a journal tells nothing");
        }
    }
    work
}

fn each(
    store: &Store,
    mut filter: Filter,
    tree: &Worktree,
    work: &mut BranchWork,
) -> Result<(), crate::journal::OpenError> {
    let (mut read, mut seen) = (0, HashSet::new());
    loop {
        let page = store.events(&filter)?;
        page.events.iter().for_each(|event| work.add(event, tree, &mut seen));
        read += page.events.len();
        match page.next.filter(|_| read < MOST_EVENTS) {
            Some(next) => filter.after = Some(next),
            None => return Ok(()),
        }
    }
}

impl BranchWork {
    fn add(
        &mut self,
        event: &Event,
        tree: &Worktree,
        seen: &mut HashSet<(Option<String>, String)>,
    ) {
        if event.kind == "message.user" {
            self.turns += 1;
            let text = event.read::<MessagePayload>().text;
            if let Some(text) = text.filter(|_| self.prompts.len() < MOST_PROMPTS) {
                self.prompts.push(text);
            }
            return;
        }
        let blocked: BlockedPayload = event.read();
        let is_refused = REFUSED.contains(&&*blocked.status) && !blocked.harmless;
        let Some(path) = blocked.path.filter(|_| is_refused) else { return };
        let access = format!("{} {}", blocked.action, named(&path, tree));
        // What becomes known of it later is another event. Each start of a team counts its ids anew.
        if !seen.insert((blocked.blocked_id, access.clone())) {
            return;
        }
        if self.refused.len() < MOST_REFUSED || self.refused.contains_key(&access) {
            *self.refused.entry(access).or_default() += 1;
        }
    }
}

/// Names a path without the folders of this machine.
fn named(path: &str, tree: &Worktree) -> String {
    let place = Path::new(path);
    let main = tree.main.as_deref().and_then(|main| place.strip_prefix(main).ok());
    match (place.strip_prefix(&tree.path), main) {
        (Ok(within), _) if within.as_os_str().is_empty() => "the worktree itself".to_owned(),
        (Ok(within), _) => within.display().to_string(),
        (_, Some(within)) => format!("{} of the main worktree", within.display()),
        _ if place.is_absolute() => {
            let name = place.file_name().unwrap_or_default();
            format!("…/{} outside the worktree", name.display())
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json, value::to_raw_value};

    use super::*;

    fn blocked(path: &str, status: &str) -> Event {
        let payload =
            json!({ "blocked_id": "b1", "path": path, "action": "write", "status": status });
        Event {
            id: String::new(),
            parent_id: None,
            session_id: None,
            agent_id: None,
            sequence: None,
            depth: None,
            kind: "blocked".to_owned(),
            timestamp: 0,
            turn: None,
            payload: to_raw_value(&payload).unwrap(),
        }
    }

    fn tree() -> Worktree {
        let tree: Value = json!({
            "name": "ui", "branch": "ui", "path": "/shop.trees/ui", "common": "/shop/.git",
            "main": "/shop", "git_dir": "/shop/.git/worktrees/ui", "base": "", "base_branch": null,
            "made_branch": true, "state": "ready", "owner": "shop/ui", "task": null, "made_at_ms": 0,
            "is_sha1": true,
        });
        serde_json::from_value(tree).unwrap()
    }

    #[test]
    fn accesses_of_two_starts_of_a_team_are_two_though_their_ids_are_equal() {
        let (mut work, mut seen) = (BranchWork::default(), HashSet::new());
        for (path, status) in [
            ("/shop/a.js", "denied"),
            // It became known that its call completed.
            ("/shop/a.js", "denied"),
            ("/shop/b.js", "expired"),
            ("/shop/c.js", "allowed"),
        ] {
            work.add(&blocked(path, status), &tree(), &mut seen);
        }
        let refused: Vec<_> = work.refused.into_iter().collect();
        let main = |name: &str| (format!("write {name} of the main worktree"), 1);
        assert_eq!(refused, [main("a.js"), main("b.js")]);
    }
}
