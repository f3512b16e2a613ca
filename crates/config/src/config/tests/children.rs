//! Tests that agents get nothing by asking for it that they do not have themselves.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::surroundings;
use crate::config::{Agent, Config, Layered, Overlay, Source, Surroundings, profiles::built_in};
use crate::model::Action;
use crate::zone::Grant;

/// `@` is the folder of a case: a home, and a workspace in it.
const FILES: &[&str] = &[
    "home/.ssh/id",
    "home/.codex/auth.json",
    "home/.codex/sub/x",
    "home/.claude/x",
    "home/.claude.json",
    "home/.config/gh/hosts.yml",
    "home/mine/bin/tool",
    "home/mine/lib/x",
    "home/notes.txt",
    "home/x",
    "ws/ui/a.rs",
    "ws/ui/d/tool",
    "ws/ui/.env",
    "ws/core/b.rs",
    "ws/core/RULES.md",
    "ws/AGENTS.md",
];
const LINKS: &[(&str, &str)] =
    &[("ws/ui/lnk", "@/home/.ssh"), ("home/lnk", "@/home/.ssh"), ("home/up", "@/home")];
/// Paths that are judged, too.
const FURTHER: &[&str] =
    &["home", "home/new", "home/.codex/new", "home/.codex", "home/.bashrc", "ws/new"];
const SOCKETS: &[&str] = &["@/home/run/a.sock", "/run/nscd/socket", "@/ws/ui/s"];

const PROFILES: &str = r#"
    [profiles.mine]
    command = ["@/home/mine/bin/tool"]
    env = { KEY = "secret", PATH = "@/home/mine/bin:/usr/bin" }
    confined_env = { OTHER = "secret" }
    readable = ["~/mine", "~/lnk", "~/up", "/"]
    writable = ["~/.codex/sub", "~/notes.txt"]
    rule_files = ["core/RULES.md", "@/home/notes.txt"]
    [profiles.other]
    base = "claude-code"
    env = { KEY = "secret", OWN = "1" }
"#;

const ALLOWED: &[&str] =
    &["ui/**", "ui/d/**", "**", "core/*.rs", "@/home/mine/**", "ui/.env", "@/home/**"];
const DENIED: &[&str] = &["**/.env", "@/home/.ssh", "ui/d/**", "@/home/.codex/**"];
const COMMANDS: &[&str] = &[
    "agent",
    "@/ws/ui/d/tool",
    "@/ws/ui/lnk/codex",
    "@/home/.ssh/codex-acp",
    "@/home/.codex/bin/copilot",
    "@/home/mine/bin/tool",
    "@/home/x",
    "@/ws/core/claude-code-acp",
    "codex-acp",
    "/bin/sh",
];

/// Keys of a table of an agent, as JSON with `@`.
fn zone(of_child: bool) -> impl Strategy<Value = Value> {
    let lists = |from: &'static [&'static str], size| subsequence(from, size);
    let readable = select(vec![None, Some("core/**"), Some("@/home/mine/lib/**")]);
    let confine = select(vec!["strict", "strict", "workspace"]);
    (lists(ALLOWED, 1..3), lists(DENIED, 0..3), readable, confine, any::<bool>()).prop_map(
        move |(allowed, denied, readable, confine, has_sockets)| {
            let mut zone = json!({ "allowed": allowed, "denied": denied });
            if let Some(readable) = readable {
                zone["readable"] = json!([readable]);
            }
            if !of_child {
                zone["confine"] = confine.into();
                if has_sockets {
                    zone["sockets"] = json!(["@/home/run/*"]);
                }
            }
            zone
        },
    )
}

fn agent(of_child: bool) -> impl Strategy<Value = Value> {
    let profile = select(vec!["mine", "other", "claude-code", "codex", "copilot", "cline"]);
    let program = prop_oneof![
        profile.prop_map(|name| json!({ "profile": name })),
        select(COMMANDS).prop_map(|command| json!({ "command": [command] })),
        Just(if of_child { json!({}) } else { json!({ "command": ["agent"] }) }),
    ];
    let limits = select(vec![
        json!({}),
        json!({ "memory_mb": 100 }),
        json!({ "processes": 9, "memory_mb": 50 }),
    ]);
    let env = select(vec![
        json!({}),
        json!({ "OWN": "1" }),
        json!({ "HOME": "@/home/mine", "KEY": "mine" }),
    ]);
    (program, prop::option::of(zone(of_child)), limits, env).prop_map(
        |(mut agent, zone, limits, env)| {
            if let Some(zone) = zone {
                agent["zone"] = zone;
            }
            agent["limits"] = limits;
            agent["env"] = env;
            agent
        },
    )
}

