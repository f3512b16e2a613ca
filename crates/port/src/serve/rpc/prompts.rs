//! Owns the methods about the prompts that wait.

use super::questions::bounded;
use super::{MethodCall, Reply, reply};
use crate::client_host::{self, PromptDraft};
use crate::model::{AgentId, SessionId};
use crate::serve::{Refused, rights};
use crate::wire::{
    EditPrompt, EditPromptParams, ListPrompts, ListPromptsParams, WaitingPrompt, WaitingPrompts,
    WithdrawPrompt, WithdrawPromptParams,
};

/// Prompts of an answer; the others are counted.
const MOST_LISTED: usize = 200;
/// Bytes of a text in a list; that of a prompt that is asked for by its id is whole.
const LONGEST_LISTED: usize = 4096;
/// Bytes of a text in place of another.
const LONGEST_TEXT: usize = 1 << 20;

pub(super) async fn list_prompts(
    call: MethodCall<'_>,
    params: ListPromptsParams,
) -> Result<Reply<ListPrompts>, Refused> {
    let agent = AgentId::new(params.agent_id);
    if !call.caller.is_some_and(|caller| rights::opens(caller, &agent)) {
        let message = format!("the prompts of `{agent}` are not this agent's to read");
        return Err(Refused::new(403, message));
    }
    let session = params.session_id.map(SessionId::new);
    let mut waiting = call.shared.team.waiting(agent, session).await?;
    let longest = if let Some(id) = params.id {
        waiting.retain(|it| it.draft.id() == id);
        usize::MAX
    } else {
        LONGEST_LISTED
    };
    let more = waiting.len().saturating_sub(MOST_LISTED);
    let prompts = waiting.iter().take(MOST_LISTED).map(|it| on_wire(it, longest)).collect();
    reply(&WaitingPrompts { prompts, more })
}

pub(super) async fn edit_prompt(
    call: MethodCall<'_>,
    params: EditPromptParams,
) -> Result<Reply<EditPrompt>, Refused> {
    bounded("text", &params.text, LONGEST_TEXT)?;
    let agent = AgentId::new(params.agent_id);
    let edited = call.shared.team.edit_prompt(agent, params.id, params.text).await?;
    reply(&on_wire(&edited, LONGEST_LISTED))
}

pub(super) async fn withdraw_prompt(
    call: MethodCall<'_>,
    params: WithdrawPromptParams,
) -> Result<Reply<WithdrawPrompt>, Refused> {
    let agent = AgentId::new(params.agent_id);
    let withdrawn = call.shared.team.withdraw_prompt(agent, params.id).await?;
    reply(&on_wire(&withdrawn, LONGEST_LISTED))
}

fn on_wire(waiting: &client_host::WaitingPrompt, longest: usize) -> WaitingPrompt<'_> {
    let draft: &PromptDraft = &waiting.draft;
    let (mut text, attachments) = draft.text();
    let cut = text.len() > longest;
    if cut {
        text.truncate(text.floor_char_boundary(longest));
    }
    WaitingPrompt {
        id: draft.id().into(),
        session_id: waiting.session.as_str().into(),
        text: text.into(),
        cut,
        attachments,
        by: draft.by().map(|by| by.to_string().into()),
        since_ms: draft.since_ms(),
    }
}
