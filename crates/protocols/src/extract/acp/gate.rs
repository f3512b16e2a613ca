//! Reads the gated request in an agent's line. A line that two parsers could read as different
//! requests never passes.
//!
//! Finds the accesses that a request names; the zone, which it does not know, judges them.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::call::ToolCallState;
use super::frame::Frame;
use super::named::judged;
use super::sessions::LONGEST_ID;
use super::strict::{fold, has_doubles, mimics};
use super::subject::Subject;
use super::update::{CallFields, Origin};
use super::{Acp, MARK, replies, terminal_command};
use crate::extract::json::{Members, elements, is_json, text};
use crate::extract::{Access, Ask, Gate, PermissionOption, Target, shell, uri};
use crate::model::{Action, SessionId, Via};

/// Requests that a zone judges.
const GATED: [(&str, Via); 4] = [
    ("fs/read_text_file", Via::Fs),
    ("fs/write_text_file", Via::Fs),
    ("terminal/create", Via::Terminal),
    ("session/request_permission", Via::Permission),
];
/// Members of their parameters that this file or the client reads.
const PARAMETERS: [&str; 13] = [
    "sessionId",
    "path",
    "line",
    "limit",
    "content",
    "command",
    "args",
    "cwd",
    "env",
    "toolCall",
    "subject",
    "title",
    "options",
];
const CALL: [&str; 7] =
    ["toolCallId", "kind", "status", "title", "content", "locations", "rawInput"];
const LOCATION: [&str; 3] = ["path", "type", "changes"];
const CHANGE: [&str; 3] = ["operation", "path", "oldPath"];
/// Requests of one batch that get a response; no agent sends more.
const MOST_REPLIES: usize = 1000;

/// Why a request has no certain reading.
type Unclear = &'static str;

/// A line as the gate read it.
pub(super) struct Judged<'a> {
    pub(super) gate: Gate,
    /// None if it is not a readable message.
    pub(super) frame: Option<Frame<'a>>,
    pub(super) request: Option<GatedRequest<'a>>,
}

/// The parsed parameters of a gated request.
pub(super) struct GatedRequest<'a> {
    pub(super) params: Members<'a>,
    pub(super) permission: Option<Box<Permission<'a>>>,
}

/// A request for permission that names a tool call.
pub(super) struct Permission<'a> {
    pub(super) fields: CallFields<'a>,
    /// With the fields merged.
    pub(super) call: ToolCallState,
}

impl Acp {
    /// Judges the readable form of a line.
    pub(super) fn judge<'a>(&self, readable: &'a [u8], line: &'a [u8]) -> Judged<'a> {
        let unread = |gate| Judged { gate, frame: None, request: None };
        if readable.trim_ascii().is_empty() {
            return unread(Gate::Pass);
        }
        let Ok(text) = simdutf8::basic::from_utf8(readable) else {
            let text = String::from_utf8_lossy(readable);
            return unread(ambiguous("it is no UTF-8", text.trim_ascii()));
        };
        let marked = text.trim_ascii();
        let unmarked = marked.trim_start_matches(MARK);
        let frame = Frame::of(unmarked).map(|frame| frame.with_id_of(line, text));
        let mut request = None;
        let gate = self.message_gate(unmarked, frame.as_ref(), &mut request);
        // Not every parser accepts the mark: only lines without a gated request may pass.
        if unmarked.len() < marked.len() && !matches!(gate, Gate::Pass) {
            return unread(ambiguous("it begins with a byte order mark", unmarked));
        }
        if !matches!(gate, Gate::Ambiguous { .. }) && may_split(unmarked) {
            for piece in pieces(unmarked) {
                let piece_gate = self.message_gate(piece, Frame::of(piece).as_ref(), &mut None);
                if !matches!(piece_gate, Gate::Pass) {
                    let why = "a part of it would be a request to readers that split lines";
                    return unread(ambiguous(why, unmarked));
                }
            }
        }
        let is_mended = !std::ptr::eq(readable, line);
        if let Gate::Ask(ask) = &gate
            && is_mended
            && ask.accesses.iter().any(|access| has_replacement(&access.path))
        {
            // Some readers take other bytes for what is no Unicode.
            return unread(ambiguous("a path of it is no Unicode", unmarked));
        }
        Judged { gate, frame, request }
    }

