//! Patches are what git applies, and what git itself would print.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{collections::BTreeMap, ffi::OsStr, io::Write as _};

use tempfile::TempDir;

use super::super::*;
use super::change;
use crate::journal::hash_of;

/// A file: its mode and its content.
type Files = BTreeMap<PathBuf, (u32, Vec<u8>)>;

const LINK: u32 = 0o120_000;

fn git(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut git = Command::new("git");
    git.args(["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"]).args(args);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(folder);
    let piped = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn write(folder: &Path, files: &Files) {
    for (name, (mode, content)) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if *mode == LINK {
            symlink(OsStr::from_bytes(content), path).unwrap();
        } else {
            fs::write(&path, content).unwrap();
            fs::set_permissions(path, Permissions::from_mode(*mode)).unwrap();
        }
    }
}

fn read(folder: &Path) -> Files {
    let (mut files, mut folders) = (Files::new(), vec![folder.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(folder).unwrap().to_owned();
            if name == Path::new(".git") {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(path).unwrap();
                files.insert(name, (LINK, target.as_os_str().as_bytes().to_vec()));
            } else {
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                files.insert(name, (mode, fs::read(path).unwrap()));
            }
        }
    }
    files
}

fn state((mode, content): &(u32, Vec<u8>)) -> FileState {
    FileState {
        hash: Some(hash_of(content)),
        size: content.len() as u64,
        mode: if *mode == LINK { 0o777 } else { *mode },
        kind: if *mode == LINK { FileKind::Symlink } else { FileKind::File },
        stored: true,
    }
}

/// The changes from `before` to `after`: one for each file, and a rename for each of `renamed`.
fn changes(before: &Files, after: &Files, renamed: &[(&str, &str)]) -> Vec<(FileChange, bool)> {
    let mut changes = Vec::new();
    let mut before = before.clone();
    for (from, to) in renamed {
        let old = before.remove(Path::new(from)).unwrap();
        let mut moved = change(changes.len() as u64, None, None);
        moved.operation = Operation::Rename;
        (moved.path, moved.from) = (to.into(), Some(from.into()));
        (moved.before, moved.after) = (Some(state(&old)), Some(state(&old)));
        before.insert(to.into(), old);
        changes.push((moved, true));
    }
    let mut paths: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let mut one = change(changes.len() as u64, None, None);
        (one.before, one.after) = (before.get(&path).map(state), after.get(&path).map(state));
        one.path = path;
        changes.push((one, true));
    }
    changes
}

fn contents(of: &[&Files]) -> std::collections::HashMap<String, Vec<u8>> {
    let all = of.iter().flat_map(|files| files.values());
    all.map(|(_, content)| (hash_of(content), content.clone())).collect()
}

fn patches(net: &Net, known: &[&Files]) -> Vec<FilePatch> {
    let known = contents(known);
    net.files.iter().map(|file| patch(file, &known).unwrap()).collect()
}

fn bytes(patches: &[FilePatch]) -> Vec<u8> {
    patches.iter().flat_map(|patch| patch.lines.bytes().to_vec()).collect()
}

/// Applies the patch to `before` with git, and returns what is there then.
fn applied(before: &Files, patch: &[u8]) -> Files {
    let folder = TempDir::new().unwrap();
    git(folder.path(), &["init", "-q"], b"");
    write(folder.path(), before);
    git(folder.path(), &["apply", "--whitespace=nowarn", "-"], patch);
    read(folder.path())
}

fn files(of: &[(&str, u32, &[u8])]) -> Files {
    of.iter().map(|(name, mode, content)| (name.into(), (*mode, content.to_vec()))).collect()
}

fn numbers(but: &[(usize, &str)]) -> Vec<u8> {
    let line = |number| match but.iter().find(|(at, _)| *at == number) {
        Some((_, text)) => format!("{text}\n"),
        None if number % 10 == 0 => format!("fn of_{number}() {{  \n"),
        None => format!("    {number}\n"),
    };
    (0..60).map(line).collect::<String>().into_bytes()
}

