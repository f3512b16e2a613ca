//! `[[streams]]`: where events of the journal are delivered, and which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use toml::de::{DeTable, DeValue};

use super::errors::{code, quoted};
use super::fault::Fault;
use super::notify::web_address;
use super::read::{ConfigReader, Table, Text, unknown_value};
use super::telemetry::headers;
use super::value::bad_name;
use super::{AgentTable, ConfigErrors, Surroundings, is_name};
use crate::model::{
    FileTarget, NatsAccess, NatsTarget, OtlpTarget, SecretText, StreamKind, StreamScope,
    StreamSpec, StreamTarget, WebhookTarget,
};

/// Streams of one configuration.
pub const MOST_STREAMS: usize = 32;

/// Bytes of a key that signs requests.
const SHORTEST_KEY: usize = 24;
const LONGEST_KEY: usize = 64;

/// The name of the stream by which the server of NATS of a hub gets what the journal has.
pub(super) const HUB: &str = "hub";

/// The help that shows the form of a NATS address.
const NATS_ADDRESS: &str = "write one such as \"nats://127.0.0.1:4222\"";

/// Entries of one list of a scope.
const MOST_NAMES: usize = 256;

/// The keys of a kind that not every kind has.
fn keys(kind: StreamKind) -> &'static [&'static str] {
    match kind {
        StreamKind::File => &["path", "max_mb", "keep"],
        StreamKind::Webhook => &["url", "secret", "headers", "batch", "timeout_s"],
        StreamKind::Nats => &["url", "subject", "jetstream", "token", "credentials"],
        StreamKind::Otlp => &["url", "headers"],
    }
}

/// Reads all tables.
pub(super) fn streams(root: &Table<'_>, has_journal: bool) -> Vec<StreamSpec> {
    let mut names = BTreeSet::new();
    let mut files: Vec<FileTarget> = Vec::new();
    let mut count = 0;
    let read = root.sections("streams", |table| {
        count += 1;
        if count == MOST_STREAMS + 1 {
            let message = format!("there are more than {MOST_STREAMS} streams");
            table.fault(Fault::new(table.span.clone(), message));
        }
        let name = name(table);
        if let Some(name) = name.as_ref().filter(|name| !names.insert(name.value.clone())) {
            let message = format!("there are two streams {}", quoted(&name.value));
            table.fault(Fault::new(name.span.clone(), message).help("give one another name"));
        }
        let stream = one(table, name);
        if let Some(StreamTarget::File(file)) = stream.as_ref().map(|stream| &stream.target) {
            if files.iter().any(|other| other.collides(file)) {
                let place = table.place_of("path").unwrap_or_else(|| table.span.clone());
                let fault = Fault::new(place, "another stream writes this file");
                table.fault(fault.help("name another one"));
            }
            files.push(file.clone());
        }
        stream
    });
    if let Some(place) = root.place_of("streams").filter(|_| !has_journal && count > 0) {
        let fault = Fault::new(place, "streams deliver what the journal has, and it is off");
        root.fault(fault.help("leave out `enabled = false` in `[journal]`"));
    }
    read.into_iter().flatten().collect()
}

fn name(table: &Table<'_>) -> Option<Text> {
    if table.place_of("name").is_none() {
        table.lacks("this stream has no `name`", "write `name = \"audit\"`");
    }
    let name = table.text("name")?;
    if name.value == HUB {
        let fault =
            Fault::new(name.span, "a stream can't be called `hub`: that is the one of `[hub]`");
        table.fault(fault.help("give it another name"));
        return None;
    }
    if is_name(&name.value) {
        return Some(name);
    }
    table.fault(bad_name("a stream's name", &name));
    None
}

fn one(table: &Table<'_>, name: Option<Text>) -> Option<StreamSpec> {
    let kind = kind(table);
    let (scope, canary) = (scope(table), table.flag("canary", false));
    let from_start = from_start(table);
    let file = file(table, kind == Some(StreamKind::File));
    let (headers, url) = (headers(table), url(table, kind));
    let (webhook, nats) = (webhook(table, url.as_ref(), &headers), nats(table, url.as_ref()));
    let target = match kind? {
        StreamKind::File => StreamTarget::File(file?),
        StreamKind::Webhook => StreamTarget::Webhook(webhook?),
        StreamKind::Nats => StreamTarget::Nats(nats?),
        StreamKind::Otlp => StreamTarget::Otlp(OtlpTarget { url: url?, headers }),
    };
    Some(StreamSpec { name: name?.value, target, scope, from_start, canary })
}

