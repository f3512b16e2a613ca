//! Cleaned worktrees, and how they come back.

use super::*;
use crate::lifecycle::{clean, restore, survey};
use crate::recovery::WhyLeftOut;
use crate::tree::WorktreeState;

/// Does to a worktree what people and agents do.
fn work_in(tree: &Worktree) {
    let top = &tree.path;
    write(top, "committed.txt", "committed\n");
    git(top, &["add", "committed.txt"]);
    git(top, &["commit", "-qm", "work"]);
    write(top, "README.md", "edited\n");
    write(top, "src/cart.js", "staged\n");
    git(top, &["add", "src/cart.js"]);
    write(top, "src/cart.js", "staged, then edited\n");
    fs::remove_file(top.join("link")).unwrap();
    write(top, "untracked/a b.txt", "mine\n");
    fs::write(top.join("untracked").join(no_text()), "no text\n").unwrap();
    fs::write(top.join("untracked/line\nbreak \"x\" \\y"), "strange name\n").unwrap();
    write(top, ".env", "SECRET=changed\n");
    write(top, "debug.log", "ignored\n");
    write(top, "node_modules/left-pad/index.js", "built\n");
    symlink("/nowhere", top.join("dangling")).unwrap();
    fs::create_dir_all(top.join("empty/deep")).unwrap();
    fs::set_permissions(top.join("run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    write(top, "private.key", "k\n");
    fs::set_permissions(top.join("private.key"), fs::Permissions::from_mode(0o400)).unwrap();
    // git was told not to look here.
    git(top, &["update-index", "--assume-unchanged", "src/deep/ünïcode \"quoted\".txt"]);
    write(top, "src/deep/ünïcode \"quoted\".txt", "hidden edit\n");
    // A repository in the worktree has a git folder of its own.
    fs::create_dir(top.join("nested")).unwrap();
    git(&top.join("nested"), &["init", "-q"]);
    write(top, "nested/file", "nested\n");
}

#[test]
fn a_worktree_comes_back_exactly_as_it_was() {
    let bed = Bed::new();
    bed.write(".env", "SECRET=1\n");
    bed.write("same.log", "copied\n");
    bed.write(".worktreeinclude", ".env\n*.log\n");
    let tree = bed.tree("fix");
    work_in(&tree);
    let before = files_of(&tree.path);
    let status = git(&tree.path, &["status", "--porcelain", "-z"]);
    let staged = git(&tree.path, &["diff", "--cached"]);
    let tip = git(&tree.path, &["rev-parse", "HEAD"]);

    let shown = survey(&tree).unwrap();
    assert_eq!(shown.unmerged, 1);
    let left: Vec<_> = shown.left_out.iter().map(|it| (&*it.path, it.why)).collect();
    assert!(left.contains(&("node_modules", WhyLeftOut::Build)), "{left:?}");
    assert!(left.contains(&("same.log", WhyLeftOut::Copy)), "{left:?}");
    assert_eq!(left.len(), 2, "{left:?}");

    let held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    let cleaned = clean(held, false).unwrap();
    assert!(!tree.path.exists());
    assert_eq!(cleaned.tree.state, WorktreeState::Gone);
    assert!(!cleaned.branch_gone, "it is not merged");
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
    // Nothing of it depends on the branch, and nothing is lost by git's own cleaning.
    bed.git(&["branch", "-D", "fix"]);
    bed.git(&["reflog", "expire", "--expire=now", "--all"]);
    bed.git(&["gc", "-q", "--prune=now"]);
    bed.git(&["fsck", "--strict"]);

    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert_eq!(back.notes, [] as [&str; 0]);
    let mut after = files_of(&back.held.tree.path);
    for (path, file) in &before {
        if !path.starts_with("node_modules") {
            assert_eq!(after.remove(path).as_ref(), Some(file), "{path:?}");
        }
    }
    assert_eq!(after, BTreeMap::new());
    let path = &back.held.tree.path;
    assert_eq!(git(path, &["rev-parse", "HEAD"]), tip);
    assert_eq!(git(path, &["diff", "--cached"]), staged);
    assert_eq!(git(path, &["status", "--porcelain", "-z"]), status);
    assert_eq!(git(path, &["branch", "--show-current"]), "fix");
}

#[test]
fn a_merge_that_is_under_way_comes_back() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "src/cart.js", "one\nmine\nthree\n");
    git(&tree.path, &["commit", "-qam", "mine"]);
    bed.write("src/cart.js", "one\ntheirs\nthree\n");
    bed.git(&["commit", "-qam", "theirs"]);
    let mut merge = Command::new("git");
    merge.args(["merge", "-q", "main"]).current_dir(&tree.path);
    assert!(!merge.output().unwrap().status.success());
    let status = git(&tree.path, &["status"]);
    assert!(status.contains("Unmerged paths"), "{status}");
    let stages = git(&tree.path, &["ls-files", "-u"]);
    clean(bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap(), false).unwrap();
    bed.git(&["gc", "-q", "--prune=now"]);
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert_eq!(git(&back.held.tree.path, &["status"]), status);
    assert_eq!(git(&back.held.tree.path, &["ls-files", "-u"]), stages);
}

