//! Streams to a collector of OpenTelemetry.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use prost::Message as _;

use super::webhooks::{next, serve, status};
use super::*;
use crate::model::{OtlpTarget, SecretText};

#[tokio::test]
async fn each_event_is_a_log_record() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::TURN_FAILED, 0..2).await;
    let (url, requests) = serve(|number, _| match number {
        0 => status("503 Busy"),
        _ => status("200 OK"),
    });
    let url = SecretText::new(url.replace("/hook", "/"));
    let headers = [("x-key".to_owned(), SecretText::new("k".to_owned()))].into();
    let target = StreamTarget::Otlp(OtlpTarget { url, headers });
    bench.streams.start(&StreamSpec { target, from_start: true, ..bench.file() }).await;
    next(&requests).await;
    let request = next(&requests).await;
    assert!(request.head[0].starts_with("POST /v1/logs "), "{:?}", request.head);
    assert_eq!(request.header("x-key"), "k");
    let mut sent = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
    // The official types would have sent the same bytes.
    assert_eq!(sent.encode_to_vec(), request.bytes);
    let logs = sent.resource_logs.remove(0);
    let records = &logs.scope_logs[0].log_records;
    let texts: Vec<_> =
        records.iter().map(|record| record.body.clone().unwrap().value.unwrap()).collect();
    let body = |text: u64| Any::StringValue(format!("{{\"t\":{text}}}"));
    assert_eq!(texts, [body(0), body(1)]);
    assert_eq!((&*records[0].event_name, records[0].severity_number), ("turn.failed", 13));
    let of = |name: &str| {
        let found = records[1].attributes.iter().find(|attribute| attribute.key == name);
        found.unwrap().value.clone().unwrap().value.unwrap()
    };
    assert_eq!(of("gen_ai.agent.name"), Any::StringValue("ui".to_owned()));
    assert_eq!(of("eisen.event.number"), Any::IntValue(2));
    assert!(records[0].time_unix_nano > 1_700_000_000_000_000_000);
}
