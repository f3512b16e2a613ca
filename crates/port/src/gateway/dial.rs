//! Attaches to an agent, and introduces the client to it, beside the gateway's task.

use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::GatewayTeam;
use super::message::{self};
use super::session::Offers;
use crate::acp::AcpMessage;
use crate::acp::AgentIntroduction;
use crate::line::{LineReader, MAX_LINE, or_default};

/// The id of the introduction; the gateway's other requests come later, and have higher ones.
const INTRODUCTION: u64 = 0;

/// How long an agent may take until it is attached, and again until it has opened a session.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(300);

/// An attachment that is introduced.
pub(super) struct Dialed {
    pub(super) agent: String,
    pub(super) lines: LineReader<ReadHalf<DuplexStream>>,
    pub(super) writer: WriteHalf<DuplexStream>,
    /// The agent's answer to `initialize`.
    pub(super) introduction: Box<RawValue>,
    pub(super) offers: Offers,
    /// The conversation in the earlier session, where it was asked for.
    pub(super) history: Option<String>,
}

/// Attaches to an agent as the client with these params of `initialize`, unless nobody waits for it any
/// more.
pub(super) async fn dial(
    team: &dyn GatewayTeam,
    agent: &str,
    params: &RawValue,
    history_of: Option<(String, String)>,
    left: &CancellationToken,
) -> Result<Dialed, String> {
    let attached = timeout(MAX_WAIT, attach(team, agent, params, history_of));
    let Some(attached) = left.run_until_cancelled(attached).await else {
        return Err("You have left".to_owned());
    };
    let late = |_| Err(format!("`{agent}` was not ready within {} s", MAX_WAIT.as_secs()));
    attached.unwrap_or_else(late)
}

async fn attach(
    team: &dyn GatewayTeam,
    agent: &str,
    params: &RawValue,
    history_of: Option<(String, String)>,
) -> Result<Dialed, String> {
    let history = match history_of {
        Some((agent, target)) => Some(team.history(agent, target).await?),
        None => None,
    };
    let (reader, mut writer) = split(team.attach(agent.to_owned()).await?);
    let gone = |error: &dyn std::fmt::Display| format!("`{agent}` is gone: {error}");
    let request = message::request(INTRODUCTION, "initialize", params.get());
    let mut lines = LineReader::new(reader, MAX_LINE);
    writer.write_all(&request).await.map_err(|error| gone(&error))?;
    loop {
        let line = lines.next_whole().await.map_err(|error| gone(&error))?;
        let line = line.ok_or_else(|| gone(&"it ended before its introduction"))?;
        let Ok(AcpMessage::Response { id, outcome }) = AcpMessage::parse(&line) else { continue };
        if message::number(id) != Some(INTRODUCTION) {
            continue;
        }
        let introduction = match outcome {
            Ok(result) => result.unwrap_or(RawValue::NULL).to_owned(),
            Err(error) => {
                let why = message::complaint(error);
                return Err(format!("`{agent}` refused `initialize`: {why}"));
            }
        };
        let said: AgentIntroduction = or_default(introduction.get());
        let offered = said.agent_capabilities;
        let offers = Offers {
            load: offered.load_session,
            resume: offered.session_capabilities.resume.0,
            close: offered.session_capabilities.close.0,
        };
        let agent = agent.to_owned();
        return Ok(Dialed { agent, lines, writer, introduction, offers, history });
    }
}
