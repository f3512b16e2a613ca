//! The tokens of agents at the endpoint, with what a call of each is counted by.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::budget::{Account, Budgets};
use crate::model::AgentId;
use crate::process::Family;
use crate::proxy::ModelCalls;
use crate::supervisor::Roster;

/// Bytes of a token, before they are written as hexadecimal digits.
const TOKEN_BYTES: usize = 32;

/// The right of an agent to call a provider, by its token.
pub(super) struct Lease {
    pub(super) agent: AgentId,
    pub(super) provider: Arc<str>,
    pub(super) account: Account,
    token: Zeroizing<String>,
    /// The token's hash, which is compared in its place, in constant time.
    hash: blake3::Hash,
    calls: Arc<ModelCalls>,
}

impl Lease {
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn calls(&self) -> Arc<ModelCalls> {
        Arc::clone(&self.calls)
    }
}

/// The leases of a team; cheap to clone.
#[derive(Clone)]
pub(super) struct Leases(Arc<LeaseBook>);

struct LeaseBook {
    budgets: Budgets,
    roster: OnceLock<Roster>,
    /// By agent and provider: an agent that gets another provider goes on with the first one until it is restarted.
    leases: Mutex<HashMap<(AgentId, String), Arc<Lease>>>,
    /// Keys that are in no record.
    hidden: Mutex<Vec<Zeroizing<String>>>,
}

impl Leases {
    pub(super) fn new(budgets: Budgets) -> Self {
        let (roster, leases, hidden) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Self(Arc::new(LeaseBook { budgets, roster, leases, hidden }))
    }

    pub(super) fn know(&self, roster: Roster) {
        let _ = self.0.roster.set(roster);
    }

    /// The lease of an agent, which is made once.
    pub(super) fn of(
        &self,
        agent: &AgentId,
        provider: &str,
        model: Option<Arc<str>>,
    ) -> anyhow::Result<Arc<Lease>> {
        let mut leases = self.0.leases.lock();
        let key = (agent.clone(), provider.to_owned());
        if let Some(lease) = leases.get(&key) {
            return Ok(Arc::clone(lease));
        }
        let mut bytes = Zeroizing::new([0; TOKEN_BYTES]);
        getrandom::fill(&mut *bytes).context("the system has no random numbers")?;
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        let token = Zeroizing::new(digits.collect::<String>());
        let lease = Arc::new(Lease {
            agent: agent.clone(),
            provider: provider.into(),
            account: self.0.budgets.account(agent, model),
            hash: blake3::hash(token.as_bytes()),
            token,
            calls: Arc::new(ModelCalls::new(provider.into())),
        });
        leases.insert(key, Arc::clone(&lease));
        Ok(lease)
    }

    /// Has a key hidden in records.
    pub(super) fn hide(&self, key: &Zeroizing<String>) {
        self.0.hidden.lock().push(key.clone());
    }

    /// The texts that are in no record: keys of providers, and tokens of agents.
    pub(super) fn hidden(&self) -> Vec<Zeroizing<String>> {
        let mut all = self.0.hidden.lock().clone();
        all.extend(self.0.leases.lock().values().map(|lease| lease.token.clone()));
        all
    }

    /// Finds a lease by a token that was shown.
    pub(super) fn find(&self, token: &str, provider: &str) -> Option<Arc<Lease>> {
        let hash = blake3::hash(token.as_bytes());
        let leases = self.0.leases.lock();
        let found = leases.values().find(|lease| lease.hash == hash);
        found.filter(|lease| &*lease.provider == provider).cloned()
    }

    /// The processes of an agent; None: it does not run.
    pub(super) fn family(&self, agent: &AgentId) -> Option<Family> {
        self.0.roster.get()?.get(agent)?.family()
    }

    pub(super) fn keep(&self, is_there: &dyn Fn(&AgentId) -> bool) {
        self.0.leases.lock().retain(|(agent, _), _| is_there(agent));
    }
}