#[test]
fn a_build_folder_that_git_does_not_ignore_is_kept() {
    let bed = Bed::new();
    let mut request = Bed::request("fix");
    request.build = vec!["dist".to_owned()];
    let tree = make(&bed.trees(), &bed.repository(), &request).unwrap().held.tree;
    write(&tree.path, "dist/by-hand.txt", "work\n");
    assert_eq!(survey(&tree).unwrap().left_out, []);
    clean(bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap(), false).unwrap();
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    let text = fs::read_to_string(back.held.tree.path.join("dist/by-hand.txt")).unwrap();
    assert_eq!(text, "work\n");
}

#[test]
fn a_worktree_with_somebody_in_it_is_not_cleaned() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    let mut sleeper = Command::new("sleep").arg("60").current_dir(&tree.path).spawn().unwrap();
    let held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    let why = clean(held, false).unwrap_err().to_string();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(why, format!("a process is in the worktree: sleep ({})", sleeper.id()));
    assert!(tree.path.join("README.md").exists());
}

#[test]
fn a_file_that_cannot_be_kept_stops_it_and_nothing_is_removed() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root reads all files");
        return;
    }
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "closed.txt", "x\n");
    fs::set_permissions(tree.path.join("closed.txt"), fs::Permissions::from_mode(0o0)).unwrap();
    let before: Vec<_> = fs::read_dir(&tree.path).unwrap().map(|it| it.unwrap().path()).collect();
    let held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    let why = clean(held, false).unwrap_err().to_string();
    assert!(why.contains("closed.txt cannot be kept"), "{why}");
    let after: Vec<_> = fs::read_dir(&tree.path).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(after, before);
}

#[test]
fn a_merged_branch_goes_with_its_worktree_and_one_that_is_not_stays() {
    let bed = Bed::new();
    let merged = bed.tree("merged");
    write(&merged.path, "a.txt", "a\n");
    git(&merged.path, &["add", "-A"]);
    git(&merged.path, &["commit", "-qm", "a"]);
    bed.git(&["merge", "-q", "--no-edit", "merged"]);
    let cleaned =
        clean(bed.trees().hold(&bed.repository(), "merged").unwrap().unwrap(), false).unwrap();
    assert!(cleaned.branch_gone);
    assert_eq!(bed.git(&["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(fs::read_to_string(bed.main().join("a.txt")).unwrap(), "a\n");
}

#[test]
fn cleaning_that_was_stopped_is_brought_to_its_end() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "one.txt", "1\n");
    write(&tree.path, "two.txt", "2\n");
    let mut held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    let taken = crate::recovery::save(&held.tree).unwrap();
    held.tree.recovery = Some(bed.git(&["for-each-ref", "--format=%(refname)", "refs/eisen"]));
    held.tree.state = WorktreeState::Cleaning;
    held.keep().unwrap();
    drop((held, taken));
    // Half of it is gone, and something came since.
    fs::remove_file(tree.path.join("one.txt")).unwrap();
    fs::remove_file(tree.path.join("README.md")).unwrap();
    write(&tree.path, "late.txt", "late\n");
    crate::lifecycle::settle_all(&bed.trees(), &bed.repository()).unwrap();
    assert!(!tree.path.exists());
    let kept = bed.git(&["for-each-ref", "--format=%(refname)", "refs/eisen"]);
    let late = kept
        .lines()
        .find(|name| bed.git(&["ls-tree", "-r", "--name-only", name]).contains("files/late.txt"));
    assert!(late.is_some(), "{kept}");
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    let text = |path: &str| fs::read_to_string(back.held.tree.path.join(path)).unwrap();
    assert_eq!((text("one.txt"), text("README.md")), ("1\n".to_owned(), "shop\n".to_owned()));
}

#[test]
fn a_folder_that_may_not_be_written_is_cleaned_too() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    for folder in ["cache/deep", "node_modules/cache"] {
        write(&tree.path, &format!("{folder}/a.go"), "a\n");
        fs::set_permissions(tree.path.join(folder), fs::Permissions::from_mode(0o555)).unwrap();
    }
    clean(bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap(), false).unwrap();
    assert!(!tree.path.exists());
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert!(back.held.tree.path.join("cache/deep/a.go").exists());
}

