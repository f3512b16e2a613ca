//! What the agent of a run used: tokens, money, memory.

use std::collections::BTreeMap;

use crate::app::team::Supervised;
use crate::model::{AgentId, TokenKind};
use crate::serve::Team as _;

#[derive(Default)]
pub(super) struct Used {
    pub(super) tokens: Option<u64>,
    pub(super) cost: BTreeMap<String, f64>,
    pub(super) peak_memory_bytes: Option<u64>,
}

pub(super) async fn used(team: &Supervised, agent: &AgentId) -> Used {
    let details = team.details().await;
    let Some(own) = details.iter().find(|it| it.status.agent == *agent) else {
        return Used::default();
    };
    let mut used = Used { peak_memory_bytes: own.peak_memory_bytes, ..Used::default() };
    for session in &own.sessions {
        let known = session.spent.tokens.get(TokenKind::Total).known;
        used.tokens = used.tokens.into_iter().chain(known).reduce(u64::saturating_add);
        for (currency, cost) in &session.spent.cost {
            *used.cost.entry(currency.to_string()).or_default() += cost;
        }
    }
    used
}
