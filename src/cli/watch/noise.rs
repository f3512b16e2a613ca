//! Counts the refusals of an agent that are folded.

use std::collections::HashMap;

use crate::wire::Blocked;

/// Sweeps of an agent whose counts are remembered; later ones are not counted.
const MOST: usize = 1000;

/// Refusals that are folded.
#[derive(Default)]
pub(super) struct Noise {
    /// By the ids of sweeps.
    counts: HashMap<String, u64>,
    shown: u64,
}

impl Noise {
    pub(super) fn add(&mut self, access: &Blocked<'_>) {
        if self.counts.len() < MOST || self.counts.contains_key(&*access.id) {
            self.counts.insert(access.id.to_string(), access.sweep.unwrap_or(1));
        }
    }

    /// Their number, unless it was shown before.
    pub(super) fn take_news(&mut self) -> Option<u64> {
        let count = self.counts.values().sum();
        (std::mem::replace(&mut self.shown, count) != count).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn folded_refusals_are_shown_when_they_become_more() {
        let mut noise = Noise::default();
        for (id, count, shown) in
            [("b1", 1, Some(1)), ("b1", 1, None), ("b1", 3, Some(3)), ("b2", 4, Some(7))]
        {
            let access = json!({
                "id": id, "agent_id": "ui", "session_id": "", "status": "denied", "action": "read",
                "path": ".git/x", "sweep": count,
            });
            noise.add(&Blocked::deserialize(access).unwrap());
            assert_eq!(noise.take_news(), shown, "{id} {count}");
        }
    }
}
