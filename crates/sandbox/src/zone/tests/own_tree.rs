//! A worktree of a task: what all worktrees share is written only where it is its own.

use expect_test::expect;

use super::bounds::{bounds, judged};
use super::*;

/// A repository `@/shop` with the worktrees `fix` and `other` in `@/shop.trees`.
const TREE: &[&str] = &[
    "shop/src/main.rs",
    "shop/.git/HEAD",
    "shop/.git/index",
    "shop/.git/config",
    "shop/.git/packed-refs",
    "shop/.git/objects/ab/cdef",
    "shop/.git/refs/heads/main",
    "shop/.git/refs/heads/eisen/team/ui",
    "shop/.git/refs/heads/eisen/team/api",
    "shop/.git/hooks/pre-commit",
    "shop/.git/modules/lib/HEAD",
    "shop/.git/modules/lib/objects/",
    "shop/.git/modules/lib/refs/",
    "shop/.git/worktrees/fix/HEAD",
    "shop/.git/worktrees/fix/gitdir = @/shop.trees/fix/.git",
    "shop/.git/worktrees/fix/commondir = ../..",
    "shop/.git/worktrees/fix/rebase-merge/done",
    "shop/.git/worktrees/other/HEAD",
    "shop.trees/fix/.git = gitdir: @/shop/.git/worktrees/fix",
    "shop.trees/fix/src/main.rs",
    "shop.trees/other/src/main.rs",
    "beside.txt",
];

fn spec(bed: &Bed) -> ZoneSpec {
    bed.add(TREE);
    let branch = "eisen/team/ui".to_owned();
    let beside = vec![bed.path("shop"), bed.path("shop.trees")];
    ZoneSpec {
        git: GitAccess::Commit,
        branch: Some(branch),
        beside,
        workspace: bed.path("shop.trees/fix"),
        ..bed.spec(&["**"])
    }
}

/// Paths of the repository, of its worktrees, and beside them.
const PATHS: &[&str] = &[
    "@/shop.trees/fix/src/new.rs",
    "@/shop.trees/fix/.git",
    "@/shop/.git/worktrees/fix/index.lock",
    "@/shop/.git/worktrees/fix/HEAD.lock",
    "@/shop/.git/worktrees/fix/logs/HEAD",
    "@/shop/.git/worktrees/fix/rebase-merge/git-rebase-todo",
    "@/shop/.git/worktrees/fix/rebase-merge/objects/x",
    "@/shop/.git/worktrees/fix/sequencer/todo",
    "@/shop/.git/worktrees/fix/gitdir",
    "@/shop/.git/worktrees/fix/commondir",
    "@/shop/.git/worktrees/fix/config.worktree",
    "@/shop/.git/objects/ab/new",
    "@/shop/.git/objects/info/alternates",
    "@/shop/.git/lfs/objects/ab/cd/new",
    "@/shop/.git/lfs/tmp/x/objects/y",
    "@/shop/.git/lfs/config",
    "@/shop/.git/refs/heads/eisen/team/ui",
    "@/shop/.git/refs/heads/eisen/team/ui.lock",
    "@/shop/.git/logs/refs/heads/eisen/team/ui",
    "@/shop/.git/refs/heads/eisen/team",
    "@/shop/.git/packed-refs.lock",
    "@/shop/.git/packed-refs",
    "@/shop/.git/packed-refs.new",
    "@/shop/.git/refs/heads/eisen/team/api",
    "@/shop/.git/refs/heads/eisen/team/ui2",
    "@/shop/.git/refs/heads/main",
    "@/shop/.git/refs/heads/main.lock",
    "@/shop/.git/refs/stash",
    "@/shop/.git/logs/refs/stash",
    "@/shop/.git/refs/tags/v1",
    "@/shop/.git/HEAD",
    "@/shop/.git/index",
    "@/shop/.git/config",
    "@/shop/.git/gc.pid",
    "@/shop/.git/hooks/pre-commit",
    "@/shop/.git/modules/lib/HEAD",
    "@/shop/.git/worktrees/other/HEAD",
    "@/shop/.git/worktrees/new/HEAD",
    "@/shop/src/main.rs",
    "@/shop",
    "@/shop.trees/other/src/main.rs",
    "@/shop.trees/new",
    "@/beside.txt",
];

