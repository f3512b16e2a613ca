//! Turns a relayed message into activities, by direction and method.
//!
//! Best effort: a malformed part is skipped and never affects later messages. Knows no zone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{CompactionStatus, CompactionUpdate};

use serde_json::value::RawValue;

use super::Acp;
use super::call::{ToolCallState, Touched};
use super::executions::runs;
use super::frame::Frame;
use super::gate::{GatedRequest, Permission};
use super::models::Choice;
use super::modes;
use super::pending::{AgentRequest, ClientRequest, PendingRequest};
use super::sessions::LONGEST_ID;
use super::steps::message_ended;
use super::subject::Subject;
use super::update::{CallFields, Origin, typed};
use crate::extract::json::{self, Members};
use crate::extract::uri;
use crate::line::Direction;
use crate::model::{
    ActivityKind, Lines, Record, SessionId, Source, Touch, UpdateDetail, fold, wire_real,
};

impl Acp {
    pub(super) fn observe_message(&mut self, direction: Direction, raw: &str) {
        if let Some(frame) = Frame::of(raw) {
            self.observe_frame(direction, &frame, None);
        }
    }

    /// `request` is the gate's parsed request, if it has one.
    pub(super) fn observe_frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        request: Option<GatedRequest<'_>>,
    ) {
        match (direction, frame.method()) {
            (Direction::ToAgent, Some(method)) => self.client_request(&method, frame),
            (Direction::ToAgent, None) => {
                self.request_answered(frame);
                self.client_response(frame);
            }
            (Direction::ToClient, Some(method)) => {
                self.agent_request(&method, frame, request);
            }
            (Direction::ToClient, None) => self.agent_response(frame),
        }
    }

    fn client_request(&mut self, method: &str, frame: &Frame<'_>) {
        let Some(params) = Members::of(frame.params()) else { return };
        let cwd = params.text("cwd").and_then(|cwd| uri::path_of(&cwd));
        let session = session_of(&params);
        let request = match (method, session) {
            ("session/new", _) => ClientRequest::New { cwd, is_fork: false },
            ("session/fork", _) => ClientRequest::New { cwd, is_fork: true },
            ("session/load", Some(session)) => {
                let known = self.sessions.announce(&session, cwd.as_deref());
                // Without an id no response would end it.
                if frame.id.is_some() {
                    known.load_began();
                    self.record(&session, Record::Replays(true));
                }
                ClientRequest::Load(session)
            }
            ("session/resume", Some(session)) => {
                self.sessions.announce(&session, cwd.as_deref());
                ClientRequest::Resume(session)
            }
            ("session/close" | "session/delete", Some(session)) => ClientRequest::Close(session),
            ("session/set_model" | "session/set_config_option", Some(session)) => {
                let Some(choice) = Choice::of(&params) else { return };
                ClientRequest::Choose(session, choice)
            }
            ("session/set_mode", Some(session)) => {
                let Some(mode) = modes::chosen(&params) else { return };
                ClientRequest::Mode(session, mode)
            }
            ("session/prompt", Some(session)) => {
                let known = self.sessions.announce(&session, None);
                if let Some(id) = frame.id {
                    if known.turn_began() {
                        self.record(&session, Record::Replays(false));
                    }
                    self.chunks.forget(&session);
                    self.reported.add(&session, ActivityKind::TurnBegan);
                    self.prompted(&session, id, &params);
                    if let Some(blocks) = params.get("prompt") {
                        self.record(&session, Record::Prompt(blocks.into()));
                        self.show_prompt(&session, blocks);
                    }
                }
                self.prompt(&session, &params);
                self.asked(&session, &params);
                ClientRequest::Prompt(session)
            }
            ("session/cancel", Some(session)) => {
                if let Some(known) = self.sessions.get_mut(&session) {
                    known.cancel();
                }
                self.reported.add(&session, ActivityKind::CancelRequested);
                return;
            }
            _ => return,
        };
        if let Some(id) = frame.id {
            let given_up = self.client_requests.insert(id, request);
            self.give_up(given_up, "its request was displaced by newer ones");
        }
    }

    fn agent_response(&mut self, frame: &Frame<'_>) {
        let Some(request) = frame.id.and_then(|id| self.client_requests.remove(id)) else { return };
        let failure = frame.error.map(RawValue::get).filter(|error| *error != "null");
        let result = frame.result.and_then(|result| Members::of(result.get()));
        match request {
            ClientRequest::Prompt(session) => {
                self.prompt_answered(&session, failure, result.as_ref());
            }
            ClientRequest::New { cwd, is_fork } => {
                let session = result.as_ref().filter(|_| failure.is_none()).and_then(session_of);
                if let Some(session) = session {
                    let known = self.sessions.announce(&session, cwd.as_deref());
                    if !is_fork {
                        known.meter.opened();
                    }
                    self.session_opened(&session, true, result.as_ref());
                    if is_fork {
                        self.session_goes_on(&session);
                    }
                }
            }
            ClientRequest::Load(session) => {
                let known = self.sessions.remember(&session);
                let usage = known.load_ended();
                if !known.replays() {
                    self.record(&session, Record::Replays(false));
                }
                if failure.is_none() {
                    self.session_opened(&session, false, result.as_ref());
                    let kind = usage.map(|usage| ActivityKind::Usage { usage, is_past: true });
                    self.reported.add_all(&session, kind);
                }
            }
            ClientRequest::Resume(session) if failure.is_none() => {
                self.session_opened(&session, false, result.as_ref());
                self.session_goes_on(&session);
            }
            ClientRequest::Choose(session, choice) if failure.is_none() => {
                if let Some(result) = &result {
                    self.learn_mode(&session, result);
                }
                self.report_choice(&session, choice, result.as_ref());
            }
            ClientRequest::Mode(session, mode) if failure.is_none() => {
                self.mode_chosen(&session, &mode);
            }
            ClientRequest::Close(session) if failure.is_none() => {
                self.end_session_turns(&session);
                self.sessions.remember(&session).close();
                self.chunks.forget(&session);
                self.reported.add(&session, ActivityKind::Closed);
            }
            ClientRequest::Resume(_)
            | ClientRequest::Choose(..)
            | ClientRequest::Mode(..)
            | ClientRequest::Close(_) => {}
        }
    }

    fn agent_request(
        &mut self,
        method: &str,
        frame: &Frame<'_>,
        request: Option<GatedRequest<'_>>,
    ) {
        let read = || Some(GatedRequest { params: Members::of(frame.params())?, permission: None });
        let Some(GatedRequest { params, permission }) = request.or_else(read) else { return };
        if method == "$/cancel_request" {
            if let Some(id) = params.get("requestId") {
                // The notification names no session.
                let (session, id) = (SessionId::new(""), id.trim().into());
                self.reported.add(&session, ActivityKind::RequestCancelled { id });
            }
            return;
        }
        let session = session_of(&params);
        if let Some(id) = frame.id {
            let is_permission = method == "session/request_permission";
            let permission = is_permission.then(|| id.to_owned());
            self.unanswered.insert(id, PendingRequest { session: session.clone(), permission });
        }
        let Some(session) = session else { return };
        match method {
            "session/update" => self.update(&session, &params, frame),
            "_session/retrying" => self.retries(&session, &params),
            "session/request_permission" => {
                if let Some(id) = frame.id {
                    self.permission_asked(&session, id, frame);
                }
                if let Some(permission) = permission {
                    let Permission { fields, call } = *permission;
                    self.call(&session, &fields, Some(call));
                } else if let Ok(Subject::Call(call)) = Subject::of(&params)
                    && let Some(fields) = CallFields::of(&call, Origin::Permission)
                {
                    self.call(&session, &fields, None);
                }
            }
            "fs/read_text_file" | "fs/write_text_file" => {
                if let Some(path) = params.text("path").and_then(|path| uri::path_of(&path)) {
                    let writes = method == "fs/write_text_file";
                    self.file_request(&session, &path, writes, frame);
                }
            }
            "terminal/create" => self.terminal_created(session, &params, frame),
            "terminal/release" | "terminal/kill" => {
                self.terminal_ended(&session, &params);
            }
            "terminal/output" | "terminal/wait_for_exit" => {
                let terminal = params.text("terminalId").filter(|id| id.len() <= LONGEST_ID);
                if let (Some(id), Some(terminal)) = (frame.id, terminal) {
                    let terminal = terminal.into_owned();
                    let request = if method == "terminal/output" {
                        AgentRequest::Output { session, terminal }
                    } else {
                        AgentRequest::Exit { session, terminal }
                    };
                    self.agent_requests.insert(id, request);
                }
            }
            _ => {}
        }
    }

    fn update(&mut self, session: &SessionId, params: &Members<'_>, frame: &Frame<'_>) {
        let Some(raw) = params.get("update") else { return };
        if self.is_closed(session) {
            return;
        }
        let Some(update) = Members::of(raw).filter(|update| !claims_team(update)) else { return };
        if self.updates != UpdateDetail::None {
            self.reported.add(session, ActivityKind::Update(raw.into()));
        }
        self.usage_beside(session, params);
        let origin = match update.text("sessionUpdate").as_deref() {
            Some("tool_call") => Origin::Call,
            Some("tool_call_update" | "tool_call_content_chunk") => Origin::Update,
            Some("usage_update") => {
                self.keeps_house = true;
                return self.usage_update(session, raw, &update);
            }
            Some("session_info_update") => {
                self.keeps_house = true;
                return self.session_info(session, &update);
            }
            Some("available_commands_update" | "current_mode_update") => {
                self.keeps_house = true;
                return self.learn_mode(session, &update);
            }
            Some("compaction_update") => {
                let compaction: Option<CompactionUpdate> = typed(raw);
                let done = compaction.filter(|it| it.status == CompactionStatus::Completed);
                let known = self.sessions.remember(session);
                if let Some(compaction) = done
                    && known.is_new_compaction(&compaction.compaction_id.0)
                    && !known.replays()
                {
                    self.reported.add(session, ActivityKind::Compacted);
                }
                return;
            }
            Some("state_update") => return self.state_update(session, &update),
            Some("terminal_update") => return self.terminal_update(session, &update),
            Some("config_option_update") => {
                self.keeps_house = true;
                self.learn_mode(session, &update);
                return self.report_model(session, Some(&update));
            }
            Some(kind @ ("agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk")) => {
                match kind {
                    "agent_message_chunk" => self.read_message(session, &update),
                    "agent_thought_chunk" => self.sessions.remember(session).note_thought(),
                    _ => {}
                }
                if self.usage_of_chunk(session, &update) {
                    return;
                }
                self.learn_chunk(session, &update, raw, frame);
                return;
            }
            _ => return,
        };
        if let Some(fields) = CallFields::of(&update, origin) {
            self.call(session, &fields, None);
        }
    }

    /// `absorbed` is the call with these fields merged, if the gate did that.
    pub(super) fn call(
        &mut self,
        id: &SessionId,
        fields: &CallFields<'_>,
        absorbed: Option<ToolCallState>,
    ) {
        if fields.id.len() > LONGEST_ID {
            return;
        }
        let workspace = &*self.workspace;
        let session = self.sessions.remember(id);
        let cwd = session.cwd.clone();
        let replayed = session.replays();
        let finds_loops = self.finds_loops && !replayed;
        if session.note_call(&fields.id) && finds_loops {
            message_ended(session, id, &mut self.reported);
            self.chunks.forget(id);
        }
        let call = session.remember_call(&fields.id);
        match absorbed {
            Some(absorbed) => *call = absorbed,
            None => call.absorb(fields, &cwd, workspace),
        }
        if !replayed {
            call.absorb_lines(fields, &cwd, workspace);
        }
        let (completed, is_over) = (call.is_completed(), call.ended());
        let step = if finds_loops { call.digested(fields) } else { None };
        let touches = if call.is_changed() { call.touches(&cwd, workspace) } else { Vec::new() };
        for touched in &touches {
            let Touched { path, wire, touch } = touched;
            let (touch, was_reported_before) = (*touch, call.was_reported(wire, *touch));
            let is_new = call.mark_lines_reported(touched) || !was_reported_before;
            let is_new = is_new && &**wire != "." && !workspace.is_ignored(path);
            if is_new && (was_reported_before || call.mark_reported(wire, touch)) && !replayed {
                let path = Arc::clone(wire);
                let (source, lines) = (Source::Tool, call.lines_of(touched));
                let kind = ActivityKind::Touched { path, touch, source, lines };
                self.reported.add(id, kind);
            }
        }
        call.lines_reported();
        if !replayed {
            self.reported.add_all(id, runs(fields, call.ended(), &cwd));
        }
        if completed {
            let performed = call.perform(touches, workspace);
            if !replayed {
                self.reported.add_all(id, performed);
            }
        }
        self.reported.add_all(id, step.map(ActivityKind::Step));
        if is_over {
            session.note_call_end(&fields.id);
        }
    }

    /// Reports a touch outside of tool calls; false if the map leaves the path out.
    pub(super) fn push_touch(
        &mut self,
        session: &SessionId,
        path: &Path,
        touch: Touch,
        source: Source,
        lines: Lines,
    ) -> bool {
        let cwd = self.sessions.cwd(session);
        let path: PathBuf = fold(&cwd.join(path));
        let wire = wire_real(self.workspace.root(), &path);
        let is_on_map = wire != "." && !self.workspace.is_ignored(&path);
        if is_on_map {
            let path = wire.into();
            let kind = ActivityKind::Touched { path, touch, source, lines };
            self.reported.add(session, kind);
        }
        is_on_map
    }
}

fn session_of(members: &Members<'_>) -> Option<SessionId> {
    let id = members.text("sessionId")?;
    (id.len() <= LONGEST_ID).then(|| SessionId::new(&*id))
}

/// Whether an agent's update has a name of those that the team makes itself: readers would take it for one of these.
fn claims_team(update: &Members<'_>) -> bool {
    let mut names = update.iter().filter(|(name, _)| *name == "sessionUpdate");
    names.any(|(_, kind)| json::text(kind).is_some_and(|kind| kind.starts_with("_eisen/")))
}
