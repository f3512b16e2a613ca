//! Owns an agent and a team: their lines, and the methods about them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, TeamId};
use super::tools::tool;
use super::{Cost, Empty, NameOf, Object, Spent};
use crate::model::{AgentState, SessionMode, named};

method! {
    ListAgents = "list_agents": Empty => Vec<AgentDetails<'a>>;
    port: Anyone, web: Read, token: Read(Answer), waits: false, lasts: false, hub: All(Joined)
}

method! {
    TeamStatus = "team_status": Empty => TeamReport<'a>;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: All(Joined)
}

method! {
    AgentStatus = "agent_status": AgentStatusParams => AgentReport<'a>;
    port: Anyone, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    Attach = "attach": AttachParams => Empty;
    port: Person, web: Never, token: never, waits: false, lasts: false, hub: Port
}

method! {
    StartAgent = "start_agent": AgentParams => Agent<'a>;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    StopAgent = "stop_agent": AgentParams => Agent<'a>;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    RestartAgent = "restart_agent": AgentParams => Agent<'a>;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    AddAgent = "add_agent": AddAgentParams => Agent<'a>;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    RemoveAgent = "remove_agent": AgentParams => Agent<'a>;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

/// An agent, in its line and in answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Agent<'a> {
    pub agent_id: AgentName<'a>,
    pub state: NameOf<AgentState>,
    /// Null without a process.
    pub pid: Option<u32>,
    /// Why it is in this state, where that needs saying.
    pub reason: Option<Cow<'a, str>>,
    /// Since the team came up.
    #[serde(default)]
    pub restarts: u32,
    #[serde(default)]
    pub timestamp_ms: u64,
    /// The candidate that it runs; left out for an agent without a tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate<'a>>,
}

/// The candidate of a tier that an agent runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Candidate<'a> {
    pub tier: Cow<'a, str>,
    pub profile: Cow<'a, str>,
    /// Null: the agent's own.
    pub model: Option<Cow<'a, str>>,
}

/// [`AgentDetails`] on the wire.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentDetails<'a> {
    #[serde(flatten)]
    pub status: Agent<'a>,
    /// The name that it announced; null before that.
    pub name: Option<Cow<'a, str>>,
    pub version: Option<Cow<'a, str>>,
    /// The person or group that answers for it, by the configuration; null: nobody is named.
    pub owner: Option<Cow<'a, str>>,
    #[serde(default)]
    #[schemars(with = "Tier")]
    pub zone: NameOf<Tier>,
    /// Features that the running kernel lacks to enforce the zone. At the tier `kernel` it enforces
    /// all but these; at `protocol` they are the reason. Empty where the kernel tier was not asked
    /// for.
    #[serde(default)]
    pub zone_missing: Cow<'a, [String]>,
    /// The agent is observed and not stopped: only paths that are denied or asked for are closed in the
    /// workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zone_observed: bool,
    /// The patterns of its own zone; empty without one.
    #[serde(default)]
    pub allowed: Cow<'a, [String]>,
    /// The prompt by which it compresses its context: as it announced it, else as its profile has it.
    /// Left out where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Cow<'a, str>>,
    /// The provider of the team that its model calls go to, by the endpoint. Left out where they go elsewhere, and
    /// while it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Cow<'a, str>>,
    /// Its calls there that run; left out where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_in_flight: Option<CallsInFlight>,
    /// In the order in which they appeared.
    #[serde(default)]
    pub sessions: Vec<SessionDetails<'a>>,
    /// The memory of its process, its terminals and their children; null where it is unknown.
    pub memory_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
    /// The highest in this run, or in the last one; null where there was none.
    pub peak_memory_bytes: Option<u64>,
    pub peak_processes: Option<u64>,
    #[serde(default)]
    pub tools: ToolsUsed,
}

