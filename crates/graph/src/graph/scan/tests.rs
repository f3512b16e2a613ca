//! Scans of folders, with and without a cache.

#![allow(clippy::unwrap_used)]
use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::graph::Snapshot;

fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn scanned(root: &Path, tokens: bool, cache: Option<&Path>) -> (Snapshot, Work) {
    let settings = Settings { jobs: 2, tokens, cache: cache.map(Path::to_owned) };
    let (graph, snapshot, work) = scan(root, &settings, &|_, _| true).unwrap();
    assert_eq!(snapshot, graph.snapshot());
    (snapshot, work)
}

fn ids(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.nodes.keys().map(|id| &**id).collect()
}

#[test]
fn only_plain_files_that_are_not_ignored_are_listed() {
    let root = tree(&[
        (".gitignore", "target\n"),
        ("src/a.rs", "fn a() {}\nfn a() {}\n"),
        ("target/b.rs", "fn b() {}\n"),
        (".hidden/c.rs", "fn c() {}\n"),
        ("notes.txt", "one\ntwo\n"),
        ("empty.py", ""),
        ("deep/er/d.png", "\0\n\n"),
    ]);
    let at = |name: &str| root.path().join(name);
    symlink("/etc", at("outside")).unwrap();
    symlink("src/a.rs", at("link.rs")).unwrap();
    nix::unistd::mkfifo(&at("pipe.rs"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::File::create(at("huge.rs")).unwrap().set_len(1 << 40).unwrap();
    let (snapshot, _) = scanned(root.path(), false, None);
    assert_eq!(
        ids(&snapshot),
        [
            "deep",
            "deep/er",
            "deep/er/d.png",
            "empty.py",
            "huge.rs",
            "notes.txt",
            "src",
            "src/a.rs",
            "src/a.rs::a",
            "src/a.rs::a#2",
        ]
    );
    let end = |id: &str| snapshot.nodes[id].lines.end;
    assert_eq!([end("src"), end("empty.py"), end("notes.txt"), end("deep/er/d.png")], [0, 1, 2, 1]);
}

#[test]
fn a_hidden_root_and_one_without_files_are_roots_too() {
    let root = tree(&[(".hidden/a.rs", "fn a() {}\n")]);
    assert_eq!(ids(&scanned(root.path(), false, None).0), [""; 0]);
    let (snapshot, _) = scanned(&root.path().join(".hidden"), false, None);
    assert_eq!(ids(&snapshot), ["a.rs", "a.rs::a"]);
}

#[test]
fn names_that_look_alike_are_distinguished() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let root = tree(&[]);
    for name in [b"\xfe.rs", b"\xff.rs"] {
        fs::write(root.path().join(OsStr::from_bytes(name)), "").unwrap();
    }
    assert_eq!(ids(&scanned(root.path(), false, None).0), ["\u{fffd}.rs", "\u{fffd}.rs#2"]);
}

#[test]
fn what_is_no_folder_is_no_root() {
    let root = tree(&[("a.rs", "")]);
    let settings = Settings { jobs: 1, tokens: false, cache: None };
    let error = |name: &str| {
        let scanned = scan(&root.path().join(name), &settings, &|_, _| true);
        scanned.err().map(|error| error.kind())
    };
    assert_eq!(error("a.rs"), Some(io::ErrorKind::NotADirectory));
    assert_eq!(error("b"), Some(io::ErrorKind::NotFound));
}

#[test]
fn tokens_are_those_of_the_lines() {
    let root = tree(&[("a.py", "def one():\n    pass\n\ndef two():\n    return one() + 1\n")]);
    let (snapshot, _) = scanned(root.path(), true, None);
    let tokens = |id: &str| snapshot.nodes[id].tokens.unwrap() as usize;
    let tokenizer = bpe_openai::o200k_base();
    assert_eq!(tokens("a.py::one"), tokenizer.count("def one():\n    pass\n\n"));
    assert_eq!(tokens("a.py::two"), tokenizer.count("def two():\n    return one() + 1\n"));
    assert_eq!(tokens("a.py"), tokens("a.py::one") + tokens("a.py::two"));
}

#[test]
fn what_is_kept_need_not_be_parsed_again() {
    let root = tree(&[("a.rs", "fn a() { b() }\nfn b() {}\n"), ("b.txt", "text\n")]);
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("made");
    let (first, work) = scanned(root.path(), true, Some(&folder));
    assert_eq!(work.parsed, 1);
    let (second, work) = scanned(root.path(), true, Some(&folder));
    assert_eq!((&second, work.parsed), (&first, 0));
    // Tokens may be left out of what was kept with them, not the other way round.
    let (bare, work) = scanned(root.path(), false, Some(&folder));
    assert_eq!(work.parsed, 0);
    assert!(bare.nodes.values().all(|node| node.tokens.is_none()));
    // Another folder with the same content finds it.
    let other = tree(&[("c.rs", "fn a() { b() }\nfn b() {}\n")]);
    assert_eq!(scanned(other.path(), true, Some(&folder)).1.parsed, 0);
    fs::write(root.path().join("a.rs"), "fn c() {}\n").unwrap();
    let (third, work) = scanned(root.path(), true, Some(&folder));
    assert_eq!(work.parsed, 1);
    assert!(third.nodes.contains_key("a.rs::c") && !third.nodes.contains_key("a.rs::a"));
}

#[test]
fn a_library_is_called_as_its_manifest_has_it() {
    let manifest = "[package]\nname = \"town-hall\"\n";
    let root = tree(&[
        ("notes.txt", manifest),
        ("Cargo.toml", manifest),
        ("src/lib.rs", "pub mod time;\n"),
        ("src/time.rs", "pub fn sleep() {}\n"),
        ("src/main.rs", "fn main() { tokio::time::sleep() }\n"),
        ("tests/all.rs", "fn all() { town_hall::time::sleep() }\n"),
    ]);
    let cache = tempfile::tempdir().unwrap();
    let callers = || {
        let (snapshot, _) = scanned(root.path(), false, Some(cache.path()));
        let callers = snapshot.calls.iter().filter(|call| &*call.to == "src/time.rs::sleep");
        callers.map(|call| call.from.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(callers(), ["tests/all.rs::all"]);
    assert_eq!(callers(), ["tests/all.rs::all"]);
    // What was kept of a text is not what it says as a manifest.
    fs::remove_file(root.path().join("Cargo.toml")).unwrap();
    assert!(callers().is_empty());
    fs::rename(root.path().join("notes.txt"), root.path().join("Cargo.toml")).unwrap();
    assert_eq!(callers(), ["tests/all.rs::all"]);
}

#[test]
fn what_is_damaged_is_not_believed() {
    let root = tree(&[("a.rs", "fn a() {}\n")]);
    let cache = tempfile::tempdir().unwrap();
    let (first, _) = scanned(root.path(), false, Some(cache.path()));
    let pack = fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&pack).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        for content in [&damaged[..], &whole[..at]] {
            fs::write(&pack, content).unwrap();
            let (again, work) = scanned(root.path(), false, Some(cache.path()));
            assert_eq!((&again, work.parsed), (&first, 1), "{at}");
        }
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_no_failure() {
    let root = tree(&[("a.rs", "fn a() {}\n")]);
    let (snapshot, _) = scanned(root.path(), false, Some(&root.path().join("a.rs/cache")));
    assert!(snapshot.nodes.contains_key("a.rs::a"));
}

#[test]
fn a_change_reports_what_it_changes() {
    let root = tree(&[
        ("src/a.py", "def outer():\n    inner()\n\ndef inner():\n    pass\n"),
        ("docs/b.txt", "b\n"),
    ]);
    let settings = Settings { jobs: 1, tokens: false, cache: None };
    let (mut graph, mut before, _) = scan(root.path(), &settings, &|_, _| true).unwrap();
    let mut parser = Parser::new();
    let text = b"def outer():\n    other()\n\ndef other():\n    pass\n";
    let facts = parser.facts(Language::of(Path::new("a.py")), text);
    let changes = [("src/a.py", Some(Arc::new(facts))), ("docs/b.txt", None)];
    let change =
        graph.update(changes.into_iter().map(|(path, facts)| (path.into(), facts)).collect(), 1);
    assert_eq!(change.added.keys().map(|id| &**id).collect::<Vec<_>>(), ["src/a.py::other"]);
    let removed: Vec<_> = change.removed.iter().map(|id| &**id).collect();
    assert_eq!(removed, ["docs", "docs/b.txt", "src/a.py::inner"]);
    // Applied to what was, it gives what is.
    before.nodes.retain(|id, _| !change.removed.contains(id));
    before.nodes.extend(change.added);
    before.nodes.extend(change.changed);
    let mut calls: std::collections::BTreeSet<_> = before.calls.into_iter().collect();
    calls.retain(|call| !change.removed_calls.contains(call));
    calls.extend(change.added_calls);
    before.calls = calls.into_iter().collect();
    assert_eq!(before, graph.snapshot());
    assert_eq!(before.calls.len(), 1);
}

#[test]
fn what_changed_says_what_a_scan_of_it_says() {
    let root = tree(&[
        ("a.py", "def a():\n    b()\n"),
        ("b.txt", "\0\n\n"),
        ("c.rs", "fn c() {}\n"),
        ("Cargo.toml", "[package]\nname = \"town\"\n"),
    ]);
    let listed = walk::list(root.path(), 1, None).unwrap().files;
    let mut recent = Recent::default();
    let mut check = || {
        for tokens in [true, false] {
            let settings = Settings { jobs: 1, tokens, cache: None };
            let (scanned, _) = read(root.path(), &listed, &settings, &|_, _| true);
            assert_eq!(reread(&listed, &mut recent, tokens, || true), scanned);
        }
    };
    check();
    fs::write(root.path().join("a.py"), "def a():\n    c()\n\ndef d():\n    pass\n").unwrap();
    fs::write(root.path().join("b.txt"), "one\ntwo\n").unwrap();
    fs::write(root.path().join("Cargo.toml"), "[package]\nname = \"hall\"\n").unwrap();
    fs::remove_file(root.path().join("c.rs")).unwrap();
    check();
    assert!(reread(&listed, &mut recent, true, || false).is_empty());
}
