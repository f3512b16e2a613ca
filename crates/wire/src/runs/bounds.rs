//! Bounds of what an agent asks its team for in a run.

use super::{Attachment, MOST_FILES};

/// Bytes of a prompt, and of a command.
pub(super) const LONGEST_PROMPT: usize = 1 << 20;
pub(super) const LONGEST_COMMAND: usize = 64 << 10;

/// Bytes of a prompt with its files, and of a schema.
const LONGEST_WITH_FILES: usize = 8 << 20;
pub(super) const LONGEST_SCHEMA: usize = 1 << 20;

/// Bytes of the name of a session.
pub(super) const LONGEST_SESSION: usize = 4096;

/// Patterns of a zone, and their bytes in all.
pub const MOST_PATTERNS: usize = 100;
pub const LONGEST_ZONE: usize = 16 << 10;

/// Bytes of the name of a branch.
const LONGEST_BRANCH: usize = 200;

/// Checks the name of a branch that an agent asks for. git says later whether it is one.
pub fn branch(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > LONGEST_BRANCH {
        return Err(format!("the name of a branch may have from 1 to {LONGEST_BRANCH} bytes"));
    }
    // In a configuration these words stand for names: what was checked would be another branch.
    match ["TEAM", "AGENT"].into_iter().find(|word| name.contains(word)) {
        Some(word) => Err(format!("the name of a branch may not have `{word}` in it")),
        None => Ok(()),
    }
}

pub(super) fn task(text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.len() > LONGEST_PROMPT {
        return Err(format!("`task` must be text of at most {LONGEST_PROMPT} bytes, not empty"));
    }
    Ok(())
}

pub(super) fn patterns(zone: &[String], deny: &[String]) -> Result<(), String> {
    let bytes = zone.iter().chain(deny).map(String::len).sum::<usize>();
    if zone.len() + deny.len() > MOST_PATTERNS || bytes > LONGEST_ZONE {
        return Err(format!(
            "`zone` and `deny` may have at most {MOST_PATTERNS} patterns, of {LONGEST_ZONE} bytes in all"
        ));
    }
    Ok(())
}

pub(super) fn command(words: &[String]) -> Result<(), String> {
    if words.iter().map(|word| word.len() + 1).sum::<usize>() > LONGEST_COMMAND {
        return Err(format!("`command` may have at most {LONGEST_COMMAND} bytes"));
    }
    Ok(())
}

/// `prompt`: bytes of the prompt that they go with.
pub(super) fn files(files: &[Attachment], prompt: usize) -> Result<(), String> {
    if files.len() > MOST_FILES {
        return Err(format!("`files` may have {MOST_FILES} entries"));
    }
    for file in files {
        file.check().map_err(|error| error.to_string())?;
    }
    if files.iter().map(Attachment::bytes).sum::<usize>() + prompt > LONGEST_WITH_FILES {
        return Err(format!(
            "`task` and `files` may have at most {LONGEST_WITH_FILES} bytes in all"
        ));
    }
    Ok(())
}

pub(super) fn schema(schema: &serde_json::Value) -> Result<(), String> {
    if schema.to_string().len() > LONGEST_SCHEMA {
        return Err(format!("`schema` may have at most {LONGEST_SCHEMA} bytes"));
    }
    Ok(())
}

pub(super) fn session(name: &str) -> Result<(), String> {
    if !(1..=LONGEST_SESSION).contains(&name.len()) {
        return Err(format!("the name of a session must have 1 to {LONGEST_SESSION} bytes"));
    }
    Ok(())
}
