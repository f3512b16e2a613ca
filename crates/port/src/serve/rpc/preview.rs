//! Owns the methods that show what an access or a write in conflict is about, to whoever decides it.

use std::path::Path;

use super::conflicts::lock_row;
use super::evidence::Evidence;
use super::{MethodCall, Reply, reply};
use crate::changes::{is_binary, unified};
use crate::conflicts::ShownConflict;
use crate::model::{Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, ConflictId};
use crate::preview::{FoundFile, Wanted};
use crate::routing::{AccessReason, ShownAccess};
use crate::serve::rights::opens;
use crate::serve::shared::Shared;
use crate::serve::sight::Sight;
use crate::serve::{Caller, Refused, blocking};
use crate::wire::{
    self, ShowBlocked, ShowBlockedParams, ShowConflict, ShowConflictParams, ShownBlocked,
    ShownContent, ShownProgram,
};

/// Bytes of a content, or of a diff, in an answer.
const MOST_BYTES: usize = 64 << 10;

pub(super) async fn show_blocked(
    call: MethodCall<'_>,
    params: ShowBlockedParams,
) -> Result<Reply<ShowBlocked>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let reader = caller.and_then(Caller::agent).cloned();
    let mut shown = shared.sources.show(BlockedId::new(params.id), reader).await?;
    let sight = Sight::of(shared, caller).await;
    // What an agent says and runs is content: a token that only decides does not open it.
    let may_read = caller.is_some_and(|caller| opens(caller, &shown.access.key.agent));
    let evidence = if may_read {
        Evidence::of(shared, &shown.access, &sight).await
    } else {
        Evidence::default()
    };
    shown.access.reason.take_if(|_| !may_read);
    let workspace = shared.sources.workspace().unwrap_or_default();
    let program = shown.caller.filter(|_| may_read).and_then(|pid| {
        let command = shared.sources.program(pid)?;
        Some(ShownProgram { pid, command })
    });
    let shown = blocking(move || {
        let waits = shown.access.status == BlockedStatus::Pending;
        if !waits && !sight.opens(Path::new(&*shown.access.path)) {
            let why = "it is shown while the access waits, or to who may read it";
            shown.file = FoundFile::Withheld(why.to_owned());
        }
        let mut by_tool_call = false;
        if shown.wanted.is_none() && shown.access.action == Action::Write {
            let now = match &shown.file {
                FoundFile::There { content, .. } => std::str::from_utf8(content).ok(),
                FoundFile::Missing | FoundFile::Withheld(_) => None,
            };
            shown.wanted = evidence.wanted(&shown.access.path, now, &workspace);
            by_tool_call = shown.wanted.is_some();
        }
        let mut answer = shown_access(shown);
        answer.content.by_tool_call = by_tool_call && answer.content.diff.is_some();
        ShownBlocked { tool_call: evidence.shown_call(), said: evidence.said, program, ..answer }
    });
    reply(&shown.await?)
}

/// Why an agent wants an access, for a person or an agent that decides it.
pub(in crate::serve) async fn reason(
    shared: &Shared,
    access: &BlockedAccess,
    caller: Option<u32>,
    reader: Option<&AgentId>,
) -> AccessReason {
    let sight = match reader {
        Some(agent) => Sight::of_agent(shared, agent).await,
        None => Sight::All,
    };
    let evidence = Evidence::of(shared, access, &sight).await;
    let call = evidence.shown_call().and_then(|call| call.title.or(call.kind));
    let program = caller.and_then(|pid| shared.sources.program(pid));
    AccessReason { said: evidence.said, call, program }
}

pub(super) async fn show_conflict(
    call: MethodCall<'_>,
    params: ShowConflictParams,
) -> Result<Reply<ShowConflict>, Refused> {
    let shared = call.shared;
    let shown = shared.sources.show_conflict(ConflictId::new(params.id)).await?;
    reply(&blocking(move || shown_conflict(shown)).await?)
}

fn shown_access(shown: ShownAccess) -> ShownBlocked {
    let ShownAccess { access, file, wanted, version, .. } = shown;
    ShownBlocked {
        id: access.id.to_string().into(),
        agent_id: access.key.agent.to_string().into(),
        session_id: access.key.session.to_string(),
        action: access.action.into(),
        content: shown_content(&access.path, file, wanted.as_ref()),
        path: access.path.to_string(),
        owners: access.owners.iter().map(|owner| owner.to_string().into()).collect(),
        said: None,
        tool_call: None,
        program: None,
        offered: access.offered.as_deref().map(str::to_owned),
        until_ms: access.until_ms,
        rule: access.rule.map(|rule| rule.number.get()),
        decide: access.rule.map(|rule| rule.decide.as_str().into()),
        reason: access.reason.as_deref().map(str::to_owned),
        version,
    }
}

