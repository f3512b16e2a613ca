//! The console of `up` on standard output: one line per event, and hints about the next command.

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
use crate::bus::{Received, Subscriber};
use crate::client_host::TurnAnswer;
use crate::config::Config;
use crate::home::own_command;
use crate::model::{
    AgentId, AgentState, AgentStatus, BlockedAccess, BlockedStatus, BudgetReport, BudgetState,
    Conflict, ConflictStatus, Decide, Delta, Event, HARMLESS, SessionKey, SessionMode, TimestampMs,
    Topic, Touch, TurnEnd, Usage, UsageReport, one_line, turn_ended,
};

pub(crate) use file::ConsoleFile;

/// How long the line for a turn's end waits for the turn's last message line, which arrives on
/// another channel.
const ANSWER_WAIT: Duration = Duration::from_millis(50);

/// How long a hint waits after a turn's end for the final counts of its sweeps.
const HINT_WAIT: Duration = Duration::from_millis(300);

/// Maximum sessions whose answer is remembered until their turn ends, and whose usage is; past that,
/// all are cleared.
const MOST_SESSIONS: usize = 1000;

/// Bytes of a report that are shown.
const LONGEST_REPORT: usize = 500;

/// Capacity of the queue of answers; past that, answers are dropped.
pub(crate) const ANSWERS_CAPACITY: usize = 256;

/// Inputs of the console in addition to the bus.
pub(crate) struct Inputs {
    pub(crate) port: SocketAddr,
    pub(crate) answers: mpsc::Receiver<TurnAnswer>,
    /// The configuration at the team's start.
    pub(crate) config: Config,
    /// The console file of a detached team, which standard output is redirected to.
    pub(crate) file: Option<ConsoleFile>,
}

