//! The key that a hub and its teams have: it signs what they send each other over NATS.

use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::hmac;
use subtle::ConstantTimeEq as _;

use crate::kept::{Durable, KeptFile};

/// The file of the key, in `$EISEN_DIR`.
const FILE: &str = "hub.key";

/// Bytes of that file: one that somebody wrote may have spaces.
const MOST_BYTES: u64 = 4096;

const BYTES: usize = 32;

/// A signature is so many bytes.
const SIGNATURE_BYTES: usize = 32;

/// Signs and checks messages. Not shown by `Debug`.
#[derive(Clone)]
pub struct HubKey([u8; BYTES]);

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the system has no random numbers for a key: {0}")]
    Random(getrandom::Error),
    #[error("cannot read or write {}: {cause}", .path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{} is no key of a hub: it must have 64 hexadecimal digits", .0.display())]
    Wrong(PathBuf),
}

impl HubKey {
    /// Reads the key of this user, which is made if there is none.
    pub fn of_user(eisen_dir: &Path) -> Result<Self, KeyError> {
        let file = KeptFile::<Durable>::new(eisen_dir.join(FILE), MOST_BYTES);
        if let Some(key) = Self::read(&file)? {
            return Ok(key);
        }
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
        let text = format!("{}\n", blake3::Hash::from_bytes(bytes).to_hex());
        match file.create(text.as_bytes()) {
            // Another process was first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(|cause| KeyError::File { path: file.path().to_owned(), cause })?,
        }
        Self::read(&file)?.ok_or_else(|| KeyError::Wrong(file.path().to_owned()))
    }

    fn read(file: &KeptFile<Durable>) -> Result<Option<Self>, KeyError> {
        let path = || file.path().to_owned();
        let text = file.read_text().map_err(|cause| KeyError::File { path: path(), cause })?;
        let Some(text) = text else { return Ok(None) };
        let key = blake3::Hash::from_hex(text.trim()).map_err(|_| KeyError::Wrong(path()))?;
        Ok(Some(Self(*key.as_bytes())))
    }

    /// The signature of a message with this subject, in hexadecimal digits.
    pub(super) fn sign(&self, subject: &str, body: &[u8]) -> String {
        blake3::Hash::from_bytes(self.mac(subject, body)).to_hex().to_string()
    }

    /// Whether a signature is that of this message.
    pub(super) fn is_signed(&self, subject: &str, body: &[u8], signature: &str) -> bool {
        let Ok(signature) = blake3::Hash::from_hex(signature) else { return false };
        self.mac(subject, body).ct_eq(signature.as_bytes()).into()
    }

    /// HMAC with SHA-256.
    fn mac(&self, subject: &str, body: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        mac.update(subject.as_bytes());
        mac.update(b"\0");
        mac.update(body);
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(mac.sign().as_ref());
        signature
    }
}

impl std::fmt::Debug for HubKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HubKey(…)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn one_key_is_made_and_signs_for_its_subject_only() {
        let dir = tempfile::tempdir().unwrap();
        let key = HubKey::of_user(dir.path()).unwrap();
        let again = HubKey::of_user(dir.path()).unwrap();
        let signature = key.sign("eisen.a.beat", b"x");
        assert!(again.is_signed("eisen.a.beat", b"x", &signature));
        assert!(!key.is_signed("eisen.b.beat", b"x", &signature));
        assert!(!key.is_signed("eisen.a.beat", b"y", &signature));
        assert!(!key.is_signed("eisen.a.beat", b"x", "") && !key.is_signed("", b"", "zz"));
        let file = dir.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&file, "short").unwrap();
        assert!(matches!(HubKey::of_user(dir.path()), Err(KeyError::Wrong(_))));
        let other = tempfile::tempdir().unwrap();
        let other = HubKey::of_user(other.path()).unwrap();
        assert!(!other.is_signed("eisen.a.beat", b"x", &signature));
    }
}
