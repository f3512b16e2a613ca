//! Files of Git LFS: an agent commits them in its worktree, and they come into the main one whole.

use std::fs;

use super::{eisen, git, repository, said, tree};
use crate::harness::program;

#[test]
fn a_large_file_is_committed_in_a_worktree_merged_and_restored_whole() {
    if program("git-lfs").arg("version").output().is_err() {
        return eprintln!("skipped: git-lfs is not installed");
    }
    let stage = repository();
    git(&stage, &["lfs", "install", "--local"]);
    git(&stage, &["lfs", "track", "*.bin"]);
    stage.file("shop/old.bin", "of the person\n");
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-qm", "a large file"]);
    let told = said(
        &stage,
        "fix",
        "do echo of the agent > new.bin && git add -A && git commit -qm new && git show HEAD:new.bin; cat old.bin",
    );
    assert!(told.contains("oid sha256:") && told.contains("of the person"), "{told}");
    let merged = eisen(&stage, &["merge", "fix"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert_eq!(stage.read("shop/new.bin"), "of the agent\n");
    assert!(git(&stage, &["lfs", "fsck"]).contains("OK"));

    said(&stage, "loose", "do echo in no commit > loose.bin; echo done");
    for command in [&["branches", "clean", "loose", "--yes"][..], &["branches", "restore", "loose"]]
    {
        let ended = eisen(&stage, command);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    let back = tree(&stage, "loose");
    assert_eq!(fs::read_to_string(back.join("loose.bin")).unwrap(), "in no commit\n");
    assert_eq!(fs::read_to_string(back.join("old.bin")).unwrap(), "of the person\n");
}
