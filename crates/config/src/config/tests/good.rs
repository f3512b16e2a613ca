use std::path::{Path, PathBuf};
use std::time::Duration;

use expect_test::{Expect, expect};

use super::Bench;
use crate::config::{Config, Confine, OnBlock, RestartPolicy, profiles};
use crate::zone::GrantedPlace;

fn config(text: &str) -> Config {
    Bench::new().compile(text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn an_empty_file_has_every_default() {
    let config = config("");
    assert_eq!(config.team.name, "My-shop.");
    assert_eq!(config.team.listen.to_string(), "127.0.0.1:17320");
    assert_eq!(config.team.stop_grace, Duration::from_secs(5));
    assert_eq!(config.orchestrator.on_block, OnBlock::Deny);
    assert_eq!(config.orchestrator.hold_timeout, None);
    assert_eq!(config.tracker.context_turns, 3);
    assert!((config.tracker.decay_rate - 0.95).abs() < f64::EPSILON);
    assert_eq!(config.tracker.idle_tick, Duration::from_millis(500));
    assert!(config.agents.is_empty() && config.graph);
}

#[test]
fn a_team_is_read_in_the_file_s_order() {
    let config = config(
        r#"
        orchestrator = { agent = "lead", on_block = "hold" }
        tracker.decay_rate = 1
        tracker.tick_ms = 2_000

        [[agents]]
        id = "ui"
        command = ["./tools/agent", "--home", "${HOME:-/root}", "$$x", "${EMPTY:-y}"]
        cwd = "src/ui"
        env = { DIR = "${EISEN_CONFIG_DIR}", "odd.name" = "" }
        prompt = "Use ${HOME} for $5."
        depends_on = ["lead", "lead"]
        mcp_servers = [
          { name = "docs", command = "${HOME}/docs", _meta = { z = 1, a = [1.5, true] } },
          { type = "http", name = "web", url = "http://x" },
        ]
        restart = { policy = "never", backoff_ms = [1, 1] }

        [[agents]]
        id = "lead"
        command = ["eisen-core", "scripted-agent", "lead.toml"]
        prompt_file = "prompt.md"
        permissions = "deny"
        "#,
    );
    let [ui, lead] = &config.agents[..] else { panic!("{:?}", config.agents) };
    let dir = config.team.workspace.to_str().unwrap();
    assert_eq!(ui.command[1..], ["--home", "/home/user", "$x", "y"]);
    assert_eq!(ui.command[0], format!("{dir}/tools/agent"));
    assert_eq!(ui.cwd, config.team.workspace.join("src/ui"));
    assert_eq!(ui.env["DIR"], dir);
    assert_eq!(ui.env["odd.name"], "");
    assert_eq!(ui.prompt.as_deref(), Some("Use ${HOME} for $5."));
    assert_eq!(ui.depends_on, std::slice::from_ref(&lead.id));
    assert_eq!(ui.restart.policy, RestartPolicy::Never);
    expect![[r#"[{"name":"docs","command":"/home/user/docs","_meta":{"z":1,"a":[1.5,true]},"args":[],"env":[]},{"type":"http","name":"web","url":"http://x","headers":[]}]"#]]
        .assert_eq(&serde_json::to_string(&ui.mcp_servers).unwrap());
    assert_eq!(lead.command[0], "/bin/this");
    assert_eq!(lead.prompt.as_deref(), Some("Do ${IT}."));
    assert_eq!(lead.cwd, config.team.workspace);
    assert_eq!(config.orchestrator.agent.as_ref(), Some(&lead.id));
    // A slow tick takes the idle one along.
    assert_eq!(config.tracker.idle_tick, Duration::from_secs(2));
}

#[test]
fn a_relative_workspace_is_relative_to_the_file() {
    let config = config(
        "team.workspace = \"src/../src\"\nagents = [{ id = \"a\", command = [\"c\"], cwd = \"ui\" }]",
    );
    assert!(config.team.workspace.ends_with("My shop./src"));
    assert_eq!(config.team.name, "src");
    assert!(config.agents[0].cwd.ends_with("My shop./src/ui"));
}

fn zone(keys: &str, expect: &Expect) {
    let team =
        "[zones]\nshared = [\"./types/**\"]\ndenied = [\"**/.env\"]\nreadable = [\"docs/**\"]\n";
    let config = config(&format!("{team}{keys}"));
    let zone = &config.agents[0].zone;
    let base = profiles::base_patterns();
    let (built_in, readable): (Vec<&String>, Vec<&String>) =
        zone.spec.readable.iter().partition(|pattern| base.contains(&pattern.as_str()));
    expect.assert_eq(&format!(
        "own {} allowed {:?} shared {:?} denied {:?} readable {readable:?} + {} {:?} terminals {}\n",
        zone.own,
        zone.spec.allowed,
        zone.spec.shared,
        zone.spec.denied,
        if built_in.is_empty() { "nothing" } else { "base" },
        zone.spec.git,
        zone.spec.terminals,
    ));
    assert_eq!(zone.spec.eisen_dir, PathBuf::from("/home/user/.eisen"));
    assert_eq!(zone.spec.workspace, config.team.workspace);
}

#[test]
fn zones_are_gathered_from_team_and_agent() {
    let agent = "[[agents]]\nid = \"a\"\ncommand = [\"c\"]\n";
    zone(
        agent,
        &expect![[r#"
        own false allowed ["**"] shared ["types/**"] denied ["**/.env"] readable ["docs/**"] + base Read terminals true
    "#]],
    );
    zone(
        &format!("{agent}[agents.zone]\n"),
        &expect![[r#"
        own true allowed ["**"] shared ["types/**"] denied ["**/.env"] readable ["docs/**"] + base Read terminals true
    "#]],
    );
    zone(
        &format!("{agent}[agents.zone]\nallowed = []\n"),
        &expect![[r#"
        own true allowed [] shared ["types/**"] denied ["**/.env"] readable ["docs/**"] + base Read terminals true
    "#]],
    );
    zone(
        &format!(
            "base = false\ngit = \"commit\"\n{agent}[agents.zone]\nallowed = [\"src/**\", \"/tmp/x/**\"]\n\
             denied = [\"src/old/**\"]\nreadable = [\"api/**\"]\nterminals = \"deny\"\n"
        ),
        &expect![[r#"
            own true allowed ["src/**", "/tmp/x/**"] shared ["types/**"] denied ["**/.env", "src/old/**"] readable ["docs/**", "api/**"] + nothing Commit terminals false
        "#]],
    );
}

#[test]
fn profiles_are_laid_upon_each_other() {
    let config = config(
        r#"
        [profiles.opencode]
        base = "opencode"
        args = ["--print-logs"]
        env = { LEVEL = "1", PLACE = "base" }

        [profiles.mine]
        base = "opencode"
        args = ["--pure"]
        env = { LEVEL = "2" }

        [profiles.other]
        command = ["bin/other"]

        [[agents]]
        id = "a"
        profile = "mine"
        env = { PLACE = "agent" }

        [[agents]]
        id = "b"
        profile = "other"

        [[agents]]
        id = "c"
        profile = "gemini"
        "#,
    );
    let [a, b, c] = &config.agents[..] else { panic!("{:?}", config.agents) };
    assert_eq!(a.command, ["opencode", "acp", "--print-logs", "--pure"]);
    assert_eq!(format!("{:?}", a.env), r#"{"LEVEL": "2", "PLACE": "agent"}"#);
    assert!(b.command[0].ends_with("/My shop./bin/other"));
    assert_eq!(c.command, ["gemini", "--experimental-acp"]);
}

#[test]
fn a_model_goes_the_way_that_the_agent_knows() {
    let text = r#"
        [profiles.mine]
        base = "copilot"
        model_args = ["--use={model}", "--only"]
        model_env = "MY_MODEL"
        unattended_args = ["--yes"]
        [[agents]]
        id = "by-session"
        profile = "opencode"
        model = "big"
        [[agents]]
        id = "by-argument"
        command = ["/opt/bin/copilot", "--acp"]
        model = "big"
        [[agents]]
        id = "mine"
        profile = "mine"
        model = "big"
        unattended = true
        [[agents]]
        id = "none"
        profile = "mine"
    "#;
    let config = config(text);
    let reported: Vec<_> = config
        .agents
        .iter()
        .map(|agent| (agent.launch(false), agent.session_model().map(str::to_owned)))
        .map(|((command, env), session)| (command[1..].join(" "), format!("{env:?}"), session))
        .collect();
    let wanted = [
        ("acp", "{}", Some("big")),
        ("--acp --model big", "{}", None),
        ("--acp --use=big --only --yes", r#"{"MY_MODEL": "big"}"#, None),
        ("--acp", "{}", None),
    ];
    let wanted = wanted
        .map(|(args, env, session)| (args.to_owned(), env.to_owned(), session.map(str::to_owned)));
    assert_eq!(reported, wanted);
}

#[test]
fn an_agent_is_kept_from_asking_where_that_was_asked_for() {
    let text = r#"
        [[agents]]
        id = "gemini"
        profile = "gemini"
        unattended = true
        [[agents]]
        id = "own-mode"
        profile = "gemini"
        unattended = true
        mode = "autoEdit"
        [[agents]]
        id = "asks"
        profile = "gemini"
        [[agents]]
        id = "opencode"
        profile = "opencode"
        unattended = true
        env = { OPENCODE_PERMISSION = "{}" }
    "#;
    let config = config(text);
    let modes: Vec<_> = config.agents.iter().map(|agent| agent.session_mode()).collect();
    assert_eq!(modes, [Some("yolo"), Some("autoEdit"), None, None]);
    // What the configuration sets wins.
    assert_eq!(config.agents[3].launch(false).1["OPENCODE_PERMISSION"], "{}");
}

#[test]
fn a_profile_of_ones_own_can_say_all_that_a_built_in_one_can() {
    let text = r#"
        [profiles.mine]
        base = "codex"
        ends_on_eof = true
        rule_files = ["MINE.md"]
        writable = ["/var/mine"]
        confined_args = []
        confined_env = {}
        [[agents]]
        id = "mine"
        profile = "mine"
        env = { HOME = "/home/u", PATH = "" }
        [[agents]]
        id = "codex"
        profile = "codex"
    "#;
    let config = config(text);
    let [mine, codex] = &config.agents[..] else { panic!() };
    assert!(mine.ends_on_eof() && !codex.ends_on_eof());
    assert!(mine.zone.spec.readable.contains(&"MINE.md".to_owned()));
    assert!(!codex.zone.spec.readable.contains(&"MINE.md".to_owned()));
    assert_eq!(names(&mine.reach(Path::new("/tmp/private"), None).writable), ["/var/mine"]);
    assert_eq!(mine.launch(true).0, ["codex-acp"]);
    assert_eq!(mine.profile.compact, "/compact");
}

#[test]
fn the_built_in_profiles_are_sound() {
    let names = "opencode claude-code codex gemini copilot kimi vibe";
    for name in names.split(' ') {
        let config = config(&format!("agents = [{{ id = \"a\", profile = \"{name}\" }}]"));
        assert!(!config.agents[0].command.is_empty(), "{name}");
    }
    // Every base pattern is one that a file could contain.
    let patterns = toml::Value::from(profiles::base_patterns());
    config(&format!("[zones]\nbase = false\nreadable = {patterns}"));
    for wanted in ["**/CLAUDE.md", "**/AGENTS.md", ".mcp.json", ".claude/**", "**/.gitignore"] {
        assert!(profiles::base_patterns().contains(&wanted), "{wanted}");
    }
}

fn names(places: &[GrantedPlace]) -> Vec<&str> {
    places.iter().map(|place| place.name.to_str().unwrap()).collect()
}

/// A variable may name another place; what is not set names none.
#[test]
fn a_profile_knows_what_its_agent_needs_outside() {
    let text = r#"
        [profiles.mine]
        base = "codex"
        [[agents]]
        id = "mine"
        profile = "mine"
        env = { HOME = "/home/u", CODEX_HOME = "/data/codex", PATH = "/usr/bin:/home/u/bin:rel:/" }
        [[agents]]
        id = "named"
        command = ["/opt/oc/bin/opencode", "acp"]
        env = { HOME = "/home/u", XDG_CACHE_HOME = "/cache", PATH = "" }
        [agents.zone]
        confine = "strict"
        sockets = ["/run/postgresql/*"]
        [[agents]]
        id = "other"
        command = ["other"]
        env = { HOME = "/home/u", PATH = "", GEMINI_SANDBOX = "docker" }
    "#;
    let config = config(text);
    let [mine, named, other] = &config.agents[..] else { panic!() };
    let reach = mine.reach(Path::new("/tmp/private"), None);
    assert_eq!(names(&reach.writable), ["/home/u/.codex", "/data/codex"]);
    let reads = |name: &str| names(&reach.readable).contains(&name);
    assert!(reads("/home/u/.gitconfig") && reads("/home/u/bin"));
    assert!(!reads("/") && !reads("rel"));
    assert!(reach.sockets.contains(&"/run/nscd/socket".to_owned()));
    let (command, env) = mine.launch(true);
    assert_eq!(command, ["codex-acp", "-c", "sandbox_mode=\"danger-full-access\""]);
    assert_eq!(env["INITIAL_AGENT_MODE"], "agent-full-access");
    let reach = named.reach(Path::new("/tmp/private"), None);
    assert_eq!(reach.confine, Confine::Strict);
    let (reads, writes) = (names(&reach.readable), names(&reach.writable));
    assert!(writes.contains(&"/cache/opencode"));
    assert!(writes.contains(&"/home/u/.local/state/opencode"));
    assert!(reads.contains(&"/opt/oc/bin"));
    // Where its libraries are, as of a Python's own installation.
    assert!(reads.contains(&"/opt/oc/lib"));
    assert!(!reads.contains(&"/home/u/lib"));
    assert!(reach.sockets.contains(&"/run/postgresql/*".to_owned()));
    assert_eq!(named.launch(true).0, named.command);
    assert_eq!(other.reach(Path::new("/tmp/private"), None).writable, []);
    assert_eq!(other.launch(true).1["GEMINI_SANDBOX"], "docker");
}

#[test]
fn the_real_surroundings_are_used() {
    let bench = Bench::new();
    let file = bench.path().join("eisen.toml");
    std::fs::write(&file, "agents = [{ id = \"a\", command = [\"eisen-core\", \"${PATH}\"] }]")
        .unwrap();
    let config = Config::load(&file, &bench.path().join("dir")).unwrap();
    let exe = std::env::current_exe().unwrap();
    assert_eq!(config.agents[0].command, [exe.to_str().unwrap(), &std::env::var("PATH").unwrap()]);
    assert_eq!(config.agents[0].zone.spec.eisen_dir, bench.path().join("dir"));
}
