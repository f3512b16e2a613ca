//! The extractor of the Agent Client Protocol: version 1, and the draft of version 2.
//!
//! Owns the state of one agent's connection (sessions, pending requests, tool calls, terminals),
//! all of it bounded. Does not know zones or the tracker.

mod call;
mod chunks;
mod count;
mod digest;
mod executions;
mod failure;
mod files;
mod frame;
mod gate;
mod heard;
mod input;
mod lines;
mod meter;
mod models;
mod modes;
mod named;
mod observe;
mod openings;
mod pending;
mod records;
mod replies;
mod sessions;
mod steps;
mod strict;
mod subject;
mod terminals;
mod turns;
mod update;
mod usage;
mod withdrawn;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use self::frame::Frame;
use self::gate::Judged;
use super::json::{Members, elements, is_json, text};
use super::shell::ShellCommand;
use super::{Ask, Extractor, Gate, Refusal, Withdrawal, Workspace};
use crate::line::{self, Direction};
use crate::model::{Activity, ActivityKind, SessionId, UpdateDetail, UsageScope};

/// The byte order mark, which some runtimes write before the first line.
const MARK: char = '\u{feff}';

/// The protocol state of one ACP agent.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Acp {
    workspace: Arc<dyn Workspace>,
    sessions: sessions::AcpSessions,
    /// The client's requests whose responses are read.
    client_requests: pending::Pending<pending::ClientRequest>,
    /// The agent's requests whose responses are read.
    agent_requests: pending::Pending<pending::AgentRequest>,
    /// All unanswered requests of the agent.
    unanswered: pending::Pending<pending::PendingRequest>,
    /// Requests answered in the client's place; the client may still respond to them.
    withdrawn: pending::Pending<()>,
    terminals: terminals::Terminals,
    models: models::Models,
    chunks: chunks::Chunks,
    /// How the `usage` of its answers counts.
    usage_scope: UsageScope,
    /// The mode of its sessions in which it makes model calls that it never reports.
    uncounted_mode: Option<String>,
    /// Reports the steps of its sessions.
    finds_loops: bool,
    updates: UpdateDetail,
    reports_reasons: bool,
    /// Shows what the client answers of its terminals.
    shows_outputs: bool,
    /// A line since the last question was more than housekeeping.
    has_progressed: bool,
    /// The line that is read is housekeeping.
    keeps_house: bool,
    reported: Reported,
}

/// The activities of the line that is read.
#[derive(Default)]
struct Reported(Vec<Activity>);

impl Reported {
    fn add(&mut self, session: &SessionId, kind: ActivityKind) {
        self.0.push(Activity { session: session.clone(), kind });
    }

    /// Adds an update that was taken from a line.
    fn add_update(&mut self, session: &SessionId, update: &[u8]) {
        self.add(session, ActivityKind::Update(line::text(update).into()));
    }

    fn add_all(&mut self, session: &SessionId, kinds: impl IntoIterator<Item = ActivityKind>) {
        kinds.into_iter().for_each(|kind| self.add(session, kind));
    }
}

impl Acp {
    /// Relative paths resolve against `default_cwd` until the session's folder is known.
    pub fn new(workspace: Arc<dyn Workspace>, default_cwd: PathBuf) -> Self {
        Self {
            workspace,
            sessions: sessions::AcpSessions::new(default_cwd),
            client_requests: pending::Pending::default(),
            agent_requests: pending::Pending::default(),
            unanswered: pending::Pending::default(),
            withdrawn: pending::Pending::default(),
            terminals: terminals::Terminals::default(),
            models: models::Models::default(),
            chunks: chunks::Chunks::default(),
            usage_scope: UsageScope::default(),
            uncounted_mode: None,
            finds_loops: false,
            updates: UpdateDetail::default(),
            reports_reasons: false,
            shows_outputs: true,
            has_progressed: false,
            keeps_house: false,
            reported: Reported::default(),
        }
    }

    /// The `usage` of its answers counts so, and has no figure of some calls in a mode of its sessions.
    #[must_use]
    pub fn counting(self, usage_scope: UsageScope, uncounted_mode: Option<String>) -> Self {
        Self { usage_scope, uncounted_mode, ..self }
    }

    /// Reports the steps of its sessions.
    #[must_use]
    pub fn finding_loops(self, finds_loops: bool) -> Self {
        Self { finds_loops, ..self }
    }

    /// Leaves the outputs of terminals to the client, which shows them itself.
    #[must_use]
    pub fn leaving_outputs(self) -> Self {
        Self { shows_outputs: false, ..self }
    }

