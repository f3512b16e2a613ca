//! The table of all metrics: their names, types, units, labels and help.

use prometheus_client::registry::Unit;

use self::MetricKind::{Counter, Gauge, Info};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    /// With its bounds.
    Histogram(&'static [f64]),
    /// Always 1; its labels say something.
    Info,
}

#[derive(Debug)]
pub(super) struct Spec {
    /// Without what unit and type add to it.
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) unit: Option<Unit>,
    pub(super) labels: &'static [&'static str],
    /// One sentence.
    pub(super) help: &'static str,
}

/// From the time of a stopped call to that of a wait for a person.
const DOORBELL: MetricKind =
    MetricKind::Histogram(&[1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 1e-2, 0.1, 1.0]);
const FIRST_CHUNK: MetricKind =
    MetricKind::Histogram(&[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0]);
const TOOL: MetricKind =
    MetricKind::Histogram(&[0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0]);
const TURN: MetricKind = MetricKind::Histogram(&[
    1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 10800.0,
]);
const WAIT: MetricKind =
    MetricKind::Histogram(&[1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0]);

/// Declares [`Metric`] with the row of each.
macro_rules! catalog {
    ($($metric:ident: $name:literal, $kind:expr, $unit:expr, [$($label:literal),*], $help:literal;)*) => {
        /// A metric, in the order of the page.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(super) enum Metric {
            $($metric,)*
        }

        impl Metric {
            pub(super) const ALL: &[Self] = &[$(Self::$metric),*];

            pub(super) fn spec(self) -> &'static Spec {
                match self {
                    $(Self::$metric => {
                        const { &Spec {
                            name: $name,
                            kind: $kind,
                            unit: $unit,
                            labels: &[$($label),*],
                            help: $help,
                        } }
                    })*
                }
            }
        }
    };
}

const BYTES: Option<Unit> = Some(Unit::Bytes);
const SECONDS: Option<Unit> = Some(Unit::Seconds);

catalog! {
    Agents: "eisen_agents", Gauge, None, ["state"],
        "Agents of the team in a state.";
    DecisionsPending: "eisen_decisions_pending", Gauge, None, [],
        "Blocked accesses that wait for a decision, and writes in conflict that wait.";
    DecisionWait: "eisen_decision_wait", WAIT, SECONDS, [],
        "How long accesses waited until they were decided, or nobody waited for them any more.";
    Decisions: "eisen_decisions", Counter, None, ["outcome"],
        "Accesses that somebody decided, and those whose wait ended without a decision.";
    AccessesBlocked: "eisen_accesses_blocked", Counter, None, ["via", "status"],
        "Accesses outside of zones that came into a status; one that waited counts again once decided.";
    TurnDuration: "eisen_turn_duration", TURN, SECONDS, ["stop_reason"],
        "How long turns took, waits for decisions included.";
    TimeToFirstChunk: "eisen_time_to_first_chunk", FIRST_CHUNK, SECONDS, [],
        "How long turns took until their first message, thought or tool call.";
    ToolDuration: "eisen_tool_duration", TOOL, SECONDS, ["kind"],
        "How long tool calls took until they completed or failed, waits for decisions included.";
    ToolErrors: "eisen_tool_errors", Counter, None, ["kind"],
        "Tool calls that failed.";
    Tokens: "eisen_tokens", Counter, None, ["type", "model"],
        "Tokens of model calls as far as agents report or let estimate them.";
    Cost: "eisen_cost", Counter, None, ["model", "currency"],
        "Money that model calls cost, as agents say or by the prices of their models.";
    DoorbellCallDuration: "eisen_doorbell_call_duration", DOORBELL, SECONDS, [],
        "How long stopped system calls kept their doorbell; its count is the number of calls.";
    RelayLines: "eisen_relay_lines", Counter, None, ["direction"],
        "Lines between agents and their clients.";
    RelayBytes: "eisen_relay", Counter, BYTES, ["direction"],
        "Bytes of the lines between agents and their clients.";
    PromptsQueued: "eisen_prompts_queued", Gauge, None, ["agent"],
        "Prompts that wait behind a running turn.";
    AgentMemory: "eisen_agent_memory", Gauge, BYTES, ["agent"],
        "Memory of an agent with its terminals and all that they started.";
    AgentCpu: "eisen_agent_cpu", Counter, SECONDS, ["agent"],
        "CPU time of an agent with its terminals and all that they started, as of scrapes.";
    InputsDropped: "eisen_agent_inputs_dropped", Counter, None, [],
        "Activities of agents that neither map nor journal have, since they came too fast.";
    BusEvents: "eisen_bus_events", Counter, None, [],
        "Events that were published for the clients of the port, the journal and others.";
    PortClients: "eisen_port_clients", Gauge, None, [],
        "Clients that are connected to the port.";
    PortLags: "eisen_port_lags", Counter, None, [],
        "How often a client of the port read too slowly and missed events.";
    PortMissed: "eisen_port_missed_events", Counter, None, [],
        "Events that clients of the port missed.";
    MetricsMissed: "eisen_metrics_missed_events", Counter, None, [],
        "Events that are not counted here, since the counting fell behind.";
    JournalLag: "eisen_journal_lag_events", Gauge, None, [],
        "Published events that the journal has not read yet.";
    JournalQueue: "eisen_journal_queue_batches", Gauge, None, [],
        "Batches that wait to be written into the journal.";
    JournalQueuedBytes: "eisen_journal_queue", Gauge, BYTES, [],
        "Contents of files that wait to be written into the journal.";
    JournalGaps: "eisen_journal_gaps", Counter, None, [],
        "Gaps in the journal of this run.";
    JournalLost: "eisen_journal_lost_events", Counter, None, [],
        "Events that are in no journal.";
    Build: "eisen_build", Info, None, ["version"],
        "The version of the running program.";
}

impl Spec {
    /// Its name in the text format, without what each sample of a histogram adds.
    #[cfg(test)]
    pub(super) fn full_name(&self) -> String {
        let unit = self.unit.as_ref().map(|unit| format!("_{}", unit.as_str()));
        let kind = match self.kind {
            Counter => "_total",
            Info => "_info",
            Gauge | MetricKind::Histogram(_) => "",
        };
        format!("{}{}{kind}", self.name, unit.unwrap_or_default())
    }
}
