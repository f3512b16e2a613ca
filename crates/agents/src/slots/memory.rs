//! Memory for what is about to start: whether there is enough, and a promise of it, so that two that start
//! at once don't count on the same memory.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use tokio::time::sleep;

use super::holder::{SlotHolder, SlotRequest};
use super::machine::Machine;
use super::ticket::Ticket;
use super::{SlotError, SlotPlace, Slots, Wait, until};
use crate::process;

const MB: u64 = 1024 * 1024;

/// How often the first in the line looks for memory. The others sleep.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The memory that a start needs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MemoryNeed {
    /// The bytes that it may take; 0 if nothing is known of it.
    pub expected: u64,
    /// The memory that is to stay free.
    pub min_free_mb: u64,
}

/// A promise of memory, until this is dropped.
#[derive(Debug)]
pub struct MemoryHold(#[expect(dead_code, reason = "held for its drop")] Ticket);

/// One process with all that it was promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MemoryClaim {
    promised: u64,
    used: u64,
}

impl Slots {
    /// Promises memory to a start once there is enough, in the order of arrival. `on_wait` is told, once,
    /// what it waits for.
    pub async fn reserve(
        &self,
        need: MemoryNeed,
        request: SlotRequest,
        wait: Wait,
        mut on_wait: impl FnMut(&str),
    ) -> Result<MemoryHold, SlotError> {
        let folder = self.folder.join(SlotPlace::Memory.folder());
        let failed = |error| SlotError::Io { folder: folder.clone(), error };
        let behind = |standing: &super::SlotWaiter| on_wait(&standing.to_string());
        // One looks at a time: what it finds free is still free when it takes it.
        let turn = self.acquire(&SlotPlace::MemoryTurn, 1, request.clone(), wait, behind).await?;
        let mut is_told = false;
        while let Some(why) = self.obstacle(need).map_err(failed)? {
            if wait == Wait::No {
                return Err(SlotError::Busy(why));
            }
            if !is_told {
                on_wait(&why);
                is_told = true;
            }
            if until(wait, sleep(LOOK_AGAIN)).await.is_none() {
                return Err(SlotError::TimedOut(why));
            }
        }
        let mut holder = SlotHolder { bytes: Some(need.expected), ..SlotHolder::waiting(request) };
        holder.acquired();
        let ticket = self.take(&SlotPlace::Memory, holder).await.map_err(failed)?;
        drop(turn);
        Ok(MemoryHold(ticket))
    }

    /// Why there is not enough memory for a start now.
    fn obstacle(&self, need: MemoryNeed) -> io::Result<Option<String>> {
        let Some(machine) = Machine::now() else { return Ok(None) };
        let mut promised: BTreeMap<u32, u64> = BTreeMap::new();
        for holder in self.tickets(&SlotPlace::Memory)? {
            *promised.entry(holder.pid).or_default() += holder.bytes.unwrap_or(0);
        }
        let pids: Vec<u32> = promised.keys().copied().collect();
        let used = process::memory_below(&pids);
        let claims = promised.into_values().zip(used);
        let claims: Vec<_> =
            claims.map(|(promised, used)| MemoryClaim { promised, used }).collect();
        Ok(obstacle(machine, &claims, need))
    }
}

/// Why a start has to wait, by the memory of the machine and the claims of those that run.
fn obstacle(machine: Machine, claims: &[MemoryClaim], need: MemoryNeed) -> Option<String> {
    let Machine { total, available } = machine;
    let expected = need.expected;
    // What runs has taken a part of what it was promised, and that is not available any more.
    let open: u64 = claims.iter().map(|claim| claim.promised.saturating_sub(claim.used)).sum();
    let min_free = need.min_free_mb.saturating_mul(MB);
    let taken = open.saturating_add(expected);
    let mb = |bytes: u64| bytes / MB;
    if available.saturating_sub(taken) < min_free {
        return Some(format!(
            "waits for memory: {} MB of {} MB are free, this may take {} MB, and {} MB are for what runs \
             already: less than `min_free_mb` = {} would be left; it starts when there is more, or with a \
             smaller `min_free_mb` in [runs] of $EISEN_DIR/config.toml",
            mb(available),
            mb(total),
            mb(expected),
            mb(open),
            mb(min_free),
        ));
    }
    let running: u64 = claims.iter().map(|claim| claim.promised.max(claim.used)).sum();
    // One alone may take more: otherwise it would never start.
    let is_alone = claims.is_empty();
    if !is_alone && running.saturating_add(expected) > total / 4 * 3 {
        return Some(format!(
            "waits for memory: what runs already takes {} MB, and this may take {} MB: together more than \
             three quarters of {} MB; it starts when one of them ends",
            mb(running),
            mb(expected),
            mb(total),
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1024 * MB;

    #[test]
    fn a_start_leaves_memory_free() {
        let machine = Machine { total: 32 * GB, available: 7 * GB };
        let need = |gb: u64| MemoryNeed { expected: gb * GB, min_free_mb: 4096 };
        assert_eq!(obstacle(machine, &[], need(3)), None);
        let why = obstacle(machine, &[], need(4)).unwrap_or_default();
        assert!(why.contains("`min_free_mb` = 4096"), "{why}");
        // What was promised and is not used yet is not free.
        let fresh = MemoryClaim { promised: 2 * GB, used: 0 };
        assert!(obstacle(machine, &[fresh], need(3)).is_some());
        assert_eq!(obstacle(machine, &[MemoryClaim { used: 2 * GB, ..fresh }], need(3)), None);
        let bound = |mb| MemoryNeed { expected: 4 * GB, min_free_mb: mb };
        assert_eq!(obstacle(machine, &[], bound(1000)), None);
        assert!(obstacle(machine, &[], bound(u64::MAX)).is_some());
    }

    #[test]
    fn what_runs_takes_at_most_three_quarters_together() {
        let machine = Machine { total: 32 * GB, available: 31 * GB };
        let need = MemoryNeed { expected: 5 * GB, min_free_mb: 0 };
        let claim = MemoryClaim { promised: 10 * GB, used: 10 * GB };
        assert_eq!(obstacle(machine, &[claim], need), None);
        let why = obstacle(machine, &[claim, claim], need).unwrap_or_default();
        assert!(why.contains("three quarters"), "{why}");
        // Alone it is bound by what is free only.
        assert_eq!(obstacle(machine, &[], MemoryNeed { expected: 30 * GB, ..need }), None);
    }
}
