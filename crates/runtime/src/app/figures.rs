//! Connects the room `metrics` with the owners of what it shows.

use std::sync::{Arc, OnceLock};

use crate::agent::Surroundings;
use crate::app::rooms::Wiring;
use crate::budget::Budgets;
use crate::bus::Bus;
use crate::conflicts::Conflicts;
use crate::journal::Journal;
use crate::metrics::{AgentFigures, Figures, JournalFigures, Look, Metrics, PortFigures};
use crate::model::{BlockedAccess, BlockedStatus};
use crate::routing::RoutingHandle;
use crate::serve::{AgentDetails, Server, Traffic};
use crate::supervisor::Roster;
use crate::tracker::TrackerHandle;
use crate::turn::details;
use eisen_base::task;

/// The sources of a scrape's figures.
#[derive(Clone)]
struct Owners {
    roster: Roster,
    tracker: TrackerHandle,
    routing: RoutingHandle,
    conflicts: Option<Conflicts>,
    budgets: Budgets,
    bus: Bus,
    journal: Option<Journal>,
    port: Arc<Traffic>,
}

/// Starts the metrics of a team when they are first wanted; they are the same ever after.
pub(super) type MetricsStarter = Box<dyn Fn() -> Metrics + Send + Sync>;

/// The starter of a team's metrics. Holders of the starter or of the metrics let go when the team is
/// cancelled, since both keep the bus open.
pub(super) fn starter(
    wiring: &Wiring,
    team: &Surroundings,
    roster: Roster,
    budgets: &Budgets,
    server: &Server,
) -> MetricsStarter {
    let tally = Arc::clone(&team.tally);
    let owners = Owners {
        roster,
        tracker: team.tracker.clone(),
        routing: team.routing.clone(),
        conflicts: team.conflicts.clone(),
        budgets: budgets.clone(),
        bus: team.bus.clone(),
        journal: wiring.journal.clone(),
        port: server.traffic(),
    };
    let (cancel, started) = (wiring.cancel.clone(), OnceLock::new());
    let start = move || {
        let (look_at, events) = (owners.clone(), owners.bus.subscribe());
        let look: Look = Box::new(move || Box::pin(figures(look_at.clone())));
        let (metrics, following) = Metrics::start(events, Arc::clone(&tally), look, cancel.clone());
        // It ends with the team.
        task::spawn(following);
        metrics
    };
    Box::new(move || started.get_or_init(&start).clone())
}

async fn figures(owners: Owners) -> Figures {
    let Owners { roster, tracker, routing, conflicts, budgets, bus, journal, port } = owners;
    let (agents, pending) = tokio::join!(
        details::of_supervised(roster.handles(), &tracker),
        routing.list(Some(BlockedStatus::Pending))
    );
    let journal = journal.map(|journal| {
        let progress = journal.progress();
        JournalFigures {
            lag: bus.position().saturating_sub(progress.read),
            queued: progress.queued,
            queued_bytes: progress.queued_bytes,
            gaps: progress.gaps,
            lost_events: progress.lost,
        }
    });
    let accesses = pending.iter().filter(|access| BlockedAccess::needs_decision(access)).count();
    let writes = conflicts.map_or(0, |conflicts| conflicts.pending());
    Figures {
        agents: agents.into_iter().map(|agent| figures_of(&agent, &budgets)).collect(),
        pending: accesses + writes,
        events: bus.position(),
        port: PortFigures {
            clients: port.clients(),
            lags: port.lags(),
            missed_events: port.missed(),
        },
        journal,
    }
}

fn figures_of(details: &AgentDetails, budgets: &Budgets) -> AgentFigures {
    let AgentDetails { status, sessions, memory_bytes, cpu_ms, .. } = details;
    AgentFigures {
        is_helper: budgets.is_helper(&status.agent),
        agent: status.agent.clone(),
        state: status.state,
        pid: status.pid,
        queued: sessions.iter().map(|session| session.queued).sum(),
        memory_bytes: *memory_bytes,
        cpu_ms: *cpu_ms,
    }
}