/// Calls of models that run: what an agent can still spend though its budget is used up.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct CallsInFlight {
    pub calls: u64,
    /// Tokens that those can take at most whose requests bound what is written: that, and the bytes of their bodies.
    pub most_tokens: u64,
    /// Calls whose requests do not.
    #[serde(default)]
    pub unbounded: u64,
}

impl<'a> From<Agent<'a>> for AgentDetails<'a> {
    /// An agent of which no more is known.
    fn from(status: Agent<'a>) -> Self {
        Self {
            status,
            name: None,
            version: None,
            owner: None,
            zone: NameOf::default(),
            zone_missing: Cow::default(),
            zone_observed: false,
            provider: None,
            calls_in_flight: None,
            allowed: Cow::default(),
            compress: None,
            sessions: Vec::new(),
            memory_bytes: None,
            cpu_ms: None,
            peak_memory_bytes: None,
            peak_processes: None,
            tools: ToolsUsed::default(),
        }
    }
}

named! {
    /// How an agent's zone is enforced.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    pub enum Tier {
        /// The agent has no zone.
        None = "none",
        /// Its requests to its client are judged, and nothing else.
        Protocol = "protocol",
        /// The kernel confines all its processes, terminals too; `zone_missing` names what it lacks.
        Kernel = "kernel",
    }
}

/// The use of the team's tools by the agent's own client.
#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolsUsed {
    /// The client is connected.
    #[serde(default)]
    pub connected: bool,
    /// The client has asked which tools there are.
    #[serde(default)]
    pub listed: bool,
    /// Whether its model has seen them: it called one, or its program shows it all that are listed. False where
    /// the program shows them only to a model that searches for them. Left out where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<bool>,
    /// Calls of tools.
    #[serde(default)]
    pub calls: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionDetails<'a> {
    pub session_id: Cow<'a, str>,
    #[serde(default)]
    pub session_mode: NameOf<SessionMode>,
    /// The running agent has it, so it can be prompted.
    #[serde(default)]
    pub open: bool,
    /// The session gets prompts that name no session.
    #[serde(default)]
    pub default: bool,
    /// A turn runs.
    #[serde(default)]
    pub running: bool,
    /// Number of waiting prompts.
    #[serde(default)]
    pub queued: usize,
    /// The value of each option that the agent offers here, by its id.
    #[serde(default, skip_serializing_if = "nothing_chosen")]
    pub chosen: Cow<'a, BTreeMap<String, String>>,
    pub used: Option<u64>,
    pub size: Option<u64>,
    pub cost: Option<Cost<'a>>,
    /// As in the session's `usage` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent<'a>>,
}

fn nothing_chosen(chosen: &BTreeMap<String, String>) -> bool {
    chosen.is_empty()
}

/// The agents of a team at one moment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TeamStatus")]
pub struct TeamReport<'a> {
    #[serde(default)]
    pub agents: Vec<AgentRow<'a>>,
    /// Accesses of all agents that wait for a decision.
    #[serde(default)]
    pub pending: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentRow<'a> {
    pub agent_id: AgentName<'a>,
    pub state: NameOf<AgentState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// A turn runs.
    #[serde(default)]
    pub running: bool,
    /// Accesses of it that wait for a decision.
    #[serde(default)]
    pub pending: usize,
    /// Tokens in the context of its fullest session, and the context's size, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatusParams {
    #[serde(alias = "agent")]
    #[schemars(extend("x-tool" = tool("Id of the agent, as team_status lists it").named("agent")))]
    pub agent_id: AgentName<'static>,
}

/// One agent, as in `list_agents`, with what waits for a decision.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentReport<'a> {
    #[serde(flatten)]
    pub agent: AgentDetails<'a>,
    /// Ids of its accesses that wait for a decision.
    pub pending: Vec<TeamId<'a>>,
}

/// Params that name one agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentParams {
    pub agent_id: AgentName<'static>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttachParams {
    /// The team as one agent if left out.
    pub agent_id: Option<AgentName<'static>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AddAgentParams {
    /// An `[[agents]]` table of the configuration, as JSON.
    pub config: Object,
}
