//! The mounts of the machine, to find the other real paths of a folder that is mounted twice.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File systems that show the kernel's work, and so the work of other processes.
const WATCHING: [&str; 2] = ["tracefs", "debugfs"];

/// One line of `/proc/self/mountinfo`, `proc_pid_mountinfo(5)`.
#[derive(Debug)]
pub(super) struct Mount {
    device: String,
    /// The folder of the file system that is mounted.
    root: PathBuf,
    point: PathBuf,
    kind: String,
}

/// All present mounts; none if the system has no list.
pub(super) fn mounts() -> Vec<Mount> {
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(parse).collect()
}

/// The mount points of file systems that show other processes.
pub(super) fn watching(mounts: &[Mount]) -> impl Iterator<Item = PathBuf> {
    mounts.iter().filter(|mount| WATCHING.contains(&&*mount.kind)).map(|mount| mount.point.clone())
}

/// The paths outside `place` by which it, or something in it, is reachable too.
pub(super) fn aliases(place: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let around = mounts.iter().filter(|mount| place.starts_with(&mount.point));
    // The last mount at a point hides the others.
    let home = around.max_by_key(|mount| mount.point.as_os_str().len());
    let below = mounts.iter().filter(|mount| mount.point.starts_with(place));
    let parts = home.map(|home| (home, place)).into_iter();
    let parts = parts.chain(below.map(|mount| (mount, mount.point.as_path())));
    let mut found: Vec<_> =
        parts.flat_map(|(home, part)| aliases_of(home, part, place, mounts)).collect();
    found.sort();
    found.dedup();
    found
}

/// Where else a part of `place` is that `home` mounts.
fn aliases_of(home: &Mount, part: &Path, place: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let Ok(within) = part.strip_prefix(&home.point) else { return Vec::new() };
    let inner = joined(&home.root, within);
    let same = mounts.iter().filter(|mount| mount.device == home.device);
    same.filter_map(|mount| {
        let (alias, of) = match (inner.strip_prefix(&mount.root), mount.root.strip_prefix(&inner)) {
            (Ok(rest), _) => (joined(&mount.point, rest), part.to_owned()),
            (_, Ok(rest)) => (mount.point.clone(), joined(part, rest)),
            _ => return None,
        };
        // An alias in the place itself is judged there; other mounts may hide either.
        let is_apart = !alias.starts_with(place) && !place.starts_with(&alias);
        (is_apart && is_same(&alias, &of)).then_some(alias)
    })
    .collect()
}

fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let found = fs::symlink_metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    identity(one).is_some_and(|found| Some(found) == identity(other))
}

/// Joins without the slash that an empty rest would leave.
fn joined(folder: &Path, rest: &Path) -> PathBuf {
    folder.join(rest).components().collect()
}

fn parse(line: &[u8]) -> Option<Mount> {
    let text = |field: &[u8]| String::from_utf8(field.to_vec()).ok();
    let mut fields = line.split(|&byte| byte == b' ').skip(2);
    let device = text(fields.next()?)?;
    let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
    // Any number of fields may stand before the one that ends them.
    let kind = text(fields.skip_while(|field| *field != b"-").nth(1)?)?;
    Some(Mount { device, root, point, kind })
}

/// The kernel writes blanks, line ends and backslashes as octal numbers.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, behind)) = rest.split_first() {
        let octal = (byte == b'\\').then(|| behind.first_chunk::<3>()).flatten();
        let code =
            octal.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read() {
        let line = b"36 35 98:0 /mnt1/a\\040b /mnt2\\134 rw,noatime master:1 - ext3 /dev/root rw";
        let mount = parse(line).unwrap();
        assert_eq!((mount.device.as_str(), &*mount.root), ("98:0", Path::new("/mnt1/a b")));
        assert_eq!((&*mount.point, &*mount.kind), (Path::new("/mnt2\\"), "ext3"));
        assert!(parse(b"").is_none());
    }

    #[test]
    fn where_the_kernel_is_watched_is_known_wherever_that_is() {
        let lines = [
            &b"31 24 0:7 / /sys/kernel/debug rw,nosuid shared:14 - debugfs debugfs rw"[..],
            b"32 24 0:12 / /mnt/t rw - tracefs none rw",
            b"33 24 8:1 / /mnt/- rw - ext4 tracefs rw",
        ];
        let mounts: Vec<_> = lines.map(|line| parse(line).unwrap()).into();
        let found: Vec<_> = watching(&mounts).collect();
        assert_eq!(found, ["/sys/kernel/debug", "/mnt/t"].map(PathBuf::from));
    }

    #[test]
    fn a_place_is_found_again_wherever_it_is_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("ws/part")).unwrap();
        // Stands for what mounting would show: the same folder under another path.
        let mount = |device: &str, inner: &str, point: &Path| Mount {
            device: device.to_owned(),
            root: inner.into(),
            point: point.to_owned(),
            kind: "ext4".to_owned(),
        };
        let shown = |mounts: &[Mount]| aliases(&root.join("ws"), mounts);
        let home = || mount("8:1", "/home", &root);
        let again = Path::new("/proc/self/root").join(root.strip_prefix("/").unwrap());
        let (whole, part) = (mount("8:1", "/home", &again), again.join("ws/part"));
        assert_eq!(shown(&[home(), whole]), [again.join("ws")]);
        assert_eq!(shown(&[home(), mount("8:1", "/home/ws/part", &part)]), [part]);
        assert!(shown(&[home()]).is_empty());
        // Hidden, or not there: nothing has the place's identity.
        assert!(shown(&[home(), mount("8:1", "/home", &root.join("elsewhere"))]).is_empty());
        // Another file system.
        assert!(shown(&[home(), mount("8:2", "/home/ws", &root)]).is_empty());
        // Something from elsewhere that is mounted into it, at its origin.
        let into = mount("8:3", "/srv/part", &root.join("ws/part"));
        let origin = mount("8:3", "/srv", &again.join("ws"));
        assert_eq!(shown(&[home(), into, origin]), [again.join("ws/part")]);
        // In the place itself.
        assert!(shown(&[home(), mount("8:1", "/home/ws/part", &root.join("ws/part"))]).is_empty());
    }
}
