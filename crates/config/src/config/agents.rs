//! `[[agents]]`: one agent's table, with its restart policy and limits.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

use super::agent_provider::{AgentProvider, NoProvider, WrittenProvider};
use super::budget::budget;
use super::command::{command, environment};
use super::errors::{code, quoted};
use super::fault::Fault;
use super::launch::find_program;
use super::profiles::{Profile, Profiles, of_command};
use super::read::{Table, Text};
use super::remote::{OPENCODE, RemoteAgent, by_protocol, remote};
use super::source::{plain, read_bytes};
use super::tiers::{AgentTier, TierCandidate, of_agent};
use super::value::{bad_name, is_name};
use super::zones::{TeamZones, agent_zone};
use super::{Agent, Confined, Plugin, Team, TrustedPlaces, mcp, worktree};
use crate::model::{AgentId, named};

/// The orchestrator's own id on the wire, so no agent can have it.
const RESERVED: &str = "orchestrator";

const DAY: u64 = 24 * 60 * 60;
const MAX_PROMPT: u64 = 1024 * 1024;

/// An agent elsewhere is tried again for ever, at last once a minute.
const RECONNECT: Restart = Restart {
    policy: RestartPolicy::Always,
    max_restarts: u32::MAX,
    within: Duration::from_secs(600),
    backoff: [Duration::from_millis(200), Duration::from_secs(60)],
};

#[derive(Clone, Copy, Debug)]
pub struct Restart {
    pub policy: RestartPolicy,
    /// Restarts within `within`; one more puts the agent into the error state.
    pub max_restarts: u32,
    pub within: Duration,
    /// First and longest wait.
    pub backoff: [Duration; 2],
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum RestartPolicy {
        OnFailure = "on-failure",
        Never = "never",
        Always = "always",
    }
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Permissions {
        Allow = "allow",
        Deny = "deny",
        Orchestrator = "orchestrator",
    }
}

/// Keys that a helper has from its parent where its own table leaves them out.
const INHERITED: [&str; 9] = [
    "permissions",
    "unattended",
    "on_violation",
    "initialize_timeout_s",
    "stall_after_s",
    "mcp_servers",
    "limits",
    "zone",
    "restart",
];

/// An agent whose references to others are not resolved.
pub(super) struct RawAgent {
    /// None if no id could be read; the fault is recorded.
    pub(super) id: Option<Text>,
    pub(super) depends_on: Vec<Text>,
    pub(super) parent: Option<Text>,
    /// The place of `permissions`.
    pub(super) permissions: Option<Range<usize>>,
    /// The place of `zone`.
    pub(super) zone: Option<Range<usize>>,
    pub(super) provider: WrittenProvider,
    /// Which of [`INHERITED`] the table leaves to the parent.
    pub(super) unset: Vec<&'static str>,
    /// Complete except for `depends_on`, `parent` and what is inherited; values that could not be read have their defaults.
    pub(super) agent: Agent,
}

pub(super) fn agent(
    table: &Table<'_>,
    plugin: Option<Plugin>,
    profiles: &Profiles,
    zones: &TeamZones,
    (tiers, trusted): (&[AgentTier], &TrustedPlaces),
    team: &Team,
) -> RawAgent {
    let id = id(table);
    // It is merged in already.
    table.verbatim("template");
    let candidate = of_agent(table, id.as_ref().map(|id| &*id.value), tiers);
    let remote = remote(table);
    let (command, env, profile) = launch(table, profiles, candidate.as_ref(), remote.as_ref());
    let word = |key| table.word(key).map(|text| text.value);
    let (model, thinking) = match &candidate {
        Some(candidate) => (candidate.model.clone(), candidate.thinking.clone()),
        None => (word("model"), word("thinking")),
    };
    let lookup = &table.reader.surroundings.variable;
    let confined = Confined::new(&profile, &command, &env, lookup, trusted);
    let unattended = unattended(table, &profile);
    let session = table.flag("session", true);
    let tools = table.flag("tools", true);
    let on_block = table.choice("on_block");
    let on_loop = table.choice("on_loop");
    let (memory_mb, processes) = table.section("limits", "agents.limits", |limits| {
        (limit(limits, "memory_mb"), limit(limits, "processes"))
    });
    RawAgent {
        parent: table.text("parent"),
        zone: table.place_of("zone"),
        unset: INHERITED.into_iter().filter(|key| table.place_of(key).is_none()).collect(),
        depends_on: table.texts("depends_on").unwrap_or_default(),
        permissions: table.place_of("permissions"),
        provider: written_provider(table, candidate.as_ref()),
        agent: Agent {
            id: AgentId::new(id.as_ref().map_or("", |id| &id.value)),
            parent: None,
            depth: 0,
            is_asked_for: false,
            without: Vec::new(),
            owner: owner(table),
            command,
            remote: remote.clone(),
            plugin,
            cwd: cwd(table, &zones.workspace),
            env,
            autostart: table.flag("autostart", true),
            session,
            prompt: prompt(table, session),
            prompt_file: table.word("prompt_file").map(|file| table.reader.path(&file.value)),
            tier: word("tier"),
            candidate,
            // Known when all agents are.
            provider: AgentProvider::Without(NoProvider::NoneFits),
            model,
            thinking,
            mode: table.word("mode").map(|text| text.value),
            auth_method: table.word("auth_method").map(|text| text.value),
            mcp_servers: mcp::servers(table),
            tools: table.place_of("tools").map(|_| tools),
            permissions: table.choice("permissions"),
            unattended,
            on_violation: table.choice("on_violation"),
            on_loop: table.place_of("on_loop").map(|_| on_loop),
            on_block: table.place_of("on_block").map(|_| on_block),
            depends_on: Vec::new(),
            initialize_timeout: table.seconds("initialize_timeout_s", 1..=DAY, 60),
            stall_after: table.seconds("stall_after_s", 0..=DAY, 300),
            zone: match &remote {
                Some(_) => by_protocol(table, agent_zone(table, zones, &profile)),
                None => agent_zone(table, zones, &profile),
            },
            confined,
            profile,
            restart: match table.section("restart", "agents.restart", restart) {
                _ if remote.is_some() && table.place_of("restart").is_none() => RECONNECT,
                written => written,
            },
            memory_mb,
            processes,
            budget: table.section("budget", "agents.budget", budget),
            worktree: worktree::of_agent(table, team, id.as_ref().map_or("", |id| &id.value))
                .map(Box::new),
        },
        id,
    }
}