struct Scene {
    folder: TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in FILES {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        let scene = Self { folder, root };
        for (name, to) in LINKS {
            symlink(scene.expand(to), scene.root.join(name)).unwrap();
        }
        scene
    }

    fn expand(&self, text: &str) -> String {
        text.replace('@', self.root.to_str().unwrap())
    }

    /// The configuration of a team with an agent, its helper, and a helper of that; None if it is refused.
    fn team(&self, parent: &Value, children: &[Value]) -> Option<Config> {
        let table = |id: &str, parent: Option<&str>, table: &Value| {
            let text = self.expand(&table.to_string());
            let mut table: serde_json::Map<_, _> = serde_json::from_str(&text).unwrap();
            table.insert("id".to_owned(), id.into());
            table.extend(parent.map(|parent| ("parent".to_owned(), parent.into())));
            table
        };
        let agents = toml::Value::try_from(vec![table("a0", None, parent)]).unwrap();
        let text = format!("agents = {agents}\nteam.workspace = \"ws\"\n{}", self.expand(PROFILES));
        let mut overlay = Overlay::default();
        for (at, child) in children.iter().enumerate() {
            overlay.add_helper(table(&format!("a{}", at + 1), Some(&format!("a{at}")), child));
        }
        let home = self.root.join("home").to_str().unwrap().to_owned();
        let surroundings = Surroundings {
            variable: Box::new(move |name| (name == "HOME").then(|| home.clone())),
            eisen_dir: self.root.join("eisen"),
            ..surroundings()
        };
        let source = Source { file: self.folder.path().join("eisen.toml"), text };
        Some(Layered::compile_in(source, overlay, &surroundings).ok()?.config)
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let files = FILES.iter().chain(LINKS.iter().map(|(name, _)| name)).chain(FURTHER);
        files.map(|file| self.root.join(file))
    }

