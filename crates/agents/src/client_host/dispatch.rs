//! Dispatches the agent's requests: the permit that each requires, and the code that serves it.

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, CreateTerminalRequest, Error, ReadTextFileRequest, RequestId,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer_line::AnswerLine;
use super::elicitations::{self, Question};
use super::host::Host;
use super::messages::PendingAnswer;
use super::permissions::{self, PermissionRequest};
use super::requests::{Completed, RequestResult};
use super::{HostError, PermissionPolicy, files, rpc, writes};
use crate::model::code;
use crate::model::{Action, NoMemory};
use crate::zone::Permit;

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    pub(super) fn on_request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        // Taken even by requests that need none: a permit left here would be found by a later
        // request with the same id.
        let permits = self.permits.take(id.get());
        if method == "initialize" && self.is_echo(id) {
            return;
        }
        let started = match self.ask_editor(id, method, params) {
            Ok(true) => return,
            Ok(false) => self.start(id, method, params, permits),
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            tracing::debug!(method, %id, error = error.message, "refused a request of the agent");
            self.out.push(rpc::response(id, Err(&error)));
        }
    }

    /// Fails the wait for the answer to `initialize` if the agent echoes the request.
    fn is_echo(&mut self, id: &RawValue) -> bool {
        let own = rpc::number(id).filter(|id| {
            matches!(self.pending.get(id), Some(PendingAnswer::Call { method: "initialize", .. }))
        });
        let Some(PendingAnswer::Call { reply, .. }) = own.and_then(|id| self.pending.remove(&id))
        else {
            return false;
        };
        // The caller may have given up waiting.
        let _ = reply.send(Err(HostError::Echo));
        true
    }

    pub(super) fn on_done(&mut self, id: &RawValue, outcome: RequestResult) {
        match outcome {
            Ok(Completed::Result(result)) => self.out.push(rpc::response(id, Ok(&result))),
            Ok(Completed::Bulky(answer, place)) => self.out.push_answer(answer, place),
            Ok(Completed::Terminal(started)) => {
                let screens = self.shared.screens.get();
                let terminal = self.terminals.register(started, screens);
                self.answer(id, &json!({ "terminalId": terminal }));
            }
            Err(error) => self.out.push(rpc::response(id, Err(&error))),
        }
    }

    /// Answers a request or starts its task; an error becomes the answer.
    fn start(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        permits: Option<Vec<Permit>>,
    ) -> Result<(), Error> {
        if method == "session/request_permission" {
            let request: PermissionRequest = rpc::decode(params)?;
            // Some agents say nothing else of a tool call before it runs.
            self.sessions.act(&request.session_id, None);
            // The gate leaves permits for no other permission request.
            let is_team_tool = permits.is_some();
            self.answer(id, &self.permission(&request, is_team_tool));
            return Ok(());
        }
        if method == "elicitation/create" {
            let answer = self.elicitation(&rpc::decode(params)?)?;
            self.answer(id, &answer);
            return Ok(());
        }
        self.requests.admit()?;
        match method {
            "fs/read_text_file" => {
                let request: ReadTextFileRequest = rpc::decode(params)?;
                let permit = files::only(permits, Action::Read)?;
                let files = self.shared.files.get().cloned();
                let conflicts = self.shared.conflicts.get().cloned();
                let (id_of, memory) = (id.to_owned(), self.permits.memory().clone());
                let read = files::read(request, permit, files, conflicts, id_of, memory);
                self.requests.start_bulky(id, read);
            }
            "fs/write_text_file" => {
                let permit = files::only(permits, Action::Write)?;
                let params = params.unwrap_or(RawValue::NULL).to_owned();
                let bytes = params.get().len();
                let memory = self.permits.memory().take(bytes as u64);
                let memory = memory.map_err(|why| no_memory("write the file", why))?;
                let files = self.shared.files.get().cloned();
                let conflicts = self.shared.conflicts.get().cloned();
                let write = writes::write(params, permit, files, conflicts);
                self.requests.start(id, bytes, async {
                    let written = write.await.map(Completed::Result);
                    drop(memory);
                    written
                });
            }
            _ if self.shared.settings.terminals => self.terminal(id, method, params, permits)?,
            _ => return Err(unknown(method)),
        }
        Ok(())
    }

    fn terminal(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        permits: Option<Vec<Permit>>,
    ) -> Result<(), Error> {
        match method {
            "terminal/create" => {
                let request: CreateTerminalRequest = rpc::decode(params)?;
                let starting = self.terminals.create(request, permits)?;
                self.requests.start(id, 0, async { starting.await.map(Completed::Terminal) });
            }
            "terminal/output" => {
                let output = self.terminals.find(params)?.output();
                let (id_of, memory) = (id.to_owned(), self.permits.memory().clone());
                self.requests.start_bulky(id, async move {
                    let answer = AnswerLine::of(&id_of, &output.await?, &memory);
                    answer.map_err(|why| no_memory("answer with the output", why))
                });
            }
            "terminal/wait_for_exit" => {
                let exit = self.terminals.find(params)?.wait_for_exit();
                self.requests.start(id, 0, async { exit.await.map(Completed::Result) });
            }
            "terminal/kill" => {
                let killed = self.terminals.find(params)?.kill();
                self.requests.start(id, 0, async { killed.await.map(Completed::Result) });
            }
            "terminal/release" => {
                let killed = self.terminals.remove(params)?.kill();
                self.requests.start(id, 0, async { killed.await.map(Completed::Result) });
            }
            _ => return Err(unknown(method)),
        }
        Ok(())
    }

    /// Requests of a cancelled turn are `cancelled`, and those for tools of the team granted; the
    /// policy decides the others.
    fn permission(&self, request: &PermissionRequest, is_team_tool: bool) -> Value {
        let policy = *self.shared.permissions.borrow();
        let policy = if is_team_tool { PermissionPolicy::Allow } else { policy };
        let chosen = if self.sessions.is_cancelled(&request.session_id) {
            None
        } else {
            permissions::choose(policy, &request.options)
        };
        permissions::outcome(chosen)
    }

    /// Questions of a cancelled turn are cancelled. The host does not accept those that an editor's
    /// request caused.
    fn elicitation(&self, question: &Question) -> Result<CreateElicitationResponse, Error> {
        let is_cancelled = |session: &String| self.sessions.is_cancelled(session);
        if question.session_id.as_ref().is_some_and(is_cancelled) {
            return Ok(elicitations::cancelled());
        }
        let is_editors = question.request_id.as_ref().is_some_and(|id| self.is_forwarded(id));
        let policy = *self.shared.permissions.borrow();
        elicitations::answer(if is_editors { PermissionPolicy::Deny } else { policy }, question)
    }

    fn is_forwarded(&self, request: &RequestId) -> bool {
        let RequestId::Number(number) = request else { return false };
        let pending = u64::try_from(*number).ok().and_then(|number| self.pending.get(&number));
        matches!(pending, Some(PendingAnswer::Forwarded(_)))
    }

    fn answer(&mut self, id: &RawValue, result: &impl Serialize) {
        let result = rpc::encode(result);
        self.out.push(rpc::response(id, result.as_deref()));
    }
}

fn no_memory(what: &str, why: NoMemory) -> Error {
    rpc::failure(code::INTERNAL_ERROR, format!("Cannot {what}: {why}"))
}

fn unknown(method: &str) -> Error {
    rpc::failure(code::METHOD_NOT_FOUND, format!("Method not found: {method}"))
}