fn written_provider(table: &Table<'_>, candidate: Option<&TierCandidate>) -> WrittenProvider {
    let own = table.word("provider");
    let of_tier = candidate.and_then(|it| it.provider.clone());
    let of_tier = of_tier.map(|value| Text { value, span: table.span.clone() });
    WrittenProvider {
        name: of_tier.or(own),
        table: table.span.clone(),
        env: table.place_of("env"),
        as_parent: false,
    }
}

fn id(table: &Table<'_>) -> Option<Text> {
    if table.place_of("id").is_none() {
        table.lacks("this agent has no `id`", "give it one, such as `id = \"ui\"`");
    }
    let id = table.text("id")?;
    // A wrong id is returned too: other agents may refer to it.
    if id.value == RESERVED {
        let message = format!("no agent can have the id {}", quoted(RESERVED));
        table.fault(
            Fault::new(id.span.clone(), message).help(
                "the name is reserved; give it another, and name it in `[orchestrator] agent`",
            ),
        );
    } else if !is_name(&id.value) {
        table.fault(bad_name("`id`", &id));
    }
    Some(id)
}

/// Reads `owner`: who answers for the agent.
fn owner(table: &Table<'_>) -> Option<String> {
    let owner = table.word("owner")?;
    if !is_name(&owner.value) {
        table.fault(bad_name("`owner`", &owner));
    }
    Some(owner.value)
}