    /// Returns the accesses that a child has and its parent has not.
    fn further(&self, child: &Agent, parent: &Agent) -> Vec<String> {
        let (own, above) = (child.bounds().unwrap(), parent.bounds().unwrap());
        let (mut further, rules) = (Vec::new(), own.rules());
        for path in self.paths() {
            for (action, grant) in [(Action::Read, Grant::Read), (Action::Write, Grant::Write)] {
                let mut granting = rules.iter().filter(|rule| path.starts_with(&rule.path));
                let by_wall = granting.any(|rule| rule.grant >= grant);
                if (by_wall || own.judge(&path, action).is_ok())
                    && above.judge(&path, action).is_err()
                {
                    further.push(format!("{action} {}", path.display()));
                }
            }
        }
        for socket in SOCKETS.iter().map(|socket| PathBuf::from(self.expand(socket))) {
            if own.may_connect(&socket) && !above.may_connect(&socket) {
                further.push(format!("connect {}", socket.display()));
            }
        }
        let sealed = |path: &&PathBuf| !child.confined.sealed.contains(path);
        let unsealed = parent.confined.sealed.iter().filter(sealed);
        further.extend(unsealed.map(|path| format!("write setting {}", path.display())));
        let least = |own: Option<u64>, above: Option<u64>| {
            above.is_none_or(|above| own.is_some_and(|own| own <= above))
        };
        if !least(child.memory_mb, parent.memory_mb) || !least(child.processes, parent.processes) {
            further.push("limits".to_owned());
        }
        let (own, above) = (child.launch(true).1, parent.launch(true).1);
        let of_everybody = |name: &str, value: &str| {
            let mut tables = built_in().values().flat_map(|it| [&it.env, &it.confined_env]);
            tables.any(|table| table.get(name).is_some_and(|known| known == value))
        };
        let is_wider = |(name, value): &(&String, &String)| {
            above.get(*name) != Some(*value) && !of_everybody(name, value)
        };
        // What a variable of the parent hides stays hidden.
        let shown = parent.env.keys().filter(|name| !own.contains_key(*name));
        let wider = own.iter().filter(is_wider).map(|(name, _)| name).chain(shown);
        further.extend(wider.map(|name| format!("${name}")));
        further
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_child_has_nothing_that_its_parent_does_not_have(
        parent in agent(false),
        child in agent(true),
        deeper in agent(true),
    ) {
        let scene = Scene::new();
        // What is refused grants nothing.
        if let Some(config) = scene.team(&parent, &[child, deeper]) {
            for pair in config.agents.windows(2) {
                prop_assert_eq!(scene.further(&pair[1], &pair[0]), Vec::<String>::new());
            }
        }
    }
}

/// The agent may replace that link.
#[test]
fn a_program_by_a_link_in_the_workspace_opens_nothing_to_a_child() {
    let scene = Scene::new();
    let parent = json!({ "command": ["@/ws/ui/lnk/codex"], "zone": { "allowed": ["ui/.env"], "confine": "strict" } });
    let config = scene.team(&parent, &[json!({ "profile": "mine" })]).unwrap();
    assert_eq!(scene.further(&config.agents[1], &config.agents[0]), [""; 0]);
}

#[test]
fn a_child_is_told_what_it_goes_without() {
    let scene = Scene::new();
    let parent =
        json!({ "command": ["agent"], "zone": { "allowed": ["ui/**"], "confine": "strict" } });
    let of = |child: Value| {
        let config = scene.team(&parent, &[child]).unwrap();
        (config.agents[1].without.clone(), config.agents[1].launch(true).1)
    };
    let (without, env) = of(json!({ "profile": "codex" }));
    assert_eq!(without, [scene.expand("@/home/.codex")]);
    // What is known of its program stays.
    assert_eq!(env["INITIAL_AGENT_MODE"], "agent-full-access");
    let (without, env) = of(json!({ "profile": "mine" }));
    let places =
        ["@/home/.codex/sub", "@/home/notes.txt", "@/home/mine", "@/home/lnk", "@/home/up"];
    let named: Vec<_> = places.iter().map(|place| scene.expand(place)).collect();
    assert_eq!(without[..5], named);
    assert_eq!(without[5..], ["$KEY", "$PATH", "$OTHER"]);
    assert!(env.is_empty(), "{env:?}");
    assert_eq!(of(json!({})).0, [""; 0]);
}

/// A person knows what a table says that she wrote.
#[test]
fn what_a_person_wrote_of_a_helper_stays() {
    let scene = Scene::new();
    let home = scene.root.join("home").to_str().unwrap().to_owned();
    let surroundings = Surroundings {
        variable: Box::new(move |name| (name == "HOME").then(|| home.clone())),
        ..surroundings()
    };
    let text = r#"
        [[agents]]
        id = "ui"
        command = ["agent"]
        zone = { allowed = ["ui/**"], confine = "strict" }
        limits = { memory_mb = 100, processes = 9 }
        [[agents]]
        id = "helper"
        parent = "ui"
        profile = "codex"
        env = { KEY = "1", PATH = "/opt/tools/bin" }
        limits = { memory_mb = 200 }
        [[agents]]
        id = "alone"
        profile = "codex"
        env = { KEY = "1", PATH = "/opt/tools/bin" }
        limits = { memory_mb = 200 }
        zone = { allowed = ["core/**"], confine = "strict" }
    "#;
    let file = scene.root.join("ws/eisen.toml");
    let config = Config::compile(&file, text.to_owned(), &surroundings).0.unwrap();
    let helper = &config.agents[1];
    let writes: Vec<&Path> = helper.confined.writable.iter().map(|it| it.name.as_path()).collect();
    assert_eq!(writes, [scene.root.join("home/.codex")]);
    assert_eq!((&*helper.env["KEY"], helper.without.len()), ("1", 0));
    // It is as one without a parent.
    let alone = &config.agents[2];
    assert_eq!((&helper.confined, &helper.env), (&alone.confined, &alone.env));
    let limits = |agent: &Agent| (agent.memory_mb, agent.processes);
    assert_eq!(limits(helper), limits(alone));
}
