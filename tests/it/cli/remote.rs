//! Agents that run elsewhere, behind a server of the protocol's transports.

mod elsewhere;

use serde_json::json;

use self::elsewhere::Elsewhere;
use crate::harness::{Editor, Stage};

fn configure(stage: &Stage, url: &str, keys: &str) {
    stage.file(
        "eisen.toml",
        &format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
             [[agents]]\nid = \"cloud\"\nurl = \"{url}\"\n{keys}\n\
             [agents.zone]\nallowed = [\"src/ui/**\"]\n"
        ),
    );
}

const TOKEN: &str = "headers = { authorization = \"Bearer secret\" }";

#[test]
fn an_agent_elsewhere_is_a_member_whose_zone_holds_at_the_protocol() {
    for scheme in ["http", "ws"] {
        let stage = Stage::new();
        let elsewhere = Elsewhere::start(&stage, "127.0.0.1:0");
        configure(&stage, &elsewhere.url(scheme), TOKEN);
        let team = stage.up();
        team.steer_when_ready(&["cloud"]);
        let said = stage.run(&["prompt", "cloud", "read src/ui/app.ts"]);
        assert_eq!((said.code, &*said.stdout), (0, "got ui\n"), "{}", said.stderr);
        let said = stage.run(&["prompt", "cloud", "read src/api/cart.rs"]);
        assert!(said.stdout.starts_with("refused: Outside agent zone"), "{}", said.stdout);
        let shown = stage.run(&["ps"]).stdout;
        assert!(shown.contains("protocol"), "{shown}");
        let checked = stage.run(&["check", "-c", "eisen.toml"]).stdout;
        assert!(checked.contains("protocol"), "{checked}");
        // The token is nobody else's business.
        assert!(!shown.contains("secret") && !checked.contains("secret"));
    }
}

#[test]
fn one_that_goes_away_is_connected_again_with_its_session() {
    let stage = Stage::new();
    let elsewhere = Elsewhere::start(&stage, "127.0.0.1:0");
    let address = elsewhere.address.clone();
    configure(&stage, &elsewhere.url("ws"), TOKEN);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["cloud"]);
    let session = port.call("list_agents", &json!({})).unwrap()[0]["sessions"].clone();
    drop(elsewhere);
    port.agent_is("cloud", "restarting");
    let _elsewhere = Elsewhere::start(&stage, &address);
    port.agent_is("cloud", "ready");
    let again = port.call("list_agents", &json!({})).unwrap()[0].clone();
    assert_eq!(again["sessions"], session);
    assert!(again["restarts"].as_u64().unwrap() >= 1, "{again}");
    let said = stage.run(&["prompt", "cloud", "read src/ui/app.ts"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn one_that_can_t_be_reached_is_degraded_and_then_unavailable() {
    let stage = Stage::new();
    let elsewhere = Elsewhere::start(&stage, "127.0.0.1:0");
    let keys = "restart = { policy = \"always\", max_restarts = 1000, backoff_ms = [1, 2] }";
    configure(&stage, &elsewhere.url("ws"), keys);
    let team = stage.up();
    let mut port = team.watch();
    for health in ["degraded, 5 failures in a row: ", "unavailable, 10 failures in a row: "] {
        let line = port.expect_that(health, |line| {
            line["reason"].as_str().is_some_and(|reason| reason.starts_with(health))
        });
        let reason = line["reason"].as_str().unwrap();
        assert!(reason.contains("401 Unauthorized"), "{reason}");
    }
}

#[test]
fn the_command_is_such_an_agent_by_hand() {
    let stage = Stage::new();
    let elsewhere = Elsewhere::start(&stage, "127.0.0.1:0");
    let url = elsewhere.url("http");
    let mut command = stage.eisen_core(&["connect", &url]);
    command.env("EISEN_CONNECT_HEADERS", "{\"authorization\": \"Bearer secret\"}");
    let mut editor = Editor::start(&mut command);
    let introduced = editor.initialize(&json!({}));
    assert!(introduced["error"].is_null(), "{introduced}");
    editor.close();
    assert_eq!(editor.end(), (0, String::new()));
    drop(elsewhere);

    let mut editor = Editor::start(&mut stage.eisen_core(&["connect", &url.replace("http", "ws")]));
    let (code, said) = editor.end();
    assert_eq!(code, 1);
    let why = "Connection refused (os error 111)";
    assert!(said.contains("cannot connect to ws://") && said.trim_end().ends_with(why), "{said}");
    for url in ["ftp://agents.example", "agents.example"] {
        let ended = stage.run(&["connect", url]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
    }
}
