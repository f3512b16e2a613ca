//! Names of branches and of folders.

use std::path::{Path, PathBuf};

use crate::repository::GitRepository;

/// Letters of the part of a name that comes from a task.
const LONGEST: usize = 40;

/// Words that say nothing of a task.
const EMPTY: [&str; 12] =
    ["a", "an", "and", "for", "in", "is", "of", "on", "please", "the", "to", "with"];

/// Prefix of branch names made from tasks.
const PREFIX: &str = "eisen/";

/// A branch for a task, by the words that it begins with. The branch is new: a number follows where it is not.
pub fn branch_of_task(repository: &GitRepository, task: &str) -> String {
    let lower = task.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = String::new();
    for word in words.filter(|word| !EMPTY.contains(word)) {
        if !name.is_empty() && name.len() + word.len() >= LONGEST {
            break;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.extend(word.chars().take(LONGEST));
    }
    if name.is_empty() {
        name.push_str("task");
    }
    let mut branch = format!("{PREFIX}{name}");
    let mut number = 2;
    while repository.tip(&branch).is_some() {
        branch = format!("{PREFIX}{name}-{number}");
        number += 1;
    }
    branch
}

/// The name of a branch's folder: one name, which no other branch has where none has its dashes.
pub(super) fn folder_name(branch: &str) -> String {
    branch.replace('/', "-")
}

/// The folder of all worktrees of a repository, beside it: `../REPO.trees`.
pub fn default_folder(repository: &GitRepository) -> Option<PathBuf> {
    let top = repository.main().unwrap_or_else(|| repository.common());
    let name = top.file_name()?.to_string_lossy();
    let name = name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(&name);
    Some(top.parent()?.join(format!("{name}.trees")))
}

/// Whether a place lies in the repository, where tests and package managers look.
pub(crate) fn is_inside(repository: &GitRepository, place: &Path) -> bool {
    place.starts_with(repository.common())
        || repository.main().is_some_and(|main| place.starts_with(main))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_gives_a_name_of_its_first_words() {
        let nowhere = GitRepository::known("/nowhere".into(), None, true);
        for (task, branch) in [
            ("Fix the rounding of totals", "eisen/fix-rounding-totals"),
            ("  !!  ", "eisen/task"),
            ("日本", "eisen/task"),
            (
                "Add a dark mode to all of the settings pages and to the login",
                "eisen/add-dark-mode-all-settings-pages-login",
            ),
            (&"x".repeat(200), &format!("eisen/{}", "x".repeat(40))),
        ] {
            assert_eq!(branch_of_task(&nowhere, task), branch);
        }
    }

    #[test]
    fn worktrees_lie_beside_the_repository() {
        let of = |common: &str, main: Option<&str>| {
            default_folder(&GitRepository::known(common.into(), main.map(Into::into), true))
        };
        assert_eq!(of("/a/shop/.git", Some("/a/shop")), Some("/a/shop.trees".into()));
        assert_eq!(of("/a/shop.git", None), Some("/a/shop.trees".into()));
    }
}
