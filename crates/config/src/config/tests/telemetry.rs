//! `[telemetry]`: addresses and headers that can't be used, and secrets that are not shown.

use expect_test::expect;

use super::{Bench, errors};

#[test]
fn an_address_or_header_that_can_not_be_used_is_a_mistake() {
    let of = |keys: &str| errors(&format!("[telemetry]\n{keys}\n"));
    let all = [
        "",
        "otlp = \"grpc://127.0.0.1:4317\"",
        "otlp = \"127.0.0.1:4318\"",
        "otlp = \"http://\"",
        "otlp = \"http://127.0.0.1:4318/v1/traces\"",
        "otlp = \"http://me:pw@example.org\"",
        "otlp = \"http://example.org/?key=x\"",
        "otlp = \"http://example.org\"\nheaders = { \"a b\" = \"x\" }",
        "otlp = \"http://example.org\"\nheaders = { key = \"x\\ny\" }",
        "otlp = \"http://example.org\"\ncontent = true",
    ];
    let all: String = all.iter().map(|keys| of(keys)).collect();
    assert!(!all.contains("pw"), "{all}");
    expect![[r#"
        1:1 `[telemetry]` needs `otlp` | write `otlp = "http://127.0.0.1:4318"`, the address of a collector
        2:8 "grpc://127.0.0.1:4317" is not a web address | write one such as "http://127.0.0.1:4318"; spans are sent by HTTP, not by gRPC
        2:8 "127.0.0.1:4318" is not a web address | write one such as "http://127.0.0.1:4318"; spans are sent by HTTP, not by gRPC
        2:8 "http:" is not a web address | write one such as "http://127.0.0.1:4318"; spans are sent by HTTP, not by gRPC
        2:8 "http://127.0.0.1:4318/v1/traces" is not a base address | leave out `/v1/traces`: it is added
        2:8 this address has a name or password in it | write a header: `headers = { authorization = "Basic …" }`
        2:8 this address has a query | leave it out: `/v1/traces` is added to the address
        3:13 no header can be called "a b" | write one such as "x-api-key"
        3:19 the value of `key` can't be sent as a header | write it in printable ASCII, on one line
        3:1 unknown key `content` in `[telemetry]` | it belongs in `[journal]`
    "#]].assert_eq(&all);
}

#[test]
fn the_value_of_a_header_is_not_shown() {
    let text = "[telemetry]\notlp = \"https://example.org/\"\nheaders = { X-Key = \"k-123\" }\n\
                [[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n";
    let telemetry = Bench::new().compile(text).unwrap().telemetry.unwrap();
    assert_eq!((&*telemetry.otlp, telemetry.contents), ("https://example.org", false));
    assert_eq!(telemetry.headers["x-key"].reveal(), "k-123");
    assert!(!format!("{telemetry:?}").contains("k-123"));
}
