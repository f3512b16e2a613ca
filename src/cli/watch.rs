//! `watch`: follows messages, tool calls, plans and blocked accesses of agents.

mod page;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::page::Page;
pub(super) use self::page::style_of;
use super::Global;
use super::blocked::{Blocked, SeenAccesses};
use super::conflicts::{Conflict, describe};
use super::output::{self, is_terminal, note, plain, write};
use super::team::{Which, failed, rows};
use super::transcript::{Fold, LineKind, ShownLine};
use crate::app::{self, Failure};
use crate::model::one_line;
use crate::serve::client::{self, ClientError, Connection, Target};
use crate::wire::{Agent, ConflictLine, ReportLine, ServerLine, UpdateLine};

/// How often unfinished lines and calls are checked, on a terminal.
const TICK: Duration = Duration::from_millis(500);

/// Conflicts that are remembered; past that, those that still wait.
const MOST_CONFLICTS: usize = 1000;

/// Types of messages that --json prints.
const SHOWN_TYPES: [&str; 6] = ["session_update", "blocked", "conflict", "agent", "turn", "report"];

/// Follow the messages and tool calls of agents
///
/// Shows messages line by line, the first line of each thought, one line for each tool call with
/// its result, changed entries of plans, and what agents report. Accesses and writes in conflict that wait for a
/// decision are shown with the command that decides them. Permission requests inside the zone are not shown. Ends with the
/// team, or by Ctrl-C.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core watch                  every agent of the team
  eisen-core watch ui api
  eisen-core watch --thoughts ui
  eisen-core watch --json ui | jq -c 'select(.type == \"session_update\") | .update'

Exit codes: 0 the team has ended, or Ctrl-C; 1 no such team or agent, 2 wrong usage.")]
pub(super) struct Watch {
    /// Ids of the agents [default: all]
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
    /// Show whole thoughts
    #[arg(long, conflicts_with = "json")]
    thoughts: bool,
    /// Print JSON lines of the port: `session_update`, `blocked`, `conflict`, `agent`, `turn` and
    /// `report`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl Watch {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        let mut interrupts =
            signal(SignalKind::interrupt()).map_err(|error| Failure::Run(error.into()))?;
        // A task of its own: a paused terminal blocks the loop below.
        tokio::spawn(async move {
            interrupts.recv().await;
            std::process::exit(0);
        });
        output::end_with_reader();
        let mut team = Connection::open(&target).await.map_err(failed)?;
        let agents = self.agents(&mut team).await?;
        let mut watched = Watched {
            agents: agents.iter().cloned().collect(),
            all: self.agents.is_empty(),
            json: self.json,
            fold: Fold::new(self.thoughts),
            page: Page::new(&agents),
            states: HashMap::new(),
            seen: SeenAccesses::default(),
            conflicts: HashMap::new(),
            program: app::own_command(),
        };
        loop {
            let ended = watched.follow(&mut team).await?;
            watched.flush()?;
            // The team disconnects slow readers, and our output may be slow: reconnect.
            match reconnect(&target, &ended).await {
                Some(again) => team = again,
                None => break,
            }
            note("… disconnected for reading too slowly, reconnected: some lines are missing");
        }
        note(format_args!("the team `{}` has ended", plain(target.team())));
        Ok(())
    }

    /// The ids of the selected agents.
    async fn agents(&self, team: &mut Connection) -> Result<Vec<String>, Failure> {
        let all = team.call("list_agents", &json!({})).await.map_err(failed)?;
        let all: Vec<Agent<'_>> = rows(&all);
        let all: BTreeSet<_> = all.into_iter().map(|agent| agent.agent_id.into_owned()).collect();
        if let Some(unknown) = self.agents.iter().find(|agent| !all.contains(*agent)) {
            let all = all.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Failure::Run(anyhow!("there is no agent `{unknown}`; there are {all}")));
        }
        let named: BTreeSet<_> = self.agents.iter().cloned().collect();
        Ok(if named.is_empty() { all } else { named }.into_iter().collect())
    }
}

