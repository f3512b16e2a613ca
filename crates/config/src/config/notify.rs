//! `[[notify]]`: the events to notify of, and the channels.

use std::time::Duration;

use super::command::command;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::{Table, Text, unknown_value};
use crate::model::{QuietSpan, named};

const WEEK: u64 = 7 * 24 * 60 * 60;

/// Spans of `quiet` in one table.
const MOST_SPANS: usize = 16;

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
            NotifyBy::Desktop => "desktop".to_owned(),
        };
        let events: Vec<_> = self.events.iter().map(|event| event.as_str()).collect();
        format!("{how}: {} after {} s", events.join(", "), self.after.as_secs())
    }

    /// Returns the program that it runs.
    pub fn program(&self) -> Option<&str> {
        match &self.by {
            NotifyBy::Command(command) => command.first().map(String::as_str),
            NotifyBy::Webhook(_) | NotifyBy::Ntfy(_) => None,
            NotifyBy::Desktop => Some("notify-send"),
        }
    }
}

/// Reads all tables.
pub(super) fn notify(root: &Table<'_>) -> Vec<Notify> {
    root.sections("notify", one).into_iter().flatten().collect()
}

fn one(table: &Table<'_>) -> Option<Notify> {
    const KINDS: [&str; 4] = ["command", "webhook", "desktop", "ntfy"];
    let kind = table.text("kind");
    if table.place_of("kind").is_none() {
        let help = "write `kind = \"command\"`, \"webhook\", \"desktop\" or \"ntfy\"";
        table.lacks("this table has no `kind`", help);
    }
    let (after, events) = (table.seconds("after_s", 0..=WEEK, 10), events(table));
    let quiet = quiet(table);
    let (program, url) = (command(table), table.text("url"));
    let kind = kind?;
    if !KINDS.contains(&kind.value.as_str()) {
        table.fault(unknown_value("kind", &kind, &KINDS));
        return None;
    }
    let web = ["webhook", "ntfy"];
    for (key, owners) in [("command", &["command"][..]), ("url", &web)] {
        let place = table.place_of(key);
        let owner = owners[0];
        if let Some(place) = place.filter(|_| !owners.contains(&kind.value.as_str())) {
            let message = format!("{} is not for `kind = {}`", code(key), quoted(&kind.value));
            let help = format!("leave it out, or write `kind = {}`", quoted(owner));
            table.fault(Fault::new(place, message).help(help));
        }
    }
    let by = match kind.value.as_str() {
        "command" => {
            if table.place_of("command").is_none() {
                let help = "write `command = [\"PROGRAM\", \"ARG\"]`";
                table.lacks("a command needs `command`", help);
            }
            NotifyBy::Command(program?)
        }
        of_web if web.contains(&of_web) => {
            if table.place_of("url").is_none() {
                let message = format!("`kind = {}` needs `url`", quoted(of_web));
                table.lacks(message, "write `url = \"https://…\"`");
            }
            let url = web_address(table, &url?)?;
            if of_web == "ntfy" { NotifyBy::Ntfy(url) } else { NotifyBy::Webhook(url) }
        }
        _ => NotifyBy::Desktop,
    };
    Some(Notify { by, after, events, quiet })
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
