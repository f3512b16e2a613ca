//! From the text of a file, and what is laid over it, to the compiled configuration, or to all faults at once.

use std::path::Path;

use toml::de::DeTable;

use super::fault::Fault;
use super::key_owner::named_variables;
use super::overlay::Layer;
use super::read::{ConfigReader, KnownKeys, Table, Text};
use super::{
    Config, ConfigErrors, Orchestrator, SharedConfig, Source, Surroundings, TrustedPlaces, agents,
    budget, conflicts, gateway, hub, journal, notify, plugin_folder, plugins, references, routing,
    source, streams, syntax, team, telemetry, templates, web, zones,
};

impl Config {
    /// Reads, checks and compiles a file without trying its plugins. `eisen_dir` is denied to every
    /// agent.
    pub fn load(file: &Path, eisen_dir: &Path) -> Result<Self, ConfigErrors> {
        let source = Source::read(file)?;
        let surroundings = Surroundings::of_process(eisen_dir, Box::new(|_| Ok(true)));
        Self::compile(file, source.text, &surroundings).0
    }

    /// Compiles the text of a file; also returns the known keys.
    pub(super) fn compile(
        file: &Path,
        text: String,
        surroundings: &Surroundings,
    ) -> (Result<Self, ConfigErrors>, KnownKeys) {
        Self::compile_with(file, text, &Layer::default(), surroundings)
    }

    pub(super) fn compile_with(
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
        let mut keys = named_variables(document.get_ref(), false);
        keys.extend(user.key_owners());
        let reader = ConfigReader::new(&text, &repaired.gaps, &dir, surroundings).with_keys(keys);
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
        let (shared, profiles) = others.user.under(root, &team.workspace, Some(&journal));
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
                let shared = (&shared.tiers[..], &others.trusted);
                agents::agent(agent, plugin, &profiles, &zones, shared, &team)
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
            (team.max_depth, &shared.providers),
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
    /// The user's configuration, over which the file is laid.
    user: SharedConfig,
    added: &'a DeTable<'a>,
    layer: &'a Layer,
    trusted: TrustedPlaces,
}
