//! `[[notify]]`: the events to notify of, and the channels.

use std::time::Duration;

use super::command::command;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::{Table, Text, unknown_value};
use crate::model::named;

const WEEK: u64 = 7 * 24 * 60 * 60;

/// One table of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notify {
    pub by: NotifyBy,
    /// How long a cause lasts before a notice is sent.
    pub after: Duration,
    /// In the order of [`NotifyOn::ALL`].
    pub events: Vec<NotifyOn>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotifyBy {
    /// Program and arguments; never empty.
    Command(Vec<String>),
    Webhook(String),
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
    }
}

impl Notify {
    /// Describes the channel in one line.
    pub fn describe(&self) -> String {
        let how = match &self.by {
            NotifyBy::Command(command) => format!("command {}", command.join(" ")),
            NotifyBy::Webhook(url) => format!("webhook {url}"),
            NotifyBy::Desktop => "desktop".to_owned(),
        };
        let events: Vec<_> = self.events.iter().map(|event| event.as_str()).collect();
        format!("{how}: {} after {} s", events.join(", "), self.after.as_secs())
    }

    /// Returns the program that it runs.
    pub fn program(&self) -> Option<&str> {
        match &self.by {
            NotifyBy::Command(command) => command.first().map(String::as_str),
            NotifyBy::Webhook(_) => None,
            NotifyBy::Desktop => Some("notify-send"),
        }
    }
}

/// Reads all tables.
pub(super) fn notify(root: &Table<'_>) -> Vec<Notify> {
    root.sections("notify", one).into_iter().flatten().collect()
}

fn one(table: &Table<'_>) -> Option<Notify> {
    const KINDS: [&str; 3] = ["command", "webhook", "desktop"];
    let kind = table.text("kind");
    if table.place_of("kind").is_none() {
        let help = "write `kind = \"command\"`, \"webhook\" or \"desktop\"";
        table.lacks("this table has no `kind`", help);
    }
    let (after, events) = (table.seconds("after_s", 0..=WEEK, 10), events(table));
    let (program, url) = (command(table), table.text("url"));
    let kind = kind?;
    if !KINDS.contains(&kind.value.as_str()) {
        table.fault(unknown_value("kind", &kind, &KINDS));
        return None;
    }
    for (key, owner) in [("command", "command"), ("url", "webhook")] {
        let place = table.place_of(key);
        if let Some(place) = place.filter(|_| kind.value != owner) {
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
        "webhook" => {
            if table.place_of("url").is_none() {
                table.lacks("a webhook needs `url`", "write `url = \"https://…\"`");
            }
            NotifyBy::Webhook(web_address(table, &url?)?)
        }
        _ => NotifyBy::Desktop,
    };
    Some(Notify { by, after, events })
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

fn web_address(table: &Table<'_>, url: &Text) -> Option<String> {
    let lower = url.value.to_ascii_lowercase();
    let rest = lower.strip_prefix("http://").or_else(|| lower.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_plain = |byte: u8| byte.is_ascii_graphic();
    if host.is_some_and(|host| !host.is_empty()) && url.value.bytes().all(is_plain) {
        return Some(url.value.clone());
    }
    let message = format!("{} is not a web address", quoted(&url.value));
    table.fault(
        Fault::new(url.span.clone(), message).help("write one such as \"https://example.org/x\""),
    );
    None
}
