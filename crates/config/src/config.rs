//! `eisen.toml`: raw TOML → every error at once → a compiled [`Config`]; profiles; the lint behind `check`.
//!
//! ```text
//! source ─▶ syntax (what parses) ─▶ read (typed, with places) ─▶ team · profiles · zones · agents ─▶ references ─▶ Config
//!                        └──────────────── faults ─────────────────────────────────────────────────▶ ConfigErrors
//! ```

mod agents;
pub mod batch;
mod budget;
mod candidate;
pub mod check;
mod child;
mod command;
mod confined;
mod conflicts;
mod defaults;
mod diff;
mod errors;
mod expand;
mod fault;
mod file;
mod gateway;
mod git_hooks;
mod helpers;
mod hub;
pub mod installed;
mod journal;
mod launch;
mod may_add;
mod mcp;
mod near;
mod notify;
mod orchestrator;
mod overlay;
mod patterns;
mod places;
mod plugin;
mod plugins;
mod prices;
mod profiles;
mod read;
mod references;
mod remote;
mod routing;
mod runs;
mod secrets;
mod shared;
mod source;
mod starter;
mod streams;
mod surroundings;
mod syntax;
mod team;
mod telemetry;
mod templates;
#[cfg(test)]
mod tests;
mod tiers;
mod trusted;
mod value;
mod web;
mod why;
mod zone_keys;
mod zones;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeTable;

pub use self::agents::{Permissions, Restart, RestartPolicy};
pub use self::budget::Budget;
pub use self::confined::Confined;
pub use self::conflicts::Conflicts;
pub use self::diff::{ChangeKind, ConfigChange, Plan, Takes};
pub use self::errors::{ConfigError, ConfigErrors};
use self::fault::Fault;
pub use self::file::Source;
pub use self::gateway::Gateway;
pub use self::hub::HubMember;
pub use self::journal::{Journal, JournalContent, MAX_MB, OnFull, journal_path};
pub use self::may_add::MayAdd;
pub use self::notify::{Notify, NotifyBy, NotifyOn};
pub use self::orchestrator::{OnBlock, Orchestrator};
use self::overlay::Layer;
pub use self::overlay::{AgentTable, LayerError, Layered, Overlay, OverlayError};
pub use self::patterns::zone_pattern;
pub use self::plugin::{Isolation, Plugin};
pub use self::plugins::{plugin_folder, plugin_name, plugin_named};
pub use self::prices::prices_date;
pub use self::profiles::{ClientFs, Profile, UsageCount, base_patterns};
use self::read::{ConfigReader, KnownKeys, Table, Text};
pub use self::remote::{RemoteAgent, RemoteProtocol};
pub use self::runs::{OnFailover, RunBounds};
pub use self::secrets::{OUTSIDE as SECRETS_OUTSIDE, Secrets};
pub use self::shared::SharedConfig;
pub use self::starter::{PartError, Proposed, Starter};
pub use self::streams::{MOST_STREAMS, stream_of};
pub use self::surroundings::{Surroundings, TryOut};
pub use self::team::{LISTEN, Port, Tracker};
pub use self::telemetry::Telemetry;
pub use self::templates::Template;
pub use self::tiers::{AgentTier, Pick, TierCandidate};
pub use self::trusted::{TRUSTED_PLACES, Trust, TrustError, TrustedPlaces};
pub use self::value::{is_name, to_name};
pub use self::web::{TlsFiles, WEB_LISTEN, Web};
pub use self::why::{Mend, Why};
pub use self::zone_keys::with_zone;
pub use self::zones::{AgentZone, Enforce, Zones};
use crate::model::{AgentId, KeptFiles, OnLoop, OnViolation, RuleSpec, StreamSpec};
pub use crate::zone::{Confine, compile_glob};

/// What is kept below `$EISEN_DIR`.
pub const KEPT: [KeptFiles; 2] = [overlay::KEPT, trusted::KEPT];

/// The content of one `eisen.toml`, with all defaults filled in and all paths absolute.
#[derive(Clone, Debug)]
pub struct Config {
    pub team: Team,
    pub orchestrator: Orchestrator,
    pub tracker: Tracker,
    pub port: Port,
    pub zones: Zones,
    /// In the order of the file.
    pub agents: Vec<Agent>,
    pub plugins: Vec<Plugin>,
    pub graph: bool,
    pub journal: Journal,
    /// None: conflicts are not looked for.
    pub conflicts: Option<Conflicts>,
    pub notify: Vec<Notify>,
    /// None: no page is served.
    pub web: Option<Web>,
    /// In the order of the file.
    pub routing: Vec<RuleSpec>,
    /// The team's.
    pub budget: Budget,
    /// With what `$EISEN_DIR/config.toml` says.
    pub shared: SharedConfig,
    /// None: no spans are made.
    pub telemetry: Option<Telemetry>,
    pub streams: Vec<StreamSpec>,
    pub gateway: Gateway,
}

