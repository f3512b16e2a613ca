//! Settings that all teams and runs of a user share: `$EISEN_DIR/config.toml`, with an `eisen.toml` over it.

use std::collections::BTreeMap;
use std::path::Path;

use toml::Value;
use toml::de::DeTable;

use super::errors::ConfigErrors;
use super::file::Source;
use super::hub::{HubMember, hub};
use super::key_owner::{KeyOwner, named_variables};
use super::profiles::{Profile, Profiles, profiles};
use super::providers::{Under, providers};
use super::read::{ConfigReader, Table};
use super::runs::{RunBounds, WrittenRuns, runs, slots};
use super::tiers::{AgentTier, TierCandidate, tiers};
use super::worktree::{WorktreeSettings, worktree};
use super::{Config, Journal, JournalContent, Provider, Surroundings, prices, syntax};
use crate::model::Price;

/// The name of a user's file in `$EISEN_DIR`.
const FILE: &str = "config.toml";

/// Tiers, slots and bounds, with the profiles and prices that they are about.
#[derive(Clone, Debug)]
pub struct SharedConfig {
    /// In the order of the files.
    pub tiers: Vec<AgentTier>,
    /// Agents at once, over all teams and runs of the user, by the profile at the end of their
    /// bases; one that is not there has no limit.
    pub slots: BTreeMap<String, u32>,
    pub runs: RunBounds,
    /// Prices of models by their ids: those of the files over the list that ships.
    pub prices: BTreeMap<String, Price>,
    /// By their names.
    pub providers: BTreeMap<String, Provider>,
    /// How worktrees of tasks are made.
    pub worktree: Box<WorktreeSettings>,
    /// Where a hub hears its teams; None: not configured.
    pub hub: Option<Box<HubMember>>,
    /// The profiles of the files.
    pub(super) profiles: BTreeMap<String, Profile>,
    /// The prices of the files.
    pub(super) own_prices: BTreeMap<String, Price>,
    written: WrittenRuns,
}

impl Default for SharedConfig {
    fn default() -> Self {
        Self {
            tiers: Vec::new(),
            slots: BTreeMap::new(),
            runs: RunBounds::default(),
            prices: prices::built_in(),
            profiles: BTreeMap::new(),
            own_prices: BTreeMap::new(),
            providers: BTreeMap::new(),
            worktree: Box::default(),
            hub: None,
            written: WrittenRuns::default(),
        }
    }
}

impl SharedConfig {
    /// Reads the user's file, with an `eisen.toml` laid over it if one is named. The whole of that
    /// must be valid, but its plugins are not tried.
    pub fn read(eisen_dir: &Path, over: Option<&Path>) -> Result<Self, ConfigErrors> {
        match over {
            Some(file) => Ok(Config::load(file, eisen_dir)?.shared),
            None => Self::of_user(&Surroundings::of_process(eisen_dir, Box::new(|_| Ok(true)))),
        }
    }

    /// Returns a tier by its name.
    pub fn tier(&self, name: &str) -> Option<&AgentTier> {
        self.tiers.iter().find(|tier| tier.name == name)
    }

    /// Returns the profile at the end of a profile's bases: slots and cool-downs are for that one.
    pub fn base_of<'a>(&'a self, profile: &'a str) -> &'a str {
        self.profiles.get(profile).map_or(profile, |known| &known.base)
    }

    /// Returns `[profiles]`, `[prices]`, `[providers]`, `[slots]` and `[runs]` of the files, for the configuration of a
    /// run. Paths and variables are resolved, but for those that have keys.
    pub fn known(&self) -> toml::Table {
        let profile = |(name, known): (&String, &Profile)| {
            let table = toml::Table::try_from(known).unwrap_or_default();
            let set = |value: &Value| match value {
                Value::String(text) => !text.is_empty(),
                Value::Array(array) => !array.is_empty(),
                Value::Table(table) => !table.is_empty(),
                _ => true,
            };
            let table = table.into_iter().filter(|(_, value)| set(value));
            let table: toml::Table = table.map(|(key, value)| (key, literal(value))).collect();
            (name.clone(), Value::from(table))
        };
        let price = |(model, price): (&String, &Price)| {
            let mut table = toml::Table::new();
            table.insert("input".to_owned(), price.input.into());
            table.insert("output".to_owned(), price.output.into());
            let cached = [("cached_read", price.cached_read), ("cached_write", price.cached_write)];
            for (key, amount) in cached {
                table.extend(amount.map(|amount| (key.to_owned(), amount.into())));
            }
            table.insert("currency".to_owned(), price.currency.as_ref().into());
            (model.clone(), Value::from(table))
        };
        let profiles: toml::Table = self.profiles.iter().map(profile).collect();
        let prices: toml::Table = self.own_prices.iter().map(price).collect();
        let slots = self.slots.iter().map(|(base, slots)| (base.clone(), Value::from(*slots)));
        let is_usual = self.runs == RunBounds::default();
        let runs = if is_usual { toml::Table::new() } else { self.runs.table() };
        let slots = slots.collect();
        // Those of the user's file are known to every run.
        let providers = self.providers.values().filter(|provider| !provider.of_user);
        let providers = providers.map(|it| (it.name.clone(), Value::from(it.table())));
        let all = [
            ("profiles", profiles),
            ("prices", prices),
            ("providers", providers.collect()),
            ("slots", slots),
            ("runs", runs),
        ];
        let all = all.into_iter().filter(|(_, table)| !table.is_empty());
        all.map(|(key, table)| (key.to_owned(), Value::from(table))).collect()
    }

