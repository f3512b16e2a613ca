//! `compress`: has an agent compress its context, and tells what that came to.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, timeout, timeout_at};

use super::output::{escape_controls, note, plain, print};
use super::prompt::{PromptEnd, SentPrompt, exit_code};
use super::team::{AgentAt, Which, await_start, failed, list_agents, read};
use super::{Global, format};
use crate::model::AgentState;
use crate::program::Failure;
use crate::serve::client::Connection;

/// The exit code where the time is up.
const TIMED_OUT: u8 = 124;

/// How long an agent may take to end its turn after that.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// Have an agent compress its context
///
/// Sends the command that the agent has for it, as a prompt, waits for the end of that turn, and
/// prints the tokens in its context before and after. The command is the one that the agent announces
/// itself (`/compact`, `/compress` or `/summarize`), else `compact` of its profile; `ps --json` shows it
/// as `compress`. Of a run that has not ended the id does, too, or a beginning of it that no other run
/// has; an agent of that name comes first. An agent of a run is in its turn until the run ends, so
/// there only another `--session` can be compressed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core agent compress ui
  eisen-core agent compress ui --timeout 300  wait for the end of its turn first
  eisen-core agent compress ui --json | jq .after.used

Exit codes: 0 the turn ended (end_turn), 1 it failed or could not be started, or the agent is in a turn,
2 wrong usage, or no command is known, 3 max_tokens, 4 max_turn_requests, 5 refusal, 6 another stop
reason, 124 the time is up, 130 cancelled or withdrawn.")]
pub(super) struct CompressArgs {
    /// Id of the agent, or of a run
    agent: String,
    /// Id of the session [default: the first session that the agent opened]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Wait for the end of the session's turn, and then for that of the compression, no longer than
    /// this; a compression that is not done by then is cancelled
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// A session to compress, at one moment.
struct ToCompress {
    session: String,
    command: Option<String>,
    /// A turn runs, or prompts wait.
    is_busy: bool,
    context: Option<Context>,
}

/// The tokens in a context, as the agent reported them last.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
struct Context {
    used: u64,
    /// 0 where it is unknown.
    size: u64,
}

impl CompressArgs {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let AgentAt { target, agent } = self.which.agent(global, &self.agent).await?;
        let mut team = Connection::open(&target).await.map_err(failed)?;
        await_start(&mut team, &agent).await.map_err(failed)?;
        let session = self.session.as_ref().or(global.session_id.as_ref());
        let before = look(&mut team, &agent, session.map(String::as_str)).await?;
        let Some(command) = before.command else { return Err(unknown(&agent)) };
        if before.is_busy && self.timeout.is_none() {
            return Err(Failure::Run(anyhow!(
                "`{agent}` is in a turn: wait for its end with --timeout SECONDS"
            )));
        }
        let wait = self.timeout.map(Duration::from_secs);
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        let session = before.session;
        let mut prompt =
            SentPrompt::send(&mut team, agent.clone(), Some(&session), &command, None)?;
        let waited = match deadline {
            Some(deadline) => timeout_at(deadline, prompt.wait(&mut team)).await,
            None => Ok(prompt.wait(&mut team).await),
        };
        let result = match waited {
            Ok(Ok(PromptEnd::Ended(result))) => result.map_err(failed)?,
            Ok(Ok(PromptEnd::Interrupted(code))) => return Ok(code),
            Ok(Err(failure)) => return Err(failure),
            Err(_) => {
                // One whose turn has not begun is withdrawn with the connection.
                if prompt.cancel(&mut team) {
                    let _ = timeout(CANCEL_PATIENCE, prompt.wait(&mut team)).await;
                }
                note(format_args!("the time is up: {}'s context is as it was", plain(&agent)));
                return Ok(TIMED_OUT);
            }
        };
        // Its agent may be gone by now.
        let after = look(&mut team, &agent, Some(&session)).await.ok().and_then(|it| it.context);
        let ended = read(&result)?;
        let code = exit_code(&ended);
        if self.json {
            print(json!({
                "agent_id": agent,
                "session_id": session,
                "command": command,
                "stop_reason": ended.stop_reason,
                "reason": ended.reason,
                "text": ended.text,
                "before": before.context,
                "after": after,
            }))?;
        } else if code == 0 {
            print(summary(&agent, before.context, after))?;
        }
        if code != 0 || ended.reason.is_some() {
            let reason = ended.reason.as_deref().unwrap_or("the context may be as it was");
            note(escape_controls(&format!("{}: {reason}", ended.stop_reason)));
        }
        Ok(code)
    }
}

/// Looks at a session of an agent that is ready.
async fn look(
    team: &mut Connection,
    agent: &str,
    session: Option<&str>,
) -> Result<ToCompress, Failure> {
    let agents = list_agents(team).await.map_err(failed)?;
    let refused = |why: String| Failure::Run(anyhow!(escape_controls(&why)));
    let Some(own) = agents.iter().find(|it| it.status.agent_id == agent) else {
        let known: Vec<_> = agents.iter().map(|it| &*it.status.agent_id).collect();
        return Err(refused(format!(
            "there is no agent `{agent}`; there are: {}",
            known.join(", ")
        )));
    };
    if own.status.state != AgentState::Ready {
        let state = &own.status.state;
        return Err(refused(format!("agent `{agent}` is {state}, not ready")));
    }
    let mut sessions = own.sessions.iter();
    let found = match session {
        Some(session) => sessions.find(|it| it.session_id == session && it.open),
        None => sessions.find(|it| it.default),
    };
    let named = session.map(|session| format!(" `{session}`")).unwrap_or_default();
    let missing = || refused(format!("agent `{agent}` has no session{named} open"));
    let found = found.ok_or_else(missing)?;
    Ok(ToCompress {
        session: found.session_id.to_string(),
        command: own.compress.as_deref().map(str::to_owned),
        is_busy: found.running || found.queued > 0,
        context: found.used.map(|used| Context { used, size: found.size.unwrap_or(0) }),
    })
}

fn unknown(agent: &str) -> Failure {
    Failure::Usage(anyhow!(
        "it is not known how `{agent}` compresses its context: it announces no command for it, and its \
         profile has none. If there is one, set `compact` in a profile of [profiles]"
    ))
}

fn summary(agent: &str, before: Option<Context>, after: Option<Context>) -> String {
    let agent = plain(agent);
    let of = |context: Context| match context.size {
        0 => String::new(),
        size => format!(" of {}", format::tokens(size)),
    };
    let used = |context: Context| format::tokens(context.used);
    match (before, after) {
        (Some(before), Some(after)) if before.used == after.used => format!(
            "{agent}: done; it still reports {}{} tokens, and may report fewer in its next turn",
            used(after),
            of(after)
        ),
        (Some(before), Some(after)) => {
            format!("{agent}: {} → {}{} tokens", used(before), used(after), of(after))
        }
        (None, Some(after)) => format!("{agent}: now {}{} tokens", used(after), of(after)),
        (_, None) => format!("{agent}: done; it does not report the tokens in its context"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_compression_came_to_is_told() {
        let tokens = |used| Some(Context { used, size: 200_000 });
        for (before, after, text) in [
            (tokens(120_000), tokens(15_200), "ui: 120.0k → 15.2k of 200.0k tokens"),
            (
                tokens(900),
                tokens(900),
                "ui: done; it still reports 900 of 200.0k tokens, and may report fewer in its next turn",
            ),
            (None, Some(Context { used: 5, size: 0 }), "ui: now 5 tokens"),
            (None, None, "ui: done; it does not report the tokens in its context"),
        ] {
            assert_eq!(summary("ui", before, after), text);
        }
    }
}
