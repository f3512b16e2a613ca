//! Kills at the worst moment: what they leave, and how the next command goes on.

use super::*;
use crate::landing::{
    Landing, LandingError, Landings, MergeMessage, MergeWay, check, commit, finish, land,
};
use crate::lifecycle::{clean, make_again, restore, settle_all};
use crate::tree::WorktreeState;

impl Bed {
    fn settle(&self) {
        settle_all(&self.trees(), &self.repository()).unwrap();
    }

    fn clean(&self, branch: &str) {
        let held = self.trees().hold(&self.repository(), branch).unwrap().unwrap();
        clean(held, false).unwrap();
    }

    /// A worktree whose restore was killed after git had made it.
    fn half_restored(&self, branch: &str) -> Worktree {
        let held = self.trees().hold(&self.repository(), branch).unwrap().unwrap();
        self.git(&["branch", branch]);
        make_again(&self.trees(), &self.repository(), held).unwrap().tree
    }

    /// Git works, and nothing is left of what was killed.
    fn is_sound(&self) {
        self.git(&["fsck", "--strict"]);
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1);
        let locks = Command::new("find").arg(self.main()).args(["-name", "*.lock"]).output();
        assert_eq!(String::from_utf8_lossy(&locks.unwrap().stdout), "");
    }

    /// A merge of a branch into main, which nobody has made yet.
    fn landing(&self, branch: &str) -> Landing {
        let repository = self.repository();
        let tip = repository.tip(branch).unwrap();
        let (message, way) = (MergeMessage::default(), MergeWay::Merge);
        let (old, new) = commit(&repository, (branch, &tip), "main", way, &message).unwrap();
        let (branch, into) = (branch.to_owned(), "main".to_owned());
        Landing { branch, into, old, new, tip, landed_at_ms: crate::model::now_ms(), way }
    }

    fn all_landings(&self) -> Landings {
        Landings::of(&self.top().join("eisen"), &self.repository()).unwrap()
    }
}

#[test]
fn a_restore_that_was_killed_forgets_no_recovery() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "notes.txt", "mine\n");
    bed.clean("fix");
    // Before it wrote a file; without git's HEAD of it; with half a file; with an empty index.
    for kill in [
        |_: &Worktree| {},
        |tree: &Worktree| fs::remove_file(tree.git_dir.join("HEAD")).unwrap(),
        |tree: &Worktree| fs::write(tree.path.join("notes.txt"), "mi").unwrap(),
        |tree: &Worktree| fs::write(tree.git_dir.join("index"), "").unwrap(),
    ] {
        kill(&bed.half_restored("fix"));
        bed.settle();
        bed.is_sound();
        assert_eq!(bed.trees().of(&bed.repository())[0].state, WorktreeState::Gone);
    }
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert_eq!(back.held.tree.path, tree.path);
    assert_eq!(fs::read_to_string(tree.path.join("notes.txt")).unwrap(), "mine\n");
}

#[test]
fn a_worktree_that_is_made_again_forgets_no_recovery() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "notes.txt", "mine\n");
    bed.clean("fix");
    let request = WorktreeRequest { base: Some("nothing".to_owned()), ..Bed::request("fix") };
    make(&bed.trees(), &bed.repository(), &request).unwrap_err();
    let made = bed.make("fix").unwrap();
    assert!(made.notes.join("\n").contains("is kept in refs/eisen/trees/fix/"), "{:?}", made.notes);
    assert_eq!(made.held.tree.path, tree.path);
    // Its run did not begin.
    made.held.discard().unwrap();
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert_eq!(fs::read_to_string(back.held.tree.path.join("notes.txt")).unwrap(), "mine\n");
}

