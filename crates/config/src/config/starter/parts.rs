//! The folders that agents are assigned by name.

use std::path::Path;

use super::{CONTAINERS, folders};
use crate::config::value::is_name;

/// Why the workspace cannot be divided among a list of agents.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error(
        "`{0}` is not an agent id: use up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first"
    )]
    Id(String),
    #[error("two agents are named `{0}`")]
    Twice(String),
    #[error("there is no folder `{name}`; the folders are {there}; `{name}=FOLDER` names another")]
    NoFolder { name: String, there: String },
    #[error("`{0}` is not a folder of the workspace")]
    NotThere(String),
    #[error("{first} and {second} would overlap: one lies within the other")]
    Overlap { first: String, second: String },
}

/// Finds the folder of each, relative to the workspace. No folder lies within another.
pub(super) fn parts(
    workspace: &Path,
    named: &[String],
) -> Result<Vec<(String, String)>, PartError> {
    let there = all(workspace);
    let mut parts: Vec<(String, String)> = Vec::new();
    for part in named {
        let (id, folder) = match part.split_once('=') {
            Some((id, folder)) => (id, Some(folder.trim_matches('/'))),
            None => (part.as_str(), None),
        };
        if !is_name(id) || id == "orchestrator" {
            return Err(PartError::Id(id.escape_debug().to_string()));
        }
        if parts.iter().any(|(other, _)| other == id) {
            return Err(PartError::Twice(id.to_owned()));
        }
        let folder = match folder {
            Some(folder) if is_inside(workspace, folder) => folder.to_owned(),
            Some(folder) => return Err(PartError::NotThere(folder.escape_debug().to_string())),
            None => {
                let is_called = |folder: &&String| folder.rsplit('/').next() == Some(id);
                there.iter().find(is_called).cloned().ok_or_else(|| PartError::NoFolder {
                    name: id.to_owned(),
                    there: there.join(", ").escape_debug().to_string(),
                })?
            }
        };
        let within = |one: &str, other: &str| Path::new(one).starts_with(other);
        let other =
            parts.iter().find(|(_, other)| within(&folder, other) || within(other, &folder));
        if let Some((_, other)) = other {
            return Err(PartError::Overlap { first: other.clone(), second: folder });
        }
        parts.push((id.to_owned(), folder));
    }
    Ok(parts)
}

fn is_inside(workspace: &Path, folder: &str) -> bool {
    let plain = Path::new(folder).components();
    !folder.is_empty()
        && plain.clone().all(|part| matches!(part, std::path::Component::Normal(_)))
        && workspace.join(folder).is_dir()
}

/// Returns the folders at the top, followed by the subfolders of containers.
fn all(workspace: &Path) -> Vec<String> {
    let top = folders(workspace);
    let parts = top.iter().filter(|folder| CONTAINERS.contains(&folder.as_str()));
    let parts = parts.flat_map(|folder| {
        let parts = folders(&workspace.join(folder)).into_iter();
        parts.map(move |part| format!("{folder}/{part}"))
    });
    let parts: Vec<String> = parts.collect();
    top.into_iter().chain(parts).collect()
}
