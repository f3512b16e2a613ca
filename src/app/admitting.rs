//! Limits of what a user runs at once: the slots of profiles, and the memory that stays free.

use std::collections::BTreeMap;
use std::path::Path;

use crate::agent::SlotWish;
use crate::config::{self, Config};
use crate::slots::Slots;

/// The limits that hold for a start.
#[derive(Clone, Default, Debug)]
pub(super) struct StartLimits {
    /// How many agents of a profile run at once, by the profile that theirs goes back to.
    slots: BTreeMap<String, u32>,
    /// None: the usual.
    pub(super) min_free_mb: Option<u64>,
}

impl StartLimits {
    /// Those of `$EISEN_DIR/config.toml` with a team's file laid over it: the smaller bound holds.
    pub(super) fn of(config: &Config) -> Self {
        let shared = &config.shared;
        Self { slots: shared.slots.clone(), min_free_mb: Some(shared.runs.min_free_mb) }
    }

    /// The slots of an agent's profile, with its name; None: it needs none.
    pub(super) fn of_agent(&self, agent: &config::Agent) -> Option<(&str, u32)> {
        let (base, limit) = self.slots.get_key_value(&agent.profile.base)?;
        Some((base, *limit))
    }
}

/// The slots that agents of a team wait for.
#[derive(Debug)]
pub(super) struct TeamSlots {
    limits: StartLimits,
    slots: Slots,
    team: String,
}

impl TeamSlots {
    /// None: there are no limits.
    pub(super) fn of(config: &Config, eisen_dir: &Path) -> Option<Self> {
        let limits = StartLimits::of(config);
        let (slots, team) = (Slots::new(eisen_dir), config.team.name.clone());
        (!limits.slots.is_empty()).then_some(Self { limits, slots, team })
    }

    pub(super) fn of_agent(&self, agent: &config::Agent) -> Option<SlotWish> {
        let (base, limit) = self.limits.of_agent(agent)?;
        let (slots, team) = (self.slots.clone(), self.team.clone());
        Some(SlotWish { slots, base: base.to_owned(), limit, team })
    }
}