#[test]
fn a_git_that_was_killed_while_it_made_a_worktree_breaks_no_repository() {
    let bed = Bed::new();
    for broken in [&["commondir"][..], &["gitdir", "commondir", "HEAD"], &["HEAD"], &["index"]] {
        let mut held = bed.make("fix").unwrap().held;
        for name in broken {
            fs::write(held.tree.git_dir.join(name), "").unwrap();
        }
        fs::write(held.tree.git_dir.join("locked"), "initializing").unwrap();
        if *broken != ["index"] {
            // git was at work when it was killed, and nothing was filled yet.
            for entry in fs::read_dir(&held.tree.path).unwrap().flatten() {
                if entry.file_name() != ".git" {
                    let _ = fs::remove_file(entry.path());
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
            held.tree.git_dir = PathBuf::new();
        }
        held.tree.state = WorktreeState::Making;
        held.keep().unwrap();
        drop(held);
        bed.settle();
        bed.is_sound();
        assert_eq!(bed.git(&["branch", "--format=%(refname:short)"]), "main", "{broken:?}");
        assert!(bed.trees().of(&bed.repository()).is_empty());
        assert!(!bed.top().join("shop.trees/fix").exists(), "{broken:?}");
    }
}

#[test]
fn half_written_files_of_a_merge_are_no_changes_of_the_person() {
    let bed = Bed::new();
    for (name, text) in [("a.txt", "a\n"), ("deep/b.txt", "b\nb\n"), ("c.txt", "c\nc\nc\n")] {
        bed.write(name, text);
    }
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "files"]);
    let tree = bed.tree("fix");
    for (name, text) in [("a.txt", "A\n"), ("deep/b.txt", "B\nB\n"), ("new/d.txt", "d\nd\n")] {
        write(&tree.path, name, text);
    }
    fs::remove_file(tree.path.join("c.txt")).unwrap();
    git(&tree.path, &["add", "-A"]);
    git(&tree.path, &["commit", "-qm", "all"]);
    let before = files_of(&bed.main());
    let landing = bed.landing("fix");
    for has_moved in [false, true] {
        // One is whole, one was opened, one was removed and not written, one has its first half.
        bed.write("a.txt", "A\n");
        bed.write("deep/b.txt", if has_moved { "" } else { "B\n" });
        let _ = fs::remove_file(bed.main().join("c.txt"));
        bed.write("new/d.txt", "d\n");
        for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
            bed.write(&format!(".git/{lock}"), "");
        }
        let landings = bed.all_landings();
        landings.intend(&landing).unwrap();
        if has_moved {
            fs::remove_file(bed.main().join(".git/refs/heads/main.lock")).unwrap();
            fs::remove_file(bed.main().join(".git/HEAD.lock")).unwrap();
            bed.git(&["update-ref", "refs/heads/main", &landing.new]);
        }
        finish(&landings, &bed.repository()).unwrap();
        assert_eq!(bed.git(&["status", "--porcelain"]), "", "{has_moved}");
        assert_eq!(files_of(&bed.main()) == before, !has_moved);
    }
}

#[test]
fn a_merge_that_git_cannot_write_leaves_all_as_it_was_and_says_why() {
    let bed = Bed::new();
    bed.write("a.txt", "a\n");
    bed.write("z.txt", "z\n");
    bed.write(".gitattributes", "z.txt filter=picky\n");
    bed.git(&["add", "-A"]);
    bed.git(&["commit", "-qm", "files"]);
    let tree = bed.tree("fix");
    write(&tree.path, "a.txt", "A\n");
    write(&tree.path, "z.txt", "bad\n");
    git(&tree.path, &["commit", "-qam", "all"]);
    let before = files_of(&bed.main());
    let landing = bed.landing("fix");
    // As a full disk does: the first file is written, and the second is not.
    bed.git(&["config", "filter.picky.required", "true"]);
    bed.git(&["config", "filter.picky.clean", "cat"]);
    bed.git(&["config", "filter.picky.smudge", "awk '/bad/ { exit 1 } { print }'"]);
    let why = land(&bed.all_landings(), &bed.repository(), &landing).unwrap_err().to_string();
    assert!(why.starts_with("`main` and its files are as they were: "), "{why}");
    assert!(why.contains("smudge filter picky failed"), "{why}");
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
    assert_eq!(files_of(&bed.main()), before);
    bed.git(&["config", "filter.picky.smudge", "cat"]);
    land(&bed.all_landings(), &bed.repository(), &landing).unwrap();
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
}

#[test]
fn whether_a_merge_is_possible_is_seen_without_a_lock() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "README.md", "changed\n");
    git(&tree.path, &["commit", "-qam", "change"]);
    let landing = bed.landing("fix");
    // A git of the person holds it just now.
    bed.write(".git/index.lock", "");
    check(&bed.repository(), &landing).unwrap();
    bed.write(".git/HEAD.lock", "");
    bed.settle();
    land(&bed.all_landings(), &bed.repository(), &landing).unwrap();
    assert_eq!(bed.git(&["show", "main:README.md"]), "changed");
}