fn shown_conflict(shown: ShownConflict) -> wire::ShownConflict {
    let ShownConflict { conflict, file, wanted, lock, version } = shown;
    wire::ShownConflict {
        id: conflict.id.to_string().into(),
        agent_id: conflict.agents.first().map(|it| it.to_string().into()).unwrap_or_default(),
        session_id: conflict.session.to_string(),
        action: Action::Write.as_str().into(),
        content: shown_content(&conflict.path, file, wanted.as_ref()),
        path: conflict.path.to_string(),
        lock: lock.map(lock_row),
        version,
    }
}

fn shown_content(path: &str, file: FoundFile, wanted: Option<&Wanted>) -> ShownContent {
    let mut answer = ShownContent {
        content: None,
        diff: None,
        by_tool_call: false,
        truncated: false,
        binary: false,
        exists: file != FoundFile::Missing,
        not_shown: None,
    };
    let (content, is_whole) = match file {
        FoundFile::Missing => (None, true),
        FoundFile::There { content, is_whole } => (Some(content), is_whole),
        FoundFile::Withheld(why) => {
            answer.not_shown = Some(why);
            return answer;
        }
    };
    match wanted.map(Wanted::text) {
        Some(Some(new)) if is_whole => {
            compare(&mut answer, path, content.as_deref(), new);
            return answer;
        }
        Some(Some(_)) => answer.not_shown = Some("the file is too long for a diff".to_owned()),
        Some(None) => {
            let why = "what the agent wants to write is too long to be shown";
            answer.not_shown = Some(why.to_owned());
        }
        None => {}
    }
    if let Some(content) = content {
        show(&mut answer, &content, is_whole);
    }
    answer
}

fn show(answer: &mut ShownContent, content: &[u8], is_whole: bool) {
    let beginning = &content[..content.len().min(MOST_BYTES)];
    let is_cut = !is_whole || beginning.len() < content.len();
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => Some(text),
        // A character may be cut in two.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&beginning[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text.filter(|_| !is_binary(beginning)) {
        Some(text) => {
            answer.content = Some(text.to_owned());
            answer.truncated = is_cut;
        }
        None => answer.binary = true,
    }
}

fn compare(answer: &mut ShownContent, path: &str, old: Option<&[u8]>, new: &str) {
    let is_text = |content: &[u8]| !is_binary(content) && std::str::from_utf8(content).is_ok();
    if !is_text(old.unwrap_or_default()) || is_binary(new.as_bytes()) {
        answer.binary = true;
        return;
    }
    let lines = unified(Path::new(path), old, new.as_bytes());
    let diff = String::from_utf8_lossy(lines.bytes());
    let end = diff.floor_char_boundary(MOST_BYTES);
    answer.truncated = end < diff.len();
    answer.diff = Some(diff[..end].to_owned());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(content: &[u8], is_whole: bool, wanted: Option<&str>) -> ShownContent {
        let file = FoundFile::There { content: content.into(), is_whole };
        shown_content("src/x", file, wanted.map(Wanted::new).as_ref())
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let long = "ä".repeat(MOST_BYTES);
        let shown = of(&[b"x", long.as_bytes()].concat(), true, None);
        assert!(shown.truncated && !shown.binary);
        assert_eq!(shown.content.unwrap().len(), MOST_BYTES - 1);
        let shown = of(b"all that was read", false, None);
        assert!(shown.truncated && shown.content.is_some());
        let shown = of(b"short", true, Some(&long));
        assert!(shown.truncated && shown.diff.unwrap().len() <= MOST_BYTES);
    }

    #[test]
    fn what_is_no_text_is_said_to_be_none() {
        for content in [&b"\0"[..], b"\xff\xfe", "ä".as_bytes().split_last().unwrap().1] {
            let shown = of(content, true, None);
            assert!(shown.binary && shown.content.is_none(), "{content:?}");
            let shown = of(content, true, Some("text"));
            assert!(shown.binary && shown.diff.is_none() && shown.content.is_none());
        }
        assert!(of(b"text", true, Some("\0")).binary);
    }

    #[test]
    fn what_is_too_long_for_a_diff_shows_the_file() {
        let shown = of(b"text", false, Some("new"));
        assert_eq!(shown.not_shown.as_deref(), Some("the file is too long for a diff"));
        assert_eq!(shown.content.as_deref(), Some("text"));
        let shown = of(b"text", true, Some(&"x".repeat(2 << 20)));
        assert!(shown.not_shown.is_some() && shown.content.is_some());
    }
}
