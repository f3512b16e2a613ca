//! Why accesses wait, for `inbox`: what their agents said and did before, what would be written, how long is left,
//! and the command that allows what they need.

use std::collections::HashMap;

use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::output::plain;
use super::team::failed;
use crate::model::{Action, left, now_ms};
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection};
use crate::wire::{Blocked, ShowBlocked, ShowBlockedParams, ShownBlocked, ShownCall, ShownProgram};

/// Accesses that are asked about.
const MOST: usize = 50;

/// Characters of a line.
const LONGEST_LINE: usize = 300;

/// Lines of a diff.
const MOST_DIFF_LINES: usize = 12;

/// Why accesses wait, by their ids.
pub(super) struct Reasons {
    found: HashMap<String, Reason>,
    /// The program with the options that select the team, as a command begins with it.
    program: String,
}

/// The reasons of an access that are known, besides its line.
#[derive(Serialize)]
struct Reason {
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call: Option<ShownCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ShownProgram>,
    /// From the file as it is to what the agent wants to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Only if true: `diff` is what the tool call says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_tool_call: bool,
    /// Only if true: a write of which nobody knows the content before it is made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    content_unknown: bool,
}

/// An access with its reason, for programs.
#[derive(Serialize)]
struct ReasonedAccess<'a> {
    #[serde(flatten)]
    access: &'a Value,
    why: &'a Reason,
}

impl Reasons {
    /// Asks the team about each access; of what is not for this caller, nothing is known.
    pub(super) async fn of(
        team: &mut Connection,
        accesses: &[Blocked<'_>],
        program: String,
    ) -> Result<Self, Failure> {
        let mut found = HashMap::new();
        for access in accesses.iter().take(MOST) {
            let params = ShowBlockedParams { id: access.id.to_string().into() };
            let shown = match team.call::<ShowBlocked>(&params).await {
                Ok(shown) => shown,
                // It was decided meanwhile, or is not for this caller.
                Err(ClientError::Refused { .. }) => continue,
                Err(error) => return Err(failed(error)),
            };
            let ShownBlocked { said, tool_call, program, content, .. } = shown;
            let (diff, by_tool_call) = (content.diff, content.by_tool_call);
            let is_write = access.action == Action::Write;
            let content_unknown = is_write && diff.is_none() && !content.binary;
            let is_told = said.is_some() || tool_call.is_some() || program.is_some();
            if is_told || diff.is_some() || content_unknown {
                let reason =
                    Reason { said, tool_call, program, diff, by_tool_call, content_unknown };
                found.insert(access.id.to_string(), reason);
            }
        }
        Ok(Self { found, program })
    }

    /// Adds the reasons to a list of accesses.
    pub(super) fn add(&self, list: &Value) -> Value {
        let of = |access: &Value| {
            let id = Blocked::deserialize(access).ok()?.id;
            let reasoned = ReasonedAccess { access, why: self.found.get(&*id)? };
            serde_json::to_value(reasoned).ok()
        };
        let list = list.as_array().into_iter().flatten();
        list.map(|access| of(access).unwrap_or_else(|| access.clone())).collect()
    }

    /// The lines below an access.
    pub(super) fn lines(&self, access: &Blocked<'_>) -> Vec<String> {
        let left = access.until_ms.map(|until| left(until, now_ms()));
        let reason = self.found.get(&*access.id);
        let said = reason.and_then(|it| it.said.as_ref()).map(|said| format!("said: {said}"));
        let call = reason.and_then(|it| it.tool_call.as_ref()).map(|call| {
            let title = call.title.as_deref().or(call.kind.as_deref()).unwrap_or_default();
            let input = call.input.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
            format!("tool call: {title}{input}")
        });
        let program = reason.and_then(|it| it.program.as_ref());
        let program = program.map(|it| format!("program: {}", it.command));
        let parts = [[left, said], [call, program]];
        let joined = parts.into_iter().map(|parts| parts.into_iter().flatten().collect::<Vec<_>>());
        let lines = joined.filter(|parts| !parts.is_empty()).map(|parts| parts.join("; "));
        let diff = reason.map(Reason::diff_lines).unwrap_or_default();
        let lines = lines.chain(diff).map(|line| cut(&plain(&line)));
        lines.chain(self.command(access)).collect()
    }

    /// The command that allows what an access waits for with all that is offered.
    fn command(&self, access: &Blocked<'_>) -> Option<String> {
        // A pattern that can't be shown as it is can't be typed either.
        let pattern = access.offered.as_deref().filter(|it| plain(it) == **it)?;
        let pattern = pattern.replace('\'', r"'\''");
        let (program, id) = (&self.program, plain(&access.id));
        Some(format!("{program} inbox allow {id} --scope session --match '{pattern}'"))
    }
}

impl Reason {
    /// The beginning of the diff, without the names of the file; or that nobody knows it.
    fn diff_lines(&self) -> Vec<String> {
        let unknown = || "its content is not known before the write".to_owned();
        let Some(diff) = &self.diff else {
            return self.content_unknown.then(unknown).into_iter().collect();
        };
        let changes: Vec<_> = diff.lines().skip_while(|line| !line.starts_with("@@")).collect();
        let by = if self.by_tool_call { ", as its tool call says" } else { "" };
        let more = changes.len().saturating_sub(MOST_DIFF_LINES);
        let mut lines = vec![format!("would write{by}:")];
        lines.extend(changes.iter().take(MOST_DIFF_LINES).map(|line| format!("  {line}")));
        lines.extend((more > 0).then(|| format!("  … {more} more lines")));
        lines
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
