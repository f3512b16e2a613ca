//! Which candidate of each tier would be taken now.

use std::io;

use super::choice::{CandidateStanding, standings};
use super::cooldowns::Cooldowns;
use crate::config::SharedConfig;
use crate::model::now_ms;

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

/// Looks all tiers up. The error is why not all cool-downs count.
pub fn tiers_now(shared: &SharedConfig, kept: &Cooldowns) -> (Vec<TierNow>, Option<io::Error>) {
    let variable = |name: &str| std::env::var(name).ok();
    let mut trouble = None;
    let mut tiers = Vec::new();
    for tier in &shared.tiers {
        let (candidates, error) = standings(shared, tier, kept, &variable, now_ms());
        trouble = trouble.or(error);
        tiers.push(TierNow { name: tier.name.clone(), pick: tier.pick.as_str(), candidates });
    }
    (tiers, trouble)
}
