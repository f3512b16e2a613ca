//! A cache of facts on disk, from one scan to the next.
//!
//! Each root has a pack, read and replaced as a whole: the stamp of each file, and facts by the hash of
//! the content. The last writer wins; a lost pack costs time only. Packs that are damaged, of another
//! user or of another version are ignored.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::languages;
use super::manifest;
use super::walk::{self, Entry, Stamp};

/// Bytes of all packs together; beyond, the least recently used are removed.
const MOST: u64 = 512 << 20;

/// Bytes of a pack; a larger one is not written.
const LARGEST: u64 = 256 << 20;

/// The code that makes facts: packs of other code are ignored.
const MADE_BY: [&str; 17] = [
    include_str!("cache.rs"),
    include_str!("facts.rs"),
    include_str!("languages.rs"),
    include_str!("manifest.rs"),
    include_str!("parse.rs"),
    include_str!("parse/imports.rs"),
    include_str!("parse/mend.rs"),
    include_str!("parse/outline.rs"),
    include_str!("parse/receiver.rs"),
    include_str!("query.rs"),
    include_str!("query/children.rs"),
    include_str!("query/compile.rs"),
    include_str!("query/marks.rs"),
    include_str!("scan.rs"),
    include_str!("tokens.rs"),
    include_str!("tokens/vocabulary.rs"),
    include_str!("walk.rs"),
];

const MAGIC: &[u8; 8] = b"eisengr1";

/// The hash of a file's content and language.
pub(super) type Key = [u8; 16];

/// The pack of the last scan, and the file for the next one.
pub(super) struct Cache {
    /// None: no cache.
    file: Option<PathBuf>,
    /// Whether this root had a pack.
    known: bool,
    stamps: HashMap<Arc<str>, (Stamp, u32)>,
    kept: Vec<Kept>,
    by_key: HashMap<Key, u32>,
    started_ns: i128,
}

/// The cached facts of a content.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) key: Key,
    pub(super) facts: Arc<Facts>,
    /// Whether tokens were counted.
    pub(super) counted: bool,
}

#[derive(Serialize, Deserialize)]
struct Pack {
    kept: Vec<Kept>,
    /// Paths, with an index into `kept`.
    stamps: Vec<(Arc<str>, Stamp, u32)>,
}

impl Cache {
    /// A cache that keeps nothing.
    pub(super) fn none() -> Self {
        Self::with(None, false, Pack { kept: Vec::new(), stamps: Vec::new() })
    }

    /// Opens the pack of a root. Without one, takes the facts of the packs that were used last: the root
    /// may be another working tree.
    pub(super) fn open(folder: &Path, root: &Path) -> Self {
        let name = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
        let file = folder.join(format!("{}.pack", &name[..32]));
        if let Some(pack) = load(&file) {
            return Self::with(Some(file), true, pack);
        }
        let mut pack = Pack { kept: Vec::new(), stamps: Vec::new() };
        for (_, _, other) in packs(folder).into_iter().rev().take(4) {
            pack.kept.extend(load(&other).into_iter().flat_map(|other| other.kept));
        }
        Self::with(Some(file), false, pack)
    }

    fn with(file: Option<PathBuf>, known: bool, pack: Pack) -> Self {
        let stamps = pack.stamps.into_iter().map(|(path, stamp, at)| (path, (stamp, at)));
        let keys = pack.kept.iter().zip(0..).map(|(kept, at)| (kept.key, at));
        Self {
            file,
            known,
            stamps: stamps.collect(),
            by_key: keys.collect(),
            started_ns: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)),
            kept: pack.kept,
        }
    }

    pub(super) fn keeps(&self) -> bool {
        self.file.is_some()
    }

    /// The facts of a file whose stamp is unchanged.
    pub(super) fn unchanged(&self, entry: &Entry) -> Option<&Kept> {
        let (_, at) = self.stamps.get(&entry.id).filter(|(stamp, _)| *stamp == entry.stamp)?;
        self.kept.get(*at as usize)
    }

    pub(super) fn by_key(&self, key: &Key) -> Option<&Kept> {
        self.kept.get(*self.by_key.get(key)? as usize)
    }

    /// Writes the pack of this scan, if it differs. A failure does no harm.
    pub(super) fn keep(self, found: &BTreeMap<Arc<str>, (Stamp, Kept)>) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut pack = Pack { kept: Vec::new(), stamps: Vec::new() };
        let mut numbers: HashMap<Key, u32> = HashMap::new();
        for (path, (stamp, kept)) in found {
            let at = *numbers.entry(kept.key).or_insert_with(|| {
                pack.kept.push(kept.clone());
                u32::try_from(pack.kept.len() - 1).unwrap_or(u32::MAX)
            });
            // A file that changed just now may change again with the same stamp.
            if !stamp.is_fresh(self.started_ns) {
                pack.stamps.push((path.clone(), *stamp, at));
            }
        }
        if self.known && self.is_same(&pack) {
            // Its time marks it as used.
            return std::fs::File::open(file)?.set_modified(SystemTime::now());
        }
        let body = postcard::to_stdvec(&pack).map_err(io::Error::other)?;
        if body.len() as u64 > LARGEST {
            return Ok(());
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut new = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        new.write_all(MAGIC)?;
        new.write_all(&version())?;
        new.write_all(blake3::hash(&body).as_bytes())?;
        new.write_all(&body)?;
        new.persist(file)?;
        make_room(folder);
        Ok(())
    }
}

