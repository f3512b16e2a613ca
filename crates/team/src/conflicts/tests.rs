#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::bus::{Backlog, Subscriber};

mod deciding;
mod following;
mod locking;

const LOCK: Duration = Duration::from_secs(30);

fn conflicts(strategy: ConflictStrategy, hold: bool) -> (Conflicts, Subscriber) {
    let bus = Bus::new(Backlog::of(1000));
    let events = bus.subscribe();
    let hold_timeout = Duration::from_mins(2);
    let rules =
        ConflictRules { strategy, lock: LOCK, hold, hold_timeout, ..ConflictRules::default() };
    (Conflicts::new(Some(rules), PathBuf::from("/nowhere"), bus, None, Waits::default()), events)
}

fn key(agent: &str) -> SessionKey {
    SessionKey::new(AgentId::new(agent), SessionId::new("s"))
}

fn path(path: &str) -> Arc<str> {
    path.into()
}

impl Conflicts {
    fn writes_by(&self, agent: &str, of: &str) -> WriteGate {
        self.begin_write(&key(agent), &path(of), Way::Other { may_wait: true })
    }

    /// `ID KIND STATUS AGENTS` of each conflict.
    fn shown(&self) -> Vec<String> {
        self.list(None).iter().map(shown).collect()
    }
}

fn shown(conflict: &Conflict) -> String {
    let agents: Vec<_> = conflict.agents.iter().map(AgentId::as_str).collect();
    let (kind, status) = (conflict.kind.as_str(), conflict.status.as_str());
    format!("{} {kind} {status} {}", conflict.id, agents.join(" "))
}

impl WriteGate {
    fn wait(self) -> Box<LockWait> {
        match self {
            Self::Waits(wait) => wait,
            other => panic!("does not wait: {other:?}"),
        }
    }

    fn refusal(self) -> Refused {
        match self {
            Self::Refused(refused) => refused,
            other => panic!("is not refused: {other:?}"),
        }
    }

    fn passes(&self) -> bool {
        matches!(self, Self::Passes)
    }
}
