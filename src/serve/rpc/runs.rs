//! Owns the methods of runs: an agent starts runs below it, waits for them and ends them.

mod asks;
mod row;

use std::sync::Arc;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use self::asks::RunBudget;
use self::row::{RunList, RunRow};
use super::spawning::{LONGEST_ZONE, MOST_PATTERNS};
use super::{asking, json, parse, subschema, tasks, wrong};
use crate::model::{AgentId, Order};
use crate::runs::{Attachment, FindError, TeamRuns};
use crate::serve::shared::Shared;
use crate::serve::{Caller, NewRun, StartedRun, Team, rights};
use crate::tasks::{LONGEST_WAIT, WaitKind};
use crate::wire::RpcError;

/// Bytes of a prompt, and of a command.
const LONGEST_PROMPT: usize = 1024 * 1024;
const LONGEST_COMMAND: usize = 64 * 1024;

/// Runs that one request names.
const MOST_IDS: usize = 1000;

/// How long runs may take to end.
const END_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Method {
    Start,
    Wait,
    End,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "StartRunParams")]
pub(in crate::serve) struct StartRun {
    /// What the agent is prompted with.
    task: String,
    /// Patterns, which are cut to the caller's zone; the caller's if left out.
    #[serde(default)]
    zone: Vec<String>,
    /// What is denied, beside what the caller is denied.
    #[serde(default)]
    deny: Vec<String>,
    /// What it runs; what the caller runs if there is no `command` either.
    #[serde(default, deserialize_with = "crate::wire::name")]
    profile: Option<String>,
    /// Program and arguments, instead of the profile's.
    #[serde(default)]
    command: Vec<String>,
    #[serde(default, deserialize_with = "crate::wire::name")]
    model: Option<String>,
    /// The tier that its agent is taken from, instead of `profile`, `command` and `model`.
    #[serde(default, deserialize_with = "crate::wire::name")]
    tier: Option<String>,
    /// With `tier`: only the first candidate that can be taken.
    #[serde(default)]
    no_failover: bool,
    /// Limits, within those of the caller.
    #[serde(default)]
    budget: RunBudget,
    /// From now to the end of the turn.
    timeout_s: Option<u64>,
    /// Files that go with the prompt, as the caller has read them.
    #[serde(default)]
    files: Vec<Attachment>,
    /// A JSON Schema that the answer has to fit.
    schema: Option<Value>,
    /// Go on with the session of a run below the caller that has ended: its id, that of the run, a
    /// beginning of either, or `last`.
    session: Option<String>,
    /// Begin with a copy of such a session.
    fork: Option<String>,
    /// Answer once it has ended. If the caller leaves before, the run is ended.
    #[serde(default)]
    wait: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct RunStarted {
    id: String,
    agent_id: String,
    /// The patterns of its zone.
    zone: Vec<String>,
    /// Patterns that were asked for, and reach out of the caller's zone.
    reaches_out: Vec<String>,
    /// Places and `$VARIABLES` that its profile has and the caller has not: it does not get them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    /// With `wait`: how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunRow>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "WaitForRunsParams")]
pub(in crate::serve) struct WaitForRuns {
    /// Ids, or beginnings that no other run of the caller has; all if left out.
    #[serde(default)]
    ids: Vec<String>,
    /// Until one has ended, not all.
    #[serde(default)]
    any: bool,
    /// At most 45; 0 to look only.
    timeout_s: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "EndRunsParams")]
pub(in crate::serve) struct EndRuns {
    /// Ids, or beginnings that no other run of the caller has.
    ids: Vec<String>,
}

pub(super) async fn call(
    shared: &Shared,
    caller: Option<&Caller>,
    method: Method,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    match method {
        Method::Start => start_run(shared, caller, parse(params)?).await,
        Method::Wait => wait_for_runs(shared, caller, parse(params)?).await,
        Method::End => end_runs(shared, caller, parse(params)?).await,
    }
}

pub(super) fn schemas(
    method: Method,
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> (Schema, Schema) {
    match method {
        Method::Start => (subschema::<StartRun>(requests), subschema::<RunStarted>(answers)),
        Method::Wait => (subschema::<WaitForRuns>(requests), subschema::<RunList>(answers)),
        Method::End => (subschema::<EndRuns>(requests), subschema::<RunList>(answers)),
    }
}

async fn start_run(
    shared: &Shared,
    caller: Option<&Caller>,
    params: StartRun,
) -> Result<Value, RpcError> {
    // The connection says who asks: nothing in the params could.
    let parent = asking::agent(caller)?.clone();
    let runs = runs(shared)?.clone();
    let wait = params.wait;
    let new = new_run(parent.clone(), params)?;
    let team = Arc::clone(&shared.team);
    let (own_team, own_runs) = (Arc::clone(&team), runs.clone());
    // What was started is ended if nobody takes it: it drops with this task's result.
    let starting = tokio::spawn(async move {
        let started = own_team.start_run(new).await?;
        let agent = wait.then(|| started.agent.clone());
        Ok::<_, RpcError>((started, EndsWithCaller { agent, team: own_team, runs: own_runs }))
    });
    let failed = |error: tokio::task::JoinError| RpcError::new(500, error.to_string());
    let (started, mut guard) = starting.await.map_err(failed)??;
    let StartedRun { id, agent, zone, further, without } = started;
    let run = if wait {
        // The caller's turn waits for it: whoever waits for the caller is in the circle.
        let _waits = shared.waits.begin(&parent, std::slice::from_ref(&agent), WaitKind::Task)?;
        let ids = [id.clone()];
        let mut found = loop {
            let soon = Instant::now() + LONGEST_WAIT;
            let found = runs.wait(Some(parent.as_str()), &ids, false, soon).await?;
            if !found.timed_out {
                break found.runs;
            }
        };
        guard.agent = None;
        found.pop().map(RunRow::from)
    } else {
        None
    };
    let agent_id = agent.to_string();
    json(&RunStarted { id, agent_id, zone, reaches_out: further, without, run })
}

/// Checks what is asked for.
fn new_run(parent: AgentId, params: StartRun) -> Result<NewRun, RpcError> {
    let StartRun { task, zone, deny, profile, command, model, budget, timeout_s, .. } = params;
    let StartRun { files, schema, session, fork, tier, no_failover, .. } = params;
    if task.trim().is_empty() || task.len() > LONGEST_PROMPT {
        return Err(wrong(format!(
            "`task` must be text of at most {LONGEST_PROMPT} bytes, not empty"
        )));
    }
    let patterns = zone.iter().chain(&deny);
    if patterns.clone().count() > MOST_PATTERNS
        || patterns.map(String::len).sum::<usize>() > LONGEST_ZONE
    {
        return Err(wrong(format!(
            "`zone` and `deny` may have {MOST_PATTERNS} patterns, of {LONGEST_ZONE} bytes in all"
        )));
    }
    let words = command.iter().map(|word| word.len() + 1);
    if words.sum::<usize>() > LONGEST_COMMAND {
        return Err(wrong(format!("`command` may have {LONGEST_COMMAND} bytes")));
    }
    let others = [&profile, &model, &session, &fork].into_iter().any(Option::is_some);
    let others = others || !command.is_empty();
    asks::check_tier(tier.as_deref(), no_failover, others).map_err(wrong)?;
    if timeout_s == Some(0) {
        return Err(wrong("`timeout_s` must be at least 1"));
    }
    let budget = match json(&budget)? {
        Value::Object(budget) => budget,
        _ => Map::new(),
    };
    let asks = asks::checked(task.len(), files, schema, (session, fork)).map_err(wrong)?;
    let timeout = timeout_s.map(Duration::from_secs);
    Ok(NewRun {
        parent,
        task,
        zone,
        denied: deny,
        profile,
        command,
        model,
        thinking: None,
        tier,
        no_failover,
        budget,
        timeout,
        asks,
    })
}

/// Ends a run whose caller leaves before it has ended.
struct EndsWithCaller {
    /// The helper; None: it has ended, or goes on alone.
    agent: Option<AgentId>,
    team: Arc<dyn Team>,
    runs: TeamRuns,
}

impl Drop for EndsWithCaller {
    fn drop(&mut self) {
        let Some(agent) = self.agent.take() else { return };
        self.runs.ends(agent.as_str(), "the command that started it ended before it");
        let team = Arc::clone(&self.team);
        tokio::spawn(async move { stop(&*team, agent).await });
    }
}

async fn stop(team: &dyn Team, agent: AgentId) {
    if let Err(error) = team.order(agent, Order::Stop).await {
        tracing::debug!(error = error.message, "the helper of a run is gone already");
    }
}

async fn wait_for_runs(
    shared: &Shared,
    caller: Option<&Caller>,
    params: WaitForRuns,
) -> Result<Value, RpcError> {
    let runs = runs(shared)?;
    let WaitForRuns { ids, any, timeout_s } = params;
    check(&ids)?;
    let deadline = Instant::now() + tasks::wait_of(timeout_s)?;
    let by = rights::own_only(caller);
    let workers = runs.workers(by.map(AgentId::as_str), &ids)?;
    let workers: Vec<_> = workers.into_iter().map(AgentId::new).collect();
    let _waits = match by.filter(|_| timeout_s != Some(0.0)) {
        Some(by) => Some(shared.waits.begin(by, &workers, WaitKind::Task)?),
        None => None,
    };
    let found = runs.wait(by.map(AgentId::as_str), &ids, any, deadline).await?;
    json(&RunList::from(found))
}

async fn end_runs(
    shared: &Shared,
    caller: Option<&Caller>,
    params: EndRuns,
) -> Result<Value, RpcError> {
    let runs = runs(shared)?;
    let EndRuns { ids } = params;
    check(&ids)?;
    if ids.is_empty() {
        return Err(wrong("`ids` must name the runs to end"));
    }
    let by = rights::own_only(caller);
    let by_whom = by.map_or_else(|| "by a person".to_owned(), |by| format!("by `{by}`"));
    let by = by.map(AgentId::as_str);
    for agent in runs.workers(by, &ids)? {
        runs.ends(&agent, &format!("it was ended {by_whom}"));
        let (team, agent) = (Arc::clone(&shared.team), AgentId::new(agent));
        // It is ended though the caller leaves.
        tokio::spawn(async move { stop(&*team, agent).await });
    }
    let found = runs.wait(by, &ids, false, Instant::now() + END_PATIENCE).await?;
    json(&RunList::from(found))
}

fn runs(shared: &Shared) -> Result<&TeamRuns, RpcError> {
    shared.runs.as_ref().ok_or_else(|| RpcError::from(shared.team.refusal()))
}

fn check(ids: &[String]) -> Result<(), RpcError> {
    if ids.len() > MOST_IDS {
        return Err(wrong(format!("`ids` may have {MOST_IDS} entries")));
    }
    if ids.iter().any(|id| id.trim().is_empty()) {
        return Err(wrong("`ids` must not be empty"));
    }
    Ok(())
}

impl From<FindError> for RpcError {
    fn from(error: FindError) -> Self {
        let code = match error {
            FindError::Unknown(_) => 404,
            FindError::Ambiguous { .. } => 409,
            FindError::Io(_) => 500,
        };
        Self::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::asks::{LONGEST_SCHEMA, LONGEST_SESSION};
    use super::*;
    use crate::runs::MOST_FILES;
    use crate::serve::RunAsks;

    fn asked(params: &Value) -> Result<NewRun, RpcError> {
        new_run(AgentId::new("ui"), StartRun::deserialize(params).unwrap())
    }

    #[test]
    fn what_a_run_may_have_is_bounded() {
        let plain = asked(&json!({ "task": "x" })).unwrap();
        assert!(plain.zone.is_empty() && plain.budget.is_empty() && plain.timeout.is_none());
        let patterns = vec!["a"; MOST_PATTERNS];
        let file = |text: &str| {
            let content = json!({ "text": text });
            json!({ "name": "a", "uri": "file:///a", "mime_type": "text/plain", "content": content })
        };
        let asked_for =
            json!({ "task": "x", "files": [file("a")], "schema": { "type": "object" } });
        let RunAsks { files, schema, .. } = asked(&asked_for).unwrap().asks;
        assert_eq!((files.len(), schema), (1, Some(json!({ "type": "object" }))));
        for wrong in [
            json!({ "task": " \n" }),
            json!({ "task": "x".repeat(LONGEST_PROMPT + 1) }),
            json!({ "task": "x", "zone": patterns, "deny": ["b"] }),
            json!({ "task": "x", "deny": ["a".repeat(LONGEST_ZONE + 1)] }),
            json!({ "task": "x", "command": ["sh", "a".repeat(LONGEST_COMMAND)] }),
            json!({ "task": "x", "timeout_s": 0 }),
            json!({ "task": "x", "files": vec![file("a"); MOST_FILES + 1] }),
            json!({ "task": "x", "files": vec![file(&"a".repeat(3 << 20)); 3] }),
            json!({ "task": "x", "files": [{ "name": "a", "uri": "", "mime_type": "", "content": { "bytes": "~" } }] }),
            json!({ "task": "x", "session": "a", "fork": "a" }),
            json!({ "task": "x", "fork": "" }),
            json!({ "task": "x", "tier": "smart", "model": "m" }),
            json!({ "task": "x", "tier": "smart", "session": "last" }),
            json!({ "task": "x", "no_failover": true }),
            json!({ "task": "x", "session": "a".repeat(LONGEST_SESSION + 1) }),
            json!({ "task": "x", "schema": { "title": "a".repeat(LONGEST_SCHEMA) } }),
        ] {
            assert!(
                asked(&wrong).is_err(),
                "{}",
                &wrong.to_string()[..40.min(wrong.to_string().len())]
            );
        }
        let budget = json!({ "task": "x", "budget": { "tokens": 5, "cost": 0.5 } });
        let budget = Value::from(asked(&budget).unwrap().budget);
        assert_eq!(budget, json!({ "tokens": 5, "cost": 0.5 }));
        let other = json!({ "task": "x", "budget": { "on_exceed": "stop" } });
        assert!(StartRun::deserialize(&other).is_err());
    }

    #[test]
    fn a_run_is_said_to_be_whose_the_caller_is_and_not_what_the_params_say() {
        let forged = json!({ "task": "x", "parent": "api", "depth": 0, "run": "01M8" });
        assert_eq!(asked(&forged).unwrap().parent, AgentId::new("ui"));
    }
}
