//! `[orchestrator] may_add`: which agents the orchestrator may add to its team.

use std::path::Path;

use super::patterns::patterns;
use super::profiles::Profiles;
use super::read::{Table, Text};

/// The agents that the orchestrator may add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MayAdd {
    pub profiles: Vec<String>,
    /// Patterns that the zones of added agents must be within.
    pub zone: Vec<String>,
    /// Agents at once that it has added.
    pub max: usize,
}

/// With its profiles not resolved.
pub(super) struct RawMayAdd {
    profiles: Vec<Text>,
    zone: Vec<String>,
    max: usize,
}

impl RawMayAdd {
    pub(super) fn resolved(&self, known: &Profiles, root: &Table<'_>) -> MayAdd {
        for name in &self.profiles {
            known.get(root, name);
        }
        MayAdd {
            profiles: self.profiles.iter().map(|name| name.value.clone()).collect(),
            zone: self.zone.clone(),
            max: self.max,
        }
    }
}

/// None if the table is missing.
pub(super) fn may_add(orchestrator: &Table<'_>, workspace: &Path) -> Option<RawMayAdd> {
    orchestrator.place_of("may_add")?;
    orchestrator.section("may_add", "orchestrator.may_add", |table| {
        if table.place_of("profiles").is_none() {
            table.lacks(
                "`may_add` has no `profiles`",
                "name some, such as `profiles = [\"codex\"]`",
            );
        }
        if table.place_of("zone").is_none() {
            table.lacks(
                "`may_add` has no `zone`",
                "write the patterns that added agents may have, such as `zone = [\"src/**\"]`",
            );
        }
        Some(RawMayAdd {
            profiles: table.texts("profiles").unwrap_or_default(),
            zone: patterns(table, "zone", workspace).unwrap_or_default(),
            max: table.count("max", 0..=1_000, 1),
        })
    })
}
