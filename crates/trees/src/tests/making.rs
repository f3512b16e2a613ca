//! How a worktree is made.

use super::*;
use crate::tree::{WorktreeState, occupants, standing};

#[test]
fn a_worktree_has_the_files_of_its_base_and_none_is_shared() {
    let bed = Bed::new();
    let made = bed.make("fix/cart").unwrap();
    let tree = &made.held.tree;
    assert!(made.is_new);
    assert_eq!(made.notes, [] as [&str; 0]);
    assert_eq!(tree.path, bed.top().join("shop.trees/fix-cart"));
    assert_eq!(tree.base_branch.as_deref(), Some("main"));
    assert_eq!(files_of(&tree.path), files_of(&bed.main()));
    assert_eq!(git(&tree.path, &["status", "--porcelain"]), "");
    assert_eq!(git(&tree.path, &["branch", "--show-current"]), "fix/cart");
    for path in files_of(&tree.path).into_keys() {
        let number = |top: &Path| top.join(&path).symlink_metadata().unwrap();
        let (own, main) = (number(&tree.path), number(&bed.main()));
        assert_ne!(own.ino(), main.ino(), "{path:?}");
        // Copied with its time: git need not read it again.
        assert_eq!(own.mtime(), main.mtime(), "{path:?}");
    }
    git(&tree.path, &["fsck", "--strict"]);
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
}

#[test]
fn the_main_worktrees_own_changes_are_not_copied() {
    let bed = Bed::new();
    bed.write("README.md", "edited\n");
    bed.write("src/cart.js", "staged\n");
    bed.git(&["add", "src/cart.js"]);
    fs::remove_file(bed.main().join("run.sh")).unwrap();
    bed.write("untracked.txt", "x");
    let before = files_of(&bed.main());
    let tree = bed.tree("fix");
    let text = |path: &str| fs::read_to_string(tree.path.join(path)).unwrap();
    assert_eq!(text("README.md"), "shop\n");
    assert_eq!(text("src/cart.js"), "one\ntwo\nthree\nfour\nfive\nsix\n");
    assert!(tree.path.join("run.sh").exists());
    assert!(!tree.path.join("untracked.txt").exists());
    assert_eq!(git(&tree.path, &["status", "--porcelain"]), "");
    assert_eq!(files_of(&bed.main()), before);
}

#[test]
fn a_worktree_may_begin_at_an_older_commit() {
    let bed = Bed::new();
    bed.write("src/cart.js", "new\n");
    bed.git(&["commit", "-qam", "second"]);
    let request = WorktreeRequest { base: Some("HEAD^".to_owned()), ..Bed::request("old") };
    let made = make(&bed.trees(), &bed.repository(), &request).unwrap();
    let tree = &made.held.tree;
    let text = fs::read_to_string(tree.path.join("src/cart.js")).unwrap();
    assert!(text.starts_with("one"), "{text}");
    assert_eq!(git(&tree.path, &["status", "--porcelain"]), "");
    // What began at a commit lands where all else does.
    assert_eq!(tree.base_branch.as_deref(), Some("main"));
}

#[test]
fn a_branch_keeps_its_worktree_and_a_name_is_one_branchs() {
    let bed = Bed::new();
    let first = bed.tree("a/b");
    let again = bed.make("a/b").unwrap();
    assert!(!again.is_new);
    assert_eq!(again.held.tree, first);
    drop(again);
    assert_eq!(bed.tree("a-b").path, bed.top().join("shop.trees/a-b-2"));
}

#[test]
fn what_cannot_be_a_worktree_is_refused_with_its_reason() {
    let bed = Bed::new();
    let why = |branch: &str| bed.make(branch).unwrap_err().to_string();
    assert!(why("main").contains("is checked out in"), "{}", why("main"));
    assert!(why("a..b").contains("no name of a branch"));
    assert!(why("-b").contains("no name of a branch"));
    let with = |change: &dyn Fn(&mut WorktreeRequest)| {
        let mut request = Bed::request("fix");
        change(&mut request);
        make(&bed.trees(), &bed.repository(), &request).unwrap_err().to_string()
    };
    let inside = bed.main().join("trees/fix");
    assert!(with(&|it| it.place = Some(inside.clone())).contains("repository's own folder"));
    assert!(with(&|it| it.base = Some("nothing".to_owned())).contains("no commit `nothing`"));
    fs::create_dir_all(bed.top().join("shop.trees/fix")).unwrap();
    assert!(why("fix").contains("is there already"));
    // Nothing is left of them.
    assert!(bed.trees().of(&bed.repository()).is_empty());
    assert_eq!(bed.git(&["branch", "--format=%(refname:short)"]), "main");

    let empty = TempDir::new().unwrap();
    git(empty.path(), &["init", "-q"]);
    let repository = GitRepository::find(empty.path()).unwrap();
    let why = make(&bed.trees(), &repository, &Bed::request("fix")).unwrap_err().to_string();
    assert!(why.contains("no commit yet"), "{why}");
    let nowhere = TempDir::new().unwrap();
    let why = GitRepository::find(nowhere.path()).unwrap_err().to_string();
    assert!(why.contains("is in no git repository"), "{why}");
}