/// Reads command, environment and profile, from `command` or `profile`. Without `profile`, the
/// program determines the profile.
fn launch(
    table: &Table<'_>,
    profiles: &Profiles,
    candidate: Option<&TierCandidate>,
    remote: Option<&RemoteAgent>,
) -> (Vec<String>, BTreeMap<String, String>, Profile) {
    let own = command(table);
    let profile = table.word("profile");
    let mut env = environment(table, "env");
    if let Some(remote) = remote {
        let program = table.reader.surroundings.program.to_string_lossy().into_owned();
        return (remote.command(program), env, Profile::default());
    }
    let set = (table.place_of("command"), table.place_of("profile"));
    match set {
        (Some(_), Some(place)) => {
            table.fault(Fault::new(place, "`profile` and `command` can't both be given").help(
                "keep one; a profile of your own in `[profiles.NAME]` can change a built-in one",
            ));
        }
        // A helper runs what its parent runs.
        (None, None) if table.place_of("parent").is_some() => {}
        (None, None) if table.place_of("tier").is_some() => {}
        // It is wrong, which is said already.
        (None, None) if RemoteAgent::is_at(table) => {}
        (None, None) if table.verbatim("protocol").is_some_and(|it| it.value == OPENCODE) => {}
        (None, None) => table.lacks(
            "this agent has neither `command` nor `profile`",
            "write `command = [\"PROGRAM\", \"ARG\"]`, or `profile = \"NAME\"`; one that runs elsewhere has a `url`",
        ),
        _ => {}
    }
    let of_tier = candidate.map(|it| Text { value: it.profile.clone(), span: table.span.clone() });
    let profile = of_tier.or(profile).and_then(|name| profiles.get(table, &name));
    if let (None, Some(profile)) = (&own, profile) {
        for (name, value) in &profile.env {
            env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let lookup = &table.reader.surroundings.variable;
        let path = env.get("PATH").cloned().or_else(|| lookup("PATH")).unwrap_or_default();
        let command = profile.command_of(|program| find_program(program, &path).is_some());
        return (command, env, profile);
    }
    let command = own.unwrap_or_default();
    let known = of_command(&command).cloned();
    (command, env, known.unwrap_or_default())
}

/// Reads `unattended`, which requires a profile that supports it, and excludes `permissions` other
/// than `allow`.
fn unattended(table: &Table<'_>, profile: &Profile) -> bool {
    let unattended = table.flag("unattended", false);
    let Some(span) = table.place_of("unattended").filter(|_| unattended) else { return false };
    if !profile.can_be_unattended() {
        table.fault(
            Fault::new(span.clone(), "no setting is known that runs this agent unattended").help(
                "set its own `mode`, arguments or variables, or define a profile `[profiles.NAME]` with \
                 `unattended_mode`, `unattended_args` or `unattended_env`",
            ),
        );
    }
    let asked = table.verbatim("permissions").filter(|text| text.value != "allow");
    if let Some(asked) = asked {
        let message = format!(
            "an unattended agent never asks, so it can't have `permissions = {}`",
            quoted(&asked.value)
        );
        table.fault(Fault::new(span, message).help("leave out one of the two"));
    }
    unattended
}

/// Reads `cwd`, relative to the workspace and inside it.
fn cwd(table: &Table<'_>, workspace: &Path) -> PathBuf {
    let Some(text) = table.word("cwd") else { return workspace.to_owned() };
    let why = match workspace.join(&text.value).canonicalize() {
        Ok(path) if !path.starts_with(workspace) => "lies outside the workspace".to_owned(),
        Ok(path) if path.is_dir() => return path,
        Ok(_) => "is not a folder".to_owned(),
        Err(error) => format!("can't be opened: {}", plain(&error)),
    };
    let message = format!("the working directory {} {why}", quoted(&text.value));
    table.fault(
        Fault::new(text.span, message).help("name an existing folder, relative to the workspace"),
    );
    workspace.to_owned()
}

/// Reads the first prompt, from `prompt` or `prompt_file`. Its `$` are not expanded.
fn prompt(table: &Table<'_>, session: bool) -> Option<String> {
    let prompt = table.verbatim("prompt");
    let file = table.word("prompt_file");
    let place = table.place_of("prompt_file").or_else(|| table.place_of("prompt"))?;
    if table.place_of("prompt").is_some() && table.place_of("prompt_file").is_some() {
        table.fault(
            Fault::new(place, "`prompt` and `prompt_file` can't both be given").help("keep one"),
        );
        return None;
    }
    if !session {
        table.fault(
            Fault::new(place, "a prompt needs a session")
                .help("leave out `session = false`, or the prompt"),
        );
        return None;
    }
    let Some(file) = file else {
        return prompt.map(|prompt| prompt.value);
    };
    let path = table.reader.path(&file.value);
    let content = read_bytes(&path, MAX_PROMPT).and_then(|bytes| {
        String::from_utf8(bytes)
            .map_err(|_| ("is not UTF-8".to_owned(), "save the file as UTF-8".to_owned()))
    });
    content
        .map_err(|(why, help)| {
            let message = format!("{} {why}", code(&file.value));
            table.fault(Fault::new(file.span, message).help(help));
        })
        .ok()
}

fn restart(table: &Table<'_>) -> Restart {
    Restart {
        policy: table.choice("policy"),
        max_restarts: table.count("max_restarts", 0..=1_000_000, 5),
        within: table.seconds("within_s", 1..=DAY, 60),
        backoff: backoff(table).unwrap_or([200, 10_000]).map(Duration::from_millis),
    }
}

fn backoff(table: &Table<'_>) -> Option<[u64; 2]> {
    let help = "write the first and the longest wait, such as `backoff_ms = [200, 10000]`";
    let item = table.get("backoff_ms")?;
    let DeValue::Array(array) = item.get_ref() else {
        table.wrong("`backoff_ms`", item, "an array of two whole numbers", help);
        return None;
    };
    let waits: Option<Vec<u64>> =
        array.iter().map(|item| table.whole("backoff_ms", item, &(1..=DAY * 1000), help)).collect();
    match waits?[..] {
        [first, longest] if first <= longest => Some([first, longest]),
        _ => {
            let message =
                "`backoff_ms` must be two whole numbers, the first not larger than the second";
            table.fault(Fault::new(item.span(), message).help(help));
            None
        }
    }
}

fn limit(limits: &Table<'_>, key: &'static str) -> Option<u64> {
    limits.count_if_set(key, 1..=1_000_000_000)
}