    /// Returns [`Self::known`] with a tier.
    pub fn known_with(&self, tier: &AgentTier) -> toml::Table {
        let candidate = |candidate: &TierCandidate| {
            let own = [
                ("profile", Some(&candidate.profile)),
                ("model", candidate.model.as_ref()),
                ("thinking", candidate.thinking.as_ref()),
                ("provider", candidate.provider.as_ref()),
            ];
            let own = own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
            let own = own.map(|(key, value)| (key, literal(value.as_str().into())));
            Value::from(own.collect::<toml::Table>())
        };
        let candidates: Vec<Value> = tier.candidates.iter().map(candidate).collect();
        let mut written = toml::Table::new();
        written.insert("name".to_owned(), tier.name.as_str().into());
        written.insert("pick".to_owned(), tier.pick.as_str().into());
        written.insert("candidates".to_owned(), candidates.into());
        let mut all = self.known();
        all.insert("tiers".to_owned(), vec![written].into());
        all
    }

    /// Reads the user's file alone; without one all has its defaults.
    pub(super) fn of_user(surroundings: &Surroundings) -> Result<Self, ConfigErrors> {
        let dir = &surroundings.eisen_dir;
        let file = dir.join(FILE);
        // A link to nowhere is a mistake, and read so.
        if file.symlink_metadata().is_err() {
            return Ok(Self::default());
        }
        let Source { text, .. } = Source::read(&file)?;
        Self::compile(&file, text, dir, surroundings)
    }

    /// Compiles the text of a user's file.
    fn compile(
        file: &Path,
        text: String,
        dir: &Path,
        surroundings: &Surroundings,
    ) -> Result<Self, ConfigErrors> {
        let repaired = syntax::repair(&text);
        // The remaining errors are duplicate keys, which are already reported.
        let (document, _) = DeTable::parse_recoverable(&repaired.text);
        let reader = ConfigReader::new(&text, &repaired.gaps, dir, surroundings);
        let keys = named_variables(document.get_ref(), true);
        let reader = reader.with_keys(keys);
        let read = |root: &Table<'_>| Self::default().under(root, dir, None).0;
        let shared = reader.read(document.get_ref(), read);
        let (mut faults, _) = reader.finish();
        faults.extend(repaired.faults);
        if faults.is_empty() { Ok(shared) } else { Err(ConfigErrors::new(file, text, faults)) }
    }

    /// Returns the variables that have keys of its providers.
    pub(super) fn key_owners(&self) -> impl Iterator<Item = (String, KeyOwner)> {
        let owner = |provider: &Provider| {
            let owner = KeyOwner { provider: provider.name.clone(), of_user: provider.of_user };
            Some((provider.key.as_ref()?.variable()?.to_owned(), owner))
        };
        self.providers.values().filter_map(owner)
    }

    /// Lays a file's tables over it; also returns the profiles that agents of the file can name. `journal` is that of
    /// the file; None: it is the user's file.
    pub(super) fn under(
        &self,
        root: &Table<'_>,
        workspace: &Path,
        journal: Option<&Journal>,
    ) -> (Self, Profiles) {
        let prices = root.section("prices", "prices", prices::prices);
        let profiles = root.section("profiles", "profiles", |table| {
            profiles(table, workspace, self.profiles.clone())
        });
        let keeps = |journal: &Journal| journal.enabled && journal.content == JournalContent::Full;
        let under = journal.map(|journal| Under { user: &self.providers, keeps: keeps(journal) });
        let providers = root.section("providers", "providers", |table| providers(table, under));
        let tiers = tiers(root, (&profiles, &providers), &self.tiers);
        let mut slots = root.section("slots", "slots", |table| slots(table, &profiles));
        for (profile, count) in &self.slots {
            let ours = slots.entry(profile.clone()).or_insert(*count);
            *ours = (*ours).min(*count);
        }
        let written = root.section("runs", "runs", runs).over(&self.written);
        let hub = root.section("hub", "hub", |table| hub(table, self.hub.as_deref()).map(Box::new));
        let worktree = root.section("worktree", "worktree", worktree);
        let worktree = Box::new(worktree.over(&self.worktree));
        let over = |under: &BTreeMap<String, Price>| {
            let mut all = under.clone();
            all.extend(prices.clone());
            all
        };
        let shared = Self {
            tiers,
            slots,
            runs: written.bounds(),
            prices: over(&self.prices),
            own_prices: over(&self.own_prices),
            profiles: profiles.known(),
            providers,
            worktree,
            hub,
            written,
        };
        (shared, profiles)
    }
}

/// A value whose strings have no references to variables.
fn literal(value: Value) -> Value {
    match value {
        Value::String(text) => text.replace('$', "$$").into(),
        Value::Array(array) => array.into_iter().map(literal).collect::<Vec<_>>().into(),
        Value::Table(table) => {
            let table = table.into_iter().map(|(key, value)| (key, literal(value)));
            table.collect::<toml::Table>().into()
        }
        other => other,
    }
}
