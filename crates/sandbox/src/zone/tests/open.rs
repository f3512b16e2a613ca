use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::open::{place, walk};
use super::*;

fn permit(zone: &Zone, path: &str, action: Action) -> Permit {
    zone.check(Path::new(path), action).unwrap()
}

fn read(permit: &Permit) -> std::io::Result<String> {
    let mut text = String::new();
    permit.open_read()?.read_to_string(&mut text)?;
    Ok(text)
}

/// Puts a link to `target` in the place of `path`.
fn swap(bed: &Bed, path: &str, target: &str) {
    fs::rename(bed.path(path), bed.path("aside")).unwrap();
    symlink(bed.path(target), bed.path(path)).unwrap();
}

#[test]
fn what_was_judged_is_read() {
    let bed = Bed::new(&["ws/ui/a = inside", "ws/ui/link -> a", "out/x = outside"]);
    let zone = bed.zone(&["ui/**", "@/out/**"]);
    assert_eq!(read(&permit(&zone, "ui/link", Action::Read)).unwrap(), "inside");
    let outside = bed.expand("@/out/x");
    assert_eq!(read(&permit(&zone, &outside, Action::Read)).unwrap(), "outside");
}

#[test]
fn a_permit_serves_one_action() {
    let bed = Bed::new(&["ws/ui/a = old"]);
    let zone = bed.zone(&["ui/**"]);
    let [reading, writing] =
        [Action::Read, Action::Write].map(|action| permit(&zone, "ui/a", action));
    assert_eq!(writing.open_read().unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(reading.replace(b"new").unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(read(&reading).unwrap(), "old");
}

#[test]
fn nothing_swapped_in_is_reached() {
    // The file itself, its folder, and a folder above; in the workspace and outside.
    for (path, swapped, target) in [
        ("ws/ui/a", "ws/ui/a", "core/a"),
        ("ws/ui/a", "ws/ui", "core"),
        ("ws/ui/deep/a", "ws/ui", "core"),
        ("out/deep/a", "out/deep", "core"),
    ] {
        let bed = Bed::new(&["core/a = secret", "core/deep/a = secret", path]);
        let zone = bed.zone(&["ui/**", "@/out/**"]);
        let full = bed.path(path);
        let [reading, writing] =
            [Action::Read, Action::Write].map(|action| zone.check(&full, action).unwrap());
        swap(&bed, swapped, target);
        for (result, what) in
            [(read(&reading).map(drop), "read"), (writing.replace(b""), "written")]
        {
            let error = result.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotADirectory),
                "{path} {what}: {error}"
            );
        }
        assert_eq!(fs::read_to_string(bed.path("core/a")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(bed.path("core/deep/a")).unwrap(), "secret");
        assert!(drafts(&bed.path("core")).is_empty());
    }
}

#[test]
fn a_link_swapped_in_for_a_missing_folder_is_not_followed() {
    let bed = Bed::new(&["core/", "ws/ui/"]);
    let zone = bed.zone(&["ui/**"]);
    let writing = permit(&zone, "ui/new/deep/a", Action::Write);
    bed.add(&["ws/ui/new -> @/core"]);
    assert!(writing.replace(b"x").is_err());
    assert_eq!(fs::read_dir(bed.path("core")).unwrap().count(), 0);
}

#[test]
fn the_workspace_is_the_one_the_zone_was_compiled_for() {
    let bed = Bed::new(&["ws/ui/a = ours", "other/ui/a = theirs"]);
    let zone = bed.zone(&["ui/**"]);
    let reading = permit(&zone, "ui/a", Action::Read);
    assert_eq!(zone.workspace_moved(), None);
    swap(&bed, "ws", "other");
    let writing = Permit { action: Action::Write, ..reading.clone() };
    for refused in [read(&reading).map(drop), writing.replace(b"mine")] {
        assert!(refused.unwrap_err().to_string().contains("was replaced by another folder"));
    }
    fs::remove_file(bed.path("ws")).unwrap();
    assert!(read(&reading).unwrap_err().to_string().contains("was moved or removed"));
    // A restart takes the folder that is there.
    fs::rename(bed.path("other"), bed.path("ws")).unwrap();
    zone.take_workspace();
    assert_eq!(read(&reading).unwrap(), "theirs");
    assert_eq!(zone.workspace_moved(), None);
}

#[test]
fn only_regular_files_are_opened() {
    let bed = Bed::new(&["ws/folder/"]);
    mkfifo(&bed.path("ws/pipe"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.path("ws/socket")).unwrap();
    let zone = bed.zone(&["**", "/dev/null"]);
    for (path, kind, message) in [
        ("folder", ErrorKind::IsADirectory, "is a folder"),
        (".", ErrorKind::IsADirectory, "is a folder"),
        ("pipe", ErrorKind::InvalidInput, "is not a regular file"),
        ("socket", ErrorKind::InvalidInput, "is not a regular file"),
        ("/dev/null", ErrorKind::InvalidInput, "is not a regular file"),
    ] {
        let results = [
            permit(&zone, path, Action::Read).open_read().map(drop),
            permit(&zone, path, Action::Write).replace(b"x"),
        ];
        for error in results.map(Result::unwrap_err) {
            assert_eq!((error.kind(), error.to_string().as_str()), (kind, message), "{path}");
        }
    }
    let missing = permit(&zone, "missing", Action::Read).open_read().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_is_replaced_in_one_step_and_keeps_its_mode() {
    let bed = Bed::new(&["ws/run.sh = old", "ws/link -> run.sh"]);
    let path = bed.path("ws/run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    let mut before = fs::File::open(&path).unwrap();
    let zone = bed.zone(&["**"]);

    permit(&zone, "link", Action::Write).replace(b"new").unwrap();

    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert!(fs::symlink_metadata(bed.path("ws/link")).unwrap().is_symlink());
    let mut old = String::new();
    before.read_to_string(&mut old).unwrap();
    assert_eq!(old, "old");
    assert!(drafts(&bed.path("ws")).is_empty());
}

#[test]
fn a_new_file_gets_its_folders_and_the_usual_mode() {
    let bed = Bed::new(&["ws/usual"]);
    let zone = bed.zone(&["ui/**", "@/out/**"]);
    for path in ["ws/ui/new/deep/a", "out/new/a"] {
        let path = bed.path(path);
        zone.check(&path, Action::Write).unwrap().replace(b"text").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        let usual = fs::metadata(bed.path("ws/usual")).unwrap().mode();
        assert_eq!(fs::metadata(&path).unwrap().mode(), usual);
    }
}

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    let bed = Bed::new(&["ws/ui/a = old"]);
    let zone = bed.zone(&["ui/**"]);
    let writing = permit(&zone, "ui/a/b", Action::Write);
    assert!(writing.replace(b"new").is_err());
    let writing = permit(&zone, "ui/full", Action::Write);
    bed.add(&["ws/ui/full/x"]);
    assert!(writing.replace(b"new").is_err());
    assert_eq!(fs::read(bed.path("ws/ui/a")).unwrap(), b"old");

    // What becomes a folder only after it was looked at makes the last step fail.
    let folder = fs::File::open(bed.path("ws/ui")).unwrap();
    assert!(
        place((folder.as_fd(), &bed.path("ws/ui")), Path::new("full"), b"new", None, None).is_err()
    );
    assert!(drafts(&bed.path("ws/ui")).is_empty());
}

#[test]
fn a_zone_without_its_folder_opens_from_the_root() {
    let bed = Bed::new(&[]);
    fs::remove_dir(bed.path("ws")).unwrap();
    let zone = bed.zone(&["ui/**"]);
    permit(&zone, "ui/a", Action::Write).replace(b"text").unwrap();
    assert_eq!(read(&permit(&zone, "ui/a", Action::Read)).unwrap(), "text");
}

/// Names of files that a replacement left behind.
fn drafts(folder: &Path) -> Vec<std::ffi::OsString> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with(".eisen-")).collect()
}

#[test]
fn the_walk_of_systems_without_openat2_follows_nothing_either() {
    let bed = Bed::new(&["ws/a/b/c", "ws/dir -> a", "ws/a/up -> b", "ws/a/b/file -> c"]);
    let root = fs::File::open(bed.path("ws")).unwrap();
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW;
    let opens = |path: &&str| walk(root.as_fd(), Path::new(path), flags).is_ok();
    let paths =
        [".", "a", "a/b/c", "dir", "dir/b/c", "a/up/c", "a/b/file", "a/missing/c", "a/b/c/d"];
    let opened: Vec<_> = paths.iter().filter(|path| opens(path)).collect();
    assert_eq!(opened, [&".", &"a", &"a/b/c"]);
}

#[test]
fn a_draft_has_no_name_in_the_folder_of_its_file() {
    let bed = Bed::new(&["ws/ui/a = old"]);
    let folder = bed.path("eisen/drafts");
    let zone = bed.zone(&["ui/**"]).with_drafts_in(folder.clone());
    for (path, name) in [("ui/a", "a"), ("ui/new", "new")] {
        permit(&zone, path, Action::Write).replace(b"new").unwrap();
        assert_eq!(fs::read(bed.path("ws/ui").join(name)).unwrap(), b"new");
    }
    assert!(drafts(&bed.path("ws/ui")).is_empty() && drafts(&folder).is_empty());
}

#[test]
fn drafts_that_a_kill_left_are_found_by_their_records() {
    let bed = Bed::new(&["ws/ui/.eisen-1.tmp", "ws/ui/mine"]);
    let folder = bed.path("eisen/drafts");
    fs::create_dir_all(&folder).unwrap();
    let record = |name: &str, path: &str| {
        fs::write(folder.join(name), bed.path(path).as_os_str().as_encoded_bytes()).unwrap();
    };
    record("1.path", "ws/ui/.eisen-1.tmp");
    record("2.path", "ws/ui/mine");
    record("3.path", "ws/ui/.eisen-gone.tmp");
    assert_eq!(remove_recorded(&folder), 1);
    assert!(drafts(&bed.path("ws/ui")).is_empty() && bed.path("ws/ui/mine").exists());
}
