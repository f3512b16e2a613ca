//! What `up` shows on standard output: a line for each event, and what to type next.

mod file;
mod next;
mod sweeps;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use self::next::Next;
use self::sweeps::Sweeps;
use super::own_command;
use crate::bus::{Received, Subscriber};
use crate::client_host::TurnAnswer;
use crate::config::Config;
use crate::model::{
    AgentState, AgentStatus, BlockedAccess, BlockedStatus, Delta, Event, SessionKey, SessionMode,
    TimestampMs, Touch, TurnEnd, UsageReport, one_line,
};

pub(super) use file::ConsoleFile;

/// How long a line that ends a turn waits for the last line of the turn's message, which comes
/// another way.
const ANSWER_WAIT: Duration = Duration::from_millis(50);

/// How long after a turn its last counts of what was denied in passing may take.
const HINT_WAIT: Duration = Duration::from_millis(300);

/// Sessions whose answer is remembered until their turn ends; past that all are forgotten.
const MOST_SESSIONS: usize = 1000;

/// Answers that wait for the console; past that they are dropped.
pub(super) const WAITING_ANSWERS: usize = 256;

/// What the console reads, beside the bus.
pub(super) struct Inputs {
    pub(super) port: SocketAddr,
    pub(super) answers: mpsc::Receiver<TurnAnswer>,
    /// What the team came up with.
    pub(super) config: Config,
    /// The file that standard output is; None: it is not one of ours.
    pub(super) file: Option<ConsoleFile>,
}

/// Shows on standard output what happens in the team, a line an event: coloured on a terminal,
/// plain elsewhere. Ends when standard output does, or the bus. Blocks: a terminal that is paused
/// holds up nothing but this.
pub(super) fn show(mut events: Subscriber, inputs: Inputs) {
    let Inputs { port, answers, config, file } = inputs;
    let next = Next::new(&config, file.is_some());
    let mut console = Console {
        start: Instant::now(),
        shown: HashMap::new(),
        answers,
        answered: HashSet::new(),
        explained: false,
        sweeps: Sweeps::new(config),
        hints: Vec::new(),
        hints_at: Instant::now(),
        next,
        file,
        program: own_command(),
    };
    if console.line("team", Style::new(), &format!("listens on {port}")).is_err() {
        return;
    }
    let runtime = Handle::current();
    loop {
        let received = runtime.block_on(async {
            tokio::select! {
                biased;
                Some(answer) = console.answers.recv() => Ok(Some(answer)),
                () = sleep_until(console.hints_at), if !console.hints.is_empty() => Ok(None),
                received = events.recv() => Err(received),
            }
        });
        let shown = match received {
            Ok(Some(answer)) => console.answer(&answer),
            Ok(None) => console.show_hints(),
            Err(Some(Received::Event(_, event))) => console.event(&runtime, &event),
            Err(Some(Received::Missed(missed))) => {
                console.line("", Style::new(), &format!("… {missed} events not shown"))
            }
            Err(None) => {
                let _ = console.show_hints();
                return;
            }
        };
        if shown.is_err() {
            return;
        }
    }
}

struct Console {
    start: Instant,
    /// The latest touch that was shown, of each session.
    shown: HashMap<SessionKey, TimestampMs>,
    answers: mpsc::Receiver<TurnAnswer>,
    /// Sessions whose answer was shown before the end of its turn.
    answered: HashSet<SessionKey>,
    /// The team's next sum counts nothing but what an agent's line showed.
    explained: bool,
    sweeps: Sweeps,
    /// Sessions whose turn has ended, with something denied in passing.
    hints: Vec<SessionKey>,
    /// When those are shown.
    hints_at: Instant,
    next: Next,
    file: Option<ConsoleFile>,
    /// How a user calls this program.
    program: String,
}

impl Console {
    fn event(&mut self, runtime: &Handle, event: &Event) -> std::io::Result<()> {
        match event {
            Event::Agent(status) => self.agent(status),
            Event::Blocked(access) => self.blocked(access),
            Event::Delta(delta) => self.delta(delta),
            Event::Turn(turn) => {
                runtime.block_on(self.await_answer(&turn.key))?;
                self.turn(turn)
            }
            Event::Usage(usage) => self.usage(usage),
            Event::Snapshot(_)
            | Event::SessionUpdate { .. }
            | Event::Overlap(_)
            | Event::Graph(_)
            | Event::GraphDelta(_) => Ok(()),
        }
    }

    /// Shows the answers that come until that of the session has; gives up after a moment, since
    /// sessions of attached editors have none.
    async fn await_answer(&mut self, key: &SessionKey) -> std::io::Result<()> {
        while !self.answered.remove(key) {
            let Ok(Some(answer)) = timeout(ANSWER_WAIT, self.answers.recv()).await else { break };
            self.answer(&answer)?;
        }
        Ok(())
    }

    fn answer(&mut self, answer: &TurnAnswer) -> std::io::Result<()> {
        if self.answered.len() >= MOST_SESSIONS {
            self.answered.clear();
        }
        self.answered.insert(answer.key.clone());
        match &answer.last_line {
            Some(line) => self.line(&answer.key.agent, Style::new(), &format!("says: {line}")),
            None => Ok(()),
        }
    }

