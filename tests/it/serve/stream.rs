//! The stream: filters, slow clients, and addresses.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};

use crate::harness::{EISEN_CORE, PATIENCE, Port, Stage, Team, agent, program};

fn two_agents(stage: &Stage) -> Team {
    stage.team("", vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")])
}

/// Sends what has no answer, and waits until it has been heard.
fn report(port: &mut Port, message: &Value) {
    port.send(message);
    port.call("list_agents", &json!({})).unwrap();
}

#[test]
fn updates_come_as_the_agent_wrote_them_and_before_their_turn_ends() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut other = team.watch();
    port.prompt("ui", "unheard");
    report(&mut port, &json!({"type": "subscribe", "topics": ["session_update"]}));
    port.prompt("ui", "hello");

    let update = json!({"type": "session_update", "agent_id": "ui", "session_id": "ui-s1"});
    // Whoever sent the prompt, it comes first.
    let prompt = json!({"sessionUpdate": "_eisen/prompt", "text": "hello", "truncated": false});
    assert_eq!(port.expect(&update)["update"], prompt);
    let heard = port.expect(&update);
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}});
    assert_eq!(heard["update"], chunk);
    assert_eq!(port.count(&update), 2);
    let end = json!({"type": "turn", "agent_id": "ui", "turn": 1});
    assert!(port.position(&update) < port.position(&end), "{:#?}", port.transcript);
    other.expect(&end);
    assert_eq!(other.count(&json!({"type": "session_update"})), 0);
}

#[test]
fn the_end_of_a_turn_says_what_it_took() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "spend dollars");
    let end = port.expect(&json!({"type": "turn", "agent_id": "ui", "turn": 0}));
    assert_eq!(end["spent"]["cost"], json!([{"amount": 0.5, "currency": "USD"}]), "{end}");
    assert_eq!(end["spent"]["total"], Value::Null);
    // What nobody reported is not nothing.
    port.prompt("ui", "hello");
    let end = port.expect(&json!({"type": "turn", "agent_id": "ui", "turn": 1}));
    assert_eq!(end.get("spent"), None, "{end}");
    port.prompt("ui", "use gpt-5-2025-08-07");
    let end = port.expect(&json!({"type": "turn", "agent_id": "ui", "turn": 2}));
    assert_eq!(end["spent"]["total"], json!(1_100_000), "{end}");
    let asked = json!({"types": ["turn"], "agent_id": "ui"});
    let kept = port.call("list_events", &asked).unwrap();
    let spent = |turn: usize| &kept["events"][turn]["payload"]["spent"];
    assert_eq!(spent(0)["cost"], json!([{"amount": 0.5, "currency": "USD"}]), "{kept}");
    assert_eq!((spent(1), &spent(2)["total"]), (&Value::Null, &json!(1_100_000)), "{kept}");
}

