//! Taking changes back.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::super::*;
use super::{change, contents, file, read, state};
use crate::journal::hash_of;

/// Files in memory.
#[derive(Clone, Default, PartialEq, Debug)]
struct Files(BTreeMap<PathBuf, (FileKind, u32, String)>);

impl Files {
    fn of(files: &[(&str, &str)]) -> Self {
        let entry = |content: &str| (FileKind::File, 0o644, content.to_owned());
        Self(files.iter().map(|(path, content)| (path.into(), entry(content))).collect())
    }

    /// Does what a revert says.
    fn apply(&self, reverted: &Reverted, known: &[&str]) -> Self {
        let known = contents(known);
        let mut files = self.clone();
        for Restored { path, after, .. } in &reverted.files {
            let Some(entry) = after else {
                files.0.remove(path);
                continue;
            };
            let content = match &entry.source {
                EntrySource::Merged(content) => content.clone(),
                EntrySource::Tree(path) => self.0[path].2.clone().into_bytes(),
                EntrySource::Journal => content_of(&known, &entry.state).unwrap(),
            };
            let content = String::from_utf8(content).unwrap();
            files.0.insert(path.clone(), (entry.state.kind, entry.state.permissions(), content));
        }
        files
    }
}

impl Tree for Files {
    fn state(&mut self, path: &Path) -> io::Result<Option<FileState>> {
        Ok(self.0.get(path).map(|(kind, mode, content)| FileState {
            hash: (*kind != FileKind::Folder).then(|| hash_of(content.as_bytes())),
            size: content.len() as u64,
            mode: *mode,
            kind: *kind,
            stored: false,
        }))
    }

    fn content(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0[path].2.clone().into_bytes())
    }
}

fn taken_back(
    changes: Vec<(FileChange, bool)>,
    now: &Files,
    known: &[&str],
    force: bool,
) -> Reverted {
    revert(&ChangeSet::new(changes), &mut now.clone(), &contents(known), force)
}

fn at(path: &str, change: FileChange) -> FileChange {
    FileChange { path: path.into(), ..change }
}

#[test]
fn an_agents_changes_between_those_of_others_are_taken_back() {
    let versions = ["1\n2\n3\n4\n5\n", "A\n2\n3\n4\n5\n", "A\n2\nB\n4\n5\n", "A\n2\nB\n4\nA\n"];
    let changes = vec![
        (change(1, Some(versions[0]), Some(versions[1])), true),
        (change(2, Some(versions[1]), Some(versions[2])), false),
        (change(3, Some(versions[2]), Some(versions[3])), true),
    ];
    let now = Files::of(&[("a.txt", versions[3])]);
    let reverted = taken_back(changes.clone(), &now, &versions, false);
    assert_eq!(reverted.clashes, []);
    assert_eq!(now.apply(&reverted, &versions), Files::of(&[("a.txt", "1\n2\nB\n4\n5\n")]));
    // A person added a line since.
    let now = Files::of(&[("a.txt", "P\nA\n2\nB\n4\nA\n")]);
    let reverted = taken_back(changes.clone(), &now, &versions, false);
    assert_eq!(reverted.clashes.len(), 1, "line 1 is beside the new one");
    let forced = taken_back(changes, &now, &versions, true);
    assert!(forced.is_possible() && !reverted.is_possible());
    assert_eq!(now.apply(&forced, &versions), Files::of(&[("a.txt", versions[0])]));
}

#[test]
fn a_run_of_changes_is_one_and_what_was_taken_back_by_hand_is_no_clash() {
    let run = || {
        vec![
            (change(1, Some("1\n2\n3\n"), Some("")), true),
            (change(2, Some(""), Some("x\n2\n3\n")), true),
        ]
    };
    let known = ["1\n2\n3\n", "", "x\n2\n3\n"];
    // The file was emptied and written again; somebody then changed its last line.
    let now = Files::of(&[("a.txt", "x\n2\nP\n")]);
    let reverted = taken_back(run(), &now, &known, false);
    assert_eq!(now.apply(&reverted, &known), Files::of(&[("a.txt", "1\n2\nP\n")]));
    // Somebody went back to the version between two changes, or to the first.
    let now = Files::of(&[("a.txt", "")]);
    let reverted = taken_back(run(), &now, &known, false);
    assert_eq!(now.apply(&reverted, &known), Files::of(&[("a.txt", known[0])]));
    let now = Files::of(&[("a.txt", known[0])]);
    assert_eq!(taken_back(run(), &now, &known, false), Reverted::default());
}