async fn reconnect(target: &Target, ended: &ClientError) -> Option<Connection> {
    match ended {
        ClientError::Closed | ClientError::Broken(_) => Connection::open(target).await.ok(),
        _ => None,
    }
}

fn is_asked(asked: &HashMap<u64, &str>, method: &str) -> bool {
    asked.values().any(|open| *open == method)
}

/// The state of the output, kept across connections.
struct Watched {
    agents: BTreeSet<String>,
    /// Whether agents that join later are shown, too.
    all: bool,
    json: bool,
    fold: Fold,
    page: Page,
    /// The state of each agent that was shown.
    states: HashMap<String, String>,
    seen: SeenAccesses,
    /// The status of each conflict that was shown.
    conflicts: HashMap<String, String>,
    program: String,
}

/// The common part of all lines of the port.
#[derive(Deserialize)]
struct LineHead {
    agent_id: Option<String>,
    /// Of a conflict: the writer, then the others.
    agents: Option<Vec<Value>>,
}

/// The answer to one of the requests for lists.
#[derive(Deserialize)]
struct Listed {
    id: u64,
    result: Value,
}

/// The conflicts of `list_conflicts`.
#[derive(Deserialize)]
struct ConflictItems {
    conflicts: Vec<Value>,
}

impl LineHead {
    /// The agent that the line is of.
    fn agent(self) -> Option<String> {
        let writer = || self.agents?.first()?.as_str().map(str::to_owned);
        self.agent_id.or_else(writer)
    }
}

impl Watched {
    /// Prints lines until the connection ends; returns why it ended.
    async fn follow(&mut self, team: &mut Connection) -> Result<ClientError, Failure> {
        team.subscribe(&["session_update", "report"]);
        // Lines come between the answers, and are shown: a list misses what came after it.
        let mut asked = HashMap::new();
        if !self.json {
            let pending = json!({ "status": "pending" });
            for (method, params) in [
                ("list_agents", json!({})),
                ("list_blocked", pending.clone()),
                ("list_conflicts", pending),
            ] {
                asked.insert(team.send(method, &params), method);
            }
        }
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let is_shown_live = is_terminal() && !self.json;
        loop {
            tokio::select! {
                line = team.next_line() => match line {
                    Ok((kind, line)) if kind == "rpc_result" => self.list(&mut asked, &line)?,
                    Ok((kind, line)) if kind == "rpc_error" => {
                        return Ok(client::refusal(&line).into());
                    }
                    // The list has it, and comes once the subscription holds.
                    Ok((kind, _)) if kind == "agent" && is_asked(&asked, "list_agents") => {}
                    Ok((kind, line)) => self.line(&kind, &line)?,
                    Err(error) => return Ok(error),
                },
                _ = ticks.tick(), if is_shown_live => {
                    for (label, line) in self.fold.overdue(Instant::now()) {
                        self.page.print(&label, &line)?;
                    }
                }
            }
        }
    }

    /// Shows what a list has that was asked for.
    fn list(&mut self, asked: &mut HashMap<u64, &str>, line: &[u8]) -> Result<(), Failure> {
        let Ok(Listed { id, result }) = serde_json::from_slice(line) else { return Ok(()) };
        let Some(method) = asked.remove(&id) else { return Ok(()) };
        let items: Vec<Value> = match ConflictItems::deserialize(&result) {
            Ok(ConflictItems { conflicts }) => conflicts,
            Err(_) => rows(&result),
        };
        items.iter().try_for_each(|item| self.item(method, item))
    }

    fn item(&mut self, method: &str, item: &Value) -> Result<(), Failure> {
        let agent = LineHead::deserialize(item).ok().and_then(LineHead::agent).unwrap_or_default();
        match method {
            _ if !self.shows(&agent) => Ok(()),
            "list_agents" => self.agent(&agent, item),
            "list_conflicts" => self.conflict(&agent, item),
            _ => self.blocked(&agent, item),
        }
    }