    /// Gates one JSON text, whose frame is given. Stores the parsed request in `request`.
    fn message_gate<'a>(
        &self,
        line: &str,
        frame: Option<&Frame<'a>>,
        request: &mut Option<GatedRequest<'a>>,
    ) -> Gate {
        let Some(frame) = frame else {
            if !is_json(line) {
                return ambiguous("it is no JSON", line);
            }
            if line.starts_with('[') {
                return ambiguous("it is a batch", line);
            }
            // No reader takes a bare value for a message.
            return Gate::Pass;
        };
        if frame.unclear {
            return ambiguous("a member of its envelope is there twice or misspelt", line);
        }
        let Some(method) = frame.method.filter(|method| method.get() != "null") else {
            return Gate::Pass;
        };
        let Some(method) = text(method.get()) else {
            return ambiguous("its method is no text", line);
        };
        let folded = fold(method.trim());
        let Some((name, via)) = GATED.iter().find(|(name, _)| name.eq_ignore_ascii_case(&folded))
        else {
            return Gate::Pass;
        };
        if method != *name {
            return ambiguous("its method is misspelt", line);
        }
        match self.ask(name, *via, frame.params, request) {
            Ok(ask) => Gate::Ask(Ask { id: frame.id.map(ToOwned::to_owned), ..ask }),
            Err(why) => ambiguous(why, line),
        }
    }

    fn ask<'a>(
        &self,
        method: &str,
        via: Via,
        params: Option<&'a RawValue>,
        request: &mut Option<GatedRequest<'a>>,
    ) -> Result<Ask, Unclear> {
        let params = params.ok_or("it has no parameters")?;
        if has_doubles(params) {
            return Err("a member of its parameters is there twice");
        }
        let params = Members::of(params.get()).ok_or("its parameters are no object")?;
        if misspells(&params, &PARAMETERS) {
            return Err("a member of its parameters is misspelt");
        }
        let session = params.text("sessionId").ok_or("it names no session")?;
        if session.len() > LONGEST_ID {
            return Err("its session's id is too long");
        }
        let session = SessionId::new(&*session);
        let mut permission = None;
        let (accesses, options) = (Vec::new(), Vec::new());
        let mut ask = Ask { id: None, session, via, accesses, options, is_team_tool: false };
        match via {
            Via::Terminal => ask.accesses = self.terminal_accesses(&ask.session, &params)?,
            Via::Permission => {
                ask.accesses = self.permission_accesses(&ask.session, &params, &mut permission)?;
                ask.options = permission_options(&params)?;
                ask.is_team_tool = permission
                    .as_ref()
                    .is_some_and(|it| it.call.is_team_tool() && !it.call.ended());
            }
            Via::Fs | Via::Kernel | Via::Tool | Via::Request => {
                let write = method == "fs/write_text_file";
                let action = if write { Action::Write } else { Action::Read };
                let path = self.path(&ask.session, &params, "path")?.ok_or("it names no path")?;
                ask.accesses.push(Access { path, target: Target::File(action) });
            }
        }
        *request = Some(GatedRequest { params, permission });
        Ok(ask)
    }

    fn terminal_accesses(
        &self,
        session: &SessionId,
        params: &Members<'_>,
    ) -> Result<Vec<Access>, Unclear> {
        let cwd = self.path(session, params, "cwd")?;
        let cwd = cwd.unwrap_or_else(|| self.sessions.cwd(session).to_path_buf());
        let commands =
            terminal_command(params).ok_or("its command is no text, or its arguments")?;
        let mut accesses = vec![Access { path: cwd.clone(), target: Target::Cwd }];
        let root = self.workspace.root();
        for command in commands {
            let reading = shell::read(&command, &cwd, &*self.workspace);
            if !reading.whole {
                return Err("its command is too long to be read");
            }
            for access in reading.named.iter().filter_map(|it| judged(it, root)) {
                if !accesses.contains(&access) {
                    accesses.push(access);
                }
            }
        }
        Ok(accesses)
    }

    fn permission_accesses<'a>(
        &self,
        session: &SessionId,
        params: &Members<'a>,
        permission: &mut Option<Box<Permission<'a>>>,
    ) -> Result<Vec<Access>, Unclear> {
        let call = match Subject::of(params)? {
            Subject::Call(call) => call,
            Subject::Command(command) => return self.terminal_accesses(session, &command),
            Subject::Unnamed => return Ok(Vec::new()),
        };
        if misspells(&call, &CALL) || misspells_location(&call) {
            return Err("a member of its tool call is misspelt");
        }
        let fields = CallFields::of(&call, Origin::Permission).ok_or("its tool call has no id")?;
        let known = self.sessions.get(session).and_then(|session| session.call(&fields.id));
        let mut call: ToolCallState = known.cloned().unwrap_or_default();
        let cwd = self.sessions.cwd(session);
        call.absorb(&fields, cwd, &*self.workspace);
        let accesses = call.accesses(cwd, &*self.workspace);
        *permission = Some(Box::new(Permission { fields, call }));
        accesses.ok_or("its tool call cannot be read for certain")
    }

    /// The absolute path of a parameter; None if it is absent.
    fn path(
        &self,
        session: &SessionId,
        params: &Members<'_>,
        key: &str,
    ) -> Result<Option<PathBuf>, Unclear> {
        let Some(raw) = params.get(key).filter(|raw| *raw != "null") else { return Ok(None) };
        let path = text(raw).ok_or("a path of it is no text")?;
        let path = uri::exact_path_of(&path).ok_or("a path of it cannot be one")?;
        Ok(Some(self.sessions.cwd(session).join(path)))
    }
}

