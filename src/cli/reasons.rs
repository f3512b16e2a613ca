//! Why accesses wait, for `inbox`: what their agents said and did before, how long is left, and the command that
//! allows what they need.

use std::collections::HashMap;

use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::format;
use super::output::plain;
use super::team::failed;
use crate::app::Failure;
use crate::model::now_ms;
use crate::serve::client::{ClientError, Connection};
use crate::wire::{Blocked, ShowBlocked, ShowBlockedParams, ShownBlocked, ShownCall, ShownProgram};

/// Accesses that are asked about.
const MOST: usize = 50;

/// Characters of a line.
const LONGEST_LINE: usize = 300;

/// Why accesses wait, by their ids.
#[derive(Default)]
pub(super) struct Reasons(HashMap<String, Reason>);

/// The reasons of an access that are known, besides its line.
#[derive(Serialize)]
struct Reason {
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call: Option<ShownCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ShownProgram>,
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
            let ShownBlocked { said, tool_call, program, .. } = shown;
            if said.is_some() || tool_call.is_some() || program.is_some() {
                let reason = Reason { said, tool_call, program };
                found.insert(access.id.to_string(), reason);
            }
        }
        Ok(Self(found))
    }

    /// Adds the reasons to a list of accesses.
    pub(super) fn add(&self, list: &Value) -> Value {
        let of = |access: &Value| {
            let id = Blocked::deserialize(access).ok()?.id;
            let reasoned = ReasonedAccess { access, why: self.0.get(&*id)? };
            serde_json::to_value(reasoned).ok()
        };
        let list = list.as_array().into_iter().flatten();
        list.map(|access| of(access).unwrap_or_else(|| access.clone())).collect()
    }

    /// The lines below an access.
    pub(super) fn lines(&self, access: &Blocked<'_>) -> Vec<String> {
        let left = access.until_ms.map(|until| format::left(until, now_ms()));
        let reason = self.0.get(&*access.id);
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
        lines.map(|line| cut(&plain(&line))).chain(command(access)).collect()
    }
}

/// The command that allows what an access waits for with all that is offered.
fn command(access: &Blocked<'_>) -> Option<String> {
    // A pattern that can't be shown as it is can't be typed either.
    let pattern = access.offered.as_deref().filter(|it| plain(it) == **it)?;
    let pattern = pattern.replace('\'', r"'\''");
    let id = plain(&access.id);
    Some(format!("eisen-core inbox allow {id} --scope session --match '{pattern}'"))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
