//! Cool-downs, and the last candidate of each tier, in `$EISEN_DIR/cooldowns`: for all runs of a user.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::installed::{Login, ProfileOnMachine};
use crate::kept::{Durable, HeldLock, KeptFile, PATIENCE};
use crate::model::TimestampMs;

/// Bytes of the file: each cool-down has a path and a reason, whose characters may be escaped.
const MOST_BYTES: u64 = 8 << 20;

/// Cool-downs, and tiers with a last candidate, that are kept: the latest.
const MOST: usize = 500;

/// Bytes of a reason.
const LONGEST_REASON: usize = 500;

/// Bytes of the key of the hashes.
const KEY_BYTES: usize = 32;

/// Which account a profile's agent works for; no secret.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoginId {
    /// The variable with a keyed hash of its value, or the file; empty if neither is known.
    account: String,
    /// When the file was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_ms: Option<u64>,
}

/// A time in which an account, or one model of it, is left alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cooldown {
    /// The profile at the end of the bases.
    pub profile: String,
    login: LoginId,
    /// None: all models.
    pub model: Option<String>,
    /// The cool-down ends when the file of the login changes.
    #[serde(default)]
    of_login: bool,
    pub reason: String,
    pub until_ms: TimestampMs,
}

#[derive(Default, Serialize, Deserialize)]
struct KeptState {
    #[serde(default)]
    cooldowns: Vec<Cooldown>,
    /// By tier, with the time of the taking.
    #[serde(default)]
    taken: BTreeMap<String, (String, TimestampMs)>,
}

/// The cool-downs of a user. Each call reads or replaces the file as a whole.
#[derive(Debug)]
pub struct Cooldowns {
    state: KeptFile<Durable>,
    /// Cool-downs name accounts by hashes with it: they last as long as it does.
    key: KeptFile<Durable>,
}

impl Cooldown {
    pub fn new(profile: &str, login: LoginId, reason: &str, until_ms: TimestampMs) -> Self {
        let reason = &reason[..reason.floor_char_boundary(LONGEST_REASON)];
        let (profile, reason) = (profile.to_owned(), reason.to_owned());
        Self { profile, login, model: None, of_login: false, reason, until_ms }
    }

    /// Only one model is meant.
    #[must_use]
    pub fn of_model(self, model: Option<&str>) -> Self {
        // Where none is named, the agent's own is meant.
        Self { model: Some(model.unwrap_or_default().to_owned()), ..self }
    }

    /// Makes the cool-down end when the file of the login changes.
    #[must_use]
    pub fn of_login(self) -> Self {
        Self { of_login: true, ..self }
    }

    /// Whether it is in effect for a model of an account.
    pub fn is_for(
        &self,
        profile: &str,
        login: &LoginId,
        model: Option<&str>,
        now: TimestampMs,
    ) -> bool {
        self.until_ms > now
            && self.profile == profile
            && self.login.account == login.account
            && !(self.of_login && self.login.changed_ms != login.changed_ms)
            && self.model.as_deref().is_none_or(|its| its == model.unwrap_or_default())
    }

    /// Whether both are about the same.
    fn replaces(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.login.account == other.login.account
            && self.model == other.model
    }
}

impl Cooldowns {
    pub fn new(eisen_dir: &Path) -> Self {
        let folder = eisen_dir.join("cooldowns");
        Self {
            state: KeptFile::new(folder.join("state.json"), MOST_BYTES),
            key: KeptFile::new(folder.join("key"), KEY_BYTES as u64),
        }
    }

    /// The cool-downs in effect.
    pub fn read(&self, now: TimestampMs) -> io::Result<Vec<Cooldown>> {
        let mut cooldowns = self.kept()?.cooldowns;
        cooldowns.retain(|cooldown| cooldown.until_ms > now);
        Ok(cooldowns)
    }

    /// How many are over, and still kept.
    pub fn expired(&self, now: TimestampMs) -> io::Result<usize> {
        let over = |cooldown: &&Cooldown| cooldown.until_ms <= now;
        Ok(self.kept()?.cooldowns.iter().filter(over).count())
    }

