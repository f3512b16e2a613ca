//! The branches of tasks.

use super::NOW;
use crate::serve::Refused;
use crate::wire::{
    BranchChecks, BranchConflict, BranchDiff, BranchList, BranchProcess, BranchRow, CheckResult,
    CheckedBranch, MergeBranchParams, MergedBranch, OpenPullRequestParams, PullRequest,
};

const OLD: &str = "307efb521c216ba31462a7a545b42b4eee788714";
const NEW: &str = "9c41d80f6a3c1f0a0e0b7c1e5f3c64c1d8b2a75e";

/// A merge of a branch into `main`; `release` has changed the same lines.
pub(in crate::serve) fn merged(params: MergeBranchParams) -> Result<MergedBranch, Refused> {
    let MergeBranchParams { branch, into, dry_run, .. } = params;
    let into = into.unwrap_or_else(|| "main".to_owned());
    let conflicts = if into == "main" { Vec::new() } else { vec!["cart.js".to_owned()] };
    if !dry_run && !conflicts.is_empty() {
        let message = format!("`{branch}` and `{into}` conflict in cart.js");
        return Err(Refused::new(409, message));
    }
    let commit = |commit: &str| (!dry_run).then(|| commit.to_owned());
    let (old, new) = (commit(OLD), commit(NEW));
    Ok(MergedBranch { branch, into, old, new, checks: usize::from(!dry_run), conflicts })
}

pub(in crate::serve) fn checked() -> CheckedBranch {
    let result = CheckResult { passed: false, commit: NEW.to_owned(), is_clean: true, at_ms: NOW };
    CheckedBranch {
        result,
        reason: Some("`npm test` exit status 1; its output is in /home/ann/.eisen/log".to_owned()),
        output: "$ npm test\n1 failed\n".to_owned(),
    }
}

pub(in crate::serve) fn pull_request(params: OpenPullRequestParams) -> PullRequest {
    PullRequest {
        branch: params.branch,
        into: Some("main".to_owned()),
        link: "https://github.com/ann/webshop/pull/7".to_owned(),
    }
}

pub(in crate::serve) fn branches() -> BranchList {
    let conflict =
        BranchConflict { with: "fix/cart".to_owned(), files: vec!["cart.js".to_owned()] };
    let row = BranchRow {
        branch: "eisen/webshop/ui".to_owned(),
        path: "/home/ann/webshop.trees/eisen-webshop-ui".to_owned(),
        state: "ready".to_owned(),
        owner: "webshop/ui".to_owned(),
        agent_id: Some("ui".to_owned().into()),
        task: Some("Double it".to_owned()),
        into: Some("main".to_owned()),
        ahead: Some(1),
        behind: Some(0),
        diff: Some(BranchDiff { files: 1, added: 1, removed: 1 }),
        uncommitted: Some(0),
        is_merged: Some(false),
        conflicts: vec![conflict],
        processes: vec![BranchProcess { pid: 4711, name: "sh".to_owned() }],
        checks: Some(BranchChecks { passed: true, is_current: true, at_ms: NOW }),
        disk_bytes: 73_728,
        made_at_ms: NOW,
        trouble: None,
    };
    BranchList { branches: vec![row], omitted: 0 }
}
