//! `streams`: lists the streams of a running team, and attaches and detaches them.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::Global;
use super::output::{plain, print, style};
use super::table::{Cell, Table};
use super::team::{AtHost, Which, failed, read};
use crate::program::Failure;
use crate::wire::{
    AttachStream, AttachStreamParams, DetachStream, DetachStreamParams, Empty, ListStreams, Object,
    StreamStatus,
};

/// Show where a running team delivers its journal, or attach and detach streams
///
/// A stream delivers events of the journal, as `[[streams]]` of the configuration says. DELIVERED, LOST
/// and DEAD count events since the team began: LOST left the journal before they were delivered, DEAD
/// the receiver refused for good. POSITION is the number in the journal up to which all is delivered.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  eisen-core team streams
  eisen-core team streams attach turns kind=file path=turns.ndjson 'scope.types=[\"turn\"]'
  eisen-core team streams detach turns
  eisen-core team streams detach turns --team hub --host a

Exit codes: 0 done, 1 refused or no such team, 2 wrong usage."
)]
pub(super) struct StreamsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print the streams as JSON, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    at: AtHost,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Add a stream to the running team, and keep it over a restart; or attach one of the configuration
    /// again
    Attach(Attach),
    /// End a stream, also over a restart of the team
    Detach {
        /// The stream
        name: String,
    },
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team streams attach turns kind=file path=turns.ndjson 'scope.types=[\"turn\"]'
  eisen-core team streams attach audit  one of the configuration that was detached

Exit codes: 0 done, 1 refused or no such team, 2 wrong usage.")]
struct Attach {
    /// Its name; alone that of one of the configuration that was detached
    name: String,
    /// Its keys, as in `[[streams]]`: a value is TOML, or else a string. A file is in the team's folder
    #[arg(value_name = "KEY=VALUE")]
    keys: Vec<String>,
}

impl StreamsArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let Self { action, json, which, at } = self;
        match action {
            None => {}
            Some(Action::Attach(attach)) => {
                let params = AttachStreamParams { config: Object(attach.config()?) };
                let mut team = which.connect(global).await?;
                let stream = at.ask::<AttachStream>(&mut team, &params).await.map_err(failed)?;
                return print(describe(&read(&stream)?));
            }
            Some(Action::Detach { name }) => {
                let mut team = which.connect(global).await?;
                let params = DetachStreamParams { name };
                let stream = at.ask::<DetachStream>(&mut team, &params).await.map_err(failed)?;
                return print(describe(&read(&stream)?));
            }
        }
        let mut team = which.connect(global).await?;
        let list = at.ask::<ListStreams>(&mut team, &Empty {}).await.map_err(failed)?;
        if json {
            return print(list);
        }
        let rows = read(&list)?;
        if rows.is_empty() {
            return print("The team has no streams: its configuration has no [[streams]].");
        }
        print(table(&rows).lines(None).join("\n"))
    }
}

impl Attach {
    fn config(&self) -> Result<Map<String, Value>, Failure> {
        let mut text = String::new();
        for key in &self.keys {
            let Some((name, value)) = key.split_once('=') else {
                let why = format!("{key:?} is not KEY=VALUE");
                return Err(Failure::Usage(anyhow!(why)));
            };
            let line = format!("{name} = {value}\n");
            if line.parse::<toml::Table>().is_ok() {
                text += &line;
            } else {
                let value = toml::Value::from(value);
                text += &[name, " = ", &value.to_string(), "\n"].concat();
            }
        }
        let wrong = |error: &dyn std::fmt::Display| Failure::Usage(anyhow!("{error}"));
        let table: toml::Table = text.parse().map_err(|error| wrong(&error))?;
        let mut config = match serde_json::to_value(table).map_err(|error| wrong(&error))? {
            Value::Object(config) => config,
            _ => Map::new(),
        };
        config.insert("name".to_owned(), self.name.as_str().into());
        Ok(config)
    }
}

fn table(rows: &[StreamStatus<'_>]) -> Table {
    let titles = ["STREAM", "KIND", "STATE", ">DELIVERED", ">LOST", ">DEAD", ">POSITION", "REASON"];
    let mut table = Table::new(&titles);
    for row in rows {
        table.row(vec![
            plain(&row.name).into(),
            plain(row.kind.as_str()).into(),
            Cell::styled(&plain(row.state.as_str()), color(row.state.as_str())),
            row.delivered.to_string().into(),
            row.lost.to_string().into(),
            row.dead.to_string().into(),
            row.position.map_or_else(|| "-".to_owned(), |at| at.to_string()).into(),
            plain(row.reason.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table
}

fn color(state: &str) -> anstyle::Style {
    style(match state {
        "ok" => "ready",
        "degraded" => "pending",
        "unavailable" => "error",
        _ => "stopped",
    })
}

/// One line about a stream.
pub(super) fn describe(row: &StreamStatus<'_>) -> String {
    let color = color(row.state.as_str());
    let reason = row.reason.as_deref().map(|why| format!(": {}", plain(why))).unwrap_or_default();
    format!("stream {}: {color}{}{color:#}{reason}", plain(&row.name), plain(row.state.as_str()))
}
