//! Details of agents for `list_agents`: merges status, sessions, zone tier and resource usage.

use eisen_base::task;
use serde::Serialize;

use crate::agent::AgentHandle;
use crate::client_host::{AgentInfo, SessionLoad};
use crate::model::{AgentId, AgentStatus, OpenCalls, Spent};
use crate::process::{self, Family};
use crate::serve::{AgentDetails, SessionDetails};
use crate::tracker::{SessionReport, TrackerHandle};
use crate::wire::{Tier, spent};

/// Details of the agents of `up`.
pub(crate) async fn of_supervised(
    agents: Vec<AgentHandle>,
    tracker: &TrackerHandle,
) -> Vec<AgentDetails> {
    let statuses: Vec<_> = agents.iter().map(AgentHandle::status).collect();
    let families: Vec<_> = agents.iter().map(AgentHandle::family).collect();
    let ((), reports) = tokio::join!(look_at(families.iter().flatten()), tracker.sessions());
    let reports = reports.unwrap_or_default();
    let mut all = Vec::new();
    for ((agent, status), family) in agents.iter().zip(statuses).zip(families) {
        let (info, loads) = agent.announced().await.unzip();
        let sessions = sessions(&status.agent, &reports, &loads.unwrap_or_default());
        let enforcement = agent.held();
        let tier = if enforcement.by_kernel { Tier::Kernel } else { Tier::Protocol };
        let mut details = details(status, info, tier, sessions, family.as_ref());
        details.zone_missing = enforcement.lacks.to_vec();
        details.is_observed = enforcement.observes;
        details.compress = agent.compress_prompt();
        details.shows_tools = agent.shows_tools();
        details.provider = agent.provider();
        details.open_calls = agent.open_calls();
        all.push(details);
    }
    all
}

#[derive(Serialize)]
struct SpentInSession<'a> {
    /// As on the wire.
    #[serde(flatten)]
    spent: serde_json::Value,
    session_id: &'a str,
}

/// An agent's usage by session, for the journal.
pub(crate) fn usage_of(agent: &AgentDetails) -> Vec<serde_json::Value> {
    let used = agent.sessions.iter().filter(|session| !session.spent.is_empty());
    let usage = used.map(|session| {
        serde_json::json!(SpentInSession {
            spent: spent(&session.spent),
            session_id: session.session.as_str(),
        })
    });
    usage.collect()
}

/// Details of the agent of `observe`.
pub(crate) async fn of_observed(
    status: AgentStatus,
    zone: Tier,
    tracker: &TrackerHandle,
    family: &Family,
) -> Vec<AgentDetails> {
    let ((), reports) = tokio::join!(look_at([family]), tracker.sessions());
    let reports = reports.unwrap_or_default();
    let mut sessions = sessions(&status.agent, &reports, &[]);
    for session in &mut sessions {
        session.is_open = status.pid.is_some();
    }
    vec![details(status, None, zone, sessions, Some(family))]
}

fn details(
    status: AgentStatus,
    info: Option<AgentInfo>,
    zone: Tier,
    sessions: Vec<SessionDetails>,
    family: Option<&Family>,
) -> AgentDetails {
    let (name, version) = info.map(|info| (info.name, info.version)).unzip();
    // Usage that can't be measured is None, not zero.
    let usage = family.filter(|_| status.pid.is_some()).map(Family::usage);
    let usage = usage.filter(|usage| usage.processes > 0);
    let peak = family.map(Family::peak).filter(|peak| peak.processes > 0);
    AgentDetails {
        name: name.flatten(),
        version: version.flatten(),
        owner: None,
        zone,
        zone_missing: Vec::new(),
        is_observed: false,
        compress: None,
        shows_tools: None,
        provider: None,
        open_calls: OpenCalls::default(),
        sessions,
        memory_bytes: usage.map(|usage| usage.memory_bytes),
        cpu_ms: usage.map(|usage| usage.cpu_ms),
        peak_memory_bytes: peak.map(|peak| peak.memory_bytes),
        peak_processes: peak.map(|peak| peak.processes),
        status,
    }
}

/// The agent's sessions in order of appearance. Sessions without activity, known only to the client
/// host, come last.
fn sessions(
    agent: &AgentId,
    reports: &[SessionReport],
    loads: &[SessionLoad],
) -> Vec<SessionDetails> {
    // Accesses outside of turns have an empty session id.
    let is_own = |report: &&SessionReport| {
        report.key.agent == *agent && !report.key.session.as_str().is_empty()
    };
    let own: Vec<_> = reports.iter().filter(is_own).collect();
    let known = own.iter().map(|report| {
        let load = loads.iter().find(|load| load.session == report.key.session);
        SessionDetails {
            session: report.key.session.clone(),
            mode: report.mode,
            is_open: load.is_some(),
            is_default: load.is_some_and(|load| load.is_default),
            is_running: report.is_running,
            queued: load.map_or(0, |load| load.queued),
            chosen: load.map(|load| load.chosen.clone()).unwrap_or_default(),
            usage: report.usage.clone(),
            spent: report.spent.clone(),
        }
    });
    let is_new = |load: &&SessionLoad| own.iter().all(|own| own.key.session != load.session);
    let new = loads.iter().filter(is_new).map(|load| SessionDetails {
        session: load.session.clone(),
        mode: crate::model::SessionMode::SingleAgent,
        is_open: true,
        is_default: load.is_default,
        is_running: load.is_running,
        queued: load.queued,
        chosen: load.chosen.clone(),
        usage: None,
        spent: Spent::default(),
    });
    known.chain(new).collect()
}

async fn look_at(families: impl IntoIterator<Item = &Family>) {
    let families: Vec<_> = families.into_iter().cloned().collect();
    // Reading every process of the machine may take some milliseconds.
    let _ = task::spawn_blocking(move || process::look_at(&families)).await;
}