#[test]
fn a_bare_repository_and_a_detached_head_have_worktrees() {
    let bed = Bed::new();
    let bare = bed.top().join("bare.git");
    bed.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let repository = GitRepository::find(&bare).unwrap();
    assert_eq!(repository.main(), None);
    let made = make(&bed.trees(), &repository, &Bed::request("fix")).unwrap();
    assert_eq!(made.held.tree.path, bed.top().join("bare.trees/fix"));
    assert_eq!(files_of(&made.held.tree.path), files_of(&bed.main()));
    bed.git(&["checkout", "-q", "--detach"]);
    let tree = bed.tree("fix");
    assert_eq!((tree.base_branch.as_deref(), tree.made_branch), (None, true));
    // From a worktree the repository is the same.
    assert_eq!(GitRepository::find(&tree.path).unwrap(), bed.repository());
}

#[test]
fn files_that_git_ignores_are_brought_by_the_projects_list() {
    let bed = Bed::new();
    bed.write(".env", "SECRET=1\n");
    bed.write("a/.env", "SECRET=2\n");
    bed.write("out.log", "x\n");
    bed.write("notes.txt", "mine\n");
    bed.write("node_modules/.env", "no\n");
    bed.write("data/large.log", "y\n");
    bed.write(".worktreeinclude", ".env\nnotes.txt\nREADME.md\n");
    let bringing = Bringing {
        copy: vec!["*.log".to_owned(), "!data/**".to_owned()],
        link: vec!["data".to_owned(), "node_modules".to_owned(), "../x".to_owned()],
    };
    let request = WorktreeRequest { bringing, ..Bed::request("fix") };
    let made = make(&bed.trees(), &bed.repository(), &request).unwrap();
    let tree = &made.held.tree;
    let copied: Vec<_> = tree.copied.keys().map(String::as_str).collect();
    // The list is for ignored files: `notes.txt` is the person's own, and `README.md` is git's.
    assert_eq!(copied, [".env", "a/.env", "out.log"]);
    assert_eq!(fs::read_to_string(tree.path.join("a/.env")).unwrap(), "SECRET=2\n");
    assert_eq!(tree.linked, ["data"]);
    assert_eq!(fs::read_link(tree.path.join("data")).unwrap(), bed.main().join("data"));
    let notes = made.notes.join("\n");
    assert!(notes.contains("`node_modules`: a folder that builds fill"), "{notes}");
    assert!(notes.contains("`../x`: it is no path in the repository"), "{notes}");
    assert!(notes.contains("put the line `/data` into .gitignore"), "{notes}");
}

#[test]
fn a_worktree_that_was_left_half_made_is_taken_back() {
    let bed = Bed::new();
    let made = bed.make("fix").unwrap();
    let mut held = made.held;
    held.tree.state = WorktreeState::Making;
    held.keep().unwrap();
    fs::remove_file(held.tree.git_dir.join("index")).unwrap();
    // So a git leaves it that was killed before it wrote the branch.
    fs::write(held.tree.git_dir.join("HEAD"), "0".repeat(40) + "\n").unwrap();
    // A person put this there meanwhile.
    write(&held.tree.path, "mine.txt", "keep me\n");
    let path = held.tree.path.clone();
    drop(held);
    crate::lifecycle::settle_all(&bed.trees(), &bed.repository()).unwrap();
    assert!(!path.exists());
    assert_eq!(bed.git(&["branch", "--format=%(refname:short)"]), "main");
    let kept = bed.git(&["for-each-ref", "--format=%(refname)", "refs/eisen"]);
    assert_eq!(bed.git(&["cat-file", "blob", &format!("{kept}:files/mine.txt")]), "keep me");
    bed.git(&["fsck", "--strict"]);
    assert!(bed.make("fix").unwrap().is_new);
}

