//! `learn`: proposes zones of agents from the journal, and puts them into the configuration.

mod ground;
mod history;

use std::collections::HashSet;
use std::path::Path;

use anyhow::anyhow;

use self::ground::{Ground, MOST_FILES, is_git_written};
use self::history::{PastUses, past_uses};
use crate::config::{Agent, Config, with_zone};
use crate::journal::{Filter, Store};
use crate::kept::{Durable, KeptFile, Volatile};
use crate::learn::{Measure, ProposedPattern, ProposedZone, propose};
use crate::model::AgentId;
use crate::program::Failure;
use crate::zone::GitAccess;

/// The name of a configuration that is tried before it takes the place of the old one.
const DRAFT: &str = ".eisen.toml.learned";

/// Bytes of a configuration, as many as one may have.
const MOST_BYTES: u64 = 1 << 20;

/// A zone that is proposed for an agent.
#[derive(Debug)]
pub struct LearnedZone {
    pub agent: AgentId,
    pub zone: ProposedZone,
    /// Accesses in the journal, and the turns that they belong to.
    pub uses: usize,
    pub turns: usize,
    /// Its uses of git folders need `git = "commit"`, which the team does not have.
    pub needs_commit: bool,
    /// The doorbell saw all of it, also what its programs read.
    pub is_whole: bool,
    /// The workspace has more files than are looked at.
    pub is_cut: bool,
}

impl LearnedZone {
    /// Whether nothing that counts was used. Such a zone takes no other one's place.
    pub fn is_empty(&self) -> bool {
        self.zone.allowed.is_empty() && self.zone.readable.is_empty()
    }
}

/// Proposes zones for the agents of a configuration, or for one. `since` restricts the events.
pub fn learn(
    config: &Config,
    store: &Store,
    agent: Option<&str>,
    since: &Filter,
) -> Result<Vec<LearnedZone>, Failure> {
    let of = |it: &&Agent| agent.is_none_or(|id| it.id.as_str() == id);
    let agents: Vec<&Agent> = config.agents.iter().filter(of).collect();
    if let (Some(id), []) = (agent, &agents[..]) {
        let known: Vec<_> = config.agents.iter().map(|agent| agent.id.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::Usage(anyhow!("there is no agent `{id}`; there are: {known}")));
    }
    agents.into_iter().map(|agent| of_agent(agent, store, since)).collect()
}

fn of_agent(agent: &Agent, store: &Store, since: &Filter) -> Result<LearnedZone, Failure> {
    let filter = Filter { agent_id: Some(agent.id.to_string()), ..since.clone() };
    let PastUses { uses, turns, is_whole, made } = past_uses(store, &filter, &own_programs(agent))
        .map_err(|error| Failure::Run(error.into()))?;
    let ground = Ground::of(agent).map_err(|error| {
        Failure::Usage(anyhow!("the zone of `{}` is not valid: {error}", agent.id))
    })?;
    let walked = ground.files(&uses, MOST_FILES);
    let measure = Measure {
        standing: &|path, action| ground.standing(path, action),
        folder: &|folder| walked.kind(&made, folder),
        is_cut: walked.is_cut,
        allows_now: &|path, action| ground.allows_now(path, action),
    };
    let zone = propose(&uses, &walked.files, &measure);
    Ok(LearnedZone {
        agent: agent.id.clone(),
        uses: uses.len(),
        turns,
        needs_commit: agent.zone.spec.git == GitAccess::Read && is_git_written(&uses),
        is_whole,
        is_cut: walked.is_cut,
        zone,
    })
}

/// The names under which an agent's own program may run.
fn own_programs(agent: &Agent) -> HashSet<String> {
    let name = |word: &String| Path::new(word).file_name()?.to_str().map(str::to_owned);
    agent.command.iter().filter_map(name).filter(|name| !is_runner(name)).collect()
}

/// Whether it is a program that runs others, as the agent may do with it.
fn is_runner(name: &str) -> bool {
    ["node", "python", "python3", "bash", "sh", "env"].contains(&name)
}

/// A configuration, before and after its zones were replaced.
#[derive(Debug)]
pub struct Rewritten {
    pub before: String,
    pub after: String,
}

/// Puts zones into a configuration that was read, which is refused unless it is still the same and stays valid.
/// Patterns of places outside the workspace stay.
pub fn write_zones(
    file: &Path,
    before: &str,
    eisen_dir: &Path,
    workspace: &Path,
    zones: &[&LearnedZone],
) -> Result<Rewritten, Failure> {
    let failed =
        |error: std::io::Error| Failure::Run(anyhow!("cannot write {}: {error}", file.display()));
    let file = file.canonicalize().map_err(failed)?;
    let is_outside = |written: &str| {
        written.starts_with("${")
            || Path::new(written).is_absolute() && !Path::new(written).starts_with(workspace)
    };
    let mut after = before.to_owned();
    for learned in zones {
        let patterns = |all: &[ProposedPattern]| {
            all.iter().map(|it| it.pattern.to_string()).collect::<Vec<_>>()
        };
        let (allowed, readable) =
            (patterns(&learned.zone.allowed), patterns(&learned.zone.readable));
        let lists = [&allowed[..], &readable];
        let written = with_zone(&after, learned.agent.as_str(), lists, &is_outside);
        after = written.map_err(|why| {
            Failure::Usage(anyhow!("{why}; write the patterns into {} yourself", file.display()))
        })?;
    }
    // Beside the file, so that its paths mean the same.
    let draft = KeptFile::<Volatile>::new(file.with_file_name(DRAFT), MOST_BYTES);
    draft.replace(after.as_bytes()).map_err(failed)?;
    let read = crate::team_file::read(draft.path(), eisen_dir);
    draft.remove().map_err(failed)?;
    read?;
    let permissions = file.metadata().map_err(failed)?.permissions();
    if std::fs::read_to_string(&file).map_err(failed)? != before {
        return Err(Failure::Run(anyhow!(
            "{} was changed since it was read, and stays as it is: run the command again",
            file.display()
        )));
    }
    KeptFile::<Durable>::new(&file, MOST_BYTES).replace(after.as_bytes()).map_err(failed)?;
    std::fs::set_permissions(&file, permissions).map_err(failed)?;
    Ok(Rewritten { before: before.to_owned(), after })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_configuration_that_was_changed_since_it_was_read_stays() {
        let place = tempfile::TempDir::new().unwrap();
        let (folder, file) = (place.path(), place.path().join("eisen.toml"));
        let read = "[team]\nname = \"shop\"\nworkspace = \".\"\n[[agents]]\nid = \"ui\"\ncommand = [\"true\"]\n";
        std::fs::write(&file, read).unwrap();
        let write = || write_zones(&file, read, &folder.join("home"), folder, &[]);
        assert_eq!(write().unwrap().after, read);
        let changed = format!("{read}[zones]\ndenied = [\"a\"]\n");
        std::fs::write(&file, &changed).unwrap();
        let Err(Failure::Run(why)) = write() else { panic!("it is written") };
        assert!(why.to_string().contains("was changed since it was read"), "{why}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), changed);
    }
}