#[derive(Clone, Debug)]
pub struct Team {
    pub name: String,
    /// Canonical.
    pub workspace: PathBuf,
    /// Work on a temporary copy of the workspace, removed when the team stops.
    pub scratch: bool,
    pub listen: SocketAddr,
    /// Another port may be taken where that of `listen` is not free: the file says nothing.
    pub any_port: bool,
    pub stop_grace: Duration,
    /// 0: no limit.
    pub max_running: usize,
    /// 0: no limit.
    pub max_memory_mb: u64,
    pub on_loop: OnLoop,
    /// Agents get the tools of the team.
    pub tools: bool,
    /// Levels of helpers below an agent that has no parent.
    pub max_depth: u32,
    /// Agents at once, those of the file too, past which no agent starts or adds one; 0: no limit.
    pub max_agents: usize,
    /// Agents that agents may start and add while the team lives.
    pub max_spawns: usize,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Agent {
    pub id: AgentId,
    /// It is a helper of this agent: its zone is within the parent's, and what it uses counts for
    /// both.
    pub parent: Option<AgentId>,
    /// 0 for an agent without a parent, one more for each level of helpers.
    pub depth: u32,
    /// An agent asked for it: it has nothing that its parent does not have.
    pub is_asked_for: bool,
    /// What it would have by itself, and does not get, since its parent does not have it.
    pub without: Vec<String>,
    /// Who answers for it.
    pub owner: Option<String>,
    /// Program and arguments; never empty. [`Agent::launch`] returns the command that is started.
    pub command: Vec<String>,
    /// Where it runs; None: here.
    pub remote: Option<RemoteAgent>,
    /// The profile that the agent names, or else the profile of its program.
    pub profile: Profile,
    /// Translates its protocol; None for an agent that speaks ACP.
    pub plugin: Option<Plugin>,
    /// Absolute, inside the workspace.
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    pub autostart: bool,
    /// Open an ACP session when the agent is ready.
    pub session: bool,
    pub prompt: Option<String>,
    /// The file of the prompt.
    pub prompt_file: Option<PathBuf>,
    /// The tier that its profile, model and thinking are taken from.
    pub tier: Option<String>,
    /// What it takes of its tier.
    pub candidate: Option<TierCandidate>,
    pub model: Option<String>,
    pub thinking: Option<String>,
    pub mode: Option<String>,
    pub auth_method: Option<String>,
    /// ACP's `McpServer` objects as JSON.
    pub mcp_servers: Vec<serde_json::Value>,
    /// It gets the tools of the team; None: the team's setting.
    pub tools: Option<bool>,
    pub permissions: Permissions,
    /// The agent is configured not to ask for permission.
    pub unattended: bool,
    pub on_violation: OnViolation,
    /// None: the team's setting.
    pub on_loop: Option<OnLoop>,
    /// None: the team's setting.
    pub on_block: Option<OnBlock>,
    pub depends_on: Vec<AgentId>,
    pub initialize_timeout: Duration,
    /// Zero: never.
    pub stall_after: Duration,
    pub zone: AgentZone,
    pub confined: Confined,
    pub restart: Restart,
    pub memory_mb: Option<u64>,
    pub processes: Option<u64>,
    pub budget: Budget,
}

impl Config {
    /// Reads, checks and compiles a file without trying its plugins. `eisen_dir` is denied to every
    /// agent.
    pub fn load(file: &Path, eisen_dir: &Path) -> Result<Self, ConfigErrors> {
        let source = Source::read(file)?;
        let surroundings = Surroundings::of_process(eisen_dir, Box::new(|_| Ok(true)));
        Self::compile(file, source.text, &surroundings).0
    }

    /// Compiles the text of a file; also returns the known keys.
    fn compile(
        file: &Path,
        text: String,
        surroundings: &Surroundings,
    ) -> (Result<Self, ConfigErrors>, KnownKeys) {
        Self::compile_with(file, text, &Layer::default(), surroundings)
    }

