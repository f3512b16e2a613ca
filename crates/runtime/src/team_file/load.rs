//! Loads a team's configuration: its file, and the agents added and removed over the port.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::{
    Agent, Config, LayerError, Layered, Overlay, Pick, SharedConfig, Source, TierCandidate, TryOut,
};
use crate::home::environment;
use crate::home::here;
use crate::model::now_ms;
use crate::program;
use crate::program::Failure;
use crate::tiers::{Cooldowns, standings};
use crate::tree::{Worktree, Worktrees};
use crate::zone::ZoneSpec;

/// Loads a configuration together with the agents added and removed over the port, and tests its
/// plugins.
pub fn load(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, &|| super::plugins::try_out(eisen_dir))
}

/// Like [`load`], without testing plugins.
pub fn read(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, &|| Box::new(|_| Ok(true)))
}

/// Which candidate of its tier an agent takes, by the agent's id.
pub(crate) type Candidates = BTreeMap<String, TierCandidate>;

/// Compiles a text with the agents added and removed over the port, and tests its plugins. Agents keep
/// the candidates that are `taken`.
pub(crate) fn compile(
    source: &Source,
    eisen_dir: &Path,
    overlay: &Overlay,
    taken: &Candidates,
) -> Result<Layered, LayerError> {
    by_tiers(eisen_dir, taken, |taken| {
        let try_out = super::plugins::try_out(eisen_dir);
        Layered::compile(source.clone(), eisen_dir, overlay.clone(), try_out, taken)
    })
}

/// Logs the agents added and removed over the port, and drops those that the file has taken over.
pub(crate) fn log_overlay(layered: &Layered, eisen_dir: &Path) -> anyhow::Result<()> {
    let kept = Overlay::path(eisen_dir, &layered.config.team.name);
    let file = kept.display();
    for sentence in &layered.said {
        tracing::warn!(%file, "{sentence}");
    }
    for sentence in layered.overlay.notes() {
        tracing::warn!(%file, "{sentence}");
    }
    if !layered.said.is_empty() {
        layered.overlay.write(&kept)?;
    }
    Ok(())
}

/// Reads what the user's teams and runs share, with the `eisen.toml` of a folder, or above it, laid over it.
pub fn shared_config(folder: &Path) -> Result<SharedConfig, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let file = here::config_of(folder).unwrap_or_else(|why| {
        tracing::warn!("{why}");
        None
    });
    SharedConfig::read(&eisen_dir, file.as_deref()).map_err(program::config_errors)
}

fn layered(
    file: &Path,
    eisen_dir: &Path,
    try_out: &dyn Fn() -> Box<TryOut>,
) -> Result<Layered, Failure> {
    let load = |taken| Layered::load(file, eisen_dir, try_out(), taken);
    let loaded = by_tiers(eisen_dir, &Candidates::new(), load);
    loaded.map_err(|error| match error {
        LayerError::File(errors) => program::config_errors(errors),
        error => Failure::Usage(error.into()),
    })
}

/// Loads a configuration once, and where agents are of tiers once more, with the candidates that they
/// have, or would take now.
fn by_tiers(
    eisen_dir: &Path,
    taken: &Candidates,
    load: impl Fn(Candidates) -> Result<Layered, LayerError>,
) -> Result<Layered, LayerError> {
    let load = |taken| load(taken).map(|layered| with_own_part(layered, eisen_dir));
    let layered = load(Candidates::new())?;
    let next = candidates(&layered.config, eisen_dir, taken);
    let is_taken = |agent: &Agent| next.get(agent.id.as_str()) == agent.candidate.as_ref();
    if layered.config.agents.iter().all(is_taken) { Ok(layered) } else { load(next) }
}

/// Holds the agents of a workspace that is a task's worktree to their own part of the repository; others are kept out of
/// worktrees.
fn with_own_part(mut layered: Layered, eisen_dir: &Path) -> Layered {
    let workspace = &layered.config.team.workspace;
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.clone());
    let trees = Worktrees::new(eisen_dir);
    let (tree, beside) = (trees.around(&workspace), trees.beside(&workspace));
    for config in [&mut layered.config, &mut layered.alone] {
        for agent in &mut config.agents {
            match &tree {
                Some(tree) => hold_to_own_part(&mut agent.zone.spec, tree),
                None => agent.zone.spec.beside.clone_from(&beside),
            }
        }
    }
    layered
}

/// Holds a zone in a worktree to the worktree's own part of the repository. What was linked in may be read.
pub(crate) fn hold_to_own_part(spec: &mut ZoneSpec, tree: &Worktree) {
    spec.branch = Some(tree.branch.clone());
    spec.beside = tree.beside();
    let linked = tree.linked.iter().filter_map(|link| Some(tree.main.as_ref()?.join(link)));
    for place in linked.chain(tree.hooks()) {
        let place = globset::escape(&place.to_string_lossy());
        spec.readable.extend([format!("{place}/**"), place]);
    }
}

/// The candidate of each agent that has a tier: the one that it has, or one that can be taken now; the
/// first if none can. Where they are taken in turns, agents of one tier take different ones.
fn candidates(config: &Config, eisen_dir: &Path, taken: &Candidates) -> Candidates {
    let kept = Cooldowns::new(eisen_dir);
    let variable = |name: &str| std::env::var(name).ok();
    let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
    let mut all = Candidates::new();
    for agent in &config.agents {
        let tier = agent.tier.as_ref().and_then(|name| config.shared.tier(name));
        let Some(tier) = tier else { continue };
        let own = taken.get(agent.id.as_str()).filter(|own| tier.candidates.contains(own));
        let next = own.cloned().or_else(|| {
            // Without what is known of cool-downs, none counts.
            let (all, _) = standings(&config.shared, tier, &kept, &variable, now_ms());
            let mut free: Vec<_> = all.into_iter().filter(|it| it.hindrance.is_none()).collect();
            let turn = turns.entry(tier.name.as_str()).or_default();
            let at = if tier.pick == Pick::Rotate { *turn % free.len().max(1) } else { 0 };
            *turn += 1;
            (at < free.len()).then(|| free.swap_remove(at).candidate)
        });
        let next = next.or_else(|| tier.candidates.first().cloned());
        all.extend(next.map(|next| (agent.id.to_string(), next)));
    }
    all
}

/// Notes which candidates a team that starts has taken.
pub(crate) fn note_taken(config: &Config, eisen_dir: &Path) {
    let kept = Cooldowns::new(eisen_dir);
    for agent in &config.agents {
        let (Some(tier), Some(candidate)) = (&agent.tier, &agent.candidate) else { continue };
        if let Err(error) = kept.take(tier, &candidate.key(), now_ms()) {
            tracing::warn!(%error, "cannot note which candidate of a tier is taken");
        }
    }
}
