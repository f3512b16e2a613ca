use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;

use anstyle::{AnsiColor, Style};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::bus::{Received, Subscriber};
use crate::model::{
    AgentState, AgentStatus, BlockedAccess, BlockedStatus, Delta, Event, SessionKey, SessionMode,
    TimestampMs, Touch, TurnEnd, UsageReport, one_line,
};

/// Shows on standard output what happens in the team, a line an event: coloured on a terminal,
/// plain elsewhere. Ends when standard output does, or the bus. Blocks: a terminal that is paused
/// holds up nothing but this.
pub(super) fn show(mut events: Subscriber, port: SocketAddr) {
    let mut console = Console { start: Instant::now(), shown: HashMap::new() };
    if console.line("team", Style::new(), &format!("listens on {port}")).is_err() {
        return;
    }
    while let Some(received) = Handle::current().block_on(events.recv()) {
        let shown = match received {
            Received::Event(_, event) => console.event(&event),
            Received::Missed(missed) => {
                console.line("", Style::new(), &format!("… {missed} events not shown"))
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
}

impl Console {
    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::Agent(status) => self.agent(status),
            Event::Blocked(access) => self.blocked(access),
            Event::Delta(delta) => self.delta(delta),
            Event::Turn(turn) => self.turn(turn),
            Event::Usage(usage) => self.usage(usage),
            Event::Snapshot(_)
            | Event::SessionUpdate { .. }
            | Event::Overlap(_)
            | Event::Graph(_)
            | Event::GraphDelta(_) => Ok(()),
        }
    }

    fn agent(&self, status: &AgentStatus) -> std::io::Result<()> {
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
        )
    }

    fn blocked(&self, access: &BlockedAccess) -> std::io::Result<()> {
        let color = match access.status {
            BlockedStatus::Allowed | BlockedStatus::Answered => AnsiColor::Green,
            BlockedStatus::Pending => AnsiColor::Yellow,
            _ => AnsiColor::Red,
        };
        let to = match (&access.orchestrator, access.status) {
            (Some(to), BlockedStatus::Pending) => format!(", waits for {}", to.agent),
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

    fn turn(&self, turn: &TurnEnd) -> std::io::Result<()> {
        let reason = turn.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let text = format!("turn {} ended: {}{reason}", turn.turn, turn.stop_reason);
        self.line(&turn.key.agent, Style::new().bold(), &text)
    }

    fn usage(&self, report: &UsageReport) -> std::io::Result<()> {
        let usage = &report.usage;
        let cost = usage.cost.as_ref().map(|c| format!(", {:.2} {}", c.amount, c.currency));
        // Not every agent tells how many fit.
        let of = if usage.size > 0 { format!(" of {}", usage.size) } else { String::new() };
        let text = format!("{}{of} tokens{}", usage.used, cost.unwrap_or_default());
        // The orchestrator's session counts for all.
        let who = match report.mode {
            SessionMode::Orchestrator => "team",
            SessionMode::SingleAgent => report.key.agent.as_str(),
        };
        self.line(who, AnsiColor::BrightBlack.on_default(), &text)
    }

    fn line(&self, who: impl Display, style: Style, text: &str) -> std::io::Result<()> {
        let seconds = self.start.elapsed().as_secs_f64();
        // What agents say of themselves must not steer the terminal.
        let text = one_line(text);
        let mut out = anstream::stdout().lock();
        writeln!(out, "{seconds:7.1}s  {:<12}  {style}{text}{style:#}", who.to_string())
    }
}
