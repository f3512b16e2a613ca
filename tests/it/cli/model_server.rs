//! `dev model-server` as a script uses it: the address on its first line, the count on its last.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use super::Running;
use crate::harness::{Lines, Stage, run};

/// Sends a request, and returns the whole answer.
fn ask(address: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: here\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {length}\r\n{headers}\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_script_is_served_until_a_signal_and_counted() {
    let stage = Stage::new();
    let script = "[[on]]\nprompt = \"hello\"\nsteps = [{ say = \"hi\" }, { usage = { input = 3, output = 2 } }]\n";
    stage.file("play.toml", script);
    let (script, log) = (stage.path("play.toml"), stage.path("requests.jsonl"));
    let mut command = stage.eisen_core(&["dev", "model-server", "--key-env", "TEST_KEY", "--log"]);
    command.arg(&log).arg(&script).env("TEST_KEY", "sk-right");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = Lines::of(child.stdout.take().unwrap());
    let stderr = Lines::of(child.stderr.take().unwrap());
    let running = Running { child, stderr };
    let url = output.next().unwrap();
    let address = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hello" }] });
    let body = body.to_string();
    assert!(ask(address, "x-api-key: sk-wrong\r\n", &body).starts_with("HTTP/1.1 401 "));
    let answer = ask(address, "x-api-key: sk-right\r\n", &body);
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"hi\""), "{answer}");

    running.interrupt();
    let count: Value = serde_json::from_str(&output.next().unwrap()).unwrap();
    assert_eq!(running.end(), (Some(0), String::new()));
    assert_eq!(count["calls"], 1);
    assert_eq!((&count["usage"]["input"], &count["usage"]["output"]), (&json!(3), &json!(2)));
    let log = stage.read("requests.jsonl");
    assert!(log.lines().count() == 2 && !log.contains("sk-"), "{log}");
}

#[test]
fn a_mistake_in_the_script_and_a_missing_key_are_wrong_usage() {
    let stage = Stage::new();
    stage.file("play.toml", "[[on]]\nsteps = [{ sya = \"hi\" }]\n");
    let script = stage.path("play.toml");
    let mut command = stage.eisen_core(&["dev", "model-server"]);
    let ended = run(command.arg(&script));
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let place = format!("{}:2:12: a step has no key `sya`; did you mean `say`?", script.display());
    assert!(ended.stderr.contains(&place), "{}", ended.stderr);
    let mut command = stage.eisen_core(&["dev", "model-server", "--key-env", "NO_SUCH_KEY"]);
    let ended = run(&mut command);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("the variable NO_SUCH_KEY has no key"), "{}", ended.stderr);
    let log = stage.path("no/such/log");
    let ended = run(stage.eisen_core(&["dev", "model-server", "--log"]).arg(&log));
    let named = format!("cannot write the log {}: ", log.display());
    assert!(ended.code == 1 && ended.stderr.contains(&named), "{}", ended.stderr);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = run(&mut stage.eisen_core(&["dev", "model-server", "--port", &port]));
    let named = format!("cannot listen on 127.0.0.1:{port}: ");
    assert!(ended.code == 1 && ended.stderr.contains(&named), "{}", ended.stderr);
}
