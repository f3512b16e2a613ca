//! How branches are merged.

use super::*;
use crate::landing::{
    Landing, LandingError, Landings, MergeMessage, MergeWay, commit, land, preview, take_back,
};

impl Bed {
    fn landings(&self) -> Landings {
        Landings::of(&self.top().join("eisen"), &self.repository()).unwrap()
    }

    fn land(&self, branch: &str, way: MergeWay) -> Result<Landing, LandingError> {
        let message = MergeMessage {
            task: Some("Fix the cart".to_owned()),
            trailers: vec![("Eisen-Agent".to_owned(), "ui\nx".to_owned())],
            ..MergeMessage::default()
        };
        let repository = self.repository();
        let missing = || LandingError::NoBranch(branch.to_owned());
        let tip = repository.tip(branch).ok_or_else(missing)?;
        let (old, new) = commit(&repository, (branch, &tip), "main", way, &message)?;
        let (branch, into) = (branch.to_owned(), "main".to_owned());
        let landing = Landing { branch, into, old, new, tip, landed_at_ms: 0, way };
        land(&self.landings(), &repository, &landing)?;
        Ok(landing)
    }

    /// A worktree with a commit that writes a file.
    fn with_commit(&self, branch: &str, path: &str, text: &str) -> Worktree {
        let tree = self.tree(branch);
        write(&tree.path, path, text);
        git(&tree.path, &["add", "-A"]);
        git(&tree.path, &["commit", "-qm", &format!("write {path}")]);
        tree
    }
}

#[test]
fn a_branch_lands_and_its_target_is_brought_along_and_back() {
    let bed = Bed::new();
    bed.with_commit("fix", "src/new.js", "new\n");
    bed.write("README.md", "main goes on\n");
    bed.git(&["commit", "-qam", "on main"]);
    bed.write("untracked.txt", "mine\n");
    let before = files_of(&bed.main());
    let landing = bed.land("fix", MergeWay::Merge).unwrap();
    assert_eq!(bed.git(&["rev-parse", "main"]), landing.new);
    assert_eq!(fs::read_to_string(bed.main().join("src/new.js")).unwrap(), "new\n");
    assert_eq!(bed.git(&["status", "--porcelain"]), "?? untracked.txt");
    let text = bed.git(&["log", "-1", "--format=%B"]);
    assert_eq!(text, "Merge branch 'fix' into main\n\nFix the cart\n\nEisen-Agent: ui x");
    assert_eq!(bed.git(&["log", "-1", "--format=%an"]), "Ann");

    let back = take_back(&bed.landings(), &bed.repository(), "fix").unwrap();
    assert_eq!(back.new, landing.new);
    assert_eq!(files_of(&bed.main()), before);
    assert_eq!(bed.git(&["status", "--porcelain"]), "?? untracked.txt");
    let why = take_back(&bed.landings(), &bed.repository(), "fix").unwrap_err().to_string();
    assert!(why.contains("no merge of `fix` is known"), "{why}");
    // It can be merged again.
    bed.land("fix", MergeWay::Squash).unwrap();
    assert_eq!(bed.git(&["log", "--format=%s", "-2"]), "write src/new.js\non main");
}

