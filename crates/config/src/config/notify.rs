//! `[[notify]]`: the events to notify of, and the channels.

use std::time::Duration;

use toml::de::DeValue;

use super::command::command;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::{Table, Text, unknown_value};
use crate::model::{ChatService, ChatTarget, QuietSpan, SecretText, named};

const WEEK: u64 = 7 * 24 * 60 * 60;

/// Spans of `quiet` in one table.
const MOST_SPANS: usize = 16;

/// Bytes of the token of a bot.
const LONGEST_TOKEN: usize = 256;

/// Bytes of the id of a chat.
const LONGEST_CHAT_ID: usize = 64;

/// Telegram's own server.
const TELEGRAM: &str = "https://api.telegram.org";

const KINDS: [&str; 7] = ["command", "webhook", "desktop", "ntfy", "slack", "telegram", "discord"];

/// The keys that not every kind has, each with the kinds that have it.
const OWNED: [(&str, &[&str]); 5] = [
    ("command", &["command"]),
    ("url", &["webhook", "ntfy", "slack", "telegram", "discord"]),
    ("token", &["telegram"]),
    ("chat_id", &["telegram"]),
    ("contents", &["slack", "telegram", "discord"]),
];

/// One table of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notify {
    pub by: NotifyBy,
    /// How long a cause lasts before a notice is sent.
    pub after: Duration,
    /// In the order of [`NotifyOn::ALL`].
    pub events: Vec<NotifyOn>,
    /// When notices wait, in local time.
    pub quiet: Vec<QuietSpan>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotifyBy {
    /// Program and arguments; never empty.
    Command(Vec<String>),
    Webhook(String),
    /// The address of a topic.
    Ntfy(String),
    Chat(ChatTarget),
    Desktop,
}

named! {
    /// The events that cause a notice.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum NotifyOn {
        /// An access waits for a decision.
        Pending = "pending",
        /// An agent makes no progress.
        Stall = "stall",
        /// An agent or its turn failed.
        Error = "error",
        /// A budget is used up, or nearly.
        Budget = "budget",
        /// An agent goes in a loop.
        Loop = "loop",
        /// No agent works any more.
        Done = "done",
    }
}

impl Notify {
    /// Describes the channel in one line.
    pub fn describe(&self) -> String {
        let how = match &self.by {
            NotifyBy::Command(command) => format!("command {}", command.join(" ")),
            NotifyBy::Webhook(url) => format!("webhook {url}"),
            NotifyBy::Ntfy(url) => format!("ntfy {url}"),
            NotifyBy::Chat(chat) => chat.describe(),
            NotifyBy::Desktop => "desktop".to_owned(),
        };
        let events: Vec<_> = self.events.iter().map(|event| event.as_str()).collect();
        format!("{how}: {} after {} s", events.join(", "), self.after.as_secs())
    }

    /// Returns the program that it runs.
    pub fn program(&self) -> Option<&str> {
        match &self.by {
            NotifyBy::Command(command) => command.first().map(String::as_str),
            NotifyBy::Webhook(_) | NotifyBy::Ntfy(_) | NotifyBy::Chat(_) => None,
            NotifyBy::Desktop => Some("notify-send"),
        }
    }
}

/// Reads all tables.
pub(super) fn notify(root: &Table<'_>) -> Vec<Notify> {
    root.sections("notify", one).into_iter().flatten().collect()
}

fn one(table: &Table<'_>) -> Option<Notify> {
    let kind = table.text("kind");
    if table.place_of("kind").is_none() {
        let [names @ .., last] = KINDS.map(quoted);
        let help = format!("write `kind = ` with {} or {last}", names.join(", "));
        table.lacks("this table has no `kind`", help);
    }
    let (after, events) = (table.seconds("after_s", 0..=WEEK, 10), events(table));
    let quiet = quiet(table);
    let (program, url) = (command(table), table.text("url"));
    let (token, chat_id) = (token(table), chat_id(table));
    let contents = table.flag("contents", false);
    let kind = kind?;
    if !KINDS.contains(&kind.value.as_str()) {
        table.fault(unknown_value("kind", &kind, &KINDS));
        return None;
    }
    misplaced(table, &kind);
    let address = || {
        lacking(table, &kind, "url", "\"https://…\"");
        web_address(table, url.as_ref()?)
    };
    let chat = |service| NotifyBy::Chat(ChatTarget { service, contents });
    let by = match kind.value.as_str() {
        "command" => {
            if table.place_of("command").is_none() {
                let help = "write `command = [\"PROGRAM\", \"ARG\"]`";
                table.lacks("a command needs `command`", help);
            }
            NotifyBy::Command(program?)
        }
        "webhook" => NotifyBy::Webhook(address()?),
        "ntfy" => NotifyBy::Ntfy(address()?),
        "slack" => chat(ChatService::Slack(SecretText::new(address()?))),
        "discord" => chat(ChatService::Discord(SecretText::new(address()?))),
        "telegram" => {
            lacking(table, &kind, "token", "\"${TELEGRAM_TOKEN}\"");
            lacking(table, &kind, "chat_id", "\"123456789\"");
            let server = server(table, url.as_ref());
            chat(ChatService::Telegram { server: server?, token: token?, chat_id: chat_id? })
        }
        _ => NotifyBy::Desktop,
    };
    Some(Notify { by, after, events, quiet })
}

