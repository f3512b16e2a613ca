//! The places of profiles that are trusted: the real path that each had when a person first started an agent
//! that needs it. `TrustFile` in `$EISEN_DIR`, which no agent writes.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::source::read_bytes;
use super::{Agent, ConfigErrors};
use crate::kept::{Durable, KeptFile, LockAt, PATIENCE, lock, make_folder};
use crate::model::{KeptFiles, KeptForm, fold, is_of_system, within};
use crate::zone::GrantedPlace;

/// The file, in `$EISEN_DIR`.
pub const TRUSTED_PLACES: &str = "places.json";

/// A path that is replaced by a mark would be trusted no more.
pub(super) const KEPT: KeptFiles =
    KeptFiles::new("trusted places", KeptForm::Fixed, &["places.json", ".places-*"]);

/// Limit of the file.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Places past which those are forgotten that are no file now, and that no start asks for: shells of some
/// tools put a new folder on PATH each.
const MOST: usize = 4096;

/// The trusted places, as they were when the file was read.
#[derive(Debug)]
pub struct TrustedPlaces {
    kept: TrustFile,
    /// Where names lead now: each is resolved once for a configuration.
    resolved: RefCell<HashMap<PathBuf, Option<GrantedPlace>>>,
}

/// The homes that an agent knows: its own and its user's.
#[derive(Debug)]
pub(super) struct Homes(Vec<GrantedPlace>);

impl Homes {
    pub(super) fn new(homes: impl Iterator<Item = String>) -> Self {
        Self(homes.filter_map(|home| GrantedPlace::now(&fold(Path::new(&home)))).collect())
    }

    pub(super) fn has(&self, real: &Path) -> bool {
        self.0.iter().any(|home| home.real == real)
    }

    /// Whether a home is a real path, or lies below it.
    fn are_in(&self, real: &Path) -> bool {
        real.parent().is_none() || self.0.iter().any(|home| within(real, &home.real).is_some())
    }

    /// A name by where its home is, its other links unresolved.
    fn unlinked(&self, name: &Path) -> PathBuf {
        let in_home = |home: &GrantedPlace| match within(&home.name, name)? {
            rest if rest.as_os_str().is_empty() => Some(home.real.clone()),
            rest => Some(home.real.join(rest)),
        };
        self.0.iter().find_map(in_home).unwrap_or_else(|| name.to_owned())
    }
}

#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    /// Real paths by names.
    places: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(
        "{} {why}; it says where the places of profiles led when they were first used: mend it, or delete it \
         to trust where they lead now",
        .file.display()
    )]
    Unusable { file: PathBuf, why: String },
    #[error("cannot keep which places are trusted in {}: {cause}", .file.display())]
    NotKept { file: PathBuf, cause: io::Error },
    #[error("`{}` leads nowhere", .0.display())]
    Nowhere(PathBuf),
}

/// The use that a place is trusted for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trust {
    /// The real path that is trusted; None: the place is not known.
    pub trusted: Option<PathBuf>,
    /// Where it leads now.
    pub leads_to: PathBuf,
}

impl TrustedPlaces {
    /// Reads the file; a missing one is empty.
    pub fn read(eisen_dir: &Path) -> Result<Self, TrustError> {
        let kept = TrustFile::read(&eisen_dir.join(TRUSTED_PLACES))?;
        Ok(Self { kept, resolved: RefCell::default() })
    }

    /// Reads them for a configuration, whose errors they can be.
    pub(super) fn for_config(file: &Path, eisen_dir: &Path) -> Result<Self, ConfigErrors> {
        Self::read(eisen_dir).map_err(|error| {
            let fault = Fault::of_file(error.to_string(), String::new());
            ConfigErrors::new(file, String::new(), vec![fault])
        })
    }

    /// Returns the place that a name grants. Its path is the trusted one; for an unknown name, the path where
    /// it leads now. None if that can't be resolved. A link to a home or above grants only the path of its
    /// name, as long as nobody trusts it.
    pub(super) fn place(&self, name: &Path, homes: &Homes) -> Option<GrantedPlace> {
        let name = fold(name);
        if let Some(real) = self.kept.real(&name) {
            return Some(GrantedPlace { name, real });
        }
        let now = self.now(&name)?;
        now.real.to_str()?;
        if !homes.are_in(&now.real) {
            return Some(now);
        }
        let real = homes.unlinked(&name);
        real.parent().is_some().then_some(GrantedPlace { name, real })
    }

    /// Whether a name leads to a home or above, as it is trusted or now.
    pub(super) fn leads_home(&self, name: &Path, homes: &Homes) -> bool {
        let name = fold(name);
        let (trusted, now) = (self.kept.real(&name), self.now(&name).map(|now| now.real));
        trusted.iter().chain(&now).any(|real| homes.are_in(real))
    }

