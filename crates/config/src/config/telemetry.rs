//! `[telemetry]`: where spans of what the agents do are sent, and what they say.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::{Table, Text};
use crate::model::SecretText;

/// The path that is added to the address.
const PATH: &str = "/v1/traces";

/// Headers of one table.
const MOST_HEADERS: usize = 32;

/// Where spans are sent; a team without the table makes none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Telemetry {
    /// The base address of a collector, without a slash at its end.
    pub otlp: String,
    /// Spans have texts, paths and arguments.
    pub contents: bool,
    pub headers: BTreeMap<String, SecretText>,
}

/// Reads `[telemetry]`, if it is there.
pub(super) fn telemetry(root: &Table<'_>) -> Option<Telemetry> {
    let is_there = root.place_of("telemetry").is_some();
    root.section("telemetry", "telemetry", |table| {
        let (contents, headers) = (table.flag("contents", false), headers(table));
        let address = table.text("otlp");
        if is_there && table.place_of("otlp").is_none() {
            let help = "write `otlp = \"http://127.0.0.1:4318\"`, the address of a collector";
            table.lacks("`[telemetry]` needs `otlp`", help);
        }
        Some(Telemetry { otlp: base_address(table, &address?)?, contents, headers })
    })
}

pub(super) fn base_address(table: &Table<'_>, address: &Text) -> Option<String> {
    let text = address.value.trim_end_matches('/');
    let wrong = |message: String, help: &str| {
        table.fault(Fault::new(address.span.clone(), message).help(help));
        None
    };
    let lower = text.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let Some(authority) = authority.filter(|it| !it.is_empty() && is_plain) else {
        let help =
            "write one such as \"http://127.0.0.1:4318\"; spans are sent by HTTP, not by gRPC";
        return wrong(format!("{} is not a web address", quoted(text)), help);
    };
    if authority.contains('@') {
        // What is in it is a secret.
        let help = "write a header: `headers = { authorization = \"Basic …\" }`";
        return wrong("this address has a name or password in it".to_owned(), help);
    }
    if text.contains(['?', '#']) {
        let help = format!("leave it out: {} is added to the address", code(PATH));
        return wrong("this address has a query".to_owned(), &help);
    }
    if lower.ends_with(PATH) {
        let help = format!("leave out {}: it is added", code(PATH));
        return wrong(format!("{} is not a base address", quoted(text)), &help);
    }
    Some(text.to_owned())
}

pub(super) fn headers(table: &Table<'_>) -> BTreeMap<String, SecretText> {
    let Some(item) = table.get("headers") else { return BTreeMap::new() };
    let DeValue::Table(entries) = item.get_ref() else {
        let help = "write `headers = { name = \"value\" }`";
        table.wrong("`headers`", item, "a table", help);
        return BTreeMap::new();
    };
    if entries.len() > MOST_HEADERS {
        let message = format!("there are more than {MOST_HEADERS} headers");
        table.fault(Fault::new(item.span(), message));
    }
    let header = |(name, value): (&toml::Spanned<_>, _)| {
        let name: &toml::Spanned<std::borrow::Cow<'_, str>> = name;
        let key = name.get_ref();
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if key.is_empty() || !key.bytes().all(is_token) {
            let message = format!("no header can be called {}", quoted(key));
            table.fault(Fault::new(name.span(), message).help("write one such as \"x-api-key\""));
            return None;
        }
        let text = table.text_of(&code(key), value)?;
        if !text.value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            let message = format!("the value of {} can't be sent as a header", code(key));
            let help = "write it in printable ASCII, on one line";
            table.fault(Fault::new(text.span, message).help(help));
            return None;
        }
        Some((key.to_ascii_lowercase(), SecretText::new(text.value)))
    };
    entries.iter().filter_map(header).collect()
}
