//! Spans of a team, as a collector gets them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::harness::{Program, Stage, Team, agent};

/// Takes one request; returns its spans and its body.
fn take(listener: &TcpListener) -> (Vec<Span>, Vec<u8>) {
    answer(listener.accept().unwrap().0)
}

fn answer(stream: impl Read + Write) -> (Vec<Span>, Vec<u8>) {
    let mut stream = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while stream.read_line(&mut line).unwrap() > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    stream.get_mut().write_all(head).unwrap();
    stream.get_mut().flush().unwrap();
    let request = ExportTraceServiceRequest::decode(&*body).unwrap();
    let all = request.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
    (all.flat_map(|spans| spans.spans).collect(), body)
}

/// Takes requests until one has the end of a turn of `agent`.
fn until_turn(listener: &TcpListener, agent: &str) -> (Vec<Span>, Vec<u8>) {
    let (mut spans, mut bodies) = (Vec::new(), Vec::new());
    let name = format!("invoke_agent {agent}");
    while !spans.iter().any(|span: &Span| span.name == name) {
        let (more, body) = take(listener);
        spans.extend(more);
        bodies.extend(body);
    }
    (spans, bodies)
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

fn telemetry(listener: &TcpListener, keys: &str) -> String {
    format!("[telemetry]\notlp = \"http://{}\"\n{keys}\n", listener.local_addr().unwrap())
}

#[test]
fn a_turn_is_sent_without_its_texts_and_agents_know_the_run() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = telemetry(&listener, "");
    let team = stage.team(&keys, vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let context = port.prompt("ui", "run echo $TRACEPARENT # a-secret-word");
    let (spans, body) = until_turn(&listener, "ui");
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (root, of_agent) = (named("invoke_workflow shop"), named("invoke_agent ui"));
    assert_eq!(of_agent.parent_span_id, root.span_id);
    assert_eq!(of_agent.trace_id, root.trace_id);
    let run = &root.links[0];
    let run = format!("00-{}-{}-01", hex(&run.trace_id), hex(&run.span_id));
    assert_eq!(context.trim(), run);
    assert!(!String::from_utf8_lossy(&body).contains("a-secret-word"));
    drop(port);
    let stopping = std::thread::spawn(move || team.stop());
    let (last, _) = take(&listener);
    assert!(last.iter().any(|span| span.name == "run shop"), "{last:?}");
    stopping.join().unwrap();
}

#[test]
fn texts_are_sent_where_they_are_asked_for() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = telemetry(&listener, "contents = true");
    let team = stage.team(&keys, vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    let (_, body) = until_turn(&listener, "ui");
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains(r#""role":"user""#) && text.contains(r#""role":"assistant""#), "{text}");
}

#[test]
fn a_collector_that_is_away_disturbs_nobody_and_without_the_table_agents_know_no_trace() {
    let stage = Stage::new();
    let away = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = telemetry(&away, "");
    drop(away);
    let team = stage.team(&keys, vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    drop(port);
    assert_eq!(team.stop().code, 0);
    let team = stage.team("", vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "run echo \"[$TRACEPARENT]\"").trim(), "[]");
}

#[test]
fn a_collector_with_a_certificate_of_its_own_gets_spans_where_that_is_trusted() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let keys = telemetry(&listener, "").replace("http://", "https://");
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    stage.file("collector.pem", &made.cert.pem());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let accept = || {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        StreamOwned::new(connection, listener.accept().unwrap().0)
    };
    stage.configure(&keys, vec![agent("ui").zone("src/**")]);
    let mut up = stage.eisen_core(&["up", "-c", "eisen.toml"]);
    up.env("SSL_CERT_FILE", stage.path("collector.pem"));
    let team = Team::of(Program::start(&mut up), &stage);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    let until = |name: &str| {
        while !answer(accept()).0.iter().any(|span| span.name == name) {}
    };
    until("invoke_agent ui");
    drop(port);
    let stopping = std::thread::spawn(move || team.stop());
    until("run shop");
    assert_eq!(stopping.join().unwrap().code, 0);
    // Not trusted: nothing is sent, and the log says once what to do.
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    for _ in 0..2 {
        assert_eq!(port.prompt("ui", "hello"), "hello");
        let mut refused = accept();
        assert!(refused.read(&mut [0]).is_err(), "an untrusted collector was sent something");
    }
    drop(port);
    let ended = team.stop();
    let said = ended.stderr.matches("set SSL_CERT_FILE to a PEM file").count();
    assert_eq!((ended.code, said), (0, 1), "{}", ended.stderr);
}

#[test]
fn a_turn_whose_agent_dies_is_sent_as_an_error() {
    let stage = Stage::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let team = stage.team(&telemetry(&listener, ""), vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let turn = port.begin("ui", "die");
    let (spans, _) = until_turn(&listener, "ui");
    let span = spans.iter().find(|span| span.name == "invoke_agent ui").unwrap();
    let status = span.status.as_ref().unwrap();
    assert_eq!(status.code(), StatusCode::Error);
    let error = span.attributes.iter().find(|attribute| attribute.key == "error.type");
    assert!(error.is_some(), "{span:?}");
    assert!(!span.attributes.iter().any(|attribute| attribute.key == "eisen.incomplete"));
    assert_eq!(port.answer(turn).unwrap_err()["code"], 500);
}
