//! Which team a command talks to, and what needs none.

use super::assert_ended;
use crate::harness::{EISEN_CORE, Program, Stage, agent};

#[test]
fn without_a_team_there_is_a_sentence() {
    let stage = Stage::new();
    let none = "error: no team is running; start one with `eisen-core up`\n";
    for args in [&["ps"][..], &["prompt", "ui", "x"], &["blocked", "-f"], &["stop", "ui"]] {
        assert_ended(&stage.run(args), 1, "", none);
    }
    // What a killed team left behind is no team.
    let left = r#"{"team":"shop","pid":1,"port":1,"address":"127.0.0.1:1","token":"t"}"#;
    stage.file("home/run/shop.json", left);
    assert_ended(&stage.run(&["ps"]), 1, "", none);
    // It says what the next start is to clean.
    assert!(stage.has("home/run/shop.json"));
    let nobody = stage.run(&["ps", "--port", "1"]);
    assert_ended(&nobody, 1, "", "error: no team listens on port 1\n");
    let nobody = stage.run(&["ps", "--team", "shop"]);
    assert_ended(&nobody, 1, "", "error: no team `shop` is running\n");
}

#[test]
fn of_several_teams_one_is_named() {
    let stage = Stage::new();
    let shop = stage.team("", vec![agent("ui")]);
    shop.steer_when_ready(&["ui"]);
    let other = stage.read("eisen.toml").replace("\"shop\"\nworkspace", "\"bank\"\nworkspace");
    stage.file("bank.toml", &other.replace("id = \"ui\"", "id = \"teller\""));
    let bank = Program::start(&mut stage.eisen_core(&["up", "-c", "bank.toml"]));
    // The folder's configuration names one of them.
    let ps = stage.run(&["ps"]);
    assert!(ps.stdout.contains("\nui "), "{ps:?}");
    let several = "error: several teams are running: say which with --team: bank, shop\n";
    let ps = |folder: &str| stage.run(&["--cwd", folder, "ps"]);
    assert_ended(&ps("/"), 1, "", several);
    let in_workspace = "error: several teams are running: say which with --team: bank, shop\n";
    assert_ended(&ps("shop/src"), 1, "", in_workspace);
    let port = bank.port.to_string();
    for args in [&["ps", "--team", "bank"][..], &["--port", &port, "ps"]] {
        let ps = stage.run(args);
        assert!(ps.stdout.contains("teller") && !ps.stdout.contains("ui "), "{ps:?}");
    }
    let mut by_environment = stage.eisen_core(&["ps"]);
    let ps = crate::harness::run(by_environment.env("EISEN_TEAM", "shop"));
    assert!(ps.stdout.contains("\nui "), "{ps:?}");
    let ps = stage.run(&["ps", "--team", "gym"]);
    assert_ended(&ps, 1, "", "error: no team `gym` is running; there are bank, shop\n");
}

