//! What a run is asked for besides its prompt: its bounds.

use serde_json::Value;

use crate::runs::{Attachment, MOST_FILES};
use crate::serve::{RunAsks, WantedSession};

/// Bytes of a prompt with its files, and of a schema.
const LONGEST_WITH_FILES: usize = 8 << 20;
pub(super) const LONGEST_SCHEMA: usize = 1 << 20;

/// Bytes of the name of a session.
pub(super) const LONGEST_SESSION: usize = 4096;

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