    /// Forgets those that are over; a file that can't be read is begun anew.
    pub fn tidy(&self, now: TimestampMs) -> io::Result<()> {
        self.change(|state| state.cooldowns.retain(|it| it.until_ms > now))
    }

    /// The file with all of them.
    pub fn file(&self) -> &Path {
        self.state.path()
    }

    /// The candidate of a tier that was taken last.
    pub fn last_taken(&self, tier: &str) -> io::Result<Option<String>> {
        Ok(self.kept()?.taken.remove(tier).map(|(candidate, _)| candidate))
    }

    /// Begins a cool-down, in the place of an earlier one for the same.
    pub fn begin(&self, cooldown: Cooldown, now: TimestampMs) -> io::Result<()> {
        self.change(|state| {
            state.cooldowns.retain(|it| it.until_ms > now && !cooldown.replaces(it));
            state.cooldowns.push(cooldown);
            state.cooldowns.sort_by_key(|it| std::cmp::Reverse(it.until_ms));
            state.cooldowns.truncate(MOST);
        })
    }

    /// Notes that a candidate of a tier was taken.
    pub fn take(&self, tier: &str, candidate: &str, now: TimestampMs) -> io::Result<()> {
        self.change(|state| {
            state.taken.insert(tier.to_owned(), (candidate.to_owned(), now));
            while state.taken.len() > MOST {
                let oldest = state.taken.iter().min_by_key(|(_, (_, at))| *at);
                let Some(oldest) = oldest.map(|(tier, _)| tier.clone()) else { break };
                state.taken.remove(&oldest);
            }
        })
    }

    /// Tells the account of a login. Makes the key of the hashes if there is none.
    pub fn login(&self, found: &ProfileOnMachine) -> io::Result<LoginId> {
        let account = match (&found.login, &found.login_value) {
            (Login::Variable(name), Some(value)) => {
                let hash = blake3::keyed_hash(&self.key()?, value.as_bytes()).to_hex();
                format!("${name} {}", &hash[..16])
            }
            (Login::Provider(name), _) => format!("provider {name}"),
            (Login::File(file), _) => {
                let changed_ms = file.metadata().and_then(|file| file.modified()).ok();
                let changed_ms = changed_ms
                    .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
                    .and_then(|time| u64::try_from(time.as_millis()).ok());
                let account = file.display().to_string();
                return Ok(LoginId { account, changed_ms });
            }
            _ => String::new(),
        };
        Ok(LoginId { account, changed_ms: None })
    }

    fn kept(&self) -> io::Result<KeptState> {
        Ok(self.state.read_json()?.unwrap_or_default())
    }

    /// Changes the file for all at once. One that can't be read is begun anew.
    fn change(&self, change: impl FnOnce(&mut KeptState)) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut state = match self.kept() {
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::FileTooLarge) =>
            {
                KeptState::default()
            }
            state => state?,
        };
        change(&mut state);
        self.state.replace(&serde_json::to_vec(&state)?)
    }

    fn key(&self) -> io::Result<[u8; KEY_BYTES]> {
        let kept = || self.key.read().ok().flatten()?.try_into().ok();
        if let Some(key) = kept() {
            return Ok(key);
        }
        let _lock = self.lock()?;
        // Another one may have made it.
        if let Some(key) = kept() {
            return Ok(key);
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        self.key.replace(&key)?;
        Ok(key)
    }

    fn lock(&self) -> io::Result<HeldLock> {
        self.state.lock("lock", PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn a_cooldown_survives_a_power_cut_with_the_key_that_names_its_account() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let cooldowns = Cooldowns::new(eisen_dir.path());
        let key = survives(cooldowns.key.path(), || cooldowns.key().unwrap());
        assert_eq!(Cooldowns::new(eisen_dir.path()).key().unwrap(), key);
        for profile in ["codex", "gemini"] {
            let cooldown = Cooldown::new(profile, LoginId::default(), "rate limited", u64::MAX);
            survives(cooldowns.file(), || cooldowns.begin(cooldown, 1).unwrap());
        }
        assert_eq!(cooldowns.read(1).unwrap().len(), 2);
    }
}
