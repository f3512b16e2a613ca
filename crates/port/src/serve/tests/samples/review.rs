//! A review of a branch.

use crate::wire::{BranchReview, HunkComment, HunkWriter, ReviewFile, ReviewHunkRow};

/// The branch of `ui`, with one hunk, and perhaps a comment on it.
pub(in crate::serve) fn review(is_accepted: bool, comment: Option<String>) -> BranchReview {
    let unsent = usize::from(comment.is_some());
    let comment =
        comment.map(|text| HunkComment { text, said_at_ms: 1_760_000_000_000, is_sent: false });
    let writer = HunkWriter {
        run: "webshop/ui".to_owned(),
        agent: "ui".to_owned(),
        turn: Some(0),
        prompt: Some("Double it".to_owned()),
        call: Some("edit cart.js".to_owned()),
    };
    let hunk = ReviewHunkRow {
        id: "e8c4173d".to_owned(),
        header: "@@ -1 +1 @@".to_owned(),
        lines: vec!["-return 1".to_owned(), "+return 11".to_owned()],
        is_new: false,
        is_accepted,
        comments: comment.into_iter().collect(),
        by: vec![writer],
    };
    let file = ReviewFile {
        path: "cart.js".to_owned(),
        status: "changed".to_owned(),
        added: 1,
        removed: 1,
        hunks: vec![hunk],
    };
    BranchReview {
        branch: "eisen/webshop/ui".to_owned(),
        into: Some("main".to_owned()),
        base: "307efb521c216ba31462a7a545b42b4eee788714".to_owned(),
        tree: "6fcb0b7a9f5cbb4f9a1a5b1f2b2e0f1a7c36d5e1".to_owned(),
        agent_id: Some("ui".to_owned().into()),
        task: Some("Double it".to_owned()),
        round: 0,
        uncommitted: Vec::new(),
        rebase: None,
        files: vec![file],
        unsent,
        checks: None,
    }
}