#[test]
fn in_a_folder_of_a_project_its_team_is_meant() {
    let (stage, other) = (Stage::new(), Stage::new());
    let shop = stage.team("", vec![agent("ui")]);
    shop.steer_when_ready(&["ui"]);
    other.file("shop/eisen.toml", "[team]\nname = \"bank\"\n[[agents]]\nid = \"teller\"\n");
    other.file("shop/.git/HEAD", "");
    let below = other.path("shop/src/api").display().to_string();
    let at = |args: &[&str]| {
        let mut command = stage.eisen_core(args);
        crate::harness::run(command.current_dir(&below))
    };
    // Its team does not run, so nothing is asked of the other one.
    let none = "error: the team of this folder, bank, does not run: `eisen-core up` starts it; others \
                run, which --team names: shop\n";
    for args in [&["ps"][..], &["prompt", "ui", "x"], &["down"]] {
        assert_ended(&at(args), 1, "", none);
    }
    let ps = at(&["ps", "--team", "shop"]);
    assert!(ps.stdout.contains("\nui "), "{ps:?}");
    // A team that is gone is known by its workspace.
    let in_shop = stage.in_shop("src/ui");
    assert_eq!(stage.run(&["--cwd", &in_shop, "down"]).code, 0);
    other.file("shop/eisen.toml", "");
    for args in [&["history"][..], &["cost"]] {
        let of_shop = stage.run(&[&["--cwd", &in_shop], args].concat());
        assert_eq!((of_shop.code, of_shop.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn agents_get_the_address_of_their_team() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let said = port.prompt("ui", "run echo $EISEN_ADDRESS");
    assert_eq!(said.trim(), format!("127.0.0.1:{}", team.program.port));
}

#[test]
fn completions_and_man_pages_need_no_team() {
    let stage = Stage::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = stage.run(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("blocked"), "{script:?}");
    }
    // As a shell asks for what may follow `eisen-core WORDS…`, the last of which is incomplete.
    let ask = r#"source <("$0" completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _eisen__core eisen-core "${@: -1}" "${@: -2:1}"
        echo "${COMPREPLY[@]}""#;
    for (words, follow) in [
        (&["pr"][..], "prompt\n"),
        (&["agent", "stop", "--al"], "--all\n"),
        (&["blocked", "--status", "pe"], "pending\n"),
        (&["inbox", "al"], "allow\n"),
    ] {
        let mut bash = crate::harness::program("bash");
        bash.args(["--norc", "-c", ask, EISEN_CORE, "eisen-core"]);
        assert_ended(&crate::harness::run(bash.args(words)), 0, follow, "");
    }
    for (words, title) in [
        (&["man", "prompt"][..], "EISEN-CORE-PROMPT"),
        (&["man", "kill"], "EISEN-CORE-RUNS-STOP"),
        (&["dev", "man", "team", "token", "list"], "EISEN-CORE-TEAM-TOKEN-LIST"),
    ] {
        let page = stage.run(words);
        assert!(page.stdout.contains(&format!(".TH {title} 1  \"eisen-core ")), "{page:?}");
    }
    let wrong = stage.run(&["man", "dance"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong
            .stderr
            .contains("available: agent, agent attach, agent cancel, agent compress, agent logs"),
        "{wrong:?}"
    );
    assert_eq!(stage.run(&["man", "--out", "pages"]).code, 0);
    for page in ["eisen-core.1", "eisen-core-ps.1", "eisen-core-inbox-allow.1"] {
        assert!(stage.has(format!("pages/{page}")), "{page}");
    }
    assert!(!stage.has("home"));
}

#[test]
fn help_fits_a_screen_and_old_names_say_nothing_in_a_pipe() {
    let stage = Stage::new();
    let short = stage.run(&["-h"]);
    assert!(short.code == 0 && short.stdout.lines().count() <= 24, "{short:?}");
    let unasked = stage.run(&[]);
    assert!(unasked.code == 2 && unasked.stderr.lines().count() <= 24, "{unasked:?}");
    for long in [stage.run(&["--help"]), stage.run(&["help"])] {
        assert!(long.code == 0 && long.stdout.contains("trust-place"), "{long:?}");
    }
    let ended = stage.run(&["runs"]);
    assert_eq!((ended.code, &*ended.stderr), (0, "there are no runs\n"));
    for [old, new] in [["kill 01", "runs stop 01"], ["wait", "runs wait"], ["gc", "journal gc"]] {
        let of = |line: &str| stage.run(&line.split(' ').collect::<Vec<_>>());
        let (old, new) = (of(old), of(new));
        assert_eq!((old.code, old.stdout, old.stderr), (new.code, new.stdout, new.stderr));
    }
    // It means nothing to what is about no team, and says so.
    let ended = stage.run(&["--team", "x", "journal", "gc"]);
    assert!(ended.stderr.starts_with("note: `journal gc` does not use --team"), "{ended:?}");
}