    fn compile_with(
        file: &Path,
        mut text: String,
        layer: &Layer,
        surroundings: &Surroundings,
    ) -> (Result<Self, ConfigErrors>, KnownKeys) {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let dir = match folder.canonicalize() {
            Ok(dir) => dir,
            Err(error) => {
                let message = format!("its folder can't be opened: {}", source::plain(&error));
                let fault =
                    Fault::of_file(message, "check the path and its permissions".to_owned());
                return (Err(ConfigErrors::new(file, text, vec![fault])), KnownKeys::default());
            }
        };
        let mut repaired = syntax::repair(&text);
        // The remaining errors are duplicate keys, which are already reported.
        let (mut document, _) = DeTable::parse_recoverable(&repaired.text);
        let trusted = TrustedPlaces::for_config(file, &surroundings.eisen_dir);
        let (user, trusted) = match (SharedConfig::of_user(surroundings), trusted) {
            (Ok(user), Ok(trusted)) => (user, trusted),
            (Err(errors), _) | (_, Err(errors)) => return (Err(errors), KnownKeys::default()),
        };
        // Appended to the file, so that each offset belongs to one of the two.
        let behind = layer.behind(&text);
        let (mut added, _) = DeTable::parse_recoverable(&behind);
        let untaken = templates::take(document.get_mut(), added.get_mut());
        repaired.faults.extend(untaken.faults);
        repaired.gaps.extend(untaken.gaps);
        repaired.gaps.sort_by_key(|gap| gap.start);
        layer.append_to(&mut text);
        let reader = ConfigReader::new(&text, &repaired.gaps, &dir, surroundings);
        let tables = Tables { user, added: added.get_ref(), layer, trusted };
        let config =
            reader.read(document.get_ref(), |root| Self::read(root, &tables, surroundings));
        let (mut faults, known) = reader.finish();
        faults.extend(repaired.faults);
        if faults.is_empty() {
            let file = file.file_name().map(|name| dir.join(name));
            return (Ok(config.sealed(file.as_ref(), &surroundings.variable)), known);
        }
        (Err(ConfigErrors::new(file, text, faults)), known)
    }

    fn read<'a>(root: &Table<'a>, others: &Tables<'a>, surroundings: &Surroundings) -> Self {
        let team = root.section("team", "team", team::team);
        let orchestrator = root.section("orchestrator", "orchestrator", |orchestrator| {
            team::orchestrator(orchestrator, &team.workspace)
        });
        let tracker = root.section("tracker", "tracker", team::tracker);
        let port = root.section("port", "port", team::port);
        let graph = root.section("graph", "graph", |graph| graph.flag("enabled", true));
        let journal = root.section("journal", "journal", journal::journal);
        let conflicts = conflicts::conflicts(root);
        let notify = notify::notify(root);
        let web = web::web(root);
        let routing = routing::routing(root, &team.workspace);
        let budget = root.section("budget", "budget", budget::budget);
        let telemetry = telemetry::telemetry(root);
        let mut streams = streams::streams(root, journal.enabled);
        let gateway = root.section("gateway", "gateway", gateway::gateway);
        templates::templates(root);
        let (shared, profiles) = others.user.under(root, &team.workspace);
        hub::orchestrator(root, orchestrator.agent.as_ref(), shared.hub.as_deref());
        let hub = shared.hub.as_ref().filter(|_| journal.enabled);
        streams.extend(hub.and_then(|hub| hub.stream()));
        let zones = root.section("zones", "zones", |zones| {
            zones::zones(
                zones,
                &team.workspace,
                &surroundings.eisen_dir,
                (surroundings.variable)("HOME"),
            )
        });
        let plugins = plugins::plugins(root);
        let folder = plugin_folder(&surroundings.eisen_dir);
        let read = |table: &Table<'a>| {
            table.sections("agents", |agent| {
                let plugin = plugins::protocol(agent, &plugins, &folder);
                agents::agent(agent, plugin, &profiles, &zones, (&shared.tiers, &others.trusted))
            })
        };
        let mut agents = read(root);
        let stays_away = |id: &Text| others.layer.removed().contains(&id.value);
        agents.retain(|agent| !agent.id.as_ref().is_some_and(stays_away));
        agents.extend(root.reader.read(others.added, read));
        let may_add = orchestrator.may_add.as_ref();
        let may_add = may_add.map(|may_add| may_add.resolved(&profiles, root));
        let (agents, orchestrator, mut routing) = references::link(
            root.reader,
            agents,
            &orchestrator,
            routing,
            others.layer,
            team.max_depth,
        );
        let orchestrator = Orchestrator { may_add, ..orchestrator };
        let gateway = gateway.resolved(root.reader, &agents, others.layer.removed());
        let zones = zones.written;
        routing.extend(zones.secrets.rule());
        Self {
            team,
            orchestrator,
            tracker,
            port,
            zones,
            agents,
            plugins,
            graph,
            journal,
            conflicts,
            notify,
            web,
            routing,
            budget,
            shared,
            telemetry,
            streams,
            gateway,
        }
    }
}

/// The tables that are laid over a file.
struct Tables<'a> {
    /// What the file is laid over.
    user: SharedConfig,
    added: &'a DeTable<'a>,
    layer: &'a Layer,
    trusted: TrustedPlaces,
}
