//! `learn`: zones from what agents used, of a team that nothing stopped.

use serde_json::Value;

use crate::harness::{Ended, Stage, Team, agent};

/// A team that was observed: the agent changed two files of a folder, read one of another, and looked for a word
/// in all.
fn observed(stage: &Stage) {
    let ui = agent("ui")
        .with("[agents.zone] # by hand\nallowed = [\"src/ui/**\"]\ndenied = [\"src/ui/app.ts\"]");
    stage.configure("", vec![ui, agent("api").with("autostart = false")]);
    for further in ["docs/a.md", "docs/b.md", "src/ui/b.ts", "src/ui/c.ts"] {
        stage.file(&format!("shop/{further}"), "text\n");
    }
    let team =
        Team::of(stage.start(&["up", "-c", "eisen.toml", "--observe", "--unattended"]), stage);
    let mut port = team.steer_when_ready(&["ui"]);
    for line in [
        // A shell finds the name; the zone does not see it in the text.
        "echo x >src/api/cart.rs; echo y >src/api/order.rs; eval \"cat $(echo .env) types/cart.ts\"",
        "cat src/ui/app.ts",
        "grep -r nowhere .; echo x >src/api/cart.rs; cat /etc/hostname",
    ] {
        let said = port.prompt("ui", &format!("run {line}; true"));
        // A person would be asked for it, and here nobody is.
        assert!(!said.contains("SECRET"), "{said}");
    }
    drop(port);
    team.stop();
}

fn learn(stage: &Stage, args: &[&str]) -> Ended {
    stage.run(&[&["team", "learn", "-c", "eisen.toml"], args].concat())
}

#[test]
fn the_smallest_zone_of_what_was_used_is_proposed_and_written() {
    let stage = Stage::new();
    observed(&stage);
    let text = learn(&stage, &[]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    for part in [
        "allowed   src/api/**  2 used",
        "readable  types/cart.ts  1 used; ",
        "by cat (1)",
        "1 on the list of secrets",
        "only searched",
        "asks      2 questions in place of 7;",
        "1 refused",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    assert!(text.stderr.contains("api: the journal has nothing"), "{}", text.stderr);
    // The same each time, also by the short name.
    assert_eq!(stage.run(&["learn", "-c", "eisen.toml"]).stdout, text.stdout);
    let json: Value = serde_json::from_str(&learn(&stage, &["--json"]).stdout).unwrap();
    assert_eq!(json["agents"][0]["allowed"][0]["pattern"], "src/api/**");
    assert_eq!(json["agents"][0]["left_out"]["secret"], 1);

    // No folder with a secret is opened, also where git ignores that.
    stage.file("shop/.gitignore", ".env\n");
    stage.file("shop/src/api/.env", "SECRET=2\n");
    let json: Value = serde_json::from_str(&learn(&stage, &["--json"]).stdout).unwrap();
    let patterns = |list: &Value| {
        list.as_array().unwrap().iter().map(|it| it["pattern"].to_string()).collect::<Vec<_>>()
    };
    let allowed = patterns(&json["agents"][0]["allowed"]);
    assert_eq!(allowed, ["\"src/api/cart.rs\"", "\"src/api/order.rs\""]);
    std::fs::remove_file(stage.path("shop/src/api/.env")).unwrap();

    let before = stage.read("eisen.toml");
    let wrote = learn(&stage, &["ui", "--write"]);
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    assert!(
        wrote.stdout.contains("-allowed = [\"src/ui/**\"]\n+allowed = [\"src/api/**\"]"),
        "{}",
        wrote.stdout
    );
    let lists =
        "allowed = [\"src/api/**\"]\ndenied = [\"src/ui/app.ts\"]\nreadable = [\"types/cart.ts\"]";
    let after = before.replace("allowed = [\"src/ui/**\"]\ndenied = [\"src/ui/app.ts\"]", lists);
    assert_eq!(stage.read("eisen.toml"), after);

    // It binds, and what was used goes on working.
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "run echo z >src/api/cart.rs; cat types/cart.ts"), "types\n");
    assert_eq!(stage.read("shop/src/api/cart.rs"), "z\n");
    assert!(port.prompt("ui", "read src/ui/c.ts").starts_with("refused"));
}

#[test]
fn nothing_is_proposed_of_nothing_nor_written_to_no_file() {
    let stage = Stage::new();
    observed(&stage);
    let none = learn(&stage, &["api"]);
    assert_eq!(none.code, 1);
    assert!(none.stderr.contains("up --observe"), "{}", none.stderr);
    let unknown = learn(&stage, &["uix"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("no agent `uix`; there are: ui, api"), "{}", unknown.stderr);
    std::fs::create_dir_all(stage.path("elsewhere")).unwrap();
    let folder = stage.path("elsewhere").display().to_string();
    let args = ["team", "learn", "--team", "shop", "--write", "--cwd", &folder];
    let nowhere = stage.run(&args);
    assert_eq!(nowhere.code, 2, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("`eisen-core init` makes one"), "{}", nowhere.stderr);
}

#[test]
fn a_zone_stays_where_nothing_that_counts_was_used() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert!(port.prompt("ui", "read types/cart.ts").starts_with("refused"));
    drop(port);
    team.stop();
    let before = stage.read("eisen.toml");
    let wrote = learn(&stage, &["ui", "--write"]);
    assert_eq!(wrote.code, 1, "{}", wrote.stdout);
    assert!(wrote.stderr.contains("ui: nothing that it used counts"), "{}", wrote.stderr);
    assert_eq!(stage.read("eisen.toml"), before);
}