#[test]
fn a_copy_is_kept_once_the_main_worktree_has_another() {
    let bed = Bed::new();
    bed.write(".env", "KEY=1\n");
    bed.write(".worktreeinclude", ".env\n");
    let tree = bed.tree("fix");
    bed.write(".env", "KEY=2\n");
    assert_eq!(survey(&tree).unwrap().left_out, []);
    clean(bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap(), false).unwrap();
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert_eq!(fs::read_to_string(back.held.tree.path.join(".env")).unwrap(), "KEY=1\n");
}

#[test]
fn a_worktree_that_was_emptied_but_for_its_folder_is_done_with() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    let mut held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    crate::recovery::save(&held.tree).unwrap();
    held.tree.recovery = Some(bed.git(&["for-each-ref", "--format=%(refname)", "refs/eisen"]));
    held.tree.state = WorktreeState::Cleaning;
    held.keep().unwrap();
    drop(held);
    fs::remove_dir_all(&tree.path).unwrap();
    fs::create_dir(&tree.path).unwrap();
    crate::lifecycle::settle_all(&bed.trees(), &bed.repository()).unwrap();
    assert_eq!(bed.trees().of(&bed.repository())[0].state, WorktreeState::Gone);
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn what_comes_back_follows_no_link_of_the_commit() {
    let bed = Bed::new();
    let outside = bed.top().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    let tree = bed.tree("fix");
    symlink(&outside, tree.path.join("out")).unwrap();
    git(&tree.path, &["add", "out"]);
    git(&tree.path, &["commit", "-qm", "a link"]);
    fs::remove_file(tree.path.join("out")).unwrap();
    write(&tree.path, "out/deep/file.txt", "mine\n");
    fs::create_dir_all(tree.path.join("out/empty")).unwrap();
    let held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    clean(held, false).unwrap();
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    let own = back.held.tree.path.join("out/deep/file.txt");
    assert_eq!(fs::read_to_string(own).unwrap(), "mine\n");
    assert!(!outside.join("deep/file.txt").exists());
    assert!(!outside.join("empty").exists());
}

#[test]
fn a_filled_submodule_and_free_ports_come_back() {
    let bed = Bed::new();
    let lib = bed.top().join("lib");
    write(&lib, "lib.js", "lib\n");
    git(&lib, &["init", "-q", "-b", "main"]);
    git(&lib, &["config", "user.name", "Ann"]);
    git(&lib, &["config", "user.email", "ann@example.com"]);
    git(&lib, &["add", "-A"]);
    git(&lib, &["commit", "-qm", "lib"]);
    let by_file = ["-c", "protocol.file.allow=always", "submodule"];
    bed.git(&[&by_file[..], &["add", "-q", lib.to_str().unwrap(), "sm"]].concat());
    bed.git(&["commit", "-qm", "a submodule"]);
    let tree = bed.tree("fix");
    git(&tree.path, &[&by_file[..], &["update", "-q", "--init"]].concat());
    let held = bed.trees().hold(&bed.repository(), "fix").unwrap().unwrap();
    clean(held, false).unwrap();
    // Another worktree takes the ports meanwhile.
    assert_eq!(bed.tree("other").port_base, tree.port_base);

    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap().held.tree;
    assert_eq!(git(&back.path, &["status", "--porcelain"]), "");
    assert_eq!(git(&back.path.join("sm"), &["log", "--format=%s"]), "lib");
    assert_ne!(back.port_base, tree.port_base);
}
