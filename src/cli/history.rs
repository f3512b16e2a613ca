//! `history`: the events of a team's journal as a list, as a tree of forks, or by a search.

mod fold;
mod since;
mod summary;
mod tree;

use std::io;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Value, json, to_value};

pub(super) use self::since::{Since, span_ms};
use self::tree::Tree;
use super::Global;
use super::journal::WhichJournal;
use super::output::{failure, is_terminal, lines, plain, print};
use crate::journal::{Event, Filter, NameError, OpenError, Session, Store};
use crate::model::rfc3339;
use crate::program::Failure;

/// Lists events of a journal.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core history                   everything, session by session
  eisen-core history ui --outside              also what it did in its home and in .git
  eisen-core history ui --type tool    the tool calls and results of an agent
  eisen-core history ui/s1 --since 2h  a session of the wire, its last two hours
  eisen-core history --json | jq -r 'select(.type == \"message.user\") | .payload.text'
  eisen-core history search 'foot* margin'
  eisen-core history show 0192f3a1

Exit codes: 0 done, 1 no such journal, session or event, 2 wrong usage.")]
pub(super) struct History {
    /// An agent, or a session: its id in the journal, the beginning of one, or AGENT/SESSION of the
    /// wire
    #[arg(value_name = "AGENT|SESSION")]
    name: Option<String>,
    /// Only events of this type: `tool.call`, or `tool` for all that begin so (repeatable)
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events since then: `90s`, `10m`, `2h`, `3d`, a day or time in UTC such as
    /// 2026-11-24T09:30, or behind the event with this id
    #[arg(long, value_name = "TIME|EVENT")]
    since: Option<Since>,
    /// Show a line for each change of a file, also for those outside the workspace and in `.git`; without it
    /// and without --type changes that follow one another are one line
    #[arg(long)]
    outside: bool,
    /// Print each event as a JSON object, oldest first
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichJournal,
}

#[derive(Subcommand, Debug)]
pub(super) enum Part {
    /// Find events by words, the best first
    ///
    /// All words must be in an event. A `*` behind a word finds all that begins so, words in quotes
    /// stand together.
    Search {
        /// The words
        #[arg(required = true)]
        words: Vec<String>,
        /// Show at most N events
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Print each event as a JSON object, with `snippet` and `rank`
        #[arg(long)]
        json: bool,
    },
    /// Show one event with all its fields
    Show {
        /// The event's id, or the beginning of one
        event: String,
        /// Print it as a JSON object, on one line
        #[arg(long)]
        json: bool,
    },
}

/// The meaning of a name.
enum Named {
    Agent(String),
    Session(Session),
}

impl History {
    pub(super) fn run(self, part: Option<&Part>, global: &Global) -> Result<(), Failure> {
        let store = self.which.open(global)?;
        match part {
            Some(Part::Search { words, limit, json }) => search(&store, words, *limit, *json),
            Some(Part::Show { event, json }) => show(&store, event, *json),
            None => self.list(&store),
        }
    }

    fn list(&self, store: &Store) -> Result<(), Failure> {
        let named = self.name.as_deref().map(|name| named(store, name)).transpose()?;
        let mut filter = Filter { types: self.types.clone(), ..Filter::default() };
        match &self.since {
            Some(Since::Event(id)) => filter.after = Some(event(store, id)?.id),
            Some(Since::Time(at)) => filter.since = Some(*at),
            None => {}
        }
        if self.json {
            match named {
                Some(Named::Agent(agent)) => filter.agent_id = Some(agent),
                Some(Named::Session(session)) => filter.session_id = Some(session.id),
                None => {}
            }
            let mut out = lines();
            return each(store, &filter, &mut |event| write_json(&mut out, event));
        }
        let folds = !self.outside && self.types.is_empty();
        let mut tree = Tree::new(store, filter, folds, lines()).map_err(unreadable)?;
        match named {
            Some(Named::Session(session)) => tree.session(&session)?,
            Some(Named::Agent(agent)) => tree.team(Some(&agent))?,
            None => tree.team(None)?,
        }
        tree.finish()
    }
}