#[test]
fn a_rebased_branch_keeps_authors_and_subjects() {
    let bed = Bed::new();
    let tree = bed.with_commit("fix", "a.txt", "a\n");
    write(&tree.path, "b.txt", "b\n");
    git(&tree.path, &["add", "-A"]);
    git(&tree.path, &["commit", "-qm", "write b", "--author", "Bob <bob@example.com>"]);
    bed.write("README.md", "main goes on\n");
    bed.git(&["commit", "-qam", "on main"]);
    bed.land("fix", MergeWay::Rebase).unwrap();
    let log = bed.git(&["log", "--format=%an %s", "-3"]);
    assert_eq!(log, "Bob write b\nAnn write a.txt\nAnn on main");
    assert_eq!(bed.git(&["rev-list", "--merges", "--count", "main"]), "0");
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_cannot_land_moves_nothing_and_says_why() {
    let bed = Bed::new();
    bed.with_commit("fix", "src/cart.js", "one\nmine\n");
    let tip = bed.git(&["rev-parse", "main"]);
    let why = |branch: &str| bed.land(branch, MergeWay::Merge).unwrap_err().to_string();
    assert_eq!(why("none"), "there is no branch `none`");
    bed.write("README.md", "edited\n");
    let unclean = why("fix");
    assert!(unclean.contains("with changes: commit them, or `git -C "), "{unclean}");
    bed.git(&["checkout", "-q", "README.md"]);
    bed.write("src/new.js", "mine\n");
    bed.with_commit("other", "src/new.js", "theirs\n");
    assert!(
        why("other").contains("untracked files are where the merge has some"),
        "{}",
        why("other")
    );
    assert_eq!(fs::read_to_string(bed.main().join("src/new.js")).unwrap(), "mine\n");
    assert_eq!(bed.git(&["rev-parse", "main"]), tip);
    fs::remove_file(bed.main().join("src/new.js")).unwrap();
    bed.write("src/cart.js", "one\ntheirs\n");
    bed.git(&["commit", "-qam", "theirs"]);
    assert_eq!(why("fix"), "`fix` and `main` conflict in src/cart.js");
    assert_eq!(preview(&bed.repository(), "other", "main").unwrap().conflicts, [] as [&str; 0]);
    bed.land("other", MergeWay::Merge).unwrap();
    assert_eq!(why("other"), "`other` has nothing that `main` lacks");
    bed.git(&["commit", "-q", "--allow-empty", "-m", "built on it"]);
    let why = take_back(&bed.landings(), &bed.repository(), "other").unwrap_err().to_string();
    assert!(why.contains("has commits behind the merge of `other`: `git revert -m 1"), "{why}");
}

#[test]
fn a_merge_that_was_stopped_is_brought_to_its_end() {
    let bed = Bed::new();
    bed.with_commit("fix", "src/cart.js", "changed\n");
    fs::remove_file(bed.main().join("link")).unwrap();
    bed.git(&["commit", "-qam", "no link"]);
    bed.write("mine.txt", "mine\n");
    let repository = bed.repository();
    let message = MergeMessage::default();
    let tip = repository.tip("fix").unwrap();
    let made = commit(&repository, ("fix", &tip), "main", MergeWay::Merge, &message);
    let (old, new) = made.unwrap();
    let (branch, into) = ("fix".to_owned(), "main".to_owned());
    let landing =
        Landing { branch, into, old, new: new.clone(), tip, landed_at_ms: 1, way: MergeWay::Merge };
    // Killed behind the move of the branch, and behind some of the files.
    let landings = bed.landings();
    landings.intend(&landing).unwrap();
    bed.git(&["update-ref", "refs/heads/main", &new]);
    crate::landing::finish(&landings, &repository).unwrap();
    assert_eq!(fs::read_to_string(bed.main().join("src/cart.js")).unwrap(), "changed\n");
    assert_eq!(bed.git(&["status", "--porcelain"]), "?? mine.txt");
    drop(landings);
    assert_eq!(take_back(&bed.landings(), &repository, "fix").unwrap().new, new);
    assert_eq!(bed.git(&["status", "--porcelain"]), "?? mine.txt");
}

#[test]
fn a_commit_of_all_has_no_repository_without_its_files() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "new.txt", "new\n");
    fs::create_dir(tree.path.join("nested")).unwrap();
    let nested = tree.path.join("nested");
    git(&nested, &["init", "-q"]);
    git(&nested, &["config", "user.name", "Ann"]);
    git(&nested, &["config", "user.email", "ann@example.com"]);
    write(&nested, "file", "x\n");
    git(&nested, &["add", "-A"]);
    git(&nested, &["commit", "-qm", "nested"]);
    let why = tree.commit_all(Some("all")).unwrap_err().to_string();
    assert!(why.starts_with("`nested` is a repository of its own"), "{why}");
    fs::rename(&nested, bed.top().join("moved")).unwrap();
    assert!(tree.commit_all(Some("all")).unwrap());
    assert_eq!(git(&tree.path, &["show", "--format=%s", "--name-only"]), "all\n\nnew.txt");
    assert!(!tree.commit_all(Some("again")).unwrap());
}

#[test]
fn files_that_git_ignores_are_not_overwritten() {
    let bed = Bed::new();
    bed.write(".env", "mine\n");
    bed.write("node_modules/mine.js", "mine\n");
    let tree = bed.tree("fix");
    write(&tree.path, ".env", "theirs\n");
    git(&tree.path, &["add", "-f", ".env"]);
    git(&tree.path, &["commit", "-qm", "env"]);
    let why = bed.land("fix", MergeWay::Merge).unwrap_err().to_string();
    assert!(why.contains("untracked files are where the merge has some"), "{why}");
    git(&tree.path, &["rm", "-q", "--cached", ".env"]);
    write(&tree.path, "node_modules", "a file\n");
    git(&tree.path, &["add", "-f", "node_modules"]);
    git(&tree.path, &["commit", "-qm", "a file for a folder"]);
    bed.land("fix", MergeWay::Merge).unwrap_err();
    assert_eq!(fs::read_to_string(bed.main().join(".env")).unwrap(), "mine\n");
    assert!(bed.main().join("node_modules/mine.js").exists());
}

#[test]
fn a_merge_that_was_stopped_before_the_branch_moved_is_taken_back() {
    let bed = Bed::new();
    let tree = bed.with_commit("fix", "src/cart.js", "changed\n");
    fs::remove_file(tree.path.join("link")).unwrap();
    symlink("/nowhere", tree.path.join("link")).unwrap();
    fs::write(tree.path.join(no_text()), "no text\n").unwrap();
    git(&tree.path, &["add", "-A"]);
    git(&tree.path, &["commit", "-qm", "odd ones"]);
    let before = files_of(&bed.main());
    let repository = bed.repository();
    let message = MergeMessage::default();
    let tip = repository.tip("fix").unwrap();
    let made = commit(&repository, ("fix", &tip), "main", MergeWay::Merge, &message);
    let (old, new) = made.unwrap();
    let (branch, into, way) = ("fix".to_owned(), "main".to_owned(), MergeWay::Merge);
    let (first, second) = (old.clone(), new.clone());
    let landing =
        Landing { branch, into, old, new, tip, landed_at_ms: crate::model::now_ms(), way };
    for has_moved in [false, true] {
        let landings = bed.landings();
        landings.intend(&landing).unwrap();
        bed.git(&["read-tree", "-m", "-u", &first, &second]);
        if has_moved {
            bed.git(&["update-ref", "refs/heads/main", &second]);
        }
        // The git that was killed with it left its lock.
        bed.write(".git/index.lock", "");
        crate::landing::finish(&landings, &repository).unwrap();
        assert_eq!(bed.git(&["status", "--porcelain"]), "", "{has_moved}");
        assert_eq!(files_of(&bed.main()) == before, !has_moved);
    }
}
