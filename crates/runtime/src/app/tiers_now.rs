//! Which candidate of each tier would be taken now.

use std::io;
use std::path::Path;

use crate::home::environment;
use crate::model::now_ms;
use crate::program::Failure;
use crate::team_file::load;
use crate::tiers::{CandidateStanding, Cooldowns, standings};

/// A tier as it stands now.
#[derive(Debug)]
pub struct TierNow {
    pub name: String,
    pub pick: &'static str,
    /// In the order in which they are tried.
    pub candidates: Vec<CandidateStanding>,
}

impl TierNow {
    /// The candidate that would be taken.
    pub fn taken(&self) -> Option<usize> {
        self.candidates.iter().position(|it| it.hindrance.is_none())
    }
}

/// Looks all tiers up for runs in a folder. The error is why not all cool-downs count.
pub fn tiers_now(folder: &Path) -> Result<(Vec<TierNow>, Option<io::Error>), Failure> {
    let shared = load::shared_config(folder)?;
    let kept = Cooldowns::new(&environment::eisen_dir().map_err(Failure::Usage)?);
    let variable = |name: &str| std::env::var(name).ok();
    let mut trouble = None;
    let mut tiers = Vec::new();
    for tier in &shared.tiers {
        let (candidates, error) = standings(&shared, tier, &kept, &variable, now_ms());
        trouble = trouble.or(error);
        tiers.push(TierNow { name: tier.name.clone(), pick: tier.pick.as_str(), candidates });
    }
    Ok((tiers, trouble))
}
