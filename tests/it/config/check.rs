//! `check`: what a configuration means, and every mistake in it.

use crate::harness::{Stage, agent};

#[test]
fn a_good_file_is_explained_and_nothing_is_started() {
    let stage = Stage::new();
    let mark = format!("touch {}; ", stage.path("started").display());
    let ui = agent("ui").behind(&mark).with("depends_on = [\"api\"]").zone("src/ui/**");
    let keys = "[orchestrator]\nagent = \"api\"\n[zones]\nshared = [\"types/**\"]\ndenied = [\"**/*.pem\"]";
    stage.configure(keys, vec![ui, agent("api").zone("src/{api,ui}/**")]);
    let check = stage.run(&["check", "-c", "eisen.toml"]);
    assert_eq!(check.code, 0, "{check:?}");
    for part in [
        "shop",
        "orchestrator",
        "ui",
        "api",
        "src/ui/app.ts",
        "src/api/cart.rs",
        "types/**",
        "kernel",
    ] {
        assert!(check.stdout.contains(part), "{part} is not in {}", check.stdout);
    }
    // An overlap, and a pattern that matches nothing.
    for part in ["ui by `src/ui/**` and api by `src/{api,ui}/**`", "`**/*.pem` matches no file"] {
        assert!(check.stdout.contains(part), "{part} is not in {}", check.stdout);
    }
    assert!(!stage.has("started") && !stage.has("home/run"));
}

#[test]
fn all_mistakes_of_a_file_are_reported_at_once_with_what_to_write() {
    let stage = Stage::new();
    let file = [
        "[team]",
        "workspcae = \"shop\"",
        "stop_grace_s = \"long\"",
        "[orchestrator]",
        "agent = \"leed\"",
        "on_block = \"dney\"",
        "[[agents]]",
        "id = \"lead\"",
        "command = [\"true\"]",
        "[agents.zone]",
        "allowed = [\"src/[a\"]",
    ];
    stage.file("eisen.toml", &file.join("\n"));
    for command in ["check", "up"] {
        let check = stage.run(&[command, "-c", "eisen.toml"]);
        assert_eq!(check.code, 2, "{check:?}");
        for (line, parts) in [
            (2, ["workspcae", "workspace"]),
            (3, ["stop_grace_s", "long"]),
            (5, ["leed", "lead"]),
            (6, ["dney", "deny"]),
            (11, ["src/[a", "allowed"]),
        ] {
            let place = format!("eisen.toml:{line}:");
            let at = check.stderr.find(&place).unwrap_or_else(|| panic!("no {place} in {check:?}"));
            let around = &check.stderr[at.saturating_sub(120)..];
            for part in parts {
                assert!(
                    around.contains(part),
                    "{part} is not reported at {place}: {}",
                    check.stderr
                );
            }
        }
        assert_eq!(check.stderr.matches("error: ").count(), 5, "{}", check.stderr);
        assert!(!check.stderr.contains("panicked") && check.stdout.is_empty(), "{check:?}");
    }
}

#[test]
fn a_wrong_id_hides_no_other_mistake() {
    let stage = Stage::new();
    let agents = "[[agents]]\nid = \"orchestrator\"\ncommand = [\"true\"]\ndepends_on = [\"nobody\"]\n\
                  [[agents]]\nid = \"b d\"\ncommand = [\"true\"]\ndepends_on = [\"orchestrator\"]\n";
    stage.file("eisen.toml", agents);
    let check = stage.run(&["check", "-c", "eisen.toml"]);
    assert_eq!(check.code, 2, "{check:?}");
    for part in ["no agent can have the id", "nobody", "b d"] {
        assert!(check.stderr.contains(part), "{part} is not in {}", check.stderr);
    }
    assert_eq!(check.stderr.matches("error: ").count(), 3, "{}", check.stderr);
}

#[test]
fn a_broken_file_and_a_missing_one_are_wrong_usage() {
    let stage = Stage::new();
    stage.file("eisen.toml", "[team\n");
    let broken = stage.run(&["check", "-c", "eisen.toml"]);
    assert!(broken.code == 2 && broken.stderr.contains("eisen.toml:1"), "{broken:?}");
    let missing = stage.run(&["check", "-c", "none.toml"]);
    assert!(missing.code == 2 && missing.stderr.contains("none.toml"), "{missing:?}");
}

#[test]
fn why_says_who_may_do_what_and_what_would_change_it() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**");
    stage.configure("[zones]\ndenied = [\"**/.env\"]", vec![ui, agent("api").zone("src/api/**")]);
    let why = stage.run(&["why", "ui", "target/debug/x", "-c", "eisen.toml"]);
    assert_eq!(why.code, 0, "{why:?}");
    for part in [
        "ui may not read target/debug/x",
        "ui may not write target/debug/x",
        "owned by nobody",
        "add \"target\" to `build` of [zones]",
    ] {
        assert!(why.stdout.contains(part), "{part} is not in {}", why.stdout);
    }
    let args = ["why", "ui", "src/api/.env", "--action", "read", "--json", "-c", "eisen.toml"];
    let why = stage.run(&args);
    let reported: serde_json::Value = serde_json::from_str(&why.stdout).unwrap();
    assert_eq!(reported["allowed"], false, "{reported}");
    assert_eq!(reported["mend"]["key"], "denied", "{reported}");
    assert_eq!(reported["mend"]["value"], "**/.env", "{reported}");
    let nobody = stage.run(&["why", "u", "x", "-c", "eisen.toml"]);
    assert!(nobody.code == 2 && nobody.stderr.contains("there are: ui, api"), "{nobody:?}");
}

#[test]
fn a_team_on_the_same_files_and_an_eisen_dir_that_is_none_are_named() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/**")]);
    let other = "[team]\nname = \"other\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n";
    stage.file("other.toml", other);
    let check = stage.run(&["check", "-c", "other.toml"]);
    let said = format!("the team `shop` (pid {}) works on the same files", team.program.id());
    assert!(check.code == 0 && check.stdout.contains(&said), "{check:?}");
    let own = stage.run(&["check", "-c", "eisen.toml"]);
    assert!(!own.stdout.contains("works on the same files"), "{own:?}");
    stage.file("file", "");
    for command in [&["check", "-c", "other.toml"][..], &["up", "-c", "other.toml"], &["ps"]] {
        for place in ["file", "file/below"] {
            let mut refused = stage.eisen_core(command);
            let refused = crate::harness::run(refused.env("EISEN_DIR", stage.path(place)));
            assert!(refused.code == 2 && refused.stderr.contains("is not a folder"), "{refused:?}");
        }
    }
}