#[test]
fn only_its_own_part_of_the_repository_is_written() {
    let bed = Bed::new(&[]);
    let spec = spec(&bed);
    let bounds = bounds(&bed, &spec, Confine::Workspace);
    expect![[r#"
        @/shop.trees/fix/src/new.rs      yes
        @/shop.trees/fix/.git            read yes, write no
        @/shop/.git/worktrees/fix/index.lock yes
        @/shop/.git/worktrees/fix/HEAD.lock yes
        @/shop/.git/worktrees/fix/logs/HEAD yes
        @/shop/.git/worktrees/fix/rebase-merge/git-rebase-todo yes
        @/shop/.git/worktrees/fix/rebase-merge/objects/x read yes, write no
        @/shop/.git/worktrees/fix/sequencer/todo yes
        @/shop/.git/worktrees/fix/gitdir read yes, write no
        @/shop/.git/worktrees/fix/commondir read yes, write no
        @/shop/.git/worktrees/fix/config.worktree read yes, write no
        @/shop/.git/objects/ab/new       yes
        @/shop/.git/objects/info/alternates read yes, write no
        @/shop/.git/lfs/objects/ab/cd/new yes
        @/shop/.git/lfs/tmp/x/objects/y  read yes, write no
        @/shop/.git/lfs/config           read yes, write no
        @/shop/.git/refs/heads/eisen/team/ui yes
        @/shop/.git/refs/heads/eisen/team/ui.lock yes
        @/shop/.git/logs/refs/heads/eisen/team/ui yes
        @/shop/.git/refs/heads/eisen/team yes
        @/shop/.git/packed-refs.lock     yes
        @/shop/.git/packed-refs          read yes, write no
        @/shop/.git/packed-refs.new      read yes, write no
        @/shop/.git/refs/heads/eisen/team/api read yes, write no
        @/shop/.git/refs/heads/eisen/team/ui2 read yes, write no
        @/shop/.git/refs/heads/main      read yes, write no
        @/shop/.git/refs/heads/main.lock read yes, write no
        @/shop/.git/refs/stash           read yes, write no
        @/shop/.git/logs/refs/stash      read yes, write no
        @/shop/.git/refs/tags/v1         read yes, write no
        @/shop/.git/HEAD                 read yes, write no
        @/shop/.git/index                no
        @/shop/.git/config               read yes, write no
        @/shop/.git/gc.pid               read yes, write no
        @/shop/.git/hooks/pre-commit     read yes, write no
        @/shop/.git/modules/lib/HEAD     read yes, write no
        @/shop/.git/worktrees/other/HEAD read yes, write no
        @/shop/.git/worktrees/new/HEAD   read yes, write no
        @/shop/src/main.rs               no
        @/shop                           no
        @/shop.trees/other/src/main.rs   no
        @/shop.trees/new                 no
        @/beside.txt                     yes
    "#]]
    .assert_eq(&judged(&bed, &bounds, PATHS));
    // No rule of the wall opens more.
    for Rule { path, grant } in bounds.rules() {
        let Ok(rest) = path.strip_prefix(&bed.root) else { continue };
        if rest.starts_with("shop") || rest.starts_with("shop.trees") {
            let written = bounds.judge(&path, Action::Write).is_ok();
            assert!(written || grant <= Grant::Read, "{rest:?} {grant:?}");
            assert!(bounds.judge(&path, Action::Read).is_ok(), "{rest:?} {grant:?}");
        }
    }
}

#[test]
fn another_worktree_is_open_where_a_pattern_says_so() {
    let bed = Bed::new(&[]);
    let mut spec = spec(&bed);
    spec.readable = bed.globs(&["@/shop/src/**"]);
    let paths = ["@/shop/src/main.rs", "@/shop/other.rs", "@/shop.trees/other/src/main.rs"];
    let both = [Confine::Workspace, Confine::Strict];
    let both = both.map(|confine| judged(&bed, &bounds(&bed, &spec, confine), &paths));
    assert_eq!(both[0], both[1]);
    expect![[r#"
        @/shop/src/main.rs               read yes, write no
        @/shop/other.rs                  no
        @/shop.trees/other/src/main.rs   no
    "#]]
    .assert_eq(&both[0]);
    let strict = bounds(&bed, &spec, Confine::Strict);
    assert!(strict.judge(&bed.path("shop/.git/refs/heads/main"), Action::Write).is_err());
    assert!(strict.judge(&bed.path("shop/.git/refs/heads/eisen/team/ui"), Action::Write).is_ok());
}

#[test]
fn a_workspace_that_is_no_worktree_of_a_task_is_judged_as_ever() {
    let bed = Bed::new(&[]);
    let spec = ZoneSpec { branch: None, beside: Vec::new(), ..spec(&bed) };
    let bounds = bounds(&bed, &spec, Confine::Workspace);
    for open in ["shop/.git/refs/heads/main", "shop/.git/refs/stash", "shop/src/main.rs"] {
        assert!(bounds.judge(&bed.path(open), Action::Write).is_ok(), "{open}");
    }
}

#[test]
fn a_path_below_the_git_file_of_a_worktree_is_explained_as_the_one_that_git_means() {
    let bed = Bed::new(&[]);
    let zone = Zone::compile(&spec(&bed)).unwrap();
    let writable = |path: &str| zone.why(Path::new(path), Action::Write).allowed;
    assert!(writable(".git/HEAD") && writable(".git/refs/heads/eisen/team/ui"));
    assert!(!writable(".git/config") && !writable(".git/refs/stash") && !writable(".git"));
}
