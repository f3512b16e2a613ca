//! The branches of tasks.

use super::NOW;
use crate::wire::{BranchChecks, BranchConflict, BranchDiff, BranchList, BranchProcess, BranchRow};

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