    fn agent(&mut self, status: &AgentStatus) -> std::io::Result<()> {
        let color = match status.state {
            AgentState::Ready => AnsiColor::Green,
            AgentState::Error => AnsiColor::Red,
            AgentState::Restarting => AnsiColor::Yellow,
            _ => AnsiColor::BrightBlack,
        };
        let pid = status.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let reason = status.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        self.line(
            &status.agent,
            color.on_default(),
            &format!("{}{pid}{reason}", status.state.as_str()),
        )?;
        let said = self.next.agent(&status.agent, status.state);
        self.print_next_step(said)
    }

    fn print_next_step(&mut self, agent: Option<crate::model::AgentId>) -> std::io::Result<()> {
        match agent {
            Some(agent) => self.line("team", Style::new(), &self.next.text(&self.program, &agent)),
            None => Ok(()),
        }
    }

    fn blocked(&mut self, access: &BlockedAccess) -> std::io::Result<()> {
        self.sweeps.add(access);
        let color = match access.status {
            BlockedStatus::Allowed | BlockedStatus::Answered => AnsiColor::Green,
            BlockedStatus::Pending => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        let to = match (&access.orchestrator, access.status) {
            (Some(to), BlockedStatus::Pending) => format!(
                ", waits for {}: {} resolve {} allow|deny",
                to.agent, self.program, access.id
            ),
            _ => String::new(),
        };
        let sweep = match access.sweep {
            Some(count) => format!(" (swept: {count})"),
            None => String::new(),
        };
        let pattern = access.denied_by.as_ref().map(|by| format!(" (denied by {by})"));
        let pattern = pattern.unwrap_or_default();
        let completed = if access.completed { ", completed all the same" } else { "" };
        let text = format!(
            "{} {}: {} {}{sweep}{pattern}{to}{completed}",
            access.status.as_str(),
            access.id,
            access.action,
            access.path,
        );
        self.line(&access.key.agent, color.on_default().bold(), &text)
    }

    fn delta(&mut self, delta: &Delta) -> std::io::Result<()> {
        // The orchestrator's map repeats what the others' show.
        if delta.mode == SessionMode::Orchestrator {
            return Ok(());
        }
        let last = self.shown.get(&delta.key).copied().unwrap_or_default();
        let mut latest = last;
        for node in &delta.updates {
            if node.timestamp_ms <= last || node.last_action == Touch::Blocked {
                continue;
            }
            latest = latest.max(node.timestamp_ms);
            // What only the kernel saw read: a build reads thousands of files.
            if node.last_action == Touch::Read && !node.in_context {
                continue;
            }
            let verb = match node.last_action {
                Touch::Write => "writes",
                Touch::Read => "reads",
                Touch::Search => "searches",
                _ => "was given",
            };
            self.line(
                &delta.key.agent,
                AnsiColor::Cyan.on_default(),
                &format!("{verb} {}", node.path),
            )?;
        }
        self.shown.insert(delta.key.clone(), latest);
        Ok(())
    }

    fn turn(&mut self, turn: &TurnEnd) -> std::io::Result<()> {
        let reason = turn.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("turn {} ended: {}{reason}", turn.turn, turn.stop_reason);
        self.line(&turn.key.agent, Style::new().bold(), &text)?;
        if self.sweeps.has(&turn.key) && !self.hints.contains(&turn.key) {
            self.hints.push(turn.key.clone());
            self.hints_at = Instant::now() + HINT_WAIT;
        }
        let said = self.next.turn(&turn.key.agent);
        self.print_next_step(said)
    }

    fn show_hints(&mut self) -> std::io::Result<()> {
        for key in std::mem::take(&mut self.hints) {
            if let Some(text) = self.sweeps.hint(&key, &self.program) {
                self.line(&key.agent, AnsiColor::Yellow.on_default(), &text)?;
            }
        }
        Ok(())
    }

    fn usage(&mut self, report: &UsageReport) -> std::io::Result<()> {
        // The orchestrator's session counts for all: its sum is shown where nobody's own line
        // shows what is new in it.
        let is_sum = report.mode == SessionMode::Orchestrator;
        if is_sum && std::mem::take(&mut self.explained) {
            return Ok(());
        }
        self.explained = !is_sum;
        let usage = &report.usage;
        let cost = usage.cost.as_ref().map(|c| format!(", {:.2} {}", c.amount, c.currency));
        // Not every agent tells how many fit.
        let of = if usage.size > 0 { format!(" of {}", usage.size) } else { String::new() };
        let text = format!("{}{of} tokens{}", usage.used, cost.unwrap_or_default());
        let who = match report.mode {
            SessionMode::Orchestrator => "team",
            SessionMode::SingleAgent => report.key.agent.as_str(),
        };
        self.line(who, AnsiColor::BrightBlack.on_default(), &text)
    }

    fn line(&self, who: impl Display, style: Style, text: &str) -> std::io::Result<()> {
        if let Some(file) = &self.file {
            file.keep_short();
        }
        let seconds = self.start.elapsed().as_secs_f64();
        // What agents say of themselves must not steer the terminal.
        let text = one_line(text);
        let mut out = anstream::stdout().lock();
        writeln!(out, "{seconds:7.1}s  {:<12}  {style}{text}{style:#}", who.to_string())
    }
}

#[cfg(test)]
mod tests;
