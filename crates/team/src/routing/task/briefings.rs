//! Selects which blocked accesses are in the orchestrator agent's next briefing.

use super::Task;
use super::requests::asks_orchestrator;
use crate::model::{AgentId, BlockedId, BlockedStatus, SessionId, SessionKey};
use crate::routing::Orchestrator;
use crate::routing::board::{BoardEntry, Briefing};
use crate::routing::briefing::{self, BriefingDraft};

/// Accesses of one briefing, and the bytes after which it takes no more. Further pending accesses
/// are in the next briefing; further denied ones are only counted.
const MOST: usize = 50;
const MOST_BYTES: usize = 32 * 1024;

impl Task {
    /// Adds an access to the next briefing, unless an equal one is in a briefing.
    pub(super) fn route(&mut self, id: &BlockedId) {
        let Some(entry) = self.board.get(id) else { return };
        // An access that cannot be granted needs no decision.
        let is_briefed = entry.grantable
            && asks_orchestrator(entry.access.rule)
            && match &self.settings.orchestrator {
                Orchestrator::Agent(agent) => *agent != entry.access.key.agent,
                Orchestrator::Elsewhere { .. } => true,
                Orchestrator::External(_) | Orchestrator::Nobody => false,
            };
        if !is_briefed {
            return;
        }
        let (access, waits) = (entry.access.clone(), is_pending(entry));
        // A denied access does not stand for a pending one: the orchestrator may have ignored it.
        let stands_for =
            |other: &&BoardEntry| other.briefing != Briefing::None && (is_pending(other) || !waits);
        if self.board.alike(&access).any(|other| stands_for(&other)) {
            return;
        }
        let replaced: Vec<_> = self
            .board
            .alike(&access)
            .filter(|other| other.briefing == Briefing::Waiting)
            .map(|other| other.access.id.clone())
            .collect();
        for other in replaced {
            self.board.change(&other, |entry| entry.briefing = Briefing::None);
        }
        self.board.change(id, |entry| entry.briefing = Briefing::Waiting);
        self.nudge.send_modify(|count| *count += 1);
    }

    /// Takes the waiting accesses, as many as fit.
    pub(super) fn briefing(&mut self) -> Option<BriefingDraft> {
        let reader = match &self.settings.orchestrator {
            Orchestrator::Elsewhere { host, .. } => briefing::Reader::elsewhere(host),
            _ => briefing::Reader::here(&self.settings.program),
        };
        let (mut items, mut bytes) = (Vec::new(), 0);
        let (mut later, mut denied) = (0, 0);
        for (access, decided, briefing) in self.board.briefings() {
            if *briefing != Briefing::Waiting {
                continue;
            }
            if decided {
                *briefing = Briefing::None;
                continue;
            }
            if items.len() < MOST && bytes < MOST_BYTES {
                let item = briefing::item(access, &reader);
                bytes += item.bytes();
                items.push(item);
                *briefing = Briefing::Prompting;
            } else if access.status == BlockedStatus::Pending {
                later += 1;
            } else {
                denied += 1;
                *briefing = Briefing::Prompting;
            }
        }
        if later > 0 {
            self.nudge.send_modify(|count| *count += 1);
        }
        let lead = match &self.settings.orchestrator {
            Orchestrator::Agent(agent) => Some(agent.clone()),
            _ => None,
        };
        (!items.is_empty()).then_some(BriefingDraft { items, later, denied, reader, lead })
    }

    pub(super) fn shift_briefings(&mut self, from: Briefing, to: Briefing) {
        let mut waiting = false;
        for (.., briefing) in self.board.briefings().filter(|(.., briefing)| **briefing == from) {
            *briefing = to;
            waiting |= to == Briefing::Waiting;
        }
        if waiting {
            self.nudge.send_modify(|count| *count += 1);
        }
    }

    pub(super) fn end_orchestrated(&mut self, agent: &AgentId) -> Vec<BlockedId> {
        let Some((prompts, ids)) = self.orchestrated.get_mut(agent) else { return Vec::new() };
        *prompts -= 1;
        if *prompts > 0 {
            return ids.clone();
        }
        self.orchestrated.remove(agent).map(|(_, ids)| ids).unwrap_or_default()
    }

    pub(super) fn is_orchestrator(&self, agent: &AgentId) -> bool {
        matches!(&self.settings.orchestrator, Orchestrator::Agent(id) if id == agent)
    }

    pub(super) fn orchestrator(&self) -> Option<SessionKey> {
        match &self.settings.orchestrator {
            Orchestrator::Agent(agent) => {
                Some(SessionKey::new(agent.clone(), self.orchestrator_session.clone()))
            }
            Orchestrator::Elsewhere { agent, .. } => {
                Some(SessionKey::new(agent.clone(), SessionId::new("")))
            }
            Orchestrator::External(key) => Some(key.clone()),
            Orchestrator::Nobody => None,
        }
    }
}

fn is_pending(entry: &BoardEntry) -> bool {
    entry.access.status == BlockedStatus::Pending
}
