//! `watch`: follows messages, tool calls, plans and blocked accesses of agents.

mod noise;
mod page;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use eisen_base::task;
use serde::Deserialize;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::noise::Noise;
use self::page::Page;
pub(super) use self::page::style_of;
use super::Global;
use super::blocked::{self, SeenAccesses};
use super::conflicts;
use super::output::{self, is_terminal, note, plain, write};
use super::team::{Which, failed, list_agents, read, readable, rows};
use super::transcript::{Fold, LineKind, ShownLine};
use crate::home;
use crate::model::{BlockedStatus, ConflictStatus, one_line};
use crate::program::Failure;
use crate::serve::client::{self, ClientError, Connection, MethodAnswer, Target};
use crate::view::folded_noise;
use crate::wire::{
    Agent, Blocked, ConflictLine, Empty, Exact, ListAgents, ListBlocked, ListBlockedParams,
    ListConflicts, ListConflictsParams, NameOf, ReportLine, ServerLine, UpdateLine,
};

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
  eisen-core agent watch  every agent of the team
  eisen-core agent watch ui api
  eisen-core agent watch --thoughts ui
  eisen-core agent watch --json ui | jq -c 'select(.type == \"session_update\") | .update'

Exit codes: 0 the team has ended, or Ctrl-C; 1 no such team or agent, 2 wrong usage.")]
pub(super) struct Watch {
    /// Ids of the agents [default: all]
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
    /// Show whole thoughts
    #[arg(long, conflicts_with = "json")]
    thoughts: bool,
    /// Show each refusal in passing, also harmless ones and those outside of turns, outside the workspace and in
    /// `.git`; without it these are one line with their number
    #[arg(long)]
    outside: bool,
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
        task::spawn(async move {
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
            outside: self.outside,
            noise: HashMap::new(),
            fold: Fold::new(self.thoughts),
            page: Page::new(&agents),
            states: HashMap::new(),
            seen: SeenAccesses::default(),
            conflicts: HashMap::new(),
            program: self.which.program(&home::own_command(), global),
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
        let all = list_agents(team).await.map_err(failed)?;
        let all: BTreeSet<_> =
            all.into_iter().map(|agent| agent.status.agent_id.into_owned()).collect();
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

/// A list that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskedList {
    Agents,
    Accesses,
    Conflicts,
}

/// The answer to one of the requests for lists.
#[derive(Deserialize)]
struct ListAnswer {
    id: u64,
    result: Value,
}

/// The state of the output, kept across connections.
struct Watched {
    agents: BTreeSet<String>,
    /// Whether agents that join later are shown, too.
    all: bool,
    json: bool,
    /// Nothing is folded.
    outside: bool,
    /// The refusals of each agent that are folded.
    noise: HashMap<String, Noise>,
    fold: Fold,
    page: Page,
    /// The state of each agent that was shown.
    states: HashMap<String, String>,
    seen: SeenAccesses,
    /// The status of each conflict that was shown.
    conflicts: HashMap<String, NameOf<ConflictStatus>>,
    program: String,
}

/// The common part of all lines of the port.
#[derive(Deserialize)]
struct LineHead {
    agent_id: Option<String>,
    /// The agents of a conflict: the writer, then the others.
    agents: Option<Vec<Value>>,
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
            asked.insert(team.send::<ListAgents>(&Empty {}), AskedList::Agents);
            let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
            asked.insert(team.send::<ListBlocked>(&pending), AskedList::Accesses);
            let pending = ListConflictsParams { status: Some(Exact(ConflictStatus::Pending)) };
            asked.insert(team.send::<ListConflicts>(&pending), AskedList::Conflicts);
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
                    Ok((kind, _)) if kind == "agent" && asked.values().any(|it| *it == AskedList::Agents) => {}
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
    fn list(&mut self, asked: &mut HashMap<u64, AskedList>, line: &[u8]) -> Result<(), Failure> {
        let Ok(ListAnswer { id, result }) = serde_json::from_slice(line) else { return Ok(()) };
        match asked.remove(&id) {
            Some(AskedList::Agents) => {
                let agents = rows(&MethodAnswer::<ListAgents>::new(result));
                agents.iter().try_for_each(|agent| self.agent(&agent.status))
            }
            Some(AskedList::Accesses) => {
                let accesses = rows(&MethodAnswer::<ListBlocked>::new(result));
                accesses.iter().try_for_each(|access| self.blocked(access))
            }
            Some(AskedList::Conflicts) => {
                let listed = read(&MethodAnswer::<ListConflicts>::new(result))?;
                listed.conflicts.iter().try_for_each(|conflict| self.conflict(conflict))
            }
            None => Ok(()),
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
                self.print_all(&lines)
            }
            Ok(ServerLine::Turn(turn)) => {
                self.tell_noise(&agent)?;
                let lines = self.fold.turn(&agent, &turn.session_id, &turn);
                self.print_all(&lines)
            }
            Ok(ServerLine::Report(ReportLine { text, .. })) => {
                let text = one_line(&format!("reports: {text}"));
                self.page.print(&agent, &ShownLine { kind: LineKind::Note, text })
            }
            Ok(ServerLine::Agent(agent)) => self.agent(&agent),
            Ok(ServerLine::Conflict(conflict)) => self.conflict(&conflict),
            Ok(ServerLine::Blocked(access)) => self.blocked(&access),
            Ok(_) => Ok(()),
            Err(error) => {
                readable::<()>(&String::from_utf8_lossy(line), Err(error));
                Ok(())
            }
        }
    }

    fn shows(&self, agent: &str) -> bool {
        self.all || self.agents.contains(agent)
    }

    fn agent(&mut self, line: &Agent<'_>) -> Result<(), Failure> {
        let Agent { agent_id, state, reason, .. } = line;
        if !self.shows(agent_id) {
            return Ok(());
        }
        let reason = reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("{state}{reason}");
        // List and stream may repeat a state.
        if self.states.insert(agent_id.to_string(), text.clone()).as_ref() == Some(&text) {
            return Ok(());
        }
        self.tell_noise(agent_id)?;
        self.page.print(agent_id, &ShownLine { kind: LineKind::State(state.to_string()), text })
    }

    /// Says how many refusals of an agent are folded, if they have become more.
    fn tell_noise(&mut self, agent: &str) -> Result<(), Failure> {
        let Some(count) = self.noise.get_mut(agent).and_then(Noise::take_news) else {
            return Ok(());
        };
        let text = format!("{} (--outside)", folded_noise(count));
        self.page.print(agent, &ShownLine { kind: LineKind::Note, text })
    }

    fn blocked(&mut self, access: &Blocked<'_>) -> Result<(), Failure> {
        let agent = &access.session.agent_id;
        if !self.shows(agent) {
            return Ok(());
        }
        if access.is_noise() && !self.outside {
            self.noise.entry(agent.to_string()).or_default().add(access);
            return Ok(());
        }
        if !self.seen.is_news(access) {
            return Ok(());
        }
        let mut text = anstream::adapter::strip_str(&blocked::describe(access)).to_string();
        if let Some(way_out) = blocked::way_out(access, &self.program) {
            text = format!("{text}: {way_out}");
        }
        let lines = self.fold.blocked(access, text);
        self.print_all(&lines)
    }

    fn conflict(&mut self, conflict: &ConflictLine<'_>) -> Result<(), Failure> {
        let agent = conflict.writer();
        if !self.shows(agent) {
            return Ok(());
        }
        let is_pending = |status: &NameOf<_>| *status == ConflictStatus::Pending;
        // List and stream may repeat a state, or deliver an older one after a newer one.
        let ConflictLine { id, status, session_id, .. } = conflict;
        let known = self.conflicts.get(&**id);
        if known.is_some_and(|known| known == status || is_pending(status)) {
            return Ok(());
        }
        self.conflicts.insert(id.to_string(), status.clone());
        if !is_pending(status) && self.conflicts.len() > MOST_CONFLICTS {
            self.conflicts.retain(|_, status| is_pending(status));
        }
        let described = conflicts::describe(conflict);
        let mut text = format!("conflict {}", anstream::adapter::strip_str(&described));
        if is_pending(status) {
            text = format!("{text}: {} inbox allow|deny {}", self.program, plain(id));
        }
        let kind = LineKind::State(status.to_string());
        let lines = self.fold.between(agent, session_id, ShownLine { kind, text });
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
