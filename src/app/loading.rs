//! Loads a team's configuration: its file, and the agents added and removed over the port.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Failure, environment};
use crate::config::{LayerError, Layered, Overlay, SharedConfig, Source, TryOut};
use crate::model::now_ms;
use crate::tiers::{Cooldowns, standings};

/// Loads a configuration together with the agents added and removed over the port, and tests its
/// plugins.
pub fn load(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, &|| super::plugins::try_out(eisen_dir))
}

/// Like [`load`], without testing plugins.
pub fn read(file: &Path, eisen_dir: &Path) -> Result<Layered, Failure> {
    layered(file, eisen_dir, &|| Box::new(|_| Ok(true)))
}

/// Compiles a text with the agents added and removed over the port, and tests its plugins.
pub(super) fn compile(
    source: &Source,
    eisen_dir: &Path,
    overlay: &Overlay,
) -> Result<Layered, LayerError> {
    by_tiers(eisen_dir, |taken| {
        let try_out = super::plugins::try_out(eisen_dir);
        Layered::compile(source.clone(), eisen_dir, overlay.clone(), try_out, taken)
    })
}

/// Reads what the user's teams and runs share, with the `eisen.toml` of a folder laid over it; without
/// one, with that of the git repository around the folder.
pub fn shared_config(folder: &Path) -> Result<SharedConfig, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists());
    let file = [Some(folder), top].into_iter().flatten().map(|folder| folder.join("eisen.toml"));
    let file = file.into_iter().find(|file| file.symlink_metadata().is_ok());
    SharedConfig::read(&eisen_dir, file.as_deref()).map_err(super::config_errors)
}

fn layered(
    file: &Path,
    eisen_dir: &Path,
    try_out: &dyn Fn() -> Box<TryOut>,
) -> Result<Layered, Failure> {
    let loaded = by_tiers(eisen_dir, |taken| Layered::load(file, eisen_dir, try_out(), taken));
    loaded.map_err(|error| match error {
        LayerError::File(errors) => super::config_errors(errors),
        error => Failure::Usage(error.into()),
    })
}

/// Loads a configuration once, and where agents are of tiers once more, with the candidates that would
/// be taken now.
fn by_tiers(
    eisen_dir: &Path,
    load: impl Fn(BTreeMap<String, usize>) -> Result<Layered, LayerError>,
) -> Result<Layered, LayerError> {
    let layered = load(BTreeMap::new())?;
    let (config, kept) = (&layered.config, Cooldowns::new(eisen_dir));
    let variable = |name: &str| std::env::var(name).ok();
    let mut taken = BTreeMap::new();
    for name in config.agents.iter().filter_map(|agent| agent.tier.as_ref()) {
        let Some(tier) = config.shared.tier(name) else { continue };
        // Without what is known of cool-downs, none counts.
        let (all, _) = standings(&config.shared, tier, &kept, &variable, now_ms());
        let next = all.iter().find(|it| it.hindrance.is_none()).map(|it| &it.candidate);
        let at = next.and_then(|next| tier.candidates.iter().position(|it| it == next));
        taken.extend(at.filter(|at| *at > 0).map(|at| (name.clone(), at)));
    }
    if taken.is_empty() { Ok(layered) } else { load(taken) }
}
