//! `[runs]` and `[slots]`: what one-shot runs may take, over all teams and runs of a user.

use std::collections::BTreeMap;
use std::time::Duration;

use super::errors::quoted;
use super::fault::Fault;
use super::profiles::Profiles;
use super::read::Table;
use crate::model::named;

const DAY: u64 = 24 * 60 * 60;

/// The most levels of runs that can be allowed.
const MOST_LEVELS: u32 = 10;

/// The most slots of a profile.
const MOST_SLOTS: u32 = 10_000;

named! {
    /// The treatment of the work that an agent did before the next candidate takes over.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum OnFailover {
        /// The work stays.
        Keep = "keep",
        /// The files that it wrote are taken back.
        Undo = "undo",
    }
}

/// The bounds of one-shot runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunBounds {
    /// Levels of runs below one that a person started.
    pub max_depth: u32,
    /// Memory that must stay free when something starts, in MB.
    pub min_free_mb: u64,
    /// The longest hint to wait that is waited out before the next candidate is taken.
    pub patience: Duration,
    /// How long an agent may show no progress before the next candidate is taken; zero: for ever.
    pub silence: Duration,
    /// How long a candidate that failed is not taken, where its vendor gave no hint.
    pub cooldown: Duration,
    pub on_failover: OnFailover,
}

impl Default for RunBounds {
    fn default() -> Self {
        Self {
            max_depth: 3,
            min_free_mb: 4096,
            patience: Duration::from_secs(60),
            silence: Duration::from_secs(90),
            cooldown: Duration::from_secs(900),
            on_failover: OnFailover::Keep,
        }
    }
}

impl RunBounds {
    /// The table that says it.
    pub(super) fn table(&self) -> toml::Table {
        let number = |number: u64| toml::Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        let entries = [
            ("max_depth", number(self.max_depth.into())),
            ("min_free_mb", number(self.min_free_mb)),
            ("patience_s", number(self.patience.as_secs())),
            ("silence_s", number(self.silence.as_secs())),
            ("cooldown_s", number(self.cooldown.as_secs())),
            ("on_failover", self.on_failover.as_str().into()),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// `[runs]` as files have it; None: left out.
#[derive(Clone, Default, Debug)]
pub(super) struct WrittenRuns {
    max_depth: Option<u32>,
    min_free_mb: Option<u64>,
    patience: Option<Duration>,
    silence: Option<Duration>,
    cooldown: Option<Duration>,
    on_failover: Option<OnFailover>,
}

pub(super) fn runs(table: &Table<'_>) -> WrittenRuns {
    let default = RunBounds::default();
    let max_depth = table.count("max_depth", 0..=MOST_LEVELS, default.max_depth);
    let min_free_mb = table.count("min_free_mb", 0..=1_000_000_000, default.min_free_mb);
    let patience = table.seconds("patience_s", 0..=DAY, default.patience.as_secs());
    let silence = table.seconds("silence_s", 0..=DAY, default.silence.as_secs());
    let cooldown = table.seconds("cooldown_s", 1..=31 * DAY, default.cooldown.as_secs());
    let on_failover = table.choice("on_failover");
    let is_set = |key| table.place_of(key).is_some();
    WrittenRuns {
        max_depth: is_set("max_depth").then_some(max_depth),
        min_free_mb: is_set("min_free_mb").then_some(min_free_mb),
        patience: is_set("patience_s").then_some(patience),
        silence: is_set("silence_s").then_some(silence),
        cooldown: is_set("cooldown_s").then_some(cooldown),
        on_failover: is_set("on_failover").then_some(on_failover),
    }
}

impl WrittenRuns {
    /// Lays it over another: of two bounds the stricter one holds.
    pub(super) fn over(self, under: &Self) -> Self {
        Self {
            max_depth: [self.max_depth, under.max_depth].into_iter().flatten().min(),
            min_free_mb: self.min_free_mb.max(under.min_free_mb),
            patience: self.patience.or(under.patience),
            silence: self.silence.or(under.silence),
            cooldown: self.cooldown.or(under.cooldown),
            on_failover: self.on_failover.or(under.on_failover),
        }
    }

    pub(super) fn bounds(&self) -> RunBounds {
        let default = RunBounds::default();
        RunBounds {
            max_depth: self.max_depth.unwrap_or(default.max_depth),
            min_free_mb: self.min_free_mb.unwrap_or(default.min_free_mb),
            patience: self.patience.unwrap_or(default.patience),
            silence: self.silence.unwrap_or(default.silence),
            cooldown: self.cooldown.unwrap_or(default.cooldown),
            on_failover: self.on_failover.unwrap_or(default.on_failover),
        }
    }
}

/// Agents at once, by the profile at the end of their bases.
pub(super) fn slots(table: &Table<'_>, profiles: &Profiles) -> BTreeMap<String, u32> {
    let mut slots = BTreeMap::new();
    for (name, item) in table.entries() {
        let help = "write how many may run at once; leave it out for no limit";
        let count = table.whole(&name.value, item, &(1..=MOST_SLOTS), help);
        if profiles.get(table, &name).is_none() {
            continue;
        }
        let base = profiles.base_of(&name.value);
        if base != name.value {
            let message = format!("{} is based on {}", quoted(&name.value), quoted(base));
            let help = format!("slots are for all agents with that base: name {}", quoted(base));
            table.fault(Fault::new(name.span, message).help(help));
            continue;
        }
        slots.extend(count.map(|count| (name.value, count)));
    }
    slots
}
