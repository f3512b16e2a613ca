//! The configuration of a run of its own, a team of one agent, and the keys of an agent that a run sets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use toml::{Table, Value};

use crate::config::{AgentTable, RunBounds, TierCandidate};
use crate::runs::{EarlierSession, RunSpec};

/// A run with what its surroundings add to it.
#[derive(Debug)]
pub struct RunOptions {
    pub spec: RunSpec,
    pub workspace: PathBuf,
    /// The profile of its agent, with a tier that of the first candidate. None: `spec` has a command.
    pub profile: Option<String>,
    /// The first candidate of its tier, as which its configuration is checked before it is started.
    pub candidate: Option<TierCandidate>,
    /// None: a new session.
    pub begins_with: Option<EarlierSession>,
    /// `[profiles]`, `[prices]`, … of a configuration, as it has them.
    pub known: Table,
    /// The variables of a worktree of a task, which the workspace is; None: it is none.
    pub worktree: Option<BTreeMap<String, String>>,
}

/// The keys of `[[agents]]` that a run sets. `allowed`: the patterns of its zone; None: it sets no zone.
pub(crate) fn agent_keys(spec: &RunSpec, allowed: Option<&[String]>) -> AgentTable {
    let budget = json!(spec.budget);
    let keys = [
        ("zone", allowed.map(|it| json!({ "allowed": texts(it), "denied": texts(&spec.deny) }))),
        ("profile", spec.profile.as_deref().map(text)),
        ("command", Some(texts(&spec.command)).filter(|_| !spec.command.is_empty())),
        ("model", spec.model.as_deref().map(text)),
        ("budget", Some(budget).filter(|budget| *budget != json!({}))),
    ];
    keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The text of the `eisen.toml` of a run.
pub(crate) fn team_file(options: &RunOptions, team: &str) -> Result<String, toml::ser::Error> {
    let RunOptions { spec, workspace, profile, candidate, begins_with, known, worktree } = options;
    let whole = ["**".to_owned()];
    let allowed = if spec.zone.is_empty() { &whole } else { &spec.zone[..] };
    let mut agent = agent_keys(spec, Some(allowed));
    agent.extend(profile.as_deref().map(|profile| ("profile".to_owned(), text(profile))));
    agent.insert("id".to_owned(), profile.as_deref().unwrap_or("agent").into());
    // What ended once does not begin its work again.
    agent.insert("restart".to_owned(), json!({ "policy": "never" }));
    if let Some(variables) = worktree {
        let variables = variables.iter().map(|(name, value)| (name.clone(), text(value)));
        agent.insert("env".to_owned(), variables.collect::<serde_json::Map<_, _>>().into());
    }
    if begins_with.is_some() {
        // It opens no other one.
        agent.insert("session".to_owned(), false.into());
    }
    let levels = known.get("runs").and_then(|runs| runs.get("max_depth")).cloned();
    let levels = levels.unwrap_or_else(|| i64::from(RunBounds::default().max_depth).into());
    let team = json!({
        "name": text(team),
        "workspace": text(&workspace.to_string_lossy()),
        "listen": "127.0.0.1:0",
        "stop_grace_s": 2,
        "tools": false,
        "max_depth": levels,
    });
    let mut all = known.clone();
    if worktree.is_some() {
        // Its branch is there to be committed to.
        all.insert("zones".to_owned(), Value::try_from(json!({ "git": "commit" }))?);
    }
    for (key, value) in
        [("team", team), ("graph", json!({ "enabled": false })), ("agents", json!([agent]))]
    {
        all.insert(key.to_owned(), Value::try_from(value)?);
    }
    let text = all.to_string();
    let id = profile.as_deref().unwrap_or("agent");
    let of_tier = candidate.as_ref().and_then(|first| for_candidate(&text, id, first));
    Ok(of_tier.unwrap_or(text))
}

/// The text of a run's configuration with another agent, one of a tier's candidates; None if it is no
/// such text.
pub(crate) fn for_candidate(text: &str, id: &str, candidate: &TierCandidate) -> Option<String> {
    let mut all: Table = text.parse().ok()?;
    let agent = all.get_mut("agents")?.as_array_mut()?.first_mut()?.as_table_mut()?;
    for key in ["command", "model", "thinking", "provider"] {
        agent.remove(key);
    }
    agent.insert("id".to_owned(), plain_text(id));
    agent.insert("profile".to_owned(), plain_text(&candidate.profile));
    let own = [
        ("model", &candidate.model),
        ("thinking", &candidate.thinking),
        ("provider", &candidate.provider),
    ];
    for (key, value) in own {
        agent.extend(value.as_deref().map(|value| (key.to_owned(), plain_text(value))));
    }
    Some(all.to_string())
}

/// A string that has no references to variables.
fn plain_text(text: &str) -> Value {
    text.replace('$', "$$").into()
}

fn text(text: &str) -> Json {
    text.replace('$', "$$").into()
}

fn texts(all: &[String]) -> Json {
    all.iter().map(|one| text(one)).collect()
}