/// Calls `show` for each event, page by page.
pub(super) fn each(
    store: &Store,
    filter: &Filter,
    show: &mut dyn FnMut(&Event) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut filter = Filter { limit: 1_000, ..filter.clone() };
    loop {
        let page = store.events(&filter).map_err(unreadable)?;
        page.events.iter().try_for_each(&mut *show)?;
        let Some(next) = page.next else { return Ok(()) };
        filter.after = Some(next);
    }
}

fn write_json(out: &mut impl io::Write, event: &Event) -> Result<(), Failure> {
    let line = serde_json::to_string(event).map_err(|error| Failure::Run(error.into()))?;
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(failure)
}

/// An agent first: a session can be named in other ways.
fn named(store: &Store, name: &str) -> Result<Named, Failure> {
    let of_agent = Filter { agent_id: Some(name.to_owned()), limit: 1, ..Filter::default() };
    if !store.events(&of_agent).map_err(unreadable)?.events.is_empty() {
        return Ok(Named::Agent(name.to_owned()));
    }
    match store.session_named(name, None) {
        Ok(session) => Ok(Named::Session(session)),
        Err(NameError::NoSession { .. }) => {
            let agents = store.sessions().map_err(unreadable)?;
            let mut agents: Vec<_> = agents.into_iter().map(|session| session.agent_id).collect();
            agents.sort();
            agents.dedup();
            let why = format!("there is no agent and no session `{name}`");
            let agents = agents.join(", ");
            let known = if agents.is_empty() {
                String::new()
            } else {
                format!("; the agents are: {agents}")
            };
            Err(Failure::Run(anyhow!("{why}{known}")))
        }
        Err(error) => Err(Failure::Run(error.into())),
    }
}

pub(super) fn event(store: &Store, id: &str) -> Result<Event, Failure> {
    store.event_named(id).map_err(|error| Failure::Run(error.into()))
}

#[derive(Serialize)]
struct FoundLine<'a> {
    #[serde(flatten)]
    event: Value,
    snippet: &'a str,
    rank: f64,
}

fn search(store: &Store, words: &[String], limit: usize, as_json: bool) -> Result<(), Failure> {
    let found = store.search(&words.join(" "), limit).map_err(unreadable)?;
    for found in &found {
        if as_json {
            let (event, snippet, rank) = (&found.event, &found.snippet, found.rank);
            print(json!(FoundLine { event: to_value(event).unwrap_or_default(), snippet, rank }))?;
            continue;
        }
        let event = &found.event;
        let agent = event.agent_id.as_deref().unwrap_or("team");
        let (time, kind) = (time(event.timestamp), &event.kind);
        print(format_args!("{}  {time}  {}  {kind}", event.id, plain(agent)))?;
        print(format_args!("    {}", plain(&found.snippet)))?;
    }
    if found.is_empty() && is_terminal() {
        print("nothing has all these words")?;
    }
    Ok(())
}

fn show(store: &Store, id: &str, as_json: bool) -> Result<(), Failure> {
    let event = event(store, id)?;
    if as_json {
        return write_json(&mut lines(), &event);
    }
    let none = || "-".to_owned();
    let number = |number: Option<u64>| number.map_or_else(none, |it| it.to_string());
    let text = |text: Option<String>| text.unwrap_or_else(none);
    let payload: serde_json::Value = serde_json::from_str(event.payload.get()).unwrap_or_default();
    for (name, value) in [
        ("id", event.id.clone()),
        ("type", event.kind.clone()),
        ("time", time(event.timestamp)),
        ("agent", text(event.agent_id)),
        ("session", text(event.session_id)),
        ("turn", number(event.turn)),
        ("sequence", number(event.sequence)),
        ("depth", number(event.depth)),
        ("parent", text(event.parent_id)),
    ] {
        print(format_args!("{name:<9} {}", plain(&value)))?;
    }
    print(format_args!("{payload:#}"))
}

/// Milliseconds since 1970 as UTC, with milliseconds.
fn time(timestamp: u64) -> String {
    let seconds = rfc3339(timestamp / 1000);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), timestamp % 1000)
}

fn unreadable(error: OpenError) -> Failure {
    Failure::Run(error.into())
}