#[test]
fn a_half_made_worktree_with_nothing_of_its_own_leaves_nothing() {
    let bed = Bed::new();
    let mut held = bed.make("fix").unwrap().held;
    held.tree.state = WorktreeState::Making;
    held.keep().unwrap();
    fs::remove_file(held.tree.git_dir.join("index")).unwrap();
    drop(held);
    crate::lifecycle::settle_all(&bed.trees(), &bed.repository()).unwrap();
    assert_eq!(bed.git(&["for-each-ref", "--format=%(refname)", "refs/eisen"]), "");
    assert_eq!(bed.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_worktree_stands_to_the_branch_that_it_began_at() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "src/cart.js", "one\n2\nthree\nfour\nfive\nsix\n");
    git(&tree.path, &["commit", "-qam", "two"]);
    write(&tree.path, "new.txt", "a\nb\n");
    bed.write("README.md", "other\n");
    bed.git(&["commit", "-qam", "main goes on"]);
    let now = standing(&tree, None).unwrap();
    assert_eq!((now.ahead, now.behind, now.uncommitted), (1, 1, 1));
    // With the lines of the new file.
    assert_eq!((now.diff.files, now.diff.added, now.diff.removed), (2, 3, 1));
    assert_eq!(now.into.as_deref(), Some("main"));
    assert!(!now.is_merged);
    // So does another commit of a submodule.
    let own = git(&tree.path, &["rev-parse", "HEAD"]);
    git(&tree.path, &["clone", "-q", ".", "sm"]);
    git(&tree.path, &["update-index", "--add", "--cacheinfo", &format!("160000,{own},sm")]);
    git(&tree.path, &["commit", "-qm", "a submodule"]);
    assert_eq!(standing(&tree, None).unwrap().uncommitted, 1);
    git(&tree.path.join("sm"), &["checkout", "-q", "HEAD^"]);
    assert_eq!(standing(&tree, None).unwrap().uncommitted, 2);
}

#[test]
fn a_process_in_a_worktree_is_seen() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    assert_eq!(occupants(&tree.path), []);
    let mut sleeper = Command::new("sleep").arg("60").current_dir(&tree.path).spawn().unwrap();
    let seen = occupants(&tree.path);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(
        seen.iter().map(|it| (it.pid, &*it.name)).collect::<Vec<_>>(),
        [(sleeper.id(), "sleep")]
    );
}

#[test]
fn a_link_in_the_branch_leads_nothing_out() {
    let bed = Bed::new();
    bed.write("sub/.env", "KEY=1\n");
    let outside = bed.top().join("outside");
    fs::create_dir(&outside).unwrap();
    let evil = bed.tree("worked");
    symlink(&outside, evil.path.join("sub")).unwrap();
    git(&evil.path, &["add", "sub"]);
    git(&evil.path, &["commit", "-qm", "a link"]);
    let bringing = Bringing { copy: vec!["sub/.env".to_owned()], link: vec!["sub/one".to_owned()] };
    bed.write("sub/one", "one\n");
    let base = Some("worked".to_owned());
    let request = WorktreeRequest { base, bringing, ..Bed::request("next") };
    let made = make(&bed.trees(), &bed.repository(), &request).unwrap();
    assert!(made.held.tree.copied.is_empty() && made.held.tree.linked.is_empty());
    assert_eq!(made.notes.len(), 2, "{:?}", made.notes);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_branch_has_no_name_that_means_another() {
    let bed = Bed::new();
    bed.git(&["remote", "add", "origin", "/nowhere"]);
    bed.git(&["tag", "v1"]);
    for name in ["origin/main", "heads/main", "refs/heads/main", "v1", "@", "-x", "a b", "../x"] {
        let error = bed.make(name).unwrap_err().to_string();
        let is_refused = error.contains("would be taken for") || error.contains("is no name of");
        assert!(is_refused, "{name}: {error}");
    }
    assert_eq!(bed.git(&["branch", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn git_need_not_read_the_files_of_a_new_worktree() {
    let bed = Bed::new();
    bed.write("late.txt", "late\n");
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "late"]);
    let tree = bed.tree("fix");
    // As a zone closes them: what git took for new it could not read.
    let path = tree.path.join("late.txt");
    let index = fs::metadata(tree.git_dir.join("index")).unwrap();
    let file = fs::metadata(path).unwrap();
    assert!(index.mtime() > file.mtime());
    assert_eq!(git(&tree.path, &["status", "--porcelain"]), "");
}

#[test]
fn a_worktree_whose_branch_is_gone_is_not_gone_on_with() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    bed.git(&["update-ref", "-d", "refs/heads/fix"]);
    let error = bed.make("fix").unwrap_err().to_string();
    assert!(error.contains("is gone") && error.contains("brings it back"), "{error}");
    bed.git(&["branch", "fix", &tree.base]);
    assert!(!bed.make("fix").unwrap().is_new);
}