fn kind(table: &Table<'_>) -> Option<StreamKind> {
    let names = StreamKind::ALL.map(StreamKind::as_str);
    let given = table.text("kind");
    if table.place_of("kind").is_none() {
        let all = names.map(quoted).join(" or ");
        table.lacks("this stream has no `kind`", format!("write `kind = ` with {all}"));
    }
    let given = given?;
    let kind = StreamKind::ALL.into_iter().find(|kind| kind.as_str() == given.value);
    let Some(kind) = kind else {
        table.fault(unknown_value("kind", &given, &names));
        return None;
    };
    let mut foreign = BTreeSet::new();
    for other in StreamKind::ALL {
        for key in keys(other).iter().filter(|key| !keys(kind).contains(key)) {
            let Some(place) = table.place_of(key).filter(|_| foreign.insert(key)) else { continue };
            let message = format!("{} is not for `kind = {}`", code(key), quoted(kind.as_str()));
            let help = format!("leave it out, or write `kind = {}`", quoted(other.as_str()));
            table.fault(Fault::new(place, message).help(help));
        }
    }
    Some(kind)
}

fn from_start(table: &Table<'_>) -> bool {
    let Some(from) = table.text("from") else { return false };
    if !["now", "start"].contains(&from.value.as_str()) {
        table.fault(unknown_value("from", &from, &["now", "start"]));
    }
    from.value == "start"
}

fn scope(table: &Table<'_>) -> StreamScope {
    if let Some(item) = table.get("scope")
        && let DeValue::String(text) = item.get_ref()
    {
        if text != "all" {
            let message = format!("`scope` can't be {}", quoted(text));
            let help = "write \"all\", or a table such as `{ agents = [\"ui\"] }`";
            table.fault(Fault::new(item.span(), message).help(help));
        }
        return StreamScope::default();
    }
    table.section("scope", "streams.scope", |scope| {
        let list = |key: &'static str| {
            let names = scope.texts(key).unwrap_or_default();
            if let Some(place) = scope.place_of(key).filter(|_| names.is_empty()) {
                let message = format!("{} is empty: nothing would be delivered", code(key));
                scope.fault(Fault::new(place, message).help("leave it out for all"));
            }
            if let Some(more) = names.get(MOST_NAMES) {
                let message = format!("there are more than {MOST_NAMES} {}", code(key));
                scope.fault(Fault::new(more.span.clone(), message));
            }
            names.into_iter().map(|name| name.value).collect()
        };
        StreamScope { agents: list("agents"), sessions: list("sessions"), types: list("types") }
    })
}

fn file(table: &Table<'_>, is_it: bool) -> Option<FileTarget> {
    let max_mb = table.count("max_mb", 1..=1_000_000, 64);
    let keep = table.count("keep", 0..=1_000, 5);
    if is_it && table.place_of("path").is_none() {
        table.lacks("a stream into a file needs `path`", "write `path = \"logs/events.ndjson\"`");
    }
    let text = table.word("path")?;
    let path = table.reader.path(&text.value);
    if path.is_dir() {
        let message = format!("{} is a folder", quoted(&text.value));
        let help =
            format!("name a file in it: {}", quoted(&format!("{}/events.ndjson", text.value)));
        table.fault(Fault::new(text.span, message).help(help));
    }
    Some(FileTarget { path, max_bytes: max_mb << 20, keep })
}

/// The address of what is no file.
fn url(table: &Table<'_>, kind: Option<StreamKind>) -> Option<SecretText> {
    let place = table.place_of("url");
    let help = match kind? {
        StreamKind::File => return None,
        StreamKind::Webhook => "write `url = \"https://…\"`",
        StreamKind::Nats => NATS_ADDRESS,
        StreamKind::Otlp => "write `url = \"http://127.0.0.1:4318\"`, the address of a collector",
    };
    if place.is_none() {
        let kind = quoted(kind?.as_str());
        table.lacks(format!("a stream with `kind = {kind}` needs `url`"), help);
    }
    let text = table.word("url")?;
    if kind != Some(StreamKind::Nats) {
        return web_address(table, &text).map(SecretText::new);
    }
    nats_address(table, text, help)
}

fn nats_address(table: &Table<'_>, text: Text, help: &'static str) -> Option<SecretText> {
    let rest = ["nats://", "tls://"].iter().find_map(|scheme| text.value.strip_prefix(scheme));
    if rest.is_some_and(|rest| !rest.is_empty())
        && text.value.bytes().all(|it| it.is_ascii_graphic())
    {
        return Some(SecretText::new(text.value));
    }
    // It may have a password in it.
    let fault = Fault::new(text.span, "this is not an address of NATS");
    table.fault(fault.help(help));
    None
}

/// Reads how a server of NATS is reached, whose address is in `key`.
pub(super) fn nats_access(table: &Table<'_>, key: &'static str) -> Option<NatsAccess> {
    let url = table.word(key).and_then(|text| nats_address(table, text, NATS_ADDRESS));
    let token = table.word("token").map(|text| SecretText::new(text.value));
    let credentials = table.word("credentials").map(|text| table.reader.path(&text.value));
    Some(NatsAccess { url: url?, token, credentials })
}

