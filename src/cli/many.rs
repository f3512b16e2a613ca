//! `resolve` of several accesses at once.

use std::collections::HashSet;

use anyhow::bail;
use clap::Args;
use globset::GlobMatcher;
use serde::Deserialize;
use serde_json::{Value, json};

use super::blocked::Blocked;
use super::output::{note, plain, print};
use super::team::{failed, rows};
use crate::app::Failure;
use crate::config;
use crate::serve::client::{ClientError, Connection};
use crate::wire;

/// The error code for an access that is decided already.
const SETTLED: u16 = 409;

/// Selects accesses that wait for a decision.
#[derive(Args, Debug)]
pub(super) struct Many {
    /// All accesses that wait for a decision
    #[arg(long, global = true)]
    all: bool,
    /// Accesses that wait for a decision and whose path matches: `*` matches within a folder, `**`
    /// at any depth
    #[arg(long = "match", value_name = "GLOB", value_parser = glob, global = true)]
    pattern: Option<GlobMatcher>,
    /// Only accesses of this agent
    #[arg(long, value_name = "AGENT", global = true)]
    agent: Option<String>,
}

impl Many {
    /// Checks the options together with an id. The parser can't: they may stand behind the decision.
    pub(super) fn check(&self, id: Option<&str>) -> anyhow::Result<()> {
        match (id, self.all, self.pattern.is_some()) {
            (None, false, false) => bail!(
                "name the access that is decided, such as `b3`, or give --all or --match GLOB; \
                 `eisen-core blocked --status pending` lists them"
            ),
            (None, true, true) => bail!("--all and --match exclude each other: keep one"),
            (Some(id), all, several) if all || several || self.agent.is_some() => bail!(
                "`{id}` names one access, and --all, --match and --agent select several: keep one of both"
            ),
            _ => Ok(()),
        }
    }

    /// Decides each access by `params`, and prints the decided ones.
    pub(super) async fn decide(
        &self,
        mut team: Connection,
        params: Value,
        json: bool,
    ) -> Result<u8, Failure> {
        let pending = json!({ "status": "pending" });
        let waiting = team.call("list_blocked", &pending).await.map_err(failed)?;
        let mut chosen = HashSet::new();
        let mut refused = false;
        let waiting: Vec<wire::Blocked<'_>> = rows(&waiting);
        for access in waiting.into_iter().filter(|it| self.selects(it)) {
            match team.call("resolve_blocked", &about(params.clone(), &access.id)).await {
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
        let all = team.call("list_blocked", &json!({})).await.map_err(failed)?;
        let is_chosen = |access: &&Value| {
            wire::Blocked::deserialize(*access).is_ok_and(|it| chosen.contains(&*it.id))
        };
        let decided: Vec<&Value> = all.as_array().into_iter().flatten().filter(is_chosen).collect();
        if json {
            print(json!(decided))?;
        } else if decided.is_empty() && !refused {
            note("no matching access waits for a decision");
        } else {
            for access in decided {
                print(Blocked::read(access)?.describe())?;
            }
        }
        Ok(u8::from(refused))
    }

    fn selects(&self, access: &wire::Blocked<'_>) -> bool {
        self.pattern.as_ref().is_none_or(|glob| glob.is_match(&*access.path))
            && self.agent.as_ref().is_none_or(|agent| access.session.agent_id == **agent)
    }
}

/// The params of a decision, about this access.
pub(super) fn about(mut params: Value, id: &str) -> Value {
    if let Value::Object(params) = &mut params {
        params.insert("id".to_owned(), id.into());
    }
    params
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = config::compile_glob(pattern);
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}
