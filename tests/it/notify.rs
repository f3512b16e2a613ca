//! Notices to people who look away: over the web, by a command, on the desktop.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Stage, agent};

/// Takes one POST, answers with the status, and returns the JSON.
fn take(listener: &TcpListener, status: &str) -> Value {
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    let (mut length, mut line) = (0, String::new());
    while stream.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn webhook(listener: &TcpListener, keys: &str) -> String {
    let address = listener.local_addr().unwrap();
    format!("[[notify]]\nkind = \"webhook\"\nurl = \"http://{address}/hook\"\n{keys}\n")
}

#[test]
fn a_pending_access_is_posted_until_it_is_taken_and_again_after_a_reload() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hold = "[orchestrator]\non_block = \"hold\"\n";
    let keys = format!("{hold}{}", webhook(&listener, "after_s = 0"));
    let agents = || vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")];
    let team = stage.team(&keys, agents());
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let prompt = port.begin("ui", "read src/api/cart.rs");
    let pending = port.blocked("pending");
    let refused = take(&listener, "503 Service Unavailable");
    let taken = take(&listener, "204 No Content");
    assert_eq!(refused, taken);
    assert_eq!(
        (&taken["event"], &taken["agent_id"], &taken["path"], &taken["team"], &taken["id"]),
        (
            &json!("pending"),
            &json!("ui"),
            &json!("src/api/cart.rs"),
            &json!("shop"),
            &pending["id"]
        )
    );
    assert!(taken["message"].as_str().unwrap().contains("wants to read"), "{taken}");

    // What still stands is news to another address.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    stage.configure(&format!("{hold}{}", webhook(&other, "after_s = 0")), agents());
    let answer = port.call("reload", &json!({})).unwrap();
    let applied = json!({"agent_id": null, "key": "notify", "change": "changed"});
    assert_eq!(answer["applied"], json!([applied]));
    assert_eq!(take(&other, "200 OK")["id"], pending["id"]);
    port.resolve(&pending, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.said(prompt), "got api\n");
}

#[test]
fn an_agent_in_error_runs_the_command() {
    let stage = Stage::new();
    let heard = stage.path("heard");
    let script = format!(
        "cat > {0}.new; echo $EISEN_NOTIFY_EVENT >> {0}.new; mv {0}.new {0}",
        heard.display()
    );
    let keys = format!(
        "[[notify]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {script:?}]\nafter_s = 0\nevents = [\"error\"]\n"
    );
    let failing = agent("ui").behind("exit 3; ").with("[agents.restart]\npolicy = \"never\"");
    let team = stage.team(&keys, vec![failing]);
    let mut port = team.watch();
    port.agent_is("ui", "error");
    let begun = Instant::now();
    while !stage.has("heard") {
        assert!(begun.elapsed() < PATIENCE, "no notice");
        std::thread::yield_now();
    }
    let text = stage.read("heard");
    let (json, event) = text.trim().split_once('\n').unwrap();
    let notice: Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        (&notice["event"], &notice["agent_id"], event),
        (&json!("error"), &json!("ui"), "error")
    );
    assert!(notice["message"].as_str().unwrap().contains("exited with status 3"), "{notice}");
}

#[test]
fn notices_can_be_tried() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = format!(
        "{}[[notify]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo no bell >&2; exit 7\"]\n",
        webhook(&listener, "")
    );
    stage.configure(&keys, vec![agent("ui")]);
    let taking = std::thread::spawn(move || take(&listener, "200 OK"));
    let tried = stage.run(&["notify", "test", "-c", "eisen.toml"]);
    assert_eq!(taking.join().unwrap()["event"], "test");
    assert_eq!(tried.code, 1, "{tried:?}");
    assert!(tried.stdout.contains("sent: webhook http://127.0.0.1:"), "{}", tried.stdout);
    assert!(tried.stdout.contains("sh exited with status 7: no bell"), "{}", tried.stdout);

    stage.configure("", vec![agent("ui")]);
    assert_eq!(stage.run(&["notify", "test", "-c", "eisen.toml"]).code, 2);
}