    /// Where a folded name leads now.
    pub(super) fn now(&self, name: &Path) -> Option<GrantedPlace> {
        let mut resolved = self.resolved.borrow_mut();
        let found = resolved.entry(name.to_owned()).or_insert_with(|| GrantedPlace::now(name));
        found.clone()
    }

    /// Trusts the places of agents that a person starts, those that are not known yet.
    pub fn keep<'a>(
        eisen_dir: &Path,
        agents: impl Iterator<Item = &'a Agent>,
    ) -> Result<(), TrustError> {
        let mut asked = BTreeMap::new();
        // Agents get no more than those that ask for them.
        for agent in agents.filter(|agent| !agent.is_asked_for) {
            for place in agent.confined.places() {
                let is_of_system = is_of_system(&place.name) && is_of_system(&place.real);
                // A link that is not trusted is not, either, because somebody starts an agent.
                let leads_there =
                    || GrantedPlace::now(&place.name).is_some_and(|now| now.real == place.real);
                if let (Some(name), Some(real)) = (place.name.to_str(), place.real.to_str())
                    && !is_of_system
                    && !asked.contains_key(name)
                    && leads_there()
                {
                    asked.insert(name.to_owned(), real.to_owned());
                }
            }
        }
        let file = eisen_dir.join(TRUSTED_PLACES);
        let is_known = |kept: &TrustFile| asked.keys().all(|name| kept.places.contains_key(name));
        if is_known(&TrustFile::read(&file)?) {
            return Ok(());
        }
        TrustFile::change(&file, |kept| {
            for (name, real) in &asked {
                kept.places.entry(name.clone()).or_insert_with(|| real.clone());
            }
            if kept.places.len() > MOST {
                let is_there = |name: &String| Path::new(name).symlink_metadata().is_ok();
                kept.places.retain(|name, _| asked.contains_key(name) || is_there(name));
            }
        })
    }

    /// Trusts where a place leads now, if `is_wanted` says so of what is known of it. Returns whether it did.
    pub fn trust(
        eisen_dir: &Path,
        name: &Path,
        is_wanted: impl FnOnce(&Trust) -> bool,
    ) -> Result<bool, TrustError> {
        let (file, name) = (eisen_dir.join(TRUSTED_PLACES), fold(name));
        let nowhere = || TrustError::Nowhere(name.clone());
        let now = GrantedPlace::now(&name).ok_or_else(nowhere)?.real;
        let trust = Trust { trusted: TrustFile::read(&file)?.real(&name), leads_to: now };
        if !is_wanted(&trust) {
            return Ok(false);
        }
        // What was shown is trusted, wherever the name leads since.
        let (key, real) = (name.to_str(), trust.leads_to.to_str());
        let (Some(key), Some(real)) = (key, real) else { return Err(nowhere()) };
        TrustFile::change(&file, |kept| {
            kept.places.insert(key.to_owned(), real.to_owned());
        })?;
        Ok(true)
    }
}

impl TrustFile {
    fn real(&self, name: &Path) -> Option<PathBuf> {
        self.places.get(name.to_str()?).map(PathBuf::from)
    }

    fn read(file: &Path) -> Result<Self, TrustError> {
        if matches!(file.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(Self::default());
        }
        let unusable = |why| TrustError::Unusable { file: file.to_owned(), why };
        let bytes = read_bytes(file, MAX_BYTES).map_err(|(why, _)| unusable(why))?;
        let kept: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(format!("can't be read: {error}")))?;
        let is_path = |path: &String| path.starts_with('/');
        match kept.places.iter().find(|(name, real)| !is_path(name) || !is_path(real)) {
            Some((name, _)) => Err(unusable(format!("can't be read: {name:?} is no place"))),
            None => Ok(kept),
        }
    }

    /// Changes the file while no other process does.
    fn change(file: &Path, change: impl FnOnce(&mut Self)) -> Result<(), TrustError> {
        let not_kept = |cause| TrustError::NotKept { file: file.to_owned(), cause };
        let folder = file.parent().unwrap_or(Path::new("/"));
        // The folder may be named by a link.
        let real = make_folder(folder).and_then(|()| folder.canonicalize()).map_err(not_kept)?;
        let _lock = lock(LockAt::Found(&real), PATIENCE).map_err(not_kept)?;
        let mut kept = Self::read(file)?;
        change(&mut kept);
        let replace = || {
            let text = serde_json::to_string_pretty(&kept)?;
            if text.len() as u64 >= MAX_BYTES {
                let why = format!("it would be larger than {} MiB", MAX_BYTES >> 20);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            KeptFile::<Durable>::new(file, MAX_BYTES).replace(format!("{text}\n").as_bytes())
        };
        replace().map_err(not_kept)
    }
}
