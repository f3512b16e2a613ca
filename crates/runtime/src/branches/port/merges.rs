//! Merges and checks branches, one at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::TeamBranches;
use crate::branches::port::reviews;
use crate::branches::{self, MergeNews, MergeOptions, Merged};
use crate::landing::{LandingError, MergeWay};
use crate::program::Failure;
use crate::serve::{Refused, blocking};
use crate::team_file;
use crate::wire::{CheckResult, CheckedBranch, MergeBranchParams, MergedBranch};

/// Bytes of a name of a branch, and of the text of a commit.
const LONGEST_NAME: usize = 1 << 10;
const LONGEST_MESSAGE: usize = 64 << 10;

/// Files in conflict that an answer has.
const MOST_FILES: usize = 1_000;

/// Lines and bytes of the output of checks that an answer has.
const MOST_LINES: usize = 100;
const MOST_OUTPUT: usize = 16 << 10;

impl TeamBranches {
    /// Merges a branch, or tries that in memory. It goes on if the returned future is dropped.
    pub(crate) async fn merge(&self, params: MergeBranchParams) -> Result<MergedBranch, Refused> {
        check_params(&params)?;
        let folder = self.workspace.clone();
        if params.dry_run {
            let MergeBranchParams { branch, into, .. } = params;
            let alone = Arc::clone(&self.trying).lock_owned().await;
            let trying = move || {
                let _alone = alone;
                let tried = branches::try_out(&folder, &branch, into.as_deref());
                tried.map(|(into, conflicts)| (branch, into, conflicts))
            };
            let tried = blocking(trying).await?;
            let (branch, into, mut conflicts) = tried.map_err(|failure| refused(&failure))?;
            conflicts.truncate(MOST_FILES);
            return Ok(MergedBranch { branch, into, old: None, new: None, checks: 0, conflicts });
        }
        let way = match (params.squash, params.rebase) {
            (true, _) => MergeWay::Squash,
            (_, true) => MergeWay::Rebase,
            _ => MergeWay::Merge,
        };
        let MergeBranchParams { branch, into, message, commit, check, tree, .. } = params;
        let work = move |runtime: Handle| {
            let mut shared = team_file::shared_config(&folder)?;
            if !check {
                shared.worktree.checks.clear();
            }
            if commit {
                branches::commit_all(&folder, &branch, message.as_deref(), tree.as_deref())?;
            }
            let options = MergeOptions { folder, branch, into, way, message, looked_at: tree };
            let mut said = |_: MergeNews<'_>| ();
            runtime.block_on(branches::merge(&options, &shared, &mut said))
        };
        let Merged { landing, checks } = self.alone(work).await?.map_err(|it| refused(&it))?;
        Ok(MergedBranch {
            branch: landing.branch,
            into: landing.into,
            old: Some(landing.old),
            new: Some(landing.new),
            checks,
            conflicts: Vec::new(),
        })
    }

    /// Runs the checks in the worktree of a branch. It goes on if the returned future is dropped.
    pub(crate) async fn check(&self, branch: String) -> Result<CheckedBranch, Refused> {
        check_name("branch", &branch)?;
        let folder = self.workspace.clone();
        let work = move |runtime: Handle| {
            let shared = team_file::shared_config(&folder)?;
            let mut reviewed = branches::reviewed(&folder, Some(&branch), None)?;
            if shared.worktree.checks.is_empty() {
                return Ok(None);
            }
            reviewed.notes.checks = None;
            let mut output = LastLines::default();
            let mut said = |line: &str| output.push(line);
            let done = runtime.block_on(reviewed.check(&shared, &mut said));
            match (reviewed.notes.checks, done) {
                // They ran, and one may have failed.
                (Some(end), done) => Ok(Some((end, done.err(), output.text()))),
                (None, done) => done.map(|_| None),
            }
        };
        let done = self.alone(work).await?.map_err(|failure| refused(&failure))?;
        let (end, failure, output) = done.ok_or_else(|| {
            Refused::new(409, "there are no checks: `[worktree] checks` names them")
        })?;
        let result = CheckResult {
            passed: end.passed,
            commit: end.commit,
            is_clean: end.is_clean,
            at_ms: end.at_ms,
        };
        let reason = failure.map(|failure| format!("{:#}", failure.error()));
        Ok(CheckedBranch { result, reason, output })
    }

