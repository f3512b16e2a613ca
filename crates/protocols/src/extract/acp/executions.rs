//! Terminals and running tool calls: their start, output and end, as activities.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{ToolCallStatus, ToolKind};
use serde_json::value::RawValue;

use super::frame::Frame;
use super::named::plain_touch;
use super::pending::AgentRequest;
use super::update::{CallFields, Origin, typed};
use super::{Acp, terminal_command};
use crate::extract::json::{Members, elements, text};
use crate::extract::{output, shell, uri};
use crate::model::{
    ActivityKind, Lines, SessionId, Source, TeamUpdate, Touch, UpdateDetail, wire_path,
};

/// Bytes of a text that describes a call, and of all texts of a prompt; longer texts are cut.
pub(super) const LONGEST_TEXT: usize = 64 * 1024;
/// Members kept of a longer input, and the bytes kept of each: paths are short.
const MOST_MEMBERS: usize = 64;
const LONGEST_MEMBER: usize = 4 * 1024;

impl Acp {
    pub(super) fn terminal_created(
        &mut self,
        session: SessionId,
        params: &Members<'_>,
        frame: &Frame<'_>,
    ) {
        let mut cwd = self.sessions.cwd(&session).to_path_buf();
        if let Some(folder) = params.text("cwd").and_then(|cwd| uri::path_of(&cwd)) {
            cwd.push(folder);
        }
        for command in terminal_command(params).into_iter().flatten() {
            let reading = shell::read(&command, &cwd, &*self.workspace);
            for (path, touch) in reading.named.iter().filter_map(plain_touch) {
                self.push_touch(&session, &path, touch, Source::Request, Lines::default());
            }
        }
        if let Some(id) = frame.id {
            let call: Arc<str> = format!("terminal {}", id.get()).into();
            let kind = ActivityKind::Runs {
                call: Arc::clone(&call),
                cwd: cwd.as_path().into(),
                said: vec![command_line(params)],
            };
            self.reported.add(&session, kind);
            self.agent_requests.insert(id, AgentRequest::Terminal { session, cwd, call });
        }
    }

    pub(super) fn client_response(&mut self, frame: &Frame<'_>) {
        let Some(request) = frame.id.and_then(|id| self.agent_requests.remove(id)) else { return };
        let result = frame.result.and_then(|result| Members::of(result.get()));
        let text = |name| result.as_ref().and_then(|result| result.text(name));
        match request {
            AgentRequest::Terminal { session, cwd, call } => match text("terminalId") {
                Some(id) => self.terminals.opened(session, &id, &cwd, call),
                None => self.reported.add(&session, ActivityKind::Ran { call, failed: false }),
            },
            AgentRequest::Output { session, terminal } => {
                let status = result.as_ref().and_then(|result| result.get("exitStatus"));
                let status = status.filter(|status| *status != "null");
                if status.is_some() {
                    self.terminal_exited(&session, &terminal);
                }
                if let Some(output) = text("output") {
                    if self.shows_outputs && self.updates != UpdateDetail::None {
                        let cut = result.as_ref().and_then(|result| result.get("truncated"));
                        let exit = status.map(|status| typed(status).unwrap_or_default());
                        let is_cut = cut == Some("true");
                        let shown = TeamUpdate::terminal(&terminal, &output, is_cut, exit);
                        self.reported.add(&session, ActivityKind::Update(shown.to_json()));
                    }
                    self.terminal_output(&session, terminal, &output);
                }
            }
            AgentRequest::Read { session, path, lines } => {
                if frame.result.is_some() {
                    self.push_touch(&session, &path, Touch::Read, Source::Request, lines);
                }
            }
            AgentRequest::Write { session, path } => {
                if frame.result.is_some() {
                    self.push_written(&session, &path);
                }
            }
            AgentRequest::Exit { session, terminal } => self.terminal_exited(&session, &terminal),
        }
    }

    pub(super) fn terminal_ended(&mut self, session: &SessionId, params: &Members<'_>) {
        let id = params.text("terminalId").map(std::borrow::Cow::into_owned);
        let terminal = id.and_then(|id| self.terminals.get_mut(session.clone(), id));
        if let Some(terminal) = terminal {
            terminal.runs = false;
            let call = Arc::clone(&terminal.call);
            self.reported.add(session, ActivityKind::Ran { call, failed: false });
        }
    }

