//! Conflicts that are begun in the worktree of a branch: nothing lands that nobody settled.

use super::*;
use crate::landing::{
    LandingError, MergeMessage, MergeWay, begin, commit, refuse_marks, refuse_unsettled, under_way,
};

/// Commits that two sides make on top of a first one: files with their contents and permissions.
struct Sides<'a> {
    first: &'a [(&'a str, &'a str)],
    ours: &'a dyn Fn(&Path),
    theirs: &'a dyn Fn(&Path),
}

fn commit_all(top: &Path) {
    git(top, &["add", "-A"]);
    git(top, &["commit", "-q", "--allow-empty", "-m", "work"]);
}

impl Bed {
    fn in_conflict(&self, sides: &Sides<'_>) -> Worktree {
        for (name, text) in sides.first {
            self.write(name, text);
        }
        commit_all(&self.main());
        let tree = self.tree("fix");
        (sides.theirs)(&tree.path);
        commit_all(&tree.path);
        (sides.ours)(&self.main());
        commit_all(&self.main());
        let tip = self.repository().tip("fix").unwrap();
        let message = MergeMessage::default();
        let merged = commit(&self.repository(), ("fix", &tip), "main", MergeWay::Merge, &message);
        assert!(matches!(merged, Err(LandingError::Conflicts { .. })), "{merged:?}");
        begin(&tree, "main").unwrap();
        tree
    }
}

/// The files that nobody settled.
fn left(tree: &Worktree) -> Vec<String> {
    let files = under_way(tree).unwrap().unwrap();
    match refuse_unsettled(tree, &files) {
        Ok(()) => Vec::new(),
        Err(LandingError::Conflicting { left, .. }) => left,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_file_that_is_not_to_be_merged_by_lines_has_to_be_added() {
    let bed = Bed::new();
    // Both change lines that are far apart.
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n";
    let tree = bed.in_conflict(&Sides {
        first: &[(".gitattributes", "*.lock -merge\n"), ("a.lock", lines)],
        ours: &|top| write(top, "a.lock", &lines.replace('8', "eight")),
        theirs: &|top| write(top, "a.lock", &lines.replace('1', "one")),
    });
    assert_eq!(left(&tree), ["a.lock"]);
    git(&tree.path, &["add", "a.lock"]);
    assert_eq!(left(&tree), [] as [&str; 0]);
}

#[test]
fn no_program_merges_a_file_as_the_person() {
    let bed = Bed::new();
    let ran = bed.top().join("ran");
    bed.git(&["config", "merge.own.driver", &format!("touch {}", ran.display())]);
    let tree = bed.in_conflict(&Sides {
        first: &[(".gitattributes", "*.txt merge=own\n"), ("a.txt", "a\n")],
        ours: &|top| write(top, "a.txt", "ours\n"),
        theirs: &|top| write(top, "a.txt", "theirs\n"),
    });
    assert_eq!(left(&tree), ["a.txt"]);
    assert!(!ran.exists());
}

#[test]
fn permissions_in_conflict_have_to_be_added() {
    let bed = Bed::new();
    let with = |mode: u32| {
        move |top: &Path| {
            write(top, "tool", "x\n");
            fs::set_permissions(top.join("tool"), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let (ours, theirs) = (with(0o755), with(0o644));
    let tree = bed.in_conflict(&Sides { first: &[], ours: &ours, theirs: &theirs });
    assert_eq!(left(&tree), ["tool"]);
    git(&tree.path, &["add", "tool"]);
    assert_eq!(left(&tree), [] as [&str; 0]);
}

#[test]
fn longer_marks_are_marks() {
    let bed = Bed::new();
    let tree = bed.in_conflict(&Sides {
        first: &[(".gitattributes", "*.rst conflict-marker-size=32\n"), ("a.rst", "a\n")],
        ours: &|top| write(top, "a.rst", "ours\n"),
        theirs: &|top| write(top, "a.rst", "theirs\n"),
    });
    assert_eq!(left(&tree), ["a.rst"]);
    commit_all(&tree.path);
    let why =
        refuse_marks(&bed.repository(), ("fix", "refs/heads/fix"), "main").unwrap_err().to_string();
    assert!(why.contains("conflict markers committed, in a.rst: take"), "{why}");
}

#[test]
fn a_file_that_both_renamed_keeps_its_marks_in_view() {
    let bed = Bed::new();
    let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let rename = |to: &'static str, line: &'static str| {
        move |top: &Path| {
            fs::remove_file(top.join("r.txt")).unwrap();
            write(top, to, &text.replace('5', line));
        }
    };
    let (ours, theirs) = (rename("a.txt", "ours"), rename("b.txt", "theirs"));
    let first = &[("r.txt", text)];
    let tree = bed.in_conflict(&Sides { first, ours: &ours, theirs: &theirs });
    git(&tree.path, &["add", "-A"]);
    assert_eq!(left(&tree), ["a.txt", "b.txt"]);
}

#[test]
fn marks_that_somebody_took_out_are_settled() {
    let bed = Bed::new();
    let tree = bed.in_conflict(&Sides {
        first: &[("doc.md", "<<<<<<< HEAD\nso marks look\n>>>>>>> x\n\na\n")],
        ours: &|top| write(top, "doc.md", "<<<<<<< HEAD\nso marks look\n>>>>>>> x\n\nours\n"),
        theirs: &|top| write(top, "doc.md", "<<<<<<< HEAD\nso marks look\n>>>>>>> x\n\ntheirs\n"),
    });
    assert_eq!(left(&tree), ["doc.md"]);
    let settled = "<<<<<<< HEAD\nso marks look\n>>>>>>> x\n\nboth\n";
    write(&tree.path, "doc.md", settled);
    assert_eq!(left(&tree), [] as [&str; 0]);
    commit_all(&tree.path);
    refuse_marks(&bed.repository(), ("fix", "refs/heads/fix"), "main").unwrap();
}

#[test]
fn marks_of_a_rebase_do_not_land() {
    let bed = Bed::new();
    let tree = bed.tree("fix");
    write(&tree.path, "README.md", "theirs\n");
    commit_all(&tree.path);
    bed.write("README.md", "ours\n");
    commit_all(&bed.main());
    let mut rebase = Command::new("git");
    rebase.args(["rebase", "-q", "main"]).current_dir(&tree.path);
    assert!(!rebase.output().unwrap().status.success());
    git(&tree.path, &["add", "-A"]);
    git(&tree.path, &["-c", "core.editor=true", "rebase", "--continue"]);
    let why =
        refuse_marks(&bed.repository(), ("fix", "refs/heads/fix"), "main").unwrap_err().to_string();
    assert!(why.contains("`fix` has conflict markers"), "{why}");
    write(&tree.path, "README.md", "both\n");
    write(&tree.path, "doc.md", "`<<<<<<<` begins one:\n<<<<<<< HEAD\n>>>>>>> x\n");
    commit_all(&tree.path);
    refuse_marks(&bed.repository(), ("fix", "refs/heads/fix"), "main").unwrap();
}