/// Reports the keys that are not for this kind.
fn misplaced(table: &Table<'_>, kind: &Text) {
    for (key, owners) in OWNED {
        if owners.contains(&kind.value.as_str()) {
            continue;
        }
        if let Some(place) = table.place_of(key) {
            let message = format!("{} is not for `kind = {}`", code(key), quoted(&kind.value));
            let help = format!("leave it out, or write `kind = {}`", quoted(owners[0]));
            table.fault(Fault::new(place, message).help(help));
        }
    }
}

/// Reports a key that this kind needs, if it is not there.
fn lacking(table: &Table<'_>, kind: &Text, key: &'static str, example: &str) {
    if table.place_of(key).is_none() {
        let message = format!("`kind = {}` needs {}", quoted(&kind.value), code(key));
        table.lacks(message, format!("write `{key} = {example}`"));
    }
}

/// The token of a bot. What is wrong with one is said without it.
fn token(table: &Table<'_>) -> Option<SecretText> {
    let text = table.word("token")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":_-".contains(&byte);
    if text.value.len() <= LONGEST_TOKEN && text.value.bytes().all(is_plain) {
        return Some(SecretText::new(text.value));
    }
    let fault = Fault::new(text.span, "this is not the token of a bot");
    table.fault(fault.help("write it as @BotFather gave it, such as \"123456:ABC-DEF\""));
    None
}

/// The id of a chat: a number, also without quotes, or the name of a channel.
fn chat_id(table: &Table<'_>) -> Option<String> {
    const HELP: &str =
        "write the number of the chat, such as \"123456789\", or a channel such as \"@my_team\"";
    let item = table.get("chat_id")?;
    let text = match item.get_ref() {
        DeValue::Integer(id) if id.radix() == 10 => {
            Text { value: id.as_str().to_owned(), span: item.span() }
        }
        _ => table.text_or("chat_id", || HELP.to_owned())?,
    };
    let number = text.value.strip_prefix('-').unwrap_or(&text.value);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = text.value.strip_prefix('@').is_some_and(|name| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_plain)
    });
    let is_short = !number.is_empty() && text.value.len() <= LONGEST_CHAT_ID;
    if is_short && (is_number || is_name) {
        return Some(text.value);
    }
    table.fault(Fault::new(text.span, "this is not the id of a chat").help(HELP));
    None
}

/// The server of the Bot API: Telegram's own, or the one that is named.
fn server(table: &Table<'_>, url: Option<&Text>) -> Option<SecretText> {
    let Some(url) = url else {
        // A broken one has a fault of its own.
        let is_absent = table.place_of("url").is_none();
        return is_absent.then(|| SecretText::new(TELEGRAM.to_owned()));
    };
    let server = web_address(table, url)?;
    if server.contains(['?', '#']) {
        let fault = Fault::new(url.span.clone(), "this is not the address of a server");
        table.fault(
            fault.help(format!("write one such as {}, without `?` and `#`", quoted(TELEGRAM))),
        );
        return None;
    }
    Some(SecretText::new(server.trim_end_matches('/').to_owned()))
}

/// All, if none are named.
fn events(table: &Table<'_>) -> Vec<NotifyOn> {
    let Some(named) = table.texts("events") else { return NotifyOn::ALL.to_vec() };
    let known = NotifyOn::ALL.map(NotifyOn::as_str);
    for event in named.iter().filter(|event| !known.contains(&event.value.as_str())) {
        table.fault(unknown_value("events", event, &known));
    }
    if let Some(place) = table.place_of("events").filter(|_| named.is_empty()) {
        let fault = Fault::new(place, "`events` is empty: there would be no notices");
        table.fault(fault.help("leave it out for all, or name some, such as \"error\""));
    }
    let is_named = |event: &NotifyOn| named.iter().any(|name| name.value == event.as_str());
    NotifyOn::ALL.into_iter().filter(is_named).collect()
}

fn quiet(table: &Table<'_>) -> Vec<QuietSpan> {
    let spans = table.texts("quiet").unwrap_or_default();
    let parsed = spans.iter().filter_map(|text| {
        let span = QuietSpan::parse(&text.value);
        if span.is_none() {
            let message = format!("{} is not a span of a day", quoted(&text.value));
            let fault = Fault::new(text.span.clone(), message);
            table.fault(fault.help("write hours and minutes, such as \"22:00-07:00\""));
        }
        span
    });
    let parsed: Vec<_> = parsed.collect();
    if let Some(more) = spans.get(MOST_SPANS) {
        let message = format!("there are more than {MOST_SPANS} spans");
        table.fault(Fault::new(more.span.clone(), message));
    }
    parsed
}

pub(super) fn web_address(table: &Table<'_>, url: &Text) -> Option<String> {
    let lower = url.value.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_plain = |byte: u8| byte.is_ascii_graphic();
    if host.is_some_and(|host| !host.is_empty()) && url.value.bytes().all(is_plain) {
        return Some(url.value.clone());
    }
    // Its value may come from a variable, and have a key in it.
    let fault = Fault::new(url.span.clone(), "this is not a web address");
    table.fault(fault.help("write one such as \"https://example.org/x\""));
    None
}
