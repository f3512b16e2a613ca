//! `resolve` of several accesses at once.

use std::collections::HashSet;

use anyhow::bail;
use clap::Args;
use globset::GlobMatcher;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::blocked::describe;
use super::output::{note, plain, print};
use super::team::{failed, readable};
use crate::config;
use crate::model::BlockedStatus;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, MethodAnswer};
use crate::wire::{
    Blocked, DecisionParam, Exact, ListBlocked, ListBlockedParams, ResolveBlocked, ResolveParams,
};

/// The error code for an access that is decided already.
const SETTLED: u16 = 409;

/// Selects accesses that wait for a decision.
#[derive(Args, Debug)]
pub(super) struct Many {
    /// All accesses that wait for a decision
    #[arg(long, global = true)]
    all: bool,
    /// Accesses that wait for a decision and whose path matches: `*` matches within a folder, `**`
    /// at any depth. With an id to allow: all that is allowed with it
    #[arg(long = "match", value_name = "GLOB", value_parser = glob, global = true)]
    pattern: Option<GlobMatcher>,
    /// Only accesses of this agent
    #[arg(long, value_name = "AGENT", global = true)]
    agent: Option<String>,
}

impl Many {
    /// Whether it selects several.
    pub(super) fn is_several(&self) -> bool {
        self.all || self.pattern.is_some()
    }

    /// The pattern, as it was given.
    pub(super) fn pattern(&self) -> Option<String> {
        self.pattern.as_ref().map(|pattern| pattern.glob().glob().to_owned())
    }

    /// Checks the options together with an id. The parser can't: they may stand behind the decision. `allows`: a
    /// pattern may stand beside an id.
    pub(super) fn check(&self, id: Option<&str>, allows: bool) -> anyhow::Result<()> {
        match (id, self.all, self.pattern.is_some()) {
            (None, false, false) => bail!(
                "name the access that is decided, such as `b3`, or give --all or --match GLOB; \
                 `eisen-core inbox` lists them"
            ),
            (None, true, true) => bail!("--all and --match exclude each other: keep one"),
            (Some(id), all, several) if all || several && !allows || self.agent.is_some() => bail!(
                "`{id}` names one access, and --all, --match and --agent select several: keep one of both"
            ),
            _ => Ok(()),
        }
    }

    /// Decides each access so, and prints the decided ones.
    pub(super) async fn decide(
        &self,
        mut team: Connection,
        decision: &DecisionParam,
        json: bool,
    ) -> Result<u8, Failure> {
        let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
        let waiting = team.ask::<ListBlocked>(&pending).await.map_err(failed)?;
        let mut chosen = HashSet::new();
        let mut refused = false;
        for access in listed(&waiting) {
            let Some(access) = readable(access, Blocked::deserialize(access)) else {
                refused = true;
                continue;
            };
            if !self.selects(&access) {
                continue;
            }
            match team.ask::<ResolveBlocked>(&about(decision, &access.id)).await {
                // It was decided together with an equal access, or by another decider.
                Ok(_) | Err(ClientError::Refused { code: SETTLED, .. }) => {}
                Err(ClientError::Refused { message, .. }) => {
                    refused = true;
                    note(format!("error: {}", plain(&message)));
                    continue;
                }
                Err(error) => return Err(failed(error)),
            }
            chosen.insert(access.id.into_owned());
        }
        let all = ListBlockedParams { status: None };
        let all = team.ask::<ListBlocked>(&all).await.map_err(failed)?;
        let decided =
            listed(&all).filter_map(|json| Some((json, Blocked::deserialize(json).ok()?)));
        let decided: Vec<_> = decided.filter(|(_, it)| chosen.contains(&*it.id)).collect();
        if json {
            print(json!(decided.iter().map(|(json, _)| json).collect::<Vec<_>>()))?;
        } else if decided.is_empty() && !refused {
            note("no matching access waits for a decision");
        } else {
            for (_, access) in decided {
                print(describe(&access))?;
            }
        }
        Ok(u8::from(refused))
    }

    fn selects(&self, access: &Blocked<'_>) -> bool {
        self.pattern.as_ref().is_none_or(|glob| glob.is_match(&*access.path))
            && self.agent.as_ref().is_none_or(|agent| access.session.agent_id == **agent)
    }
}

fn listed(accesses: &MethodAnswer<ListBlocked>) -> impl Iterator<Item = &Value> {
    accesses.json.as_array().into_iter().flatten()
}

/// A decision, about this access.
pub(super) fn about(decision: &DecisionParam, id: &str) -> ResolveParams {
    ResolveParams { id: id.to_owned().into(), version: None, verdict: decision.clone() }
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = config::compile_glob(pattern);
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}
