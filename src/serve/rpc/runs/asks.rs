//! What a run is asked for besides its prompt: its bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::runs::{Attachment, MOST_FILES};
use crate::serve::{RunAsks, WantedSession};

/// Bytes of a prompt with its files, and of a schema.
const LONGEST_WITH_FILES: usize = 8 << 20;
pub(super) const LONGEST_SCHEMA: usize = 1 << 20;

/// Bytes of the name of a session.
pub(super) const LONGEST_SESSION: usize = 4096;

/// Totals, as in `[agents.budget]`.
#[derive(Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct RunBudget {
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minutes: Option<f64>,
}

/// Checks how the agent is named; with `others` it is named by more than its tier.
pub(super) fn check_tier(
    tier: Option<&str>,
    no_failover: bool,
    others: bool,
) -> Result<(), &'static str> {
    match tier {
        Some(_) if others => {
            Err("beside `tier` there can be no profile, command, model, session or fork")
        }
        None if no_failover => Err("`no_failover` is for a run with a `tier`"),
        _ => Ok(()),
    }
}

/// Checks it; `prompt` is how long the prompt is.
pub(super) fn checked(
    prompt: usize,
    files: Vec<Attachment>,
    schema: Option<Value>,
    (session, fork): (Option<String>, Option<String>),
) -> Result<RunAsks, String> {
    if files.len() > MOST_FILES {
        return Err(format!("`files` may have {MOST_FILES} entries"));
    }
    for file in &files {
        file.check().map_err(|error| error.to_string())?;
    }
    if files.iter().map(Attachment::bytes).sum::<usize>() + prompt > LONGEST_WITH_FILES {
        return Err(format!("`task` and `files` may have {LONGEST_WITH_FILES} bytes in all"));
    }
    if schema.as_ref().is_some_and(|schema| schema.to_string().len() > LONGEST_SCHEMA) {
        return Err(format!("`schema` may have {LONGEST_SCHEMA} bytes"));
    }
    let is_fork = fork.is_some();
    if is_fork && session.is_some() {
        return Err("only one of `session` and `fork` can be given".to_owned());
    }
    let begins_with = session.or(fork).map(|name| WantedSession { name, is_fork });
    let is_named = |it: &WantedSession| (1..=LONGEST_SESSION).contains(&it.name.len());
    if !begins_with.as_ref().is_none_or(is_named) {
        return Err(format!("the name of a session must have 1 to {LONGEST_SESSION} bytes"));
    }
    Ok(RunAsks { files, schema, begins_with })
}