impl Cache {
    fn is_same(&self, pack: &Pack) -> bool {
        let same = |before: Option<&Kept>, now: &Kept| {
            before.is_some_and(|before| Arc::ptr_eq(&before.facts, &now.facts))
        };
        pack.kept.len() == self.kept.len()
            && pack.stamps.len() == self.stamps.len()
            && pack.kept.iter().all(|kept| same(self.by_key(&kept.key), kept))
            && pack.stamps.iter().all(|(path, stamp, at)| {
                let before = self.stamps.get(path).filter(|(before, _)| before == stamp);
                let before = before.and_then(|(_, at)| self.kept.get(*at as usize));
                same(before, &pack.kept[*at as usize])
            })
    }
}

/// The key of a content in a file of this name.
pub(super) fn key(entry: &Entry, text: &[u8]) -> Key {
    let mut hasher = blake3::Hasher::new();
    let read_as = match super::Language::of(&entry.path) {
        Some(language) => language.name(),
        None if manifest::is_manifest(&entry.path) => manifest::FILE,
        None => "",
    };
    hasher.update(read_as.as_bytes()).update(&[0]).update(text);
    let mut key = Key::default();
    key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    key
}

/// The hash of the queries, the grammars and the code that made a pack.
fn version() -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes()).update(&[0]);
    let languages: Vec<_> = languages::fingerprint().collect();
    for part in MADE_BY.into_iter().chain(languages.iter().map(String::as_str)) {
        hasher.update(part.as_bytes()).update(&[0]);
    }
    *hasher.finalize().as_bytes()
}

fn load(file: &Path) -> Option<Pack> {
    let mut buffer = Vec::new();
    let (content, _) = walk::read_at_most(file, LARGEST + 72, &mut buffer).ok()?;
    // A pack of another user is ignored.
    let owner = std::fs::metadata(file).ok()?.uid();
    if owner != nix::unistd::geteuid().as_raw() {
        return None;
    }
    let content = content?;
    let rest = content.strip_prefix(MAGIC)?.strip_prefix(&version()[..])?;
    let (hash, body) = rest.split_at_checked(32)?;
    if blake3::hash(body).as_bytes() != hash {
        return None;
    }
    let pack: Pack = postcard::from_bytes(body).ok()?;
    pack.kept.iter().all(|kept| is_sound(&kept.facts)).then_some(pack)
}

/// Whether the facts have the properties that other code relies on.
fn is_sound(facts: &Facts) -> bool {
    let count = facts.symbols.len();
    facts.language.is_none_or(|language| language.row().is_some())
        && facts.calls.iter().all(|call| call.within.is_none_or(|at| (at as usize) < count))
        && facts.symbols.iter().enumerate().all(|(at, symbol)| {
            let lines = symbol.lines;
            symbol.parent.is_none_or(|parent| (parent as usize) < at)
                && (1..=lines.end).contains(&lines.start)
                && lines.end <= facts.lines
        })
}

/// Packs with the time of last use and size, oldest first.
fn packs(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut packs: Vec<_> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    packs.sort();
    packs
}

fn make_room(folder: &Path) {
    let packs = packs(folder);
    let mut size: u64 = packs.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in packs {
        if size <= MOST {
            break;
        }
        size -= bytes;
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_code_that_reads_files_is_left_out_of_the_version() {
        for folder in ["parse", "query"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/graph").join(folder);
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() && !path.ends_with("tests.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert!(MADE_BY.contains(&&*text), "{}", path.display());
                }
            }
        }
    }
}
