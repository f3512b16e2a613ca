use std::collections::HashMap;

use crate::agent::AgentHandle;
use crate::client_host::{AgentInfo, SessionLoad};
use crate::model::{AgentId, AgentStatus};
use crate::process::{self, Resources};
use crate::serve::{AgentDetails, SessionDetails, Tier};
use crate::tracker::{SessionReport, TrackerHandle};

/// Puts together what each room knows of the agents of `up`.
pub(super) async fn of_supervised(
    agents: Vec<AgentHandle>,
    tracker: &TrackerHandle,
) -> Vec<AgentDetails> {
    let statuses: Vec<_> = agents.iter().map(AgentHandle::status).collect();
    let (resources, reports) = tokio::join!(resources(&statuses), tracker.sessions());
    let reports = reports.unwrap_or_default();
    let mut all = Vec::new();
    for (agent, status) in agents.iter().zip(statuses) {
        let (info, loads) = agent.announced().await.unzip();
        let sessions = sessions(&status.agent, &reports, &loads.unwrap_or_default());
        all.push(details(status, info, Tier::Protocol, sessions, &resources));
    }
    all
}

/// The one agent of `observe`, whose client is its editor.
pub(super) async fn of_observed(
    status: AgentStatus,
    zone: Tier,
    tracker: &TrackerHandle,
) -> Vec<AgentDetails> {
    let statuses = [status.clone()];
    let (resources, reports) = tokio::join!(resources(&statuses), tracker.sessions());
    let reports = reports.unwrap_or_default();
    let mut sessions = sessions(&status.agent, &reports, &[]);
    for session in &mut sessions {
        session.is_open = status.pid.is_some();
    }
    vec![details(status, None, zone, sessions, &resources)]
}

fn details(
    status: AgentStatus,
    info: Option<AgentInfo>,
    zone: Tier,
    sessions: Vec<SessionDetails>,
    resources: &HashMap<u32, Resources>,
) -> AgentDetails {
    let (name, version) = info.map(|info| (info.name, info.version)).unzip();
    let resources = status.pid.and_then(|pid| resources.get(&pid));
    AgentDetails {
        name: name.flatten(),
        version: version.flatten(),
        zone,
        sessions,
        memory_bytes: resources.map(|resources| resources.memory_bytes),
        cpu_ms: resources.map(|resources| resources.cpu_ms),
        status,
    }
}

/// The agent's sessions in the order in which they appeared; those that only the client host
/// knows, of which nothing was told yet, come last.
fn sessions(
    agent: &AgentId,
    reports: &[SessionReport],
    loads: &[SessionLoad],
) -> Vec<SessionDetails> {
    let own: Vec<_> = reports.iter().filter(|report| report.key.agent == *agent).collect();
    let known = own.iter().map(|report| {
        let load = loads.iter().find(|load| load.session == report.key.session);
        SessionDetails {
            session: report.key.session.clone(),
            mode: report.mode,
            is_open: load.is_some(),
            is_default: load.is_some_and(|load| load.is_default),
            is_running: report.is_running,
            queued: load.map_or(0, |load| load.queued),
            usage: report.usage.clone(),
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
        usage: None,
    });
    known.chain(new).collect()
}

async fn resources(statuses: &[AgentStatus]) -> HashMap<u32, Resources> {
    let pids: Vec<_> = statuses.iter().filter_map(|status| status.pid).collect();
    // A look at every process of the machine may take some milliseconds.
    tokio::task::spawn_blocking(move || process::resources(&pids)).await.unwrap_or_default()
}
