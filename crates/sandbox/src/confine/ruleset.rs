//! The wall as a Landlock ruleset made of path rules, and which paths its rules still cover.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset as Handled, RulesetAttr,
    RulesetCreatedAttr, Scope,
};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, fstat};

use super::support::landlock_version;
use crate::zone::{FOLDER, Grant, Rule, open_beneath};

/// A ruleset and an index of its grants.
#[derive(Debug)]
pub(super) struct Ruleset {
    fd: OwnedFd,
    covers: Covers,
}

/// The rules by path. A rule belongs to the file that existed when the ruleset was made, not to a
/// replacement, so its identity is compared. The ruleset keeps its files alive, so no other file
/// gets the same numbers.
///
/// Real paths have one spelling and are compared as bytes: splitting them for each lookup would be
/// the slowest part of a call.
#[derive(Debug, Default)]
struct Covers(HashMap<OsString, (Grant, Identity)>);

/// Device and inode.
type Identity = (u64, u64);

impl Ruleset {
    /// Builds the ruleset: it forbids everything that this kernel can forbid and no rule grants. A
    /// rule is skipped if its path is gone or leads through a link.
    pub(super) fn new(rules: &[Rule]) -> io::Result<Self> {
        let abi = ABI::from(i32::from(landlock_version())).min(NEWEST);
        let handled = Handled::default().handle_access(AccessFs::from_all(abi));
        let handled = match Scope::from_all(abi) {
            scopes if scopes.is_empty() => handled,
            scopes => handled.and_then(|handled| handled.scope(scopes)),
        };
        let mut ruleset = handled.and_then(Handled::create).map_err(io::Error::other)?;
        let mut covers = Covers::default();
        let root = nix::fcntl::open("/", FOLDER, Mode::empty())?;
        for rule in rules {
            let Some(place) = open(root.as_fd(), &rule.path)? else { continue };
            let status = fstat(&place)?;
            let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
            if kind == SFlag::S_IFLNK {
                continue;
            }
            let is_folder = kind == SFlag::S_IFDIR;
            let mut rights = rights(rule.grant, abi);
            if !is_folder {
                rights &= AccessFs::from_file(abi);
            }
            if rights.is_empty() {
                continue;
            }
            (&mut ruleset).add_rule(PathBeneath::new(place, rights)).map_err(io::Error::other)?;
            covers.insert(rule, (status.st_dev, status.st_ino));
        }
        let fd = Option::from(ruleset).ok_or(Errno::EOPNOTSUPP)?;
        Ok(Self { fd, covers })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether a rule grants this much for a real path with this identity.
    pub(super) fn covers(&self, real: &Path, grant: Grant, identity: Identity) -> bool {
        self.covers.cover(real, grant, identity)
    }
}

/// The newest Landlock ABI whose rules were checked.
const NEWEST: ABI = ABI::V7;

impl Covers {
    fn insert(&mut self, rule: &Rule, identity: Identity) {
        let path: PathBuf = rule.path.components().collect();
        let entry = self.0.entry(path.into()).or_insert((rule.grant, identity));
        // Rules for the same path add up.
        *entry = (entry.0.max(rule.grant), identity);
    }

