//! Tests of the ignore files: which paths they name, and that nothing in their place holds a walk up.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ignore::WalkBuilder;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{Further, Ignored};

fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The files that a walk finds.
fn found(root: &Path, ignored: Ignored) -> BTreeSet<String> {
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).filter_entry(move |entry| !ignored.has(entry));
    let files = walk.build().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let relative = |entry: ignore::DirEntry| {
        entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned()
    };
    files.map(relative).collect()
}

/// The files that a walk of the library finds by itself.
fn expected(root: &Path, hidden: bool, above: bool) -> BTreeSet<String> {
    let mut walk = WalkBuilder::new(root);
    walk.hidden(hidden).require_git(false).git_global(false).parents(above);
    // Also an invalid line is reported.
    let files = walk.build().filter_map(Result::ok);
    let files = files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    files.map(|file| file.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_files_are_those_of_ripgrep() {
    let folder = workspace(&[
        (".gitignore", "\u{feff}*.log\n/out/\n!keep.log\nsub/only.txt\n[z-a\n*.tmp\n!.shown\n"),
        (".ignore", "!named.tmp\n*.bin\n"),
        (".git/info/exclude", "excluded*\n!a.bin\n"),
        ("sub/.gitignore", "!deep.log\n*.md\n/deeper/x\n"),
        ("sub/deeper/.ignore", "!readme.md\n*\n"),
        ("out/a", ""),
        ("sub/out/a", ""),
        ("a.log", ""),
        ("keep.log", ""),
        ("a.bin", ""),
        ("a.tmp", ""),
        ("named.tmp", ""),
        (".shown/a", ""),
        (".hidden/a", ""),
        ("excluded-1", ""),
        ("sub/deep.log", ""),
        ("sub/other.log", ""),
        ("sub/only.txt", ""),
        ("sub/a.md", ""),
        ("sub/deeper/readme.md", ""),
        ("sub/deeper/x", ""),
        ("sub/deeper/y", ""),
        ("sub/plain/z", ""),
    ]);
    for (root, above) in
        [("", true), ("", false), ("sub", true), ("sub", false), ("sub/plain", true)]
    {
        let root = folder.path().canonicalize().unwrap().join(root);
        let ignored = || Ignored::new(&root, Further { above, of_user: false });
        assert_eq!(found(&root, ignored()), expected(&root, false, above), "{root:?} {above}");
        let visible = found(&root, ignored().with_hidden());
        assert_eq!(visible, expected(&root, true, above), "{root:?} {above}");
    }
}

#[test]
fn what_stands_in_the_place_of_an_ignore_file_holds_nothing_up() {
    let folder = workspace(&[
        ("pipe/a", ""),
        ("endless/a", ""),
        ("large/a", ""),
        ("large/.gitignore", &"a\n".repeat(600_000)),
        ("link/a", ""),
        ("elsewhere", "a\n"),
        ("folder/.ignore/a", ""),
    ]);
    let at = |name: &str| folder.path().join(name);
    mkfifo(&at("pipe/.gitignore"), Mode::S_IRWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("endless/.ignore")).unwrap();
    std::os::unix::fs::symlink(at("elsewhere"), at("link/.gitignore")).unwrap();
    let ignored = Ignored::new(folder.path(), Further { above: false, of_user: false });
    let files = found(folder.path(), ignored);
    for name in ["pipe/a", "endless/a", "large/a", "link/a", "folder/.ignore/a"] {
        assert!(files.contains(name), "{name} is not in {files:?}");
    }
}