#[test]
fn a_filter_shows_one_session_also_one_to_come() {
    let stage = Stage::new();
    let team = two_agents(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut narrow = team.watch();
    narrow.agent_is("api", "ready");
    let orchestrator = json!({"type": "snapshot", "session_mode": "orchestrator"});
    narrow.expect(&orchestrator);
    narrow.send(&json!({"type": "set_stream_filter", "session_id": "ui-s2"}));
    narrow.expect(&json!({"type": "snapshot", "session_id": "ui-s2", "nodes": {}}));
    let begun = narrow.transcript.len();
    port.prompt("api", "read src/api/cart.rs");
    port.call("new_session", &json!({"agent_id": "ui"})).unwrap();
    let prompt = json!({"agent_id": "ui", "session_id": "ui-s2", "text": "read src/api/cart.rs"});
    port.call("prompt", &prompt).unwrap();
    narrow.expect(&json!({"type": "turn", "session_id": "ui-s2"}));
    let of = |line: &Value| line["session_id"] == "ui-s2" || line["type"] == "agent";
    assert!(narrow.transcript[begun..].iter().all(of), "{:#?}", narrow.transcript);
    let mut types: Vec<_> = narrow.transcript[begun..].iter().map(|line| &line["type"]).collect();
    // A tick of the map may fall between the access and the report that it is blocked.
    types[1..3].sort_by_key(|kind| kind.as_str());
    assert_eq!(types, ["snapshot", "blocked", "delta", "turn"]);

    narrow.send(&json!({"type": "set_stream_filter", "session_mode": "orchestrator"}));
    let merged = narrow.expect(&orchestrator);
    assert!(merged["nodes"].as_object().unwrap().contains_key("src/api/cart.rs"));
    port.prompt("ui", "read src/api/cart.rs");
    narrow.blocked("denied");
}

#[test]
fn one_who_stops_reading_is_shown_everything_anew() {
    let stage = Stage::new();
    let team = stage.team("[port]\nbacklog = 16\nbacklog_bytes = 1000000", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut stalled = BufReader::new(TcpStream::connect(address(&team)).unwrap());
    stalled.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    stalled
        .get_mut()
        .write_all(
            format!(
                "{}\n{}\n",
                json!({"type": "auth", "token": team.token()}),
                json!({"type": "subscribe", "topics": ["session_update"]})
            )
            .as_bytes(),
        )
        .unwrap();
    // More than sockets hold.
    let long = "x".repeat(200_000);
    for _ in 0..80 {
        assert_eq!(port.prompt("ui", &long).len(), long.len());
    }
    port.prompt("ui", "read src/ui/app.ts");
    let turn = port.expect(&json!({"type": "turn", "turn": 80}));
    assert_eq!(turn["stop_reason"], "end_turn");

    let (mut missed, mut turns, mut node) = (0, 0, Value::Null);
    stalled
        .get_mut()
        .write_all(b"{\"type\":\"rpc\",\"id\":7,\"method\":\"list_agents\"}\n")
        .unwrap();
    loop {
        let line = line(&mut stalled);
        match line["type"].as_str().unwrap() {
            "lagged" => missed += line["missed"].as_u64().unwrap(),
            "turn" => turns += 1,
            "snapshot" if line["agent_id"] == "ui" => node = line["nodes"]["src/ui/app.ts"].clone(),
            "delta" if line["agent_id"] == "ui" => node = line["updates"][0].clone(),
            "rpc_result" if line["id"] == 7 => break,
            _ => {}
        }
    }
    assert!(missed > 0 && turns < 81, "{missed} missed, {turns} turns");
    assert_eq!(node["last_action"], "read");
}

#[test]
fn a_thousand_clients_are_served_and_agents_keep_their_own_limit() {
    let limit = eisen_core::process::raise_descriptor_limit().unwrap();
    let count = usize::try_from(limit.saturating_sub(400)).unwrap().min(1_000);
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    let mut command = program("sh");
    let up = stage.eisen_core(&["up", "-c", "eisen.toml"]);
    command.args(["-c", "ulimit -Sn 200; exec \"$0\" \"$@\"", EISEN_CORE]).args(up.get_args());
    command.current_dir(stage.path(""));
    for (name, value) in up.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let team = Team::of(crate::harness::Program::start(&mut command), &stage);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "run ulimit -n").trim(), "200");

    let connect = |_| {
        let stream = TcpStream::connect(address(&team)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        BufReader::new(stream)
    };
    let mut clients: Vec<_> = (0..count).map(connect).collect();
    for client in &mut clients {
        assert_eq!(line(client)["type"], "snapshot");
    }
    port.prompt("ui", "read src/ui/app.ts");
    for client in &mut clients {
        while line(client)["type"] != "turn" {}
    }
}

#[test]
fn a_port_beyond_this_machine_says_nothing_without_the_token() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    let text = stage.read("eisen.toml");
    for (listen, connect, guarded) in
        [("[::1]:0", "::1", false), ("[::]:0", "::1", true), ("0.0.0.0:0", "127.0.0.1", true)]
    {
        stage.file("eisen.toml", &text.replace("127.0.0.1:0", listen));
        let team = stage.up();
        let address = SocketAddr::new(connect.parse().unwrap(), address(&team).port());
        let mut client = BufReader::new(TcpStream::connect(address).unwrap());
        client.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        if guarded {
            for request in ["set_stream_filter", "subscribe", "request_snapshot"] {
                let request = json!({"type": request, "topics": []});
                client.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
                assert_eq!(line(&mut client)["error"]["code"], 401, "{request}");
            }
            let auth = json!({"type": "auth", "token": team.token()});
            client.get_mut().write_all(format!("{auth}\n").as_bytes()).unwrap();
            assert_eq!(line(&mut client)["type"], "rpc_result");
        }
        assert_eq!(line(&mut client)["type"], "snapshot", "{listen}");
        team.stop();
    }
}

fn address(team: &Team) -> SocketAddr {
    team.run_file["address"].as_str().unwrap().parse().unwrap()
}

fn line(from: &mut BufReader<TcpStream>) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}