/// Prints one line per event to standard output, coloured on a terminal. Ends when standard output
/// or the bus is closed. Blocks: a paused terminal stops only this thread.
pub(crate) fn show(mut events: Subscriber, inputs: Inputs) {
    let Inputs { port, answers, config, file } = inputs;
    events.want(Topic::Report);
    let next = Next::new(&config, file.is_some());
    let mut console = Console {
        start: Instant::now(),
        shown: HashMap::new(),
        answers,
        answered: HashSet::new(),
        usages: HashMap::new(),
        budgets: HashMap::new(),
        usage_shown: false,
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
    /// The time of the latest touch shown, by session.
    shown: HashMap<SessionKey, TimestampMs>,
    answers: mpsc::Receiver<TurnAnswer>,
    /// Sessions whose answer was shown before their turn ended.
    answered: HashSet<SessionKey>,
    /// How each budget stood last.
    budgets: HashMap<Option<AgentId>, BudgetState>,
    /// The last usage of each session.
    usages: HashMap<SessionKey, Usage>,
    /// The last usage line was an agent's: the team's next sum repeats it.
    usage_shown: bool,
    sweeps: Sweeps,
    /// Sessions whose ended turn has a sweep to explain.
    hints: Vec<SessionKey>,
    /// When the hints are shown.
    hints_at: Instant,
    next: Next,
    file: Option<ConsoleFile>,
    /// The command a user types for this program.
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
            Event::Report(report) => {
                let text = &report.text[..report.text.floor_char_boundary(LONGEST_REPORT)];
                self.line(&report.agent, Style::new(), &format!("reports: {text}"))
            }
            Event::Budget(budget) => self.budget(budget),
            Event::Loop(report) => {
                let text = format!("goes in a loop: {}", report.found.describe());
                self.line(&report.key.agent, AnsiColor::Yellow.on_default(), &text)
            }
            Event::Conflict(conflict) => self.conflict(conflict),
            Event::Snapshot(_)
            | Event::Chosen(_)
            | Event::SessionUpdate { .. }
            | Event::Overlap(_)
            | Event::Task(_)
            | Event::Graph(_)
            | Event::GraphDelta(_)
            | Event::Stream(_)
            | Event::Relayed(_)
            | Event::Record { .. } => Ok(()),
        }
    }

    /// Shows answers until that of the session has arrived, or [`ANSWER_WAIT`] has passed: sessions
    /// of attached editors have none.
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
        let next = self.next.agent(&status.agent, status.state);
        self.print_next_step(next)
    }

    fn print_next_step(&mut self, agent: Option<AgentId>) -> std::io::Result<()> {
        match agent {
            Some(agent) => self.line("team", Style::new(), &self.next.text(&self.program, &agent)),
            None => Ok(()),
        }
    }

    fn blocked(&mut self, access: &BlockedAccess) -> std::io::Result<()> {
        self.sweeps.add(access);
        if access.is_noise() {
            return self.noise(access);
        }
        let color = match access.status {
            BlockedStatus::Allowed | BlockedStatus::Answered => AnsiColor::Green,
            BlockedStatus::Pending => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        let decider = match (&access.orchestrator, access.rule.map(|rule| rule.decide)) {
            _ if access.status != BlockedStatus::Pending => None,
            (_, Some(Decide::Person)) => Some("a person".to_owned()),
            (_, Some(Decide::Owner)) => Some("its owner".to_owned()),
            (Some(to), _) => Some(to.agent.to_string()),
            (None, _) => None,
        };
        let to = decider.map_or_else(String::new, |decider| {
            format!(", waits for {decider}: {} inbox allow|deny {}", self.program, access.id)
        });
        let sweep = match access.sweep {
            Some(count) => format!(" (swept: {count})"),
            None => String::new(),
        };
        let pattern = access.denied_by.as_ref().map(|by| format!(" (denied by {by})"));
        let pattern = pattern.unwrap_or_default();
        let completed = if access.completed { ", completed anyway" } else { "" };
        let ended = access.ended.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
        let text = format!(
            "{} {}: {} {}{sweep}{pattern}{to}{completed}{ended}",
            access.status.as_str(),
            access.id,
            access.action,
            access.path,
        );
        self.line(&access.key.agent, color.on_default().bold(), &text)
    }

    /// One line, however many they become.
    fn noise(&self, access: &BlockedAccess) -> std::io::Result<()> {
        if access.sweep != Some(1) {
            return Ok(());
        }
        let BlockedAccess { id, action, path, .. } = access;
        let status = if access.harmless { HARMLESS } else { access.status.as_str() };
        let text = format!("{status} {id}: {action} {path}");
        self.line(&access.key.agent, AnsiColor::BrightBlack.on_default(), &text)
    }

    fn conflict(&self, conflict: &Conflict) -> std::io::Result<()> {
        let color = match conflict.status {
            ConflictStatus::Allowed => AnsiColor::Green,
            ConflictStatus::Pending => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        let Conflict { id, kind, status, message, .. } = conflict;
        let text = format!("{} {id}: {}: {message}", status.as_str(), kind.as_str());
        let writer = conflict.agents.first().map_or("team", AgentId::as_str);
        self.line(writer, color.on_default().bold(), &text)
    }

    fn delta(&mut self, delta: &Delta) -> std::io::Result<()> {
        // The orchestrator's map repeats those of the other agents.
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
            // Reads seen only by the kernel: a build reads thousands of files.
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
        let text = turn_ended(turn.turn, &turn.stop_reason, turn.reason.as_deref());
        self.line(&turn.key.agent, Style::new().bold(), &text)?;
        if self.sweeps.has(&turn.key) && !self.hints.contains(&turn.key) {
            self.hints.push(turn.key.clone());
            self.hints_at = Instant::now() + HINT_WAIT;
        }
        let next = self.next.turn(&turn.key.agent);
        self.print_next_step(next)
    }

    fn show_hints(&mut self) -> std::io::Result<()> {
        for key in std::mem::take(&mut self.hints) {
            if let Some(text) = self.sweeps.hint(&key, &self.program) {
                self.line(&key.agent, AnsiColor::Yellow.on_default(), &text)?;
            }
        }
        Ok(())
    }

    /// Only what people have to know: not each token.
    fn budget(&mut self, report: &BudgetReport) -> std::io::Result<()> {
        let was = self.budgets.insert(report.agent.clone(), report.state).unwrap_or_default();
        if was == report.state {
            return Ok(());
        }
        let (color, text) = match (&report.reason, report.state) {
            (Some(reason), _) => (AnsiColor::Red, reason.to_string()),
            (None, BudgetState::Warned) => {
                (AnsiColor::Yellow, "the budget is nearly used up".to_owned())
            }
            (None, _) => (AnsiColor::Green, "the budget has room".to_owned()),
        };
        let label = report.agent.as_ref().map_or("team", AgentId::as_str);
        self.line(label, color.on_default(), &text)
    }

    fn usage(&mut self, report: &UsageReport) -> std::io::Result<()> {
        // Only what was spent changed, or nothing is known of the context.
        let Some(usage) = report.usage.as_ref() else { return Ok(()) };
        if self.usages.get(&report.key) == Some(usage) {
            return Ok(());
        }
        if self.usages.len() >= MOST_SESSIONS {
            self.usages.clear();
        }
        self.usages.insert(report.key.clone(), usage.clone());
        // The orchestrator's session reports the team's sum: skip it after an agent's own line.
        let is_sum = report.mode == SessionMode::Orchestrator;
        if is_sum && std::mem::take(&mut self.usage_shown) {
            return Ok(());
        }
        self.usage_shown = !is_sum;
        let cost = usage.cost.as_ref().map(|c| format!(", {:.2} {}", c.amount, c.currency));
        // A size of 0 is unknown.
        let of = if usage.size > 0 { format!(" of {}", usage.size) } else { String::new() };
        let text = format!("{}{of} tokens{}", usage.used, cost.unwrap_or_default());
        let label = match report.mode {
            SessionMode::Orchestrator => "team",
            SessionMode::SingleAgent => report.key.agent.as_str(),
        };
        self.line(label, AnsiColor::BrightBlack.on_default(), &text)
    }

    fn line(&self, label: impl Display, style: Style, text: &str) -> std::io::Result<()> {
        if let Some(file) = &self.file {
            file.rotate_if_large();
        }
        let seconds = self.start.elapsed().as_secs_f64();
        // Text from agents must not control the terminal.
        let text = one_line(text);
        let mut out = anstream::stdout().lock();
        writeln!(out, "{seconds:7.1}s  {:<12}  {style}{text}{style:#}", label.to_string())
    }
}

#[cfg(test)]
mod tests;