    fn cover(&self, real: &Path, grant: Grant, identity: Identity) -> bool {
        let granted = |path: &[u8]| {
            let found = self.0.get(OsStr::from_bytes(path));
            found.filter(|(granted, _)| *granted >= grant)
        };
        let real = real.as_os_str().as_bytes();
        if granted(real).is_some_and(|(_, of_rule)| *of_rule == identity) {
            return true;
        }
        folders_above(real).any(|folder| {
            granted(folder).is_some_and(|(_, of_rule)| {
                // A folder that was moved took its rule along; a mount hides it.
                let folder = Path::new(OsStr::from_bytes(folder));
                folder.metadata().is_ok_and(|now| (now.dev(), now.ino()) == *of_rule)
            })
        })
    }
}

/// The folders that an absolute path lies in, from the innermost to the root.
fn folders_above(real: &[u8]) -> impl Iterator<Item = &[u8]> {
    let above = memchr::memrchr_iter(b'/', real).map(|at| &real[..at.max(1)]);
    // The root has no parent.
    above.filter(move |folder| *folder != real)
}

fn rights(grant: Grant, abi: ABI) -> BitFlags<AccessFs> {
    let list = AccessFs::ReadDir.into();
    let read = list | AccessFs::ReadFile | AccessFs::Execute;
    let all = AccessFs::from_all(abi);
    let rights = match grant {
        Grant::List => list,
        Grant::Read => read,
        // Devices have rules of their own, and need ioctl.
        Grant::Write => {
            read | AccessFs::WriteFile
                | AccessFs::Truncate
                | AccessFs::MakeSock
                | AccessFs::IoctlDev
        }
        Grant::Whole => all,
    };
    rights & all
}

/// Opens the file of a rule as a mere reference.
fn open(root: BorrowedFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let below = path.strip_prefix("/").unwrap_or(path);
    match open_beneath(root, below, OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC) {
        Ok(fd) => Ok(Some(fd)),
        Err(
            Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES | Errno::ENAMETOOLONG,
        ) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    fn identity(path: &Path) -> Identity {
        let status = path.metadata().unwrap();
        (status.dev(), status.ino())
    }

    #[test]
    fn a_grant_is_what_its_words_say() {
        let abi = ABI::V6;
        assert_eq!(rights(Grant::List, abi), AccessFs::ReadDir);
        assert_eq!(rights(Grant::Read, abi), AccessFs::from_read(abi));
        let names = AccessFs::from_write(abi) & !rights(Grant::Write, abi);
        assert_eq!(
            names,
            AccessFs::RemoveDir
                | AccessFs::RemoveFile
                | AccessFs::MakeChar
                | AccessFs::MakeDir
                | AccessFs::MakeReg
                | AccessFs::MakeFifo
                | AccessFs::MakeBlock
                | AccessFs::MakeSym
                | AccessFs::Refer
        );
        assert_eq!(rights(Grant::Whole, abi), AccessFs::from_all(abi));
        // What a kernel does not know cannot be asked of it.
        assert_eq!(rights(Grant::Whole, ABI::V1), AccessFs::from_all(ABI::V1));
        assert!(!rights(Grant::Write, ABI::V2).contains(AccessFs::Truncate));
    }

    #[test]
    fn a_rule_covers_what_was_there_and_all_below() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["src", "docs"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("one"), "1").unwrap();
        let rule = |name: &str, grant| Rule { path: root.join(name), grant };
        let rules = [
            rule("", Grant::List),
            rule("src", Grant::Write),
            rule("docs", Grant::Read),
            rule("one", Grant::Write),
            rule("gone", Grant::Write),
        ];
        let ruleset = Ruleset::new(&rules).unwrap();
        let covers = |name: &str, grant| {
            let path = root.join(name);
            // What does not exist yet has no identity that could match.
            let identity = if path.exists() { identity(&path) } else { (0, 0) };
            ruleset.covers(&path, grant, identity)
        };
        assert!(covers("src/a/b", Grant::Write));
        assert!(covers("src", Grant::Write));
        assert!(covers("docs/a", Grant::Read));
        assert!(!covers("docs/a", Grant::Write));
        assert!(covers("other", Grant::List));
        assert!(!covers("other", Grant::Read));
        assert!(covers("one", Grant::Write));
        assert!(!covers("one", Grant::Whole));
        assert!(!covers("gone", Grant::Read));

        // Replaced as editors do it, the file has lost its rule.
        fs::write(root.join("two"), "2").unwrap();
        fs::rename(root.join("two"), root.join("one")).unwrap();
        assert!(!covers("one", Grant::Read));
        // A folder that moved took its rule along.
        fs::rename(root.join("src"), root.join("moved")).unwrap();
        fs::create_dir(root.join("src")).unwrap();
        assert!(!covers("src/a", Grant::Write));
        fs::remove_dir(root.join("src")).unwrap();
        fs::rename(root.join("moved"), root.join("src")).unwrap();
        assert!(covers("src/a", Grant::Write));
    }

    #[test]
    fn a_path_that_a_link_leads_away_from_grants_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        let rule = Rule { path: root.join("link"), grant: Grant::Write };
        let ruleset = Ruleset::new(&[rule]).unwrap();
        assert!(ruleset.covers.0.is_empty());
    }
}