    /// Adds the reason to refused permissions, for our own agents.
    #[must_use]
    pub fn with_reasons(self) -> Self {
        Self { reports_reasons: true, ..self }
    }

    fn observe_line(&mut self, direction: Direction, line: &[u8]) {
        let text = line::text(line);
        let message = text.trim().trim_start_matches(MARK);
        match elements(message).filter(|_| is_json(message)) {
            Some(batch) => {
                for message in batch {
                    self.observe_message(direction, message);
                }
            }
            None => {
                if let Some(frame) = Frame::of(message) {
                    self.observe_frame(direction, &frame.with_id_of(line, &text), None);
                }
            }
        }
    }
}

impl Extractor for Acp {
    fn observe(&mut self, direction: Direction, line: &[u8], activities: &mut Vec<Activity>) {
        self.keeps_house = direction == Direction::ToAgent;
        if direction == Direction::ToAgent || !self.observe_chunk(line) {
            self.observe_line(direction, line);
            self.report_merged_first();
        }
        self.has_progressed |= !self.keeps_house;
        activities.append(&mut self.reported.0);
    }

    fn gate(&mut self, line: &[u8]) -> Gate {
        self.judge(&line::readable(line), line).gate
    }

    fn gate_and_observe(
        &mut self,
        line: &[u8],
        passes: &mut dyn FnMut(Gate) -> bool,
        activities: &mut Vec<Activity>,
    ) {
        self.keeps_house = false;
        if !self.observe_chunk(line) {
            let readable = line::readable(line);
            let Judged { gate, frame, request } = self.judge(&readable, line);
            if (matches!(gate, Gate::Pass) || passes(gate))
                && let Some(frame) = &frame
            {
                self.observe_frame(Direction::ToClient, frame, request);
            }
            self.report_merged_first();
        }
        self.has_progressed |= !self.keeps_house;
        activities.append(&mut self.reported.0);
    }

    fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.has_progressed)
    }

    fn report_updates(&mut self, detail: UpdateDetail) {
        self.updates = detail;
    }

    fn merges(&self) -> bool {
        self.chunks.merges()
    }

    fn flush_updates(&mut self, activities: &mut Vec<Activity>) {
        self.report_merged();
        activities.append(&mut self.reported.0);
    }

    fn refuse(&self, ask: &Ask, refusal: &Refusal) -> Option<Bytes> {
        replies::refuse(ask, refusal, self.reports_reasons)
    }

    fn wanted(&self, line: &[u8]) -> Option<String> {
        let text = line::text(line);
        let frame = Frame::of(&text)?;
        let params = Members::of(frame.params?.get())?;
        params.text("content").map(Cow::into_owned)
    }

    fn answer(&self, ask: &Ask, content: &str) -> Option<Bytes> {
        replies::answer(ask, content)
    }

    fn cancel(&self, session: &SessionId) -> Bytes {
        replies::cancel(session)
    }

    fn withdraw(&mut self, session: &SessionId) -> Withdrawal {
        self.withdraw_permissions(session)
    }

    fn without_late(&mut self, lines: Bytes) -> Bytes {
        if self.withdrawn.is_empty() { lines } else { self.drop_withdrawn(&lines) }
    }

    fn awaits(&self) -> bool {
        !self.unanswered.is_empty() || self.terminals.any_runs()
    }

    fn end(&mut self, reason: &str, activities: &mut Vec<Activity>) {
        self.report_merged();
        self.abandon(reason);
        activities.append(&mut self.reported.0);
        self.agent_requests.take_all().for_each(drop);
        self.unanswered.take_all().for_each(drop);
        self.terminals.clear();
    }
}

/// The command of a `terminal/create`: a shell line, or a program and its arguments. A program
/// that looks like a shell line is read as both, since some clients run everything in a shell.
/// None if a part has the wrong type.
fn terminal_command(params: &Members<'_>) -> Option<Vec<ShellCommand>> {
    let command = params.text("command")?.into_owned();
    let args = match params.get("args").filter(|raw| *raw != "null") {
        None => Vec::new(),
        Some(raw) => elements(raw)?
            .into_iter()
            .map(|arg| text(arg).map(std::borrow::Cow::into_owned))
            .collect::<Option<Vec<_>>>()?,
    };
    if args.is_empty() {
        return Some(vec![ShellCommand::Line(command)]);
    }
    let looks_like_line =
        command.contains(|c: char| c.is_whitespace() || "|&;<>()$`\"'\\".contains(c));
    let line = looks_like_line.then(|| ShellCommand::Line(command.clone()));
    let whole = [vec![command], args].concat();
    Some([ShellCommand::Argv(whole)].into_iter().chain(line).collect())
}