    /// Observes a version 2 update of a terminal that the agent runs, like an `execute` call.
    pub(super) fn terminal_update(&mut self, session: &SessionId, update: &Members<'_>) {
        let Some(terminal) = update.text("terminalId") else { return };
        let id = format!("terminal {terminal}");
        let is_known = self.sessions.get(session).is_some_and(|known| known.call(&id).is_some());
        let status = match update.get("exitStatus") {
            None if is_known => None,
            None | Some("null") => Some(ToolCallStatus::InProgress),
            Some(exit) if has_succeeded(exit) => Some(ToolCallStatus::Completed),
            Some(_) => Some(ToolCallStatus::Failed),
        };
        let member = |name| {
            let value = update.get(name).filter(|value| *value != "null")?;
            Some(format!("\"{name}\":{value}"))
        };
        let members: Vec<_> = ["command", "cwd"].into_iter().filter_map(member).collect();
        let input = format!("{{{}}}", members.join(","));
        let fields = CallFields {
            kind: Some(ToolKind::Execute),
            status,
            input: (!members.is_empty()).then_some(&input),
            ..CallFields::none(id, Origin::Call)
        };
        self.call(session, &fields, None);
    }

    /// Takes in the texts and links of a prompt, like those of a tool call; they count until its
    /// turn ends.
    pub(super) fn prompted(&mut self, session: &SessionId, id: &RawValue, params: &Members<'_>) {
        let blocks = params.get("prompt").and_then(elements).unwrap_or_default();
        let blocks = blocks.into_iter().filter_map(Members::of).take(MOST_MEMBERS);
        let of_uri = |uri: &str| Some(uri::path_of(uri)?.to_str()?.to_owned());
        let names = |block: Members<'_>| match &*block.text("type")? {
            "text" => block.text("text").map(std::borrow::Cow::into_owned),
            "resource_link" => of_uri(&block.text("uri")?),
            "resource" => of_uri(&Members::of(block.get("resource")?)?.text("uri")?),
            _ => None,
        };
        let (mut said, mut room) = (Vec::new(), LONGEST_TEXT);
        for text in blocks.filter_map(names) {
            let text = cut(&text, room);
            room -= text.len();
            said.push(text);
        }
        if !said.is_empty() {
            let call = format!("prompt {}", id.get()).into();
            let cwd = self.sessions.cwd(session).into();
            let kind = ActivityKind::Runs { call, cwd, said };
            self.reported.add(session, kind);
        }
    }

    fn terminal_exited(&mut self, session: &SessionId, id: &str) {
        if let Some(terminal) = self.terminals.get_mut(session.clone(), id.to_owned()) {
            terminal.runs = false;
        }
    }

    fn terminal_output(&mut self, session: &SessionId, id: String, text: &str) {
        let Some(terminal) = self.terminals.get_mut(session.clone(), id) else { return };
        let output = terminal.new_output(text);
        for path in output::files(output, &terminal.cwd, &*self.workspace) {
            let wire = wire_path(self.workspace.root(), &terminal.cwd, &path).into();
            if !self.workspace.is_ignored(&path) && terminal.mark_reported(&wire) {
                let kind = ActivityKind::Touched {
                    path: wire,
                    touch: Touch::Read,
                    source: Source::Output,
                    lines: Lines::default(),
                };
                self.reported.add(session, kind);
            }
        }
    }
}

/// The start, description or end of a call in a message; None if it has none of these.
pub(super) fn runs(fields: &CallFields<'_>, ended: bool, cwd: &Path) -> Option<ActivityKind> {
    let call: Arc<str> = fields.id.as_str().into();
    if ended {
        let failed = fields.status == Some(ToolCallStatus::Failed);
        return Some(ActivityKind::Ran { call, failed });
    }
    let mut texts: Vec<Arc<str>> = Vec::new();
    texts.extend(fields.title.iter().map(|title| cut(title, LONGEST_TEXT)));
    let locations = fields.locations.iter().map(|location| &location.path);
    texts.extend(locations.chain(&fields.diffs).map(|path| cut(path, LONGEST_MEMBER)));
    match fields.input {
        Some(input) if input.len() > LONGEST_TEXT => {
            let members = Members::of(input);
            let members = members.iter().flat_map(Members::iter).take(MOST_MEMBERS);
            texts.extend(members.map(|(_, value)| cut(value, LONGEST_MEMBER)));
        }
        input => texts.extend(input.map(Arc::from)),
    }
    (!texts.is_empty()).then(|| ActivityKind::Runs { call, cwd: cwd.into(), said: texts })
}

fn has_succeeded(exit: &str) -> bool {
    Members::of(exit).is_some_and(|exit| exit.get("exitCode") == Some("0"))
}

/// The words of the command, one a line.
fn command_line(params: &Members<'_>) -> Arc<str> {
    let args = params.get("args").and_then(elements).unwrap_or_default();
    let args = args.into_iter().filter_map(text);
    let words: Vec<_> = params.text("command").into_iter().chain(args).collect();
    cut(&words.join("\n"), LONGEST_TEXT)
}

fn cut(text: &str, most: usize) -> Arc<str> {
    text[..text.floor_char_boundary(most)].into()
}
