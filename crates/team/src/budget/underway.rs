//! Turns under way: what they reserved, and what of it they used. Pure.

use super::window::Amounts;
use crate::model::{AgentId, SessionId};

/// A turn whose prompt is about to be sent, or was.
#[derive(Debug)]
pub(super) struct TurnUnderway {
    pub(super) agent: AgentId,
    /// The parents of its agent, from the nearest one on.
    pub(super) above: Vec<AgentId>,
    /// None: its prompt is about to be sent.
    pub(super) session: Option<SessionId>,
    /// Its expected use of the team's budget, of its agent's, and of each parent's.
    pub(super) reserved: Vec<Amounts>,
    pub(super) used: Amounts,
    /// Its use by an estimate, before that is reported.
    pub(super) foreseen: Amounts,
}

impl TurnUnderway {
    /// The place in `reserved` of an agent's budget, or of the team's; None if it is not out of that.
    pub(super) fn place(&self, of: Option<&AgentId>) -> Option<usize> {
        let Some(agent) = of else { return Some(0) };
        let mut chain = std::iter::once(&self.agent).chain(&self.above);
        chain.position(|own| own == agent).map(|at| at + 1)
    }

    fn left(&self, of: usize) -> Amounts {
        let reserved = self.reserved.get(of).copied().unwrap_or_default();
        let used = self.used;
        Amounts {
            tokens: reserved.tokens.saturating_sub(used.tokens.max(self.foreseen.tokens)),
            cost: (reserved.cost - used.cost.max(self.foreseen.cost)).max(0.0),
            ..Amounts::default()
        }
    }

    /// Beyond what was reported.
    fn beyond(&self) -> Amounts {
        Amounts {
            tokens: self.foreseen.tokens.saturating_sub(self.used.tokens),
            cost: (self.foreseen.cost - self.used.cost).max(0.0),
            unsure_tokens: self.foreseen.unsure_tokens.saturating_sub(self.used.unsure_tokens),
            unsure_cost: (self.foreseen.unsure_cost - self.used.unsure_cost).max(0.0),
            ..Amounts::default()
        }
    }
}

/// The turns of a budget that run, or are about to.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Underway {
    pub(super) count: u64,
    /// The turns that have not begun.
    pub(super) waiting: u64,
    /// Their use beyond what was reported, by an estimate.
    pub(super) foreseen: Amounts,
    /// Their use that is still expected.
    pub(super) reserved: Amounts,
}

impl Underway {
    /// Adds a turn, of which the reservation at this place counts; none if `is_asking`.
    pub(super) fn add(&mut self, turn: &TurnUnderway, at: usize, is_asking: bool) {
        self.count += u64::from(!is_asking);
        self.waiting += u64::from(turn.session.is_none());
        self.foreseen = self.foreseen.and(turn.beyond());
        if !is_asking {
            self.reserved = self.reserved.and(turn.left(at));
        }
    }
}
