//! Owns the libraries that the user approved, each by the hash of its content. Only these run
//! unconfined. They are kept in a file in `$EISEN_DIR`, which agents may not touch.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::libc::O_NONBLOCK;
use serde::{Deserialize, Serialize};

use super::load_error::{LoadError, owned};
use crate::kept::{Durable, KeptFile};

/// The file in `$EISEN_DIR`.
const FILE: &str = "trusted_plugins.json";

/// Bytes of that file, enough for thousands of libraries.
const LONGEST: u64 = 1024 * 1024;

/// Digits of a hash that suffice to name a library.
const SHORTEST: usize = 8;

/// The hash of an approved library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Approval(blake3::Hash);

/// All approved libraries.
#[derive(Debug)]
pub struct Approvals {
    file: KeptFile<Durable>,
    list: Vec<Approved>,
}

/// A library as it was approved.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Approved {
    /// In hexadecimal digits.
    pub blake3: String,
    pub file: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: LoadError },
    #[error("{}: {why}; correct it, or remove it and all approvals with it", .file.display())]
    Torn { file: PathBuf, why: String },
}

impl Approval {
    /// Hashes a library as it is now, which the caller vouches for.
    pub fn of(library: &Path) -> Result<Self, LoadError> {
        let file = open(library)?;
        Ok(Self::of_content(&file)?)
    }

    pub(super) fn of_content(content: impl io::Read) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(content)?;
        Ok(Self(hasher.finalize()))
    }

    pub(super) fn parse(digits: &str) -> Option<Self> {
        blake3::Hash::from_hex(digits).ok().map(Self)
    }
}

impl std::fmt::Display for Approval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Approvals {
    /// Reads the approved libraries; refuses a file that others may write.
    pub fn load(eisen_dir: &Path) -> Result<Self, ApprovalError> {
        let file = KeptFile::new(eisen_dir.join(FILE), LONGEST);
        let path = || file.path().to_owned();
        let failed = |source| ApprovalError::File { file: path(), source };
        let Some(open) = file.open().map_err(|error| failed(error.into()))? else {
            return Ok(Self { file, list: Vec::new() });
        };
        owned(&open).map_err(failed)?;
        let content = file.read_from(open).map_err(|error| failed(error.into()))?;
        match serde_json::from_slice(&content) {
            Ok(list) => Ok(Self { file, list }),
            Err(error) => Err(ApprovalError::Torn { file: path(), why: error.to_string() }),
        }
    }

    pub fn list(&self) -> &[Approved] {
        &self.list
    }

    /// Returns a library's approval, if its content is approved.
    pub fn find(&self, library: &Path) -> Option<Approval> {
        if self.list.is_empty() {
            return None;
        }
        let approval = Approval::of(library).ok()?;
        let digits = approval.to_string();
        self.list.iter().any(|approved| approved.blake3 == digits).then_some(approval)
    }

    /// Approves a library as it is now, in place of an earlier approval of its path.
    pub fn add(&mut self, library: &Path) -> Result<Approval, ApprovalError> {
        let failed = |source| ApprovalError::File { file: library.to_owned(), source };
        let file = library.canonicalize().map_err(|error| failed(error.into()))?;
        let approval = Approval::of(&file).map_err(failed)?;
        let blake3 = approval.to_string();
        self.list.retain(|approved| approved.file != file && approved.blake3 != blake3);
        self.list.push(Approved { blake3, file });
        self.save()?;
        Ok(approval)
    }

    /// Withdraws approvals by path, or by the first digits of the hash. Returns them.
    pub fn remove(&mut self, named: &Path) -> Result<Vec<Approved>, ApprovalError> {
        let real = named.canonicalize().or_else(|_| std::path::absolute(named)).ok();
        let digits = named.to_str().filter(|digits| digits.len() >= SHORTEST);
        let is_named = |approved: &Approved| {
            real.as_ref() == Some(&approved.file)
                || digits.is_some_and(|digits| approved.blake3.starts_with(digits))
        };
        let (removed, kept) = self.list.drain(..).partition(is_named);
        self.list = kept;
        self.save()?;
        Ok(removed)
    }

    fn save(&self) -> Result<(), ApprovalError> {
        let content = serde_json::to_value(&self.list).map_err(io::Error::from);
        let saved = content.and_then(|list| self.file.replace(format!("{list:#}\n").as_bytes()));
        saved.map_err(|error| {
            let file = self.file.path().to_owned();
            ApprovalError::File { file, source: error.into() }
        })
    }
}

fn open(file: &Path) -> Result<File, LoadError> {
    let file = File::options().read(true).custom_flags(O_NONBLOCK).open(file)?;
    owned(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn what_was_approved_is_known_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (eisen_dir, library) = (folder.path().join("home"), folder.path().join("libx.so"));
        fs::write(&library, "one").unwrap();
        fs::set_permissions(&library, fs::Permissions::from_mode(0o644)).unwrap();
        let known = |library: &Path| Approvals::load(&eisen_dir).unwrap().find(library).is_some();
        assert!(!known(&library));
        let kept = eisen_dir.join(FILE);
        survives(&kept, || Approvals::load(&eisen_dir).unwrap().add(&library).unwrap());
        assert!(known(&library));
        // The same content elsewhere is the same library.
        let copy = folder.path().join("liby.so");
        fs::copy(&library, &copy).unwrap();
        assert!(known(&copy));
        fs::write(&library, "two").unwrap();
        assert!(!known(&library));
        Approvals::load(&eisen_dir).unwrap().add(&library).unwrap();
        assert!(known(&library) && !known(&copy));
        let remove = || Approvals::load(&eisen_dir).unwrap().remove(&library).unwrap();
        let removed = survives(&kept, remove);
        assert!(removed.len() == 1 && !known(&library));
    }

    #[test]
    fn a_hash_names_what_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libx.so");
        fs::write(&library, "one").unwrap();
        let mut approvals = Approvals::load(folder.path()).unwrap();
        let digits = approvals.add(&library).unwrap().to_string();
        assert_eq!(approvals.remove(Path::new("")).unwrap(), []);
        assert_eq!(approvals.remove(Path::new(&digits[..12])).unwrap()[0].blake3, digits);
    }

    #[test]
    fn a_file_that_is_torn_or_others_may_write_approves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        for text in ["", "{", "[{}]", "[1]"] {
            fs::write(&file, text).unwrap();
            let error = Approvals::load(folder.path()).unwrap_err().to_string();
            assert!(error.contains(FILE) && error.contains("remove it"), "{error}");
        }
        fs::write(&file, "[]").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let error = Approvals::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("other users can write to it"), "{error}");
    }
}