#[test]
fn files_that_were_made_removed_and_renamed_come_back_with_their_modes() {
    let renamed = FileChange {
        operation: Operation::Rename,
        from: Some("old.txt".into()),
        ..at("new.txt", change(3, Some("r\n"), Some("r\n")))
    };
    let mut script = at("run.sh", change(4, Some("s\n"), Some("s\n")));
    script.before = read(state("s\n", 0o755, "file"));
    let mut link = at("link", change(5, None, None));
    link.before = read(state("target", 0o777, "symlink"));
    let mut folder = at("empty", change(6, None, None));
    folder.before = read(state("", 0o755, "folder"));
    let changes = vec![
        (at("made.txt", change(1, None, Some("m\n"))), true),
        (at("gone.txt", change(2, Some("g\n"), None)), true),
        (renamed, true),
        (at("new.txt", change(7, Some("r\n"), Some("r\nmore\n"))), true),
        (script, true),
        (link, true),
        (folder, true),
    ];
    let known = ["m\n", "g\n", "r\n", "r\nmore\n", "s\n", "target"];
    let now = Files::of(&[("made.txt", "m\n"), ("new.txt", "P\nr\nmore\n"), ("run.sh", "s\n")]);
    let reverted = taken_back(changes, &now, &known, false);
    assert_eq!(reverted.clashes, []);
    let mut expected = Files::of(&[("gone.txt", "g\n"), ("old.txt", "P\nr\n"), ("run.sh", "s\n")]);
    expected.0.get_mut(Path::new("run.sh")).unwrap().1 = 0o755;
    expected.0.insert("link".into(), (FileKind::Symlink, 0o777, "target".to_owned()));
    expected.0.insert("empty".into(), (FileKind::Folder, 0o755, String::new()));
    assert_eq!(now.apply(&reverted, &known), expected);
}

#[test]
fn what_others_did_since_is_a_clash_that_names_its_reason() {
    let made = || vec![(change(1, None, Some("m\n")), true)];
    let now = Files::of(&[("a.txt", "edited\n")]);
    let clash = |changes, now: &Files, known: &[&str]| {
        let reverted = taken_back(changes, now, known, false);
        assert_eq!(reverted.files, []);
        let [clash] = &reverted.clashes[..] else { panic!("{reverted:?}") };
        clash.why.clone()
    };
    assert_eq!(clash(made(), &now, &["m\n"]), ClashReason::Changed);
    let written = || vec![(change(1, Some("1\n"), Some("2\n")), true)];
    assert_eq!(clash(written(), &Files::default(), &["1\n", "2\n"]), ClashReason::Removed);
    assert_eq!(
        clash(written(), &Files::of(&[("a.txt", "3\n")]), &["1\n", "2\n"]),
        ClashReason::Changed
    );
    // The content from before is not there: force does not help.
    let now = Files::of(&[("a.txt", "2\n")]);
    assert_eq!(clash(written(), &now, &["2\n"]), ClashReason::Missing(Missing::Gone));
    assert!(!taken_back(written(), &now, &["2\n"], true).is_possible());
    // A file that is already gone, or a change of a file that no one may see.
    assert_eq!(taken_back(made(), &Files::default(), &["m\n"], false), Reverted::default());
    let denied = FileChange { denied: true, before: None, after: None, ..change(1, None, None) };
    assert_eq!(clash(vec![(denied, true)], &now, &[]), ClashReason::Denied);
    // The old name of a renamed file is taken.
    let mut renamed = change(1, Some("r\n"), Some("r\n"));
    renamed.from = Some("b.txt".into());
    let now = Files::of(&[("a.txt", "r\n"), ("b.txt", "other\n")]);
    assert_eq!(clash(vec![(renamed, true)], &now, &["r\n"]), ClashReason::Occupied);
}

#[test]
fn a_mode_that_both_sides_changed_is_a_clash() {
    let mut mode = change(1, Some("s\n"), Some("s\n"));
    mode.after = read(state("s\n", 0o755, "file"));
    mode.before = read(file("s\n"));
    let mut now = Files::of(&[("a.txt", "s\nmore\n")]);
    now.0.get_mut(Path::new("a.txt")).unwrap().1 = 0o755;
    let reverted = taken_back(vec![(mode.clone(), true)], &now, &["s\n"], false);
    assert_eq!(now.apply(&reverted, &[]), Files::of(&[("a.txt", "s\nmore\n")]));
    now.0.get_mut(Path::new("a.txt")).unwrap().1 = 0o700;
    let reverted = taken_back(vec![(mode, true)], &now, &["s\n"], false);
    assert_eq!(reverted.clashes[0].why, ClashReason::Changed);
}