    /// Does work that no other may be beside, on a thread that it may block.
    async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(Handle) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Result<T, Failure>, Refused> {
        let Ok(busy) = Arc::clone(&self.busy).try_lock_owned() else {
            let message = "a branch is merged or checked already: try again when that is done";
            return Err(Refused::new(409, message));
        };
        let (runtime, listed) = (Handle::current(), Arc::clone(&self.listed));
        blocking(move || {
            let done = work(runtime);
            // What was listed is out of date.
            *listed.blocking_lock() = None;
            drop(busy);
            done
        })
        .await
    }
}

fn check_params(params: &MergeBranchParams) -> Result<(), Refused> {
    let wrong = |message: String| Err(Refused::wrong(message));
    check_name("branch", &params.branch)?;
    if let Some(into) = &params.into {
        check_name("into", into)?;
    }
    if params.squash && params.rebase {
        return wrong("params: `squash` and `rebase` exclude each other".to_owned());
    }
    let Some(message) = &params.message else { return Ok(()) };
    if params.rebase {
        return wrong("params.message: commits of a rebase keep theirs".to_owned());
    }
    if message.len() > LONGEST_MESSAGE || message.contains('\0') {
        return wrong(format!(
            "params.message: has at most {LONGEST_MESSAGE} bytes, and none that is zero"
        ));
    }
    Ok(())
}

pub(super) fn check_name(key: &str, name: &str) -> Result<(), Refused> {
    let is_odd = name.is_empty() || name.starts_with('-') || name.contains(char::is_control);
    if is_odd || name.len() > LONGEST_NAME {
        return Err(Refused::wrong(format!("params.{key}: is no name of a branch")));
    }
    Ok(())
}

fn refused(failure: &Failure) -> Refused {
    match failure.error().downcast_ref() {
        Some(error @ LandingError::NoBranch(_)) => Refused::new(404, error.to_string()),
        _ => reviews::refused(failure),
    }
}

/// The last lines of an output.
#[derive(Default)]
struct LastLines(VecDeque<String>);

impl LastLines {
    fn push(&mut self, line: &str) {
        if self.0.len() == MOST_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line[..line.floor_char_boundary(MOST_OUTPUT - 1)].to_owned());
    }

    fn text(mut self) -> String {
        let mut left = MOST_OUTPUT;
        let fits = |line: &&String| {
            let rest = left.checked_sub(line.len() + 1);
            left = rest.unwrap_or_default();
            rest.is_some()
        };
        let count = self.0.iter().rev().take_while(fits).count();
        self.0.drain(..self.0.len() - count).for_each(drop);
        self.0.into_iter().map(|line| line + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn last(lines: impl IntoIterator<Item = String>) -> String {
        let mut all = LastLines::default();
        lines.into_iter().for_each(|line| all.push(&line));
        all.text()
    }

    #[test]
    fn the_end_of_an_output_is_what_fits() {
        let numbered = last((0..250).map(|at| at.to_string()));
        assert_eq!((numbered.lines().count(), numbered.lines().next()), (100, Some("150")));
        let long = last(["a".to_owned(), "é".repeat(MOST_OUTPUT)]);
        assert_eq!(long.len(), MOST_OUTPUT - 1);
        let whole = last(["x".repeat(MOST_OUTPUT / 2), "end".to_owned(), "y".repeat(9_000)]);
        assert!(whole.starts_with("end\ny") && whole.len() <= MOST_OUTPUT);
        assert_eq!(last([]), "");
    }

    #[test]
    fn params_that_make_no_sense_are_refused_before_anything_is_done() {
        let params = |json: &str| serde_json::from_str::<MergeBranchParams>(json).unwrap();
        let code = |json: &str| check_params(&params(json)).map_err(|refused| refused.code);
        assert_eq!(code(r#"{"branch":"fix/cart","message":"Fix it"}"#), Ok(()));
        assert!(params(r#"{"branch":"a"}"#).check);
        for json in [
            r#"{"branch":""}"#,
            r#"{"branch":"--all"}"#,
            r#"{"branch":"a\nb"}"#,
            r#"{"branch":"a","into":"-b"}"#,
            r#"{"branch":"a","squash":true,"rebase":true}"#,
            r#"{"branch":"a","rebase":true,"message":"b"}"#,
            r#"{"branch":"a","message":"b\u0000"}"#,
        ] {
            assert_eq!(code(json), Err(400), "{json}");
        }
        let long = format!(r#"{{"branch":"{}"}}"#, "a".repeat(LONGEST_NAME + 1));
        assert_eq!(code(&long), Err(400));
    }
}