#[test]
fn locks_of_killed_gits_go_and_those_of_living_ones_stay() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    let locks = [
        tree.git_dir.join("index.lock"),
        tree.git_dir.join("HEAD.lock"),
        tree.common.join("index.lock"),
        tree.common.join("HEAD.lock"),
        tree.common.join("packed-refs.lock"),
        tree.common.join("refs/heads/main.lock"),
        tree.common.join("refs/heads/other.lock"),
    ];
    for lock in &locks {
        fs::write(lock, "").unwrap();
    }
    let all_there = || locks.iter().all(|lock| lock.exists());
    // A git that works in any of the worktrees may hold each of them.
    let slow = bed.top().join("git-slow");
    fs::copy("/bin/sleep", &slow).unwrap();
    let mut living = Command::new(&slow).arg("60").current_dir(&tree.path).spawn().unwrap();
    bed.settle();
    assert!(all_there());
    living.kill().unwrap();
    living.wait().unwrap();
    // So may a program that has one open, whatever its name is.
    let mut other = {
        // The command goes with its file: else each fork beside this test would hold that too.
        let open = fs::File::open(&locks[2]).unwrap();
        Command::new("sleep").arg("60").stdin(open).spawn().unwrap()
    };
    bed.settle();
    assert!(locks[2].exists());
    other.kill().unwrap();
    other.wait().unwrap();
    bed.settle();
    assert!(!locks.iter().any(|lock| lock.exists()));
}

#[test]
fn a_worktree_that_was_moved_by_hand_is_neither_cleaned_nor_there() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    fs::rename(&tree.path, bed.top().join("elsewhere")).unwrap();
    bed.settle();
    for why in [
        tree.is_there().unwrap_err().to_string(),
        bed.make("fix").unwrap_err().to_string(),
        restore(&bed.trees(), &bed.repository(), "fix").unwrap_err().to_string(),
    ] {
        assert!(why.starts_with("the worktree of `fix` is not in "), "{why}");
        assert!(why.contains("`git worktree repair NEW_PLACE` if it was moved"), "{why}");
    }
    git(&bed.top().join("elsewhere"), &["worktree", "repair"]);
    bed.settle();
    let moved = bed.trees().of_branch(&bed.repository(), "fix").unwrap();
    assert_eq!(moved.path, bed.top().join("elsewhere"));
    fs::remove_dir_all(&moved.path).unwrap();
    // It is given up.
    bed.clean("fix");
    assert!(bed.trees().of(&bed.repository()).is_empty());
    bed.is_sound();
}

#[test]
fn a_worktree_whose_branch_was_removed_comes_back_at_its_last_commit() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "done.txt", "done\n");
    git(&tree.path, &["add", "-A"]);
    git(&tree.path, &["commit", "-qm", "work"]);
    let last = git(&tree.path, &["rev-parse", "HEAD"]);
    write(&tree.path, "notes.txt", "mine\n");
    git(&tree.path, &["update-ref", "-d", "refs/heads/fix"]);
    let why = bed.make("fix").unwrap_err().to_string();
    assert!(why.contains(&format!("`git branch fix {last}` brings it back")), "{why}");
    bed.clean("fix");
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    assert_eq!(bed.git(&["rev-parse", "fix"]), last);
    assert_eq!(git(&back.held.tree.path, &["status", "--porcelain"]), "?? notes.txt");
}

#[test]
fn a_file_with_several_names_is_cleaned_and_comes_back() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "one.txt", "mine\n");
    for name in ["two.txt", "three.txt"] {
        fs::hard_link(tree.path.join("one.txt"), tree.path.join(name)).unwrap();
    }
    bed.clean("fix");
    let back = restore(&bed.trees(), &bed.repository(), "fix").unwrap();
    for name in ["one.txt", "two.txt", "three.txt"] {
        assert_eq!(fs::read_to_string(back.held.tree.path.join(name)).unwrap(), "mine\n");
    }
}

#[test]
fn a_merge_that_is_not_known_to_have_ended_holds_up_the_next() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "README.md", "changed\n");
    git(&tree.path, &["commit", "-qam", "change"]);
    let landing = bed.landing("fix");
    let landings = bed.all_landings();
    landings.intend(&landing).unwrap();
    let why = land(&landings, &bed.repository(), &landing).unwrap_err();
    assert!(matches!(why, LandingError::Unfinished { .. }), "{why}");
}
