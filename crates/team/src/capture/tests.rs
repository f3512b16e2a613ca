#![allow(clippy::unwrap_used)]

#[cfg(target_os = "linux")]
mod calls;
mod keeping;
mod recording;

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::disk::{self, Content, Depth};
use super::scope::CaptureScope;
use crate::model::{FileKind, OutsideFiles};

#[test]
fn contents_are_read_within_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let at = |name: &str| root.join(name);
    let check = |content: &[u8], kept: bool| {
        fs::write(at("file"), content).unwrap();
        let seen = disk::read(&at("file"), Depth::Content);
        let hash = seen.state.unwrap().hash.unwrap();
        assert_eq!(*hash, *blake3::hash(content).to_hex().as_str());
        assert_eq!(seen.content.is_some(), kept, "{} bytes", content.len());
    };
    let mebi = 1 << 20;
    check(b"", true);
    check(&vec![b'a'; 16 * mebi], true);
    check(&vec![b'a'; 16 * mebi + 1], false);
    check(&vec![0; mebi], true);
    check(&vec![0; mebi + 1], false);
    // A sparse file that no disk may have room for.
    File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
    let state = disk::read(&at("sparse"), Depth::Content).state.unwrap();
    assert_eq!((state.size, state.hash), (1 << 40, None));
}

#[test]
fn links_are_read_as_links_and_never_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("secret")).unwrap();
    fs::write(root.join("secret/file"), "sesame").unwrap();
    symlink("secret/file", root.join("link")).unwrap();
    symlink("secret", root.join("folder")).unwrap();
    let seen = disk::read(&root.join("link"), Depth::Content);
    assert_eq!(seen.state.unwrap().kind, FileKind::Symlink);
    assert!(matches!(seen.content, Some(Content::Bytes(it)) if it == b"secret/file"));
    // As if a link had taken the folder's place since the path was judged.
    if cfg!(target_os = "linux") {
        assert!(disk::read(&root.join("folder/file"), Depth::Content).state.is_none());
    }
    let of = |path: &str, depth| disk::read(&root.join(path), depth);
    let denied = of("secret/file", Depth::Stamp);
    assert!(denied.content.is_none() && denied.state.unwrap().hash.is_none());
    assert_eq!(of("secret", Depth::Content).state.unwrap().kind, FileKind::Folder);
    assert!(of("missing", Depth::Content).state.is_none());
}

#[test]
fn a_change_shows_in_the_stamp_unless_it_is_too_fresh() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().canonicalize().unwrap().join("file");
    fs::write(&file, "one").unwrap();
    let before = disk::read(&file, Depth::Content);
    // Another change may leave the same times.
    assert!(!before.is_still(disk::stamp(&file)));
    fs::write(&file, "two").unwrap();
    let after = disk::read(&file, Depth::Content);
    assert!(!before.is_same(&after) && after.is_same(&disk::read(&file, Depth::Hash)));
}

#[test]
fn what_git_ignores_is_known_and_what_is_its_own_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (path, text) in [
        (".gitignore", "*.log\n/out/\n!keep.log\n"),
        ("sub/.gitignore", "!deep.log\n"),
        (".git/info/exclude", "mine\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let scope =
        CaptureScope::new(root.clone(), vec![root.join("journal.db")], OutsideFiles::Content);
    let ignores = |path: &str| scope.ignores(&root.join(path), false);
    for path in ["x.log", "out/a/b", "sub/x.log", "mine", "sub/mine"] {
        assert!(ignores(path), "{path}");
    }
    for path in ["a", "keep.log", "sub/deep.log", "sub/out", "dist/a"] {
        assert!(!ignores(path), "{path}");
    }
    let leaves_out = |path: &str| scope.leaves_out(&root.join(path));
    for path in [".git", ".git/index", "sub/.git/HEAD", "journal.db-wal", "/proc/1/comm"] {
        assert!(leaves_out(path), "{path}");
    }
    for path in ["a.git", ".gitignore", "journal"] {
        assert!(!leaves_out(path), "{path}");
    }
}