fn has_replacement(path: &Path) -> bool {
    path.to_string_lossy().contains(char::REPLACEMENT_CHARACTER)
}

fn permission_options(params: &Members<'_>) -> Result<Vec<PermissionOption>, Unclear> {
    let options = params.get("options").and_then(elements).ok_or("it offers no options")?;
    let option = |raw| {
        let option = Members::of(raw)?;
        let id = option.text("optionId")?.into_owned();
        let kind = option.text("kind").unwrap_or_default().into_owned();
        Some(PermissionOption { id, kind })
    };
    options.into_iter().map(|raw| option(raw).ok_or("an option of it has no id")).collect()
}

fn misspells_location(call: &Members<'_>) -> bool {
    let objects = |raw| elements(raw).unwrap_or_default().into_iter().filter_map(Members::of);
    let places = ["locations", "content"].iter().filter_map(|key| call.get(key)).flat_map(objects);
    places.into_iter().any(|place| {
        let mut changes = place.get("changes").into_iter().flat_map(objects);
        misspells(&place, &LOCATION) || changes.any(|change| misspells(&change, &CHANGE))
    })
}

fn misspells(members: &Members<'_>, known: &[&str]) -> bool {
    members.iter().any(|(name, _)| mimics(name, known))
}

/// Characters that some reader takes for the end of a line.
const ENDS: [char; 4] = ['\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Whether some reader would take a line for several.
pub(super) fn may_split(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_end = |at: usize| {
        matches!(bytes[at..], [b'\r', ..] | [0xc2, 0x85, ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..])
    };
    memchr::memchr3_iter(b'\r', 0xc2, 0xe2, bytes).any(is_end)
}

/// The parts of a line that some reader takes for lines of JSON. A request has a quote.
fn pieces(line: &str) -> impl Iterator<Item = &str> {
    line.split(ENDS)
        .map(str::trim)
        .filter(|piece| piece.starts_with(['{', '[']) && piece.contains('"'))
        .filter(|piece| is_json(piece))
}

/// Refuses a line, with an error response to each request that has a readable id.
fn ambiguous(why: &'static str, line: &str) -> Gate {
    let batch = elements(line).filter(|_| is_json(line));
    let texts = batch.unwrap_or_else(|| vec![line.trim_start_matches(MARK)]);
    let mut replies: Vec<Bytes> = Vec::new();
    for text in texts.into_iter().take(MOST_REPLIES) {
        let frame = Frame::beginning(text);
        // The replacement of an id that was not Unicode would not match the agent's.
        let id = frame.request_id().filter(|id| !id.get().contains(char::REPLACEMENT_CHARACTER));
        replies.extend(id.map(|id| replies::invalid(id, why)));
    }
    Gate::Ambiguous { why, replies }
}