#[test]
fn git_applies_what_agents_did_byte_for_byte() {
    let zeros: Vec<u8> = (0..3_000_u32).flat_map(u32::to_be_bytes).collect();
    let before = files(&[
        ("src/lib.rs", 0o644, &numbers(&[])),
        ("crlf.txt", 0o644, b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n"),
        ("no end", 0o644, b"a\nb"),
        ("end", 0o644, b"a\nb\n"),
        ("run.sh", 0o644, b"#!/bin/sh\n"),
        ("gone/deep/file", 0o644, b"x\n"),
        ("empty-gone", 0o644, b""),
        ("link", LINK, b"target"),
        ("was-file", 0o644, b"text\n"),
        ("image.bin", 0o644, &zeros),
        ("latin\u{e9}", 0o644, b"\xe9\n"),
        ("old/name.rs", 0o755, &numbers(&[])),
        ("kept-name", 0o644, b"same\n"),
    ]);
    let after = files(&[
        ("src/lib.rs", 0o644, &numbers(&[(3, "new"), (4, "more\nnew"), (14, "x"), (40, "y")])),
        ("crlf.txt", 0o644, b"\xef\xbb\xbfone\r\nTWO\nthree\r\n"),
        ("no end", 0o644, b"a\nb\n"),
        ("end", 0o644, b"a\nb\nc"),
        ("run.sh", 0o755, b"#!/bin/sh\n"),
        ("new/deep/file \"q\"", 0o755, b"x\ty\n"),
        ("empty-new", 0o644, b""),
        ("link", LINK, b"other target"),
        ("was-file", LINK, b"run.sh"),
        ("image.bin", 0o644, &[&zeros[..], b"\0more"].concat()),
        ("new.bin", 0o644, b"\0"),
        ("latin\u{e9}", 0o644, b"\xe9\xff\n"),
        ("new/name.rs", 0o755, &numbers(&[(30, "changed")])),
        ("kept-name2", 0o644, b"same\n"),
    ]);
    let before: Files = before.into_iter().collect();
    let renamed = [("old/name.rs", "new/name.rs"), ("kept-name", "kept-name2")];
    let net =
        net(&ChangeSet::new(changes(&before, &after, &renamed)), &contents(&[&before, &after]));
    let patches = patches(&net, &[&before, &after]);
    assert_eq!(applied(&before, &bytes(&patches)), after);

    // It is what git prints itself.
    let folder = TempDir::new().unwrap();
    git(folder.path(), &["init", "-q"], b"");
    write(folder.path(), &before);
    git(folder.path(), &["add", "-A"], b"");
    let tree = git(folder.path(), &["write-tree"], b"").stdout;
    let tree = String::from_utf8(tree).unwrap().trim().to_owned();
    for path in before.keys() {
        fs::remove_file(folder.path().join(path)).unwrap();
    }
    write(folder.path(), &after);
    git(folder.path(), &["add", "-A"], b"");
    let args = ["diff", "--cached", "-M", "--no-rename-empty", "--no-color"];
    let diff = git(folder.path(), &[&args[..], &[&tree]].concat(), b"").stdout;
    // Of binary files git's own deflate decides.
    let text = |patch: &[u8]| {
        let text = String::from_utf8_lossy(patch).into_owned();
        let files = text.split("diff --git ").filter(|file| !file.contains(".bin"));
        files.map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut own, mut gits) = (text(&bytes(&patches)), text(&diff));
    own.sort();
    gits.sort();
    assert_eq!(own, gits);
    for width in ["60", "80", "200"] {
        let stat_width = format!("--stat={width}");
        let args = [&args[..], &[&stat_width, &tree]].concat();
        let shown = String::from_utf8(git(folder.path(), &args, b"").stdout).unwrap();
        let lines = stat(&patches, width.parse().unwrap());
        let lines = lines.iter().map(|it| format!("{}{}{}", it.text, it.added, it.removed));
        let (mut own, mut gits): (Vec<_>, Vec<_>) =
            (lines.collect(), shown.lines().map(str::to_owned).collect());
        // A file that became a link is one line here, and two for git.
        own.retain(|line: &String| !line.contains("was-file") && !line.contains(" changed"));
        gits.retain(|line: &String| !line.contains("was-file") && !line.contains(" changed"));
        own.sort();
        gits.sort();
        assert_eq!(own, gits);
    }
}

#[test]
fn an_agents_patch_has_its_own_changes_only() {
    let versions: Vec<Vec<u8>> =
        [&[][..], &[(5, "ui")], &[(5, "ui"), (30, "api")], &[(5, "ui"), (30, "api"), (50, "ui 2")]]
            .map(numbers)
            .to_vec();
    let text = |at: usize| std::str::from_utf8(&versions[at]).unwrap();
    let steps = [(1, true), (2, false), (3, true)];
    let changes = |own: bool| {
        let of = |(at, is_ui): (usize, bool)| {
            let one = change(at as u64, Some(text(at - 1)), Some(text(at)));
            (one, is_ui == own)
        };
        ChangeSet::new(steps.map(of))
    };
    let known: Vec<Files> = versions.iter().map(|it| files(&[("a.txt", 0o644, it)])).collect();
    let all: Vec<&Files> = known.iter().collect();
    let ui = net(&changes(true), &contents(&all));
    let patched = applied(&known[0], &bytes(&patches(&ui, &all)));
    assert_eq!(patched, files(&[("a.txt", 0o644, &numbers(&[(5, "ui"), (50, "ui 2")]))]));
    // The other's applies to what it found.
    let api = net(&changes(false), &contents(&all));
    assert_eq!(applied(&known[1], &bytes(&patches(&api, &all))), known[2]);
}

#[test]
fn two_that_append_in_turn_are_told_apart_and_the_same_line_is_in_parts() {
    let logs = ["0\n", "0\nu\n", "0\nu\na\n", "0\nu\na\nu\n"];
    let of = |at: usize| change(at as u64, Some(logs[at - 1]), Some(logs[at]));
    let set = ChangeSet::new([(of(1), true), (of(2), false), (of(3), true)]);
    let known = super::contents(&logs);
    let net_of = net(&set, &known);
    let [file] = &net_of.files[..] else { panic!("{net_of:?}") };
    let lines = patch(file, &known).unwrap().lines;
    let added: Vec<_> = lines.iter().filter(|(kind, _)| *kind == PatchLine::Added).collect();
    assert_eq!(added, [(PatchLine::Added, &b"+u\n"[..]), (PatchLine::Added, b"+u\n")]);

    let texts = ["1\n", "2\n", "3\n", "4\n"];
    let of = |at: usize| change(at as u64, Some(texts[at - 1]), Some(texts[at]));
    let set = ChangeSet::new([(of(1), true), (of(2), false), (of(3), true)]);
    let parts: Vec<_> = net(&set, &super::contents(&texts)).files;
    let hash = |entry: &Option<FileEntry>| entry.as_ref().unwrap().state.hash.clone().unwrap();
    let parts: Vec<_> = parts.iter().map(|it| (hash(&it.before), hash(&it.after))).collect();
    let pair = |from: &str, to: &str| (hash_of(from.as_bytes()), hash_of(to.as_bytes()));
    assert_eq!(parts, [pair("1\n", "2\n"), pair("3\n", "4\n")]);
}

#[test]
fn what_a_patch_cant_carry_is_named() {
    let folder =
        |mode| FileState { hash: None, size: 0, mode, kind: FileKind::Folder, stored: true };
    let at = |path: &str, change: FileChange| FileChange { path: path.into(), ..change };
    let mut empty = at("empty", change(1, None, None));
    empty.after = Some(folder(0o755));
    let mut full = at("full", change(2, None, None));
    full.after = Some(folder(0o755));
    let file = at("full/file", change(3, None, Some("x\n")));
    let denied = FileChange { denied: true, ..at(".env", change(4, None, None)) };
    let mut private = at("private", change(5, Some("x\n"), Some("x\n")));
    private.after.as_mut().unwrap().mode = 0o600;
    let outside = at("/etc/x", change(6, None, Some("x\n")));
    let mut large = at("large", change(7, None, Some("large")));
    large.after.as_mut().unwrap().stored = false;
    let gits = at("sub/.git/config", change(8, None, Some("x\n")));
    let all = [empty, full, file, denied, private, outside, large, gits];
    let known = super::contents(&["x\n"]);
    let net = net(&ChangeSet::new(all.map(|change| (change, true))), &known);
    let mut left_out = not_in_patch(&net);
    let mut shown = Vec::new();
    for file in net.files.iter().filter(|file| !file.is_folder()) {
        match patch(file, &known) {
            Ok(patch) => shown.push(patch.path),
            Err(why) => left_out.push(why),
        }
    }
    assert_eq!(shown, [PathBuf::from("full/file")]);
    let named: Vec<_> =
        left_out.iter().map(|it| format!("{}: {}", it.path.display(), it.why)).collect();
    expect_test::expect![[r#"
        [
            ".env: it changed, but a `denied` pattern matches it, so its content is not kept",
            "empty: it is a new folder, and empty",
            "/etc/x: it is outside the workspace",
            "large: its content was not stored",
            "private: its permissions are 600, and were 644",
            "sub/.git/config: it is git's own, and no patch may change it",
        ]
    "#]]
    .assert_debug_eq(&named);
}
