//! Notices: by a webhook, by a command, on the desktop.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use crate::harness::{Stage, agent, eventually};

/// Takes one POST, answers with the status, and returns the JSON.
fn take(listener: &TcpListener, status: &str) -> Value {
    answer(listener.accept().unwrap().0, status).unwrap()
}

/// Reads a POST, answers it with the status, and returns the JSON.
fn answer(stream: impl Read + Write, status: &str) -> std::io::Result<Value> {
    posted(stream, status).map(|(_, json)| json)
}

/// Reads a POST, answers it with the status, and returns its path and the JSON.
fn posted(stream: impl Read + Write, status: &str) -> std::io::Result<(String, Value)> {
    let mut stream = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    stream.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    line.clear();
    while stream.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let status = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.get_mut().write_all(status.as_bytes())?;
    stream.get_mut().flush()?;
    Ok((path, serde_json::from_slice(&body).unwrap()))
}

#[test]
fn a_team_is_done_when_no_agent_works_any_more() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = webhook(&listener, "after_s = 0\nevents = [\"done\"]");
    let team = stage.team(&keys, vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let long = port.begin_waiting("api");
    assert_eq!(port.prompt("ui", "hello"), "hello");
    let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    port.call("cancel", &json!({ "agent_id": "api" })).unwrap();
    port.answer(long).unwrap();
    let done = take(&listener, "204 No Content");
    assert_eq!((&done["event"], &done["agent_id"]), (&json!("done"), &Value::Null));
    assert!(done["message"].as_str().unwrap().contains("is done"), "{done}");
    assert!(u128::from(done["timestamp_ms"].as_u64().unwrap()) >= before, "{done}");
}

#[test]
fn a_topic_of_ntfy_gets_a_line_for_people() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/topic", listener.local_addr().unwrap());
    let keys = format!(
        "[orchestrator]\non_block = \"hold\"\n[[notify]]\nkind = \"ntfy\"\nurl = {url:?}\nafter_s = 0\n"
    );
    let team = stage.team(&keys, vec![agent("ui").zone("src/ui/**"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.begin("ui", "read src/api/cart.rs");
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    let (mut head, mut length) = (Vec::new(), 0);
    for line in stream.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()) {
        let line = line.to_ascii_lowercase();
        length = line.strip_prefix("content-length: ").map_or(length, |it| it.parse().unwrap());
        head.push(line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.get_mut().write_all(answer).unwrap();
    assert!(head[0].starts_with("post /topic "), "{head:?}");
    for wanted in ["title: eisen-core: shop", "tags: pending", "priority: high"] {
        assert!(head.iter().any(|line| line == wanted), "{wanted}: {head:?}");
    }
    let text = String::from_utf8(body).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let wanted = "ui wants to read `src/api/cart.rs`, and waits for a decision (b1)";
    assert_eq!(lines, [wanted, "tool call: Read src/api/cart.rs"]);
}

#[test]
fn chats_are_told_who_needs_a_person_and_no_secret_is_shown() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let keys = format!(
        r#"
[web]
listen = "127.0.0.1:0"
origin = "https://team.example"
[orchestrator]
on_block = "hold"
[[notify]]
kind = "slack"
url = "http://{at}/slack/KEY"
after_s = 0
[[notify]]
kind = "discord"
url = "http://{at}/discord/KEY"
after_s = 0
[[notify]]
kind = "telegram"
url = "http://{at}/"
token = "1:KEY"
chat_id = -100
contents = true
after_s = 0
"#
    );
    let team = stage.team(&keys, vec![agent("ui").zone("src/ui/**"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.begin("ui", "read src/api/cart.rs");
    let taken = |_| posted(listener.accept().unwrap().0, "200 OK").unwrap();
    let got: BTreeMap<String, Value> = (0..3).map(taken).collect();
    let card = "https://team.example/#inbox/b1";
    let slack = &got["/slack/KEY"]["text"];
    assert_eq!(*slack, format!("shop: ui needs you (b1)\n<{card}>"));
    let discord = &got["/discord/KEY"];
    assert_eq!(discord["content"], format!("shop: ui needs you (b1)\n{card}"));
    assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
    let telegram = &got["/bot1:KEY/sendMessage"];
    assert_eq!(telegram["chat_id"], "-100");
    let wants = "shop: ui wants to read `src/api/cart.rs`, and waits for a decision (b1)";
    let text = format!("{wants}\ntool call: Read src/api/cart.rs\n{card}");
    assert_eq!(telegram["text"], text);

    // Errors and lists name the host in place of what opens the chat.
    let refusing = std::thread::spawn(move || {
        [(); 3].map(|()| posted(listener.accept().unwrap().0, "404 Not Found").unwrap().1)
    });
    let tried = stage.run(&["notify", "test", "-c", "eisen.toml"]);
    let [slack, ..] = refusing.join().unwrap();
    let said = "shop: this is a test notice of the team `shop`\n<https://team.example/>";
    assert_eq!(slack["text"], said);
    let checked = stage.run(&["check", "-c", "eisen.toml"]);
    for told in [&tried.stdout, &checked.stdout] {
        assert!(told.contains(&format!("telegram at {at}, chat -100")), "{told}");
        assert!(!told.contains("KEY"), "{told}");
    }
    let told = format!("discord at {at}: http status: 404: no webhook has this address");
    assert!(tried.code == 1 && tried.stdout.contains(&told), "{tried:?}");
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
    eventually("a notice", || stage.has("heard"));
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

#[test]
fn a_webhook_with_a_certificate_of_ones_own_is_refused_at_once_and_taken_by_ssl_cert_file() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    stage.configure(&format!("[[notify]]\nkind = \"webhook\"\nurl = {url:?}\n"), vec![agent("ui")]);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let server = Arc::new(server);
    // Each connection that comes: a try. The last one is taken.
    let serving = std::thread::spawn(move || {
        (1..).find_map(|tries| {
            let stream = listener.accept().unwrap().0;
            let tls = rustls::ServerConnection::new(Arc::clone(&server)).unwrap();
            let taken = answer(rustls::StreamOwned::new(tls, stream), "204 No Content").ok();
            taken.map(|taken| (tries, taken))
        })
    });

    let tried = stage.run(&["notify", "test", "-c", "eisen.toml"]);
    assert_eq!(tried.code, 1, "{tried:?}");
    assert!(tried.stdout.contains("its certificate is not trusted"), "{}", tried.stdout);
    assert!(tried.stdout.contains("SSL_CERT_FILE"), "{}", tried.stdout);

    stage.file("ca.pem", &made.cert.pem());
    let ca = stage.path("ca.pem");
    let send_with = |ca: &std::path::Path| {
        let mut command = stage.eisen_core(&["notify", "test", "-c", "eisen.toml"]);
        command.env("SSL_CERT_FILE", ca).output().unwrap()
    };
    let none = send_with(&stage.path("none.pem"));
    assert!(String::from_utf8_lossy(&none.stdout).contains("SSL_CERT_FILE, "), "{none:?}");
    let sent = send_with(&ca);
    assert!(sent.status.success(), "{sent:?}");
    let (count, body) = serving.join().unwrap().unwrap();
    assert_eq!((count, &body["event"]), (2, &json!("test")), "an untrusted one is tried once");
}