    fn line(&mut self, kind: &str, line: &[u8]) -> Result<(), Failure> {
        if kind == "lagged" && !self.json {
            return self.page.print("", &ShownLine::note("… some lines are missing".to_owned()));
        }
        // Most lines are not shown, and may be long: skip them before parsing.
        if !SHOWN_TYPES.contains(&kind) {
            return Ok(());
        }
        let head = serde_json::from_slice::<LineHead>(line);
        let Some(agent) = head.ok().and_then(LineHead::agent) else { return Ok(()) };
        if !self.shows(&agent) {
            return Ok(());
        }
        if self.json {
            return write(&[line.trim_ascii_end(), b"\n"].concat());
        }
        match ServerLine::read(line) {
            Ok(ServerLine::SessionUpdate(UpdateLine { session_id, update, .. })) => {
                let update = serde_json::from_str(update.get()).unwrap_or_default();
                let lines = self.fold.update(&agent, &session_id, &update, Instant::now());
                return self.print_all(&lines);
            }
            Ok(ServerLine::Turn(turn)) => {
                let lines = self.fold.turn(&agent, &turn.session_id, &turn);
                return self.print_all(&lines);
            }
            Ok(ServerLine::Report(ReportLine { text, .. })) => {
                let text = one_line(&format!("reports: {text}"));
                return self.page.print(&agent, &ShownLine { kind: LineKind::Note, text });
            }
            _ => {}
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return Ok(()) };
        match kind {
            "agent" => self.agent(&agent, &line),
            "conflict" => self.conflict(&agent, &line),
            "blocked" => self.blocked(&agent, &line),
            _ => Ok(()),
        }
    }

    fn shows(&self, agent: &str) -> bool {
        self.all || self.agents.contains(agent)
    }

    fn agent(&mut self, agent: &str, line: &Value) -> Result<(), Failure> {
        let Ok(Agent { state, reason, .. }) = Agent::deserialize(line) else { return Ok(()) };
        let state = state.as_str();
        let reason = reason.map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{state}{reason}");
        // List and stream may repeat a state.
        if self.states.insert(agent.to_owned(), text.clone()).as_ref() == Some(&text) {
            return Ok(());
        }
        self.page.print(agent, &ShownLine { kind: LineKind::State(state.to_owned()), text })
    }

    fn blocked(&mut self, agent: &str, line: &Value) -> Result<(), Failure> {
        let Ok(access) = Blocked::deserialize(line) else { return Ok(()) };
        if !self.seen.is_news(&access) {
            return Ok(());
        }
        let (session, status) = (access.session_id.clone(), access.status.clone());
        let mut text = anstream::adapter::strip_str(&access.describe()).to_string();
        if status == "pending" {
            text = format!("{text}: {} resolve {} allow|deny", self.program, access.id);
        }
        let lines =
            self.fold.between(agent, &session, ShownLine { kind: LineKind::State(status), text });
        self.print_all(&lines)
    }

    fn conflict(&mut self, agent: &str, line: &Value) -> Result<(), Failure> {
        let Ok(conflict) = Conflict::deserialize(line) else { return Ok(()) };
        // List and stream may repeat a state, or deliver an older one after a newer one.
        let status = conflict.status.clone();
        let known = self.conflicts.get(&conflict.id);
        if known.is_some_and(|known| *known == status || status == "pending") {
            return Ok(());
        }
        self.conflicts.insert(conflict.id.clone(), status.clone());
        if status != "pending" && self.conflicts.len() > MOST_CONFLICTS {
            self.conflicts.retain(|_, status| status == "pending");
        }
        let session = ConflictLine::deserialize(line).map(|line| line.session_id);
        let session = session.unwrap_or_default();
        let described = describe(&conflict);
        let mut text = format!("conflict {}", anstream::adapter::strip_str(&described));
        if status == "pending" {
            let command = format!("{} conflicts", self.program);
            text = format!("{text}: {command} --allow {0} | --deny {0}", plain(&conflict.id));
        }
        let kind = LineKind::State(status);
        let lines = self.fold.between(agent, &session, ShownLine { kind, text });
        self.print_all(&lines)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let lines = self.fold.flush();
        self.print_all(&lines)
    }

    fn print_all(&mut self, lines: &[(String, ShownLine)]) -> Result<(), Failure> {
        lines.iter().try_for_each(|(label, line)| self.page.print(label, line))
    }
}
