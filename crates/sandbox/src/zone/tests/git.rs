use expect_test::expect;

use super::*;

const REPOSITORY: [&str; 5] = ["HEAD", "objects/", "refs/", "hooks/", "config"];

fn repository(bed: &Bed, folder: &str) {
    for entry in REPOSITORY {
        bed.add(&[&format!("{folder}/{entry}")]);
    }
}

fn zone(bed: &Bed, git: GitAccess, denied: &[&str]) -> Zone {
    let mut spec = bed.spec(&["**", ".git/**"]);
    spec.readable = bed.globs(&[".git/config"]);
    spec.denied = bed.globs(denied);
    spec.git = git;
    Zone::compile(&spec).unwrap()
}

#[test]
fn the_git_folder_is_judged_by_git_alone() {
    let bed = Bed::new(&["ws/link -> .git/config", "ws/new -> .git/hooks/new"]);
    repository(&bed, "ws/.git");
    let paths = [".git", ".git/HEAD", ".git/index", ".git/config", "link", "new", ".gitignore"];
    for (git, expected) in [
        (
            GitAccess::None,
            expect![[r#"
            ".git" DENIED .git
            ".git/HEAD" DENIED .git/HEAD
            ".git/index" DENIED .git/index
            ".git/config" DENIED .git/config
            "link" DENIED .git/config
            "new" DENIED .git/hooks/new
            ".gitignore" → @/ws/.gitignore
        "#]],
        ),
        (
            GitAccess::Read,
            expect![[r#"
            ".git" read → @/ws/.git, write DENIED .git
            ".git/HEAD" read → @/ws/.git/HEAD, write DENIED .git/HEAD
            ".git/index" read → @/ws/.git/index, write DENIED .git/index
            ".git/config" read → @/ws/.git/config, write DENIED .git/config
            "link" read → @/ws/.git/config, write DENIED .git/config
            "new" read → @/ws/.git/hooks/new, write DENIED .git/hooks/new
            ".gitignore" → @/ws/.gitignore
        "#]],
        ),
        (
            GitAccess::Commit,
            expect![[r#"
            ".git" read → @/ws/.git, write DENIED .git
            ".git/HEAD" → @/ws/.git/HEAD
            ".git/index" → @/ws/.git/index
            ".git/config" read → @/ws/.git/config, write DENIED .git/config
            "link" read → @/ws/.git/config, write DENIED .git/config
            "new" read → @/ws/.git/hooks/new, write DENIED .git/hooks/new
            ".gitignore" → @/ws/.gitignore
        "#]],
        ),
    ] {
        expected.assert_eq(&bed.verdicts(&zone(&bed, git, &[]), &paths));
    }
    let zone = zone(&bed, GitAccess::Commit, &[".git/refs"]);
    expect![[r#"
        ".git/refs/heads/main" DENIED .git/refs/heads/main
        ".git/HEAD" → @/ws/.git/HEAD
    "#]]
    .assert_eq(&bed.verdicts(&zone, &[".git/refs/heads/main", ".git/HEAD"]));
}

#[test]
fn submodules_are_judged_as_the_repository_around_them() {
    let bed = Bed::new(&[]);
    for folder in [
        "ws/.git",
        "ws/.git/modules/lib",
        "ws/.git/modules/vendor/deep/lib",
        "ws/.git/modules/vendor/deep/lib/modules/in/it",
    ] {
        repository(&bed, folder);
    }
    let spec = ZoneSpec { git: GitAccess::Commit, ..bed.spec(&["src/**"]) };
    let zone = Zone::compile(&spec).unwrap();
    let written =
        |name: &str| zone.check(&Path::new(".git/modules").join(name), Action::Write).is_ok();
    for module in ["lib", "vendor/deep/lib", "vendor/deep/lib/modules/in/it"] {
        for name in ["index.lock", "HEAD", "refs/heads/config", "objects/ab/cdef", "COMMIT_EDITMSG"]
        {
            assert!(written(&format!("{module}/{name}")), "{module}/{name}");
        }
        for name in
            ["", "config", "hooks/post-commit", "info/exclude", "refs/x/objects", "hooks.lock"]
        {
            assert!(!written(&format!("{module}/{name}")), "{module}/{name}");
        }
        let pillar = bed.path("ws/.git/modules").join(module).join("HEAD");
        assert!(zone.git.is_pillar(&pillar));
        assert_eq!(zone.submodule(&pillar), Some(Path::new(module)));
    }
    for name in ["vendor/deep/HEAD", "vendor/objects", "other/deep/lib/index.lock"] {
        assert!(!written(name), "{name}");
    }
}

#[test]
fn a_commit_writes_records_and_nothing_that_git_obeys() {
    let bed = Bed::new(&[]);
    repository(&bed, "ws/.git");
    let zone = zone(&bed, GitAccess::Commit, &[]);
    let written = |name: &&&str| zone.check(&Path::new(".git").join(name), Action::Write).is_ok();
    let records = [
        "objects/ab/cdef",
        "objects/pack/tmp_pack_x",
        "objects/info/commit-graph",
        "lfs/objects/ab/cd/abcdef",
        "lfs/tmp/1234",
        "refs/heads/config",
        "refs/heads/alternates",
        "refs/heads/main.lock",
        "logs/HEAD",
        "HEAD",
        "HEAD.lock",
        "index",
        "index.lock",
        "packed-refs",
        "packed-refs.new",
        "COMMIT_EDITMSG",
        "MERGE_MSG",
        "ORIG_HEAD",
        "FETCH_HEAD",
        "AUTO_MERGE",
        "logs",
        "worktrees/x/logs",
        "gc.pid.lock",
        "gc.log.lock",
        "index.stash.4711.lock",
        "worktrees/x/index",
        "worktrees/x/logs/HEAD",
        "modules/lib/refs/heads/main",
    ];
    assert_eq!(records.iter().filter(|name| !written(name)).collect::<Vec<_>>(), [&""; 0]);
    let obeyed = [
        "",
        "hooks/pre-commit",
        "hooks",
        "config",
        "config.lock",
        "config.worktree",
        "info/attributes",
        "info/exclude",
        "commondir",
        "gitdir",
        "description",
        "rebase-merge/git-rebase-todo",
        "worktrees/x/config.worktree",
        "worktrees/x/commondir",
        "worktrees/x/gitdir",
        "modules/lib/config",
        "modules/lib/hooks/pre-commit",
        "modules/a/refs/hooks/pre-commit",
        "modules/a/modules/b/hooks/x",
        "refs/heads/.git/config",
        "refs/evil/objects",
        "refs/evil/objects/ab/cdef",
        "refs/evil/commondir",
        "objects/evil/commondir",
        "logs/evil/objects",
        "objects/info/alternates",
        "objects/info/alternates.lock",
        "objects/info/http-alternates",
        "lfs",
        "lfs/config",
        "lfs/objects",
        "lfs/tmp/evil/objects",
        "objects/../config",
        "HEAD/../hooks/x",
    ];
    assert_eq!(obeyed.iter().filter(written).collect::<Vec<_>>(), [&""; 0]);
}

#[test]
fn a_worktree_leads_to_the_repository_it_shares() {
    let bed = Bed::new(&[
        "ws/.git = gitdir: ../main/.git/worktrees/ws\n",
        "main/.git/worktrees/ws/HEAD",
        "main/.git/worktrees/ws/commondir = ../..\n",
        "main/src/x",
    ]);
    repository(&bed, "main/.git");
    let paths = [
        ".git",
        "@/main/.git/worktrees/ws/index",
        "@/main/.git/refs/heads/main",
        "@/main/.git/config",
        "@/main/.git/worktrees/other/index",
        "@/main/src/x",
    ];
    expect![[r#"
        ".git" read → @/ws/.git, write DENIED .git
        "@/main/.git/worktrees/ws/index" → @/main/.git/worktrees/ws/index
        "@/main/.git/refs/heads/main" → @/main/.git/refs/heads/main
        "@/main/.git/config" read → @/main/.git/config, write DENIED @/main/.git/config
        "@/main/.git/worktrees/other/index" → @/main/.git/worktrees/other/index
        "@/main/src/x" DENIED @/main/src/x
    "#]]
    .assert_eq(&bed.verdicts(&zone(&bed, GitAccess::Commit, &[]), &paths));
    expect![[r#"
        ".git" DENIED .git
        "@/main/.git/worktrees/ws/index" DENIED @/main/.git/worktrees/ws/index
    "#]]
    .assert_eq(&bed.verdicts(&zone(&bed, GitAccess::None, &[]), &paths[..2]));
}

#[test]
fn the_repository_may_lie_above_the_workspace() {
    let bed = Bed::new(&["README"]);
    repository(&bed, ".git");
    let paths = ["@/.git/HEAD", "@/.git/hooks/x", "@/README"];
    expect![[r#"
        "@/.git/HEAD" read → @/.git/HEAD, write DENIED @/.git/HEAD
        "@/.git/hooks/x" read → @/.git/hooks/x, write DENIED @/.git/hooks/x
        "@/README" DENIED @/README
    "#]]
    .assert_eq(&bed.verdicts(&zone(&bed, GitAccess::Read, &[]), &paths));
}

#[test]
fn a_workspace_inside_a_git_folder_is_no_part_of_it() {
    let bed = Bed::new(&[
        "main/.git/trees/ws/.git = gitdir: @/main/.git/worktrees/ws",
        "main/.git/trees/ws/src/x",
        "main/.git/worktrees/ws/HEAD",
        "main/.git/worktrees/ws/commondir = ../..",
    ]);
    repository(&bed, "main/.git");
    let mut spec = bed.spec(&["src/**"]);
    spec.workspace = bed.path("main/.git/trees/ws");
    spec.git = GitAccess::Read;
    let zone = Zone::compile(&spec).unwrap();
    let paths = ["src/x", "other", "@/main/.git/HEAD", "@/main/.git/trees/other/x"];
    expect![[r#"
        "src/x" → @/main/.git/trees/ws/src/x
        "other" DENIED other
        "@/main/.git/HEAD" read → @/main/.git/HEAD, write DENIED @/main/.git/HEAD
        "@/main/.git/trees/other/x" read → @/main/.git/trees/other/x, write DENIED @/main/.git/trees/other/x
    "#]].assert_eq(&bed.verdicts(&zone, &paths));
}

#[test]
fn a_pointer_to_what_is_no_repository_grants_nothing() {
    for pointer in ["gitdir: @/home/.ssh", "@/home/.ssh", "gitdir: ", "gitdir: missing"] {
        let bed = Bed::new(&["home/.ssh/id", &format!("ws/.git = {pointer}")]);
        let zone = zone(&bed, GitAccess::Read, &[]);
        let path = bed.path("home/.ssh/id");
        assert!(zone.check(&path, Action::Read).is_err(), "{pointer}");
        assert!(zone.check(Path::new(".git"), Action::Write).is_err(), "{pointer}");
    }
}

#[test]
fn other_repositories_need_a_pattern_too() {
    let bed = Bed::new(&["ws/lib/.git = gitdir: ../.git/modules/lib"]);
    repository(&bed, "ws/.git");
    repository(&bed, "ws/vendor/dep/.git");
    let mut spec = bed.spec(&["lib/**", "vendor/dep/**"]);
    spec.git = GitAccess::Commit;
    let zone = Zone::compile(&spec).unwrap();
    let paths = [
        "vendor/dep/.git/index",
        "vendor/dep/.git/hooks/x",
        "vendor/other/.git/index",
        "lib/.git",
        "lib/x/.git/config",
    ];
    expect![[r#"
        "vendor/dep/.git/index" → @/ws/vendor/dep/.git/index
        "vendor/dep/.git/hooks/x" read → @/ws/vendor/dep/.git/hooks/x, write DENIED vendor/dep/.git/hooks/x
        "vendor/other/.git/index" DENIED vendor/other/.git/index
        "lib/.git" read → @/ws/lib/.git, write DENIED lib/.git
        "lib/x/.git/config" read → @/ws/lib/x/.git/config, write DENIED lib/x/.git/config
    "#]].assert_eq(&bed.verdicts(&zone, &paths));
}

#[test]
fn hooks_reached_by_a_link_stay_sealed() {
    let bed = Bed::new(&["ws/githooks/pre-commit"]);
    repository(&bed, "ws/.git");
    fs::remove_dir(bed.path("ws/.git/hooks")).unwrap();
    bed.add(&["ws/.git/hooks -> ../githooks"]);
    let zone = zone(&bed, GitAccess::Commit, &[]);
    let paths = ["githooks/pre-commit", ".git/hooks/new"];
    expect![[r#"
        "githooks/pre-commit" read → @/ws/githooks/pre-commit, write DENIED githooks/pre-commit
        ".git/hooks/new" read → @/ws/githooks/new, write DENIED githooks/new
    "#]]
    .assert_eq(&bed.verdicts(&zone, &paths));
}
