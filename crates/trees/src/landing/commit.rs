//! Makes the commits of a merge. No branch moves.

use std::fmt::Write as _;

use super::preview::exactly;
use super::{LandingError, MergeWay};
use crate::repository::GitRepository;

/// The text of a merge's commit.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MergeMessage {
    /// None: by the way it is merged, and by the task.
    pub text: Option<String>,
    pub task: Option<String>,
    /// Names with values, such as `Agent: ui`.
    pub trailers: Vec<(String, String)>,
}

/// Makes the commit that a branch has behind a merge; returns that and its commit before.
pub fn commit(
    repository: &GitRepository,
    (branch, tip): (&str, &str),
    into: &str,
    way: MergeWay,
    message: &MergeMessage,
) -> Result<(String, String), LandingError> {
    repository.merges_in_memory().map_err(LandingError::Old)?;
    let missing = |name: &str| LandingError::NoBranch(name.to_owned());
    let old = repository.tip(into).ok_or_else(|| missing(into))?;
    let merged = exactly(repository, &old, tip, None)?;
    let mut is_within = repository.git();
    if is_within.args(["merge-base", "--is-ancestor", tip, &old]).answer()? {
        return Err(LandingError::Nothing(branch.to_owned(), into.to_owned()));
    }
    if !merged.conflicts.is_empty() {
        let (branch, into) = (branch.to_owned(), into.to_owned());
        return Err(LandingError::Conflicts { branch, into, conflicts: merged.conflicts });
    }
    let new = match way {
        MergeWay::Merge => {
            let title = format!("Merge branch '{branch}' into {into}");
            let text = message.whole(title, message.task_line());
            make(repository, &merged.tree, &[&old, tip], &text)?
        }
        MergeWay::Squash => {
            let (title, list) = subjects(repository, &old, tip, branch, message)?;
            let text = message.whole(title, list);
            make(repository, &merged.tree, &[&old], &text)?
        }
        MergeWay::Rebase => rebase(repository, branch, into, (&old, tip), message)?,
    };
    Ok((old, new))
}

impl MergeMessage {
    /// The first line of the task.
    fn task_line(&self) -> Option<String> {
        let mut lines = self.task.as_deref()?.lines().map(str::trim);
        lines.find(|line| !line.is_empty()).map(str::to_owned)
    }

    /// The text, by default a title and what stands below it, with the trailers.
    fn whole(&self, title: String, below: Option<String>) -> String {
        let usual = || match below {
            Some(below) => format!("{title}\n\n{below}"),
            None => title,
        };
        self.with_trailers(&self.text.clone().unwrap_or_else(usual))
    }

    fn with_trailers(&self, text: &str) -> String {
        let mut whole = text.trim_end().to_owned();
        for (at, (name, value)) in self.trailers.iter().enumerate() {
            whole.push_str(if at == 0 { "\n\n" } else { "\n" });
            let value: String =
                value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = write!(whole, "{name}: {}", value.trim());
        }
        whole.push('\n');
        whole
    }
}

/// The title of a squashed branch, and the text below it: its only commit's subject, or the task above the subjects of
/// all.
fn subjects(
    repository: &GitRepository,
    old: &str,
    tip: &str,
    branch: &str,
    message: &MergeMessage,
) -> Result<(String, Option<String>), LandingError> {
    let range = format!("{old}..{tip}");
    let mut log = repository.git();
    log.args(["log", "--reverse", "--no-merges", "--format=%s", &range, "--"]);
    let subjects = log.text()?;
    let all: Vec<_> = subjects.lines().collect();
    if let [only] = all[..] {
        return Ok((only.to_owned(), None));
    }
    let title = message.task_line().unwrap_or_else(|| format!("Squash branch '{branch}'"));
    let list: Vec<_> = all.iter().map(|subject| format!("- {subject}")).collect();
    Ok((title, Some(list.join("\n"))))
}

/// Makes each commit of a branch again behind another branch.
fn rebase(
    repository: &GitRepository,
    branch: &str,
    into: &str,
    (old, tip): (&str, &str),
    message: &MergeMessage,
) -> Result<String, LandingError> {
    let range = format!("{old}..{tip}");
    let mut list = repository.git();
    list.args(["rev-list", "--reverse", "--topo-order", "--no-merges", &range, "--"]);
    let commits = list.text()?;
    let mut new = old.to_owned();
    for commit in commits.lines() {
        let parent = format!("{commit}^");
        let merged = exactly(repository, &new, commit, Some(&parent))?;
        if !merged.conflicts.is_empty() {
            let (branch, into) = (branch.to_owned(), into.to_owned());
            return Err(LandingError::Conflicts { branch, into, conflicts: merged.conflicts });
        }
        let told = |format: &str| {
            let mut show = repository.git();
            show.args(["show", "-s", &format!("--format={format}"), commit, "--"]).text()
        };
        let mut make = repository.git();
        make.env("GIT_AUTHOR_NAME", told("%an")?).env("GIT_AUTHOR_EMAIL", told("%ae")?);
        make.env("GIT_AUTHOR_DATE", told("%aI")?);
        make.args(["commit-tree", &merged.tree, "-p", &new, "-F", "-"]);
        new = make.input(message.with_trailers(&told("%B")?)).text()?;
    }
    Ok(new)
}

fn make(
    repository: &GitRepository,
    tree: &str,
    parents: &[&str],
    text: &str,
) -> Result<String, LandingError> {
    let mut make = repository.git();
    make.args(["commit-tree", tree, "-F", "-"]);
    for parent in parents {
        make.args(["-p", parent]);
    }
    Ok(make.input(text).text()?)
}
