//! The turns of the host's own sessions: the next prompt, the answer's text, the end.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{Id, JoinError};

use super::host::{Host, closed_input};
use super::messages::PendingAnswer;
use super::offers::{OptionNews, SessionCommand, announced_commands};
use super::{Content, HostError};
use crate::line;
use crate::model::SessionId;

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Begins the session's next turn, unless one runs.
    pub(super) fn begin_turn(&mut self, session: &SessionId) {
        while let Some(content) = self.sessions.begin(session) {
            match content {
                Content::Now(blocks) => {
                    if self.send_prompt(session, blocks) {
                        return;
                    }
                }
                Content::Later(content) | Content::Drafted(_, content) => {
                    let making = async { content.await.ok_or(HostError::Withdrawn) };
                    let making = self.contents.spawn(making);
                    self.sessions.making(session, making);
                    return;
                }
            }
        }
    }

    /// Sends the prompt whose content was created, if its caller is still waiting.
    pub(super) fn on_content(
        &mut self,
        made: Result<(Id, Result<Vec<Value>, HostError>), JoinError>,
    ) {
        let (task, blocks) = match made {
            Ok((task, blocks)) => (task, blocks),
            Err(error) => (error.id(), Err(HostError::Withdrawn)),
        };
        // None: the turn was cancelled meanwhile.
        let Some((session, wanted)) = self.sessions.made(task) else { return };
        let sent = match blocks {
            Ok(blocks) if wanted => self.send_prompt(&session, blocks),
            made => {
                let error = made.err().unwrap_or(HostError::Withdrawn);
                self.sessions.end_turn(&session, Err(error));
                false
            }
        };
        if !sent {
            self.begin_turn(&session);
        }
    }

    /// Returns whether the turn runs now; if not, it has ended.
    fn send_prompt(&mut self, session: &SessionId, blocks: Vec<Value>) -> bool {
        if !self.out.is_open() {
            self.sessions.end_turn(session, Err(closed_input()));
            return false;
        }
        let document = self.permits.branches().document(session);
        let hint = self.hint(session, &blocks);
        let prompt: Vec<_> = hint.iter().chain(&document).chain(&blocks).collect();
        let params = json!({ "sessionId": session.as_str(), "prompt": prompt });
        self.call("session/prompt", &params, PendingAnswer::Turn(session.clone()));
        self.sessions.sent(session, blocks);
        true
    }
}

/// The commands by which agents compress their contexts.
const COMPRESSING: [&str; 3] = ["/compact", "/compress", "/summarize"];

/// The meaning of a `session/update` for the agent's messages.
pub(super) enum MessagePart {
    Text(String),
    /// A tool call, by its title, or a plan: the next text is another message.
    Act(Option<String>),
    /// The agent's commands, and the one of them by which it compresses its context.
    Commands {
        compress: Option<&'static str>,
        commands: Vec<SessionCommand>,
    },
    /// Something else is chosen, or offered.
    Options(OptionNews),
}

/// Returns the session of a `session/update` that carries text or ends a message.
pub(super) fn message_part(params: &RawValue) -> Option<(String, MessagePart)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Notification<'a> {
        session_id: String,
        #[serde(borrow)]
        update: Update<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update<'a> {
        #[serde(rename = "sessionUpdate")]
        kind: String,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(borrow)]
        title: Option<&'a RawValue>,
        #[serde(borrow)]
        available_commands: Option<&'a RawValue>,
        #[serde(borrow)]
        current_mode_id: Option<&'a RawValue>,
        #[serde(borrow)]
        config_options: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let params = line::text(params.get().as_bytes());
    let Notification { session_id, update } = serde_json::from_str(&params).ok()?;
    let part = match &*update.kind {
        "agent_message_chunk" => {
            let Text { text } = serde_json::from_str(update.content?.get()).ok()?;
            MessagePart::Text(text)
        }
        "tool_call" => MessagePart::Act(
            update.title.and_then(|title| serde_json::from_str::<String>(title.get()).ok()),
        ),
        "plan" => MessagePart::Act(Some("plan".to_owned())),
        "available_commands_update" => {
            let announced = serde_json::from_str(update.available_commands?.get()).ok()?;
            let commands = announced_commands(&announced);
            MessagePart::Commands { compress: compressing(&commands), commands }
        }
        "current_mode_update" => {
            let mode = serde_json::from_str(update.current_mode_id?.get()).ok()?;
            MessagePart::Options(OptionNews::Mode(mode))
        }
        "config_option_update" => {
            let options = serde_json::from_str(update.config_options?.get()).ok()?;
            MessagePart::Options(OptionNews::Options(options))
        }
        // Others, such as token counts and updates of tool calls, may come within a message.
        _ => return None,
    };
    Some((session_id, part))
}

/// The command by which an agent compresses its context, of those that it announces.
fn compressing(commands: &[SessionCommand]) -> Option<&'static str> {
    COMPRESSING.into_iter().find(|known| commands.iter().any(|command| known[1..] == command.name))
}

pub(super) fn stop_reason(result: Option<&RawValue>) -> Result<String, HostError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ended {
        stop_reason: String,
    }
    let result = result.map_or("null", RawValue::get);
    line::read::<Ended>(result.as_bytes())
        .map(|ended| ended.stop_reason)
        .map_err(|error| HostError::malformed("session/prompt", &error))
}