fn webhook(
    table: &Table<'_>,
    url: Option<&SecretText>,
    headers: &BTreeMap<String, SecretText>,
) -> Option<WebhookTarget> {
    let batch = table.count("batch", 1..=1_000, 100);
    let timeout = Duration::from_secs(table.count("timeout_s", 1..=300, 10));
    let key = key(table);
    Some(WebhookTarget { url: url?.clone(), key, headers: headers.clone(), batch, timeout })
}

fn nats(table: &Table<'_>, url: Option<&SecretText>) -> Option<NatsTarget> {
    let token_of = |key, is_good: fn(&str) -> bool, help: &str| {
        let text = table.word(key)?;
        if !is_good(&text.value) {
            let message = format!("{} can't be {}", code(key), quoted(&text.value));
            table.fault(Fault::new(text.span.clone(), message).help(help.to_owned()));
        }
        Some(text.value)
    };
    let is_subject = |subject: &str| subject.split('.').all(is_token);
    let help =
        "write words of letters, digits, `-` and `_` with dots between, such as \"eisen.shop\"";
    let subject = token_of("subject", is_subject, help);
    let stream = token_of("jetstream", is_token, "write letters, digits, `-` and `_`");
    let token = table.word("token").map(|text| SecretText::new(text.value));
    let credentials = table.word("credentials").map(|text| table.reader.path(&text.value));
    let access = NatsAccess { url: url?.clone(), token, credentials };
    Some(NatsTarget { access, subject, stream, inbox: None })
}

pub(super) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(is_plain)
}

/// The key of signatures, in base64, as Standard Webhooks writes it.
fn key(table: &Table<'_>) -> Option<SecretText> {
    let text = table.word("secret")?;
    let key = text.value.strip_prefix("whsec_").unwrap_or_default();
    let is_long = |key: Vec<u8>| (SHORTEST_KEY..=LONGEST_KEY).contains(&key.len());
    if BASE64_STANDARD.decode(key).is_ok_and(is_long) {
        return Some(SecretText::new(key.to_owned()));
    }
    // The text itself is not shown.
    let fault = Fault::new(
        text.span,
        format!("`secret` must be `whsec_` and base64 of {SHORTEST_KEY} to {LONGEST_KEY} bytes"),
    );
    table.fault(fault.help("make one: `echo whsec_$(openssl rand -base64 32)`"));
    None
}

/// The files that a configuration's streams write.
pub(super) fn files(streams: &[StreamSpec]) -> impl Iterator<Item = PathBuf> {
    streams.iter().filter_map(|stream| match &stream.target {
        StreamTarget::File(file) => Some(file.path.clone()),
        StreamTarget::Webhook(_) | StreamTarget::Nats(_) | StreamTarget::Otlp(_) => None,
    })
}

/// Compiles one stream that was not written in a file; `folder` is where its files are, and the only
/// place where they may be.
pub fn stream_of(
    table: &AgentTable,
    folder: &Path,
    eisen_dir: &Path,
) -> Result<StreamSpec, String> {
    let path = table.get("path").and_then(|path| path.as_str());
    if let Some(path) = path.filter(|path| !is_name(path)) {
        return Err(format!(
            "`path` must be a name of a file in {}, not {}: no agent can open what is there",
            folder.display(),
            quoted(path)
        ));
    }
    let written = toml::Table::try_from(table)
        .map(|stream| toml::Table::from_iter([("streams".to_owned(), vec![stream].into())]))
        .map_err(|error| error.to_string())
        .and_then(|streams| toml::to_string(&streams).map_err(|error| error.to_string()));
    let text = written.map_err(|error| format!("the stream can't be written as TOML: {error}"))?;
    let document = DeTable::parse(&text).map_err(|error| error.message().to_owned())?;
    let surroundings = Surroundings::of_process(eisen_dir, Box::new(|_| Ok(true)));
    let reader = ConfigReader::new(&text, &[], folder, &surroundings);
    let mut read = reader.read(document.get_ref(), |root| streams(root, true));
    let (faults, _) = reader.finish();
    if !faults.is_empty() {
        let errors = ConfigErrors::new(Path::new("stream"), text.clone(), faults);
        let sentence = |error: super::ConfigError| {
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{}{help}", error.message)
        };
        return Err(errors.list().into_iter().map(sentence).collect::<Vec<_>>().join("; "));
    }
    let stream = read.pop().ok_or_else(|| "there is no stream".to_owned())?;
    // A variable in it may have been anything.
    let outside = files(std::slice::from_ref(&stream)).find(|path| path.parent() != Some(folder));
    match outside {
        Some(path) => Err(format!("{} is not in {}", path.display(), folder.display())),
        None => Ok(stream),
    }
}
