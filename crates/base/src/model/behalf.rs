//! Memory of this process that is used on behalf of agents: what waits for an agent counts to the agent's own limit,
//! and what waits for all of a team to a bound that follows the memory there is. Past either, a request fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The part of the memory there is that may wait for the agents of a team.
const SHARE: u64 = 4;

/// Bytes that may wait for a team however little memory there is: small answers always pass.
const LEAST: u64 = 4 << 20;

/// How long the memory there is counts as known.
const KNOWN: Duration = Duration::from_millis(100);

const MB: u64 = 1 << 20;

/// The bytes of memory that are to be had now; None: the system does not say.
pub type MemoryThere = fn() -> Option<u64>;

/// The count of bytes that wait for the agents of a team; cheap to clone. The default has no bound.
#[derive(Clone, Default, Debug)]
pub struct TeamMemory(Arc<OfTeam>);

#[derive(Default, Debug)]
struct OfTeam {
    used: AtomicU64,
    there: Option<MemoryThere>,
    bound: Mutex<Option<(Instant, u64)>>,
}

/// The count of bytes that wait for one agent; cheap to clone. The default has no limit.
#[derive(Clone, Default, Debug)]
pub struct AgentMemory(Arc<OfAgent>);

#[derive(Default, Debug)]
struct OfAgent {
    used: AtomicU64,
    /// Bytes that its relay holds.
    relayed: AtomicU64,
    most: Option<u64>,
    team: TeamMemory,
}

/// Memory that counts until this is dropped.
#[derive(Debug)]
pub struct UsedMemory {
    of: AgentMemory,
    bytes: u64,
}

/// Why no more may wait for an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoMemory {
    /// The agent's own limit is reached.
    #[error(
        "it would take {} MB until the agent has read it, with what waits for the agent already, and its \
         `memory_mb` is {}: read what was answered first, or ask for a part", .needs.div_ceil(MB), .most / MB
    )]
    OfAgent {
        /// Bytes that would wait for the agent.
        needs: u64,
        /// Bytes that may wait for the agent.
        most: u64,
    },
    /// The bound of the whole team is reached.
    #[error(
        "{} MB would wait for the team's agents, and of the memory there is {} MB may: try again later, or ask \
         for a part", .needs.div_ceil(MB), .most / MB
    )]
    OfTeam {
        /// Bytes that would wait for all agents of the team.
        needs: u64,
        /// Bytes that may wait for all agents of the team now.
        most: u64,
    },
}

impl TeamMemory {
    /// A bound of a quarter of the memory there is, and of 4 MiB at least; none while `there` says None.
    pub fn following(there: MemoryThere) -> Self {
        Self(Arc::new(OfTeam { there: Some(there), ..OfTeam::default() }))
    }

    /// The memory of one agent of the team, which has a limit of its own.
    pub fn of_agent(&self, most: Option<u64>) -> AgentMemory {
        let (used, relayed) = (AtomicU64::new(0), AtomicU64::new(0));
        AgentMemory(Arc::new(OfAgent { used, relayed, most, team: self.clone() }))
    }

    fn bound(&self) -> u64 {
        let Some(there) = self.0.there else { return u64::MAX };
        let mut known = self.0.bound.lock();
        if let Some((_, bound)) = known.filter(|(at, _)| at.elapsed() < KNOWN) {
            return bound;
        }
        let used = self.0.used.load(Ordering::Relaxed);
        let bound = there().map_or(u64::MAX, |there| ((there + used) / SHARE).max(LEAST));
        *known = Some((Instant::now(), bound));
        bound
    }
}

impl AgentMemory {
    /// Counts bytes, unless that would be too many.
    pub fn take(&self, bytes: u64) -> Result<UsedMemory, NoMemory> {
        let mut used = UsedMemory { of: self.clone(), bytes: 0 };
        used.grow(bytes)?;
        Ok(used)
    }

    /// Says how many bytes the agent's relay holds for it now.
    pub fn relays(&self, bytes: usize) {
        let bytes = bytes as u64;
        let before = self.0.relayed.swap(bytes, Ordering::Relaxed);
        let all = &self.0.team.0.used;
        if bytes > before {
            all.fetch_add(bytes - before, Ordering::Relaxed);
        } else if bytes < before {
            all.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for OfAgent {
    fn drop(&mut self) {
        self.team.0.used.fetch_sub(*self.relayed.get_mut(), Ordering::Relaxed);
    }
}

impl UsedMemory {
    /// Counts more bytes, unless that would be too many.
    pub fn grow(&mut self, bytes: u64) -> Result<(), NoMemory> {
        let OfAgent { used, relayed, most, team } = &*self.of.0;
        let needs = used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let needs = needs + relayed.load(Ordering::Relaxed);
        if let Some(most) = most.filter(|most| needs > *most) {
            used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(NoMemory::OfAgent { needs, most });
        }
        let needs = team.0.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.bytes += bytes;
        let most = team.bound();
        if needs > most {
            drop(self.split(bytes));
            return Err(NoMemory::OfTeam { needs, most });
        }
        Ok(())
    }

    /// Takes a part out, which counts on its own.
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { of: self.of.clone(), bytes }
    }
}

impl Drop for UsedMemory {
    fn drop(&mut self) {
        let OfAgent { used, team, .. } = &*self.of.0;
        used.fetch_sub(self.bytes, Ordering::Relaxed);
        team.0.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_waits_for_an_agent_counts_until_it_is_gone() {
        let team = TeamMemory::default();
        let agent = team.of_agent(Some(64 * MB));
        let mut first = agent.take(40 * MB).unwrap();
        let full = agent.take(30 * MB).unwrap_err();
        assert_eq!(full, NoMemory::OfAgent { needs: 70 * MB, most: 64 * MB });
        assert!(
            full.to_string().contains("70 MB") && full.to_string().contains("`memory_mb` is 64")
        );
        // What moves on to the relay still waits for the agent.
        let part = first.split(30 * MB);
        agent.relays(30 << 20);
        drop(part);
        assert!(agent.take(30 * MB).is_err());
        agent.relays(0);
        let second = agent.take(30 * MB).unwrap();
        drop((first, second));
        agent.relays(1 << 20);
        drop(agent);
        assert_eq!(team.0.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn all_agents_of_a_team_share_a_part_of_the_memory_there_is() {
        let team = TeamMemory::following(|| Some(100 * MB));
        let (one, other) = (team.of_agent(None), team.of_agent(Some(1000 * MB)));
        let first = one.take(20 * MB).unwrap();
        let full = other.take(20 * MB).unwrap_err();
        assert!(matches!(full, NoMemory::OfTeam { needs, .. } if needs == 40 * MB), "{full}");
        drop(first);
        assert!(other.take(20 * MB).is_ok());
        // However little there is.
        let poor = TeamMemory::following(|| Some(0)).of_agent(None);
        assert!(poor.take(LEAST).is_ok() && poor.take(LEAST + 1).is_err());
    }
}
