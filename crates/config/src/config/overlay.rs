//! Agents added and removed while the team runs: stored in a file of the team's own, and laid over the
//! user's file each time it is read. The user's file is never written.

mod grants;
mod layer;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toml::de::DeTable;

use self::grants::KeptGrant;
pub(super) use self::layer::Layer;
use super::errors::{code, printable};
use super::source::read_bytes;
use super::{Config, ConfigErrors, Source, Surroundings, TierCandidate, TryOut};
use crate::kept::{Durable, KeptFile, PATIENCE};
use crate::model::{AgentId, KeptFiles, KeptForm};

/// Agents that were added over the port.
pub(super) const KEPT: KeptFiles =
    KeptFiles::new("added agents", KeptForm::Json, &["teams/*.json", "teams/*.json.*"]);

/// Limit of an overlay's file, the same as of the user's file.
const MAX_BYTES: u64 = 1024 * 1024;

/// An `[[agents]]` table as JSON.
pub type AgentTable = Map<String, Value>;

/// The agents added and removed over the port.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// As they were given, in that order; each has its own `id`.
    #[serde(default)]
    added: Vec<AgentTable>,
    /// Ids of agents of the file that are removed.
    #[serde(default)]
    removed: BTreeSet<String>,
    /// Ids of the added agents that the orchestrator added.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    by_lead: BTreeSet<String>,
    /// Agents that agents started and added since the team's start.
    #[serde(default, skip_serializing_if = "is_zero")]
    spawned: usize,
    /// Grants that persons gave for the team.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grants: Vec<KeptGrant>,
    /// Agents that agents started. They end with the team.
    #[serde(skip)]
    helpers: Vec<AgentTable>,
}

#[derive(Debug, thiserror::Error)]
pub enum OverlayError {
    #[error(
        "{} {why}; it keeps what was added and removed over the port, and what persons allowed for the team: \
         mend it, or delete it to go back to the configuration alone",
        .path.display()
    )]
    Unusable { path: PathBuf, why: String },
    #[error("cannot save what was added, removed and allowed in {}: {cause}", .path.display())]
    NotWritten { path: PathBuf, cause: io::Error },
}

/// Why a configuration with its overlay is not valid.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The file itself is wrong.
    #[error(transparent)]
    File(#[from] ConfigErrors),
    #[error(transparent)]
    Kept(#[from] OverlayError),
    /// The file is valid alone, but not with the overlay: a sentence for each mistake.
    #[error("{}", .0.join("\n"))]
    Unfit(Vec<String>),
}

/// A configuration with its overlay applied.
#[derive(Debug)]
pub struct Layered {
    pub source: Source,
    pub config: Config,
    /// The file without the overlay.
    pub alone: Config,
    /// After [`Overlay::settle`].
    pub overlay: Overlay,
    /// Notes of [`Overlay::settle`], a sentence each.
    pub said: Vec<String>,
}

impl Layered {
    /// Reads a file and its team's overlay, and applies the overlay. Each plugin is tried, and more
    /// than once.
    /// `taken` says which candidate an agent takes, by its id.
    pub fn load(
        file: &Path,
        eisen_dir: &Path,
        try_out: Box<TryOut>,
        taken: BTreeMap<String, TierCandidate>,
    ) -> Result<Self, LayerError> {
        let source = Source::read(file)?;
        let surroundings = Surroundings { taken, ..Surroundings::of_process(eisen_dir, try_out) };
        let alone = Self::compile_in(source.clone(), Overlay::default(), &surroundings)?;
        let kept = Overlay::path(eisen_dir, &alone.config.team.name);
        let overlay = Overlay::read(&kept)?;
        if overlay.is_empty() {
            return Ok(alone);
        }
        Self::compile_in(source, overlay, &surroundings).map_err(|error| match error {
            LayerError::Unfit(mistakes) => {
                let why = format!("does not fit the configuration: {}", mistakes.join("; "));
                OverlayError::Unusable { path: kept, why }.into()
            }
            error => error,
        })
    }

    /// Compiles a text, which must be valid alone, and applies the overlay.
    pub fn compile(
        source: Source,
        eisen_dir: &Path,
        overlay: Overlay,
        try_out: Box<TryOut>,
        taken: BTreeMap<String, TierCandidate>,
    ) -> Result<Self, LayerError> {
        let surroundings = Surroundings { taken, ..Surroundings::of_process(eisen_dir, try_out) };
        Self::compile_in(source, overlay, &surroundings)
    }

    pub(super) fn compile_in(
        source: Source,
        mut overlay: Overlay,
        surroundings: &Surroundings,
    ) -> Result<Self, LayerError> {
        let Source { file, text } = &source;
        let alone = Config::compile(file, text.clone(), surroundings).0?;
        let said = overlay.settle(&alone);
        let layer = overlay.layer().map_err(LayerError::Unfit)?;
        match Config::compile_with(file, text.clone(), &layer, surroundings).0 {
            Ok(config) => Ok(Self { source, config, alone, overlay, said }),
            Err(errors) => Err(LayerError::Unfit(layer.blame(text, &errors))),
        }
    }
}

impl Overlay {
    /// Returns the path of a team's overlay.
    pub fn path(eisen_dir: &Path, team: &str) -> PathBuf {
        eisen_dir.join("teams").join(format!("{team}.json"))
    }

    /// Reads an overlay; a missing one is empty. Anything but the output of [`Overlay::write`] is
    /// an error: no agent may run in a zone that was not intended.
    pub fn read(path: &Path) -> Result<Self, OverlayError> {
        if matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(Self::default());
        }
        let unusable = |why| OverlayError::Unusable { path: path.to_owned(), why };
        let bytes = read_bytes(path, MAX_BYTES).map_err(|(why, _)| unusable(why))?;
        if !bytes.trim_ascii_start().starts_with(b"{") {
            // A derived deserializer would accept an array of the fields in order.
            return Err(unusable("can't be read: it is no JSON object".to_owned()));
        }
        let overlay: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(format!("can't be read: {error}")))?;
        overlay
            .layer()
            .map_err(|mistakes| unusable(format!("is wrong: {}", mistakes.join("; "))))?;
        overlay.check_grants().map_err(unusable)?;
        Ok(overlay)
    }

    /// Replaces the stored overlay, but for the grants, which stay; an empty one removes the file.
    pub fn write(&self, path: &Path) -> Result<(), OverlayError> {
        let _lock = grants::locked(path, PATIENCE)?;
        Self { grants: Self::read(path)?.grants, ..self.clone() }.put(path)
    }

    fn put(&self, path: &Path) -> Result<(), OverlayError> {
        self.replace(path)
            .map_err(|cause| OverlayError::NotWritten { path: path.to_owned(), cause })
    }

    /// Whether nothing is to be stored.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.spawned == 0
            && self.grants.is_empty()
    }

    /// Whether both are stored the same.
    pub fn is_stored_as(&self, other: &Self) -> bool {
        let helpers = Vec::new;
        Self { helpers: helpers(), ..self.clone() } == Self { helpers: helpers(), ..other.clone() }
    }

    /// Adds an agent. A table with nothing but an `id` restores a removed agent of the file.
    pub fn add(&mut self, agent: AgentTable) {
        match agent.get("id").and_then(Value::as_str) {
            Some(id) if agent.len() == 1 && self.removed.contains(id) => {
                self.removed.remove(id);
            }
            _ => self.added.push(agent),
        }
    }

    /// Adds an agent that the orchestrator may remove again.
    pub fn add_for_lead(&mut self, agent: AgentTable) {
        self.by_lead.insert(id(&agent).to_owned());
        self.spawned += 1;
        self.add(agent);
    }

    /// The agents that the orchestrator added.
    pub fn by_lead(&self) -> &BTreeSet<String> {
        &self.by_lead
    }

    /// Adds an agent that an agent starts.
    pub fn add_helper(&mut self, agent: AgentTable) {
        self.spawned += 1;
        self.helpers.push(agent);
    }

    pub fn end_helper(&mut self, agent: &AgentId) {
        self.helpers.retain(|table| id(table) != agent.as_str());
    }

    /// The agents that agents started, with their parents.
    pub fn helpers(&self) -> impl Iterator<Item = (AgentId, AgentId)> {
        self.helpers.iter().map(|table| (AgentId::new(id(table)), AgentId::new(parent(table))))
    }

    /// Agents that agents started and added since the team's start.
    pub fn spawned(&self) -> usize {
        self.spawned
    }

    /// Counts anew what agents start: the team ends.
    pub fn forget_spawned(&mut self) {
        self.spawned = 0;
    }

    /// Removes an agent; an agent of the file stays removed.
    pub fn remove(&mut self, agent: &AgentId, is_in_file: bool) {
        self.added.retain(|table| id(table) != agent.as_str());
        self.by_lead.remove(agent.as_str());
        if is_in_file {
            self.removed.insert(agent.to_string());
        }
    }

    /// Drops entries that the file makes obsolete; returns a sentence for each. An added agent that
    /// the file has now is the file's; a removed one that is gone from the file may return there.
    pub fn settle(&mut self, file: &Config) -> Vec<String> {
        let is_in_file = |id: &str| file.agents.iter().any(|agent| agent.id.as_str() == id);
        self.removed.retain(|id| is_in_file(id));
        let mut said = Vec::new();
        let removed = &self.removed;
        self.added.retain(|table| {
            let id = id(table);
            let is_taken_over = is_in_file(id) && !removed.contains(id);
            if is_taken_over {
                said.push(format!(
                    "agent `{id}` was added over the port, and now stands in the configuration: \
                     that holds"
                ));
            }
            !is_taken_over
        });
        let added = &self.added;
        self.by_lead.retain(|of_lead| added.iter().any(|table| id(table) == of_lead));
        self.drop_orphans(file);
        said
    }

    /// Drops helpers whose parents are gone, and helpers of these.
    fn drop_orphans(&mut self, file: &Config) {
        let of_file = file.agents.iter().map(|agent| agent.id.as_str());
        let of_file = of_file.filter(|id| !self.removed.contains(*id));
        let mut known: BTreeSet<String> =
            of_file.chain(self.added.iter().map(id)).map(str::to_owned).collect();
        // A helper is older than its own helpers.
        self.helpers.retain(|table| {
            let stays = known.contains(parent(table));
            if stays {
                known.insert(id(table).to_owned());
            }
            stays
        });
    }

    /// Returns a sentence for each change that it makes.
    pub fn notes(&self) -> Vec<String> {
        let added = self.added.iter().map(|table| format!("agent `{}` is added", id(table)));
        let replaced = |id: &String| self.added.iter().any(|table| self::id(table) == id);
        let removed = self.removed.iter().filter(|id| !replaced(id));
        added.chain(removed.map(|id| format!("agent `{id}` stays away"))).collect()
    }

    /// Writes the added agents as a configuration; the error has a sentence for each that cannot be
    /// written.
    pub(super) fn layer(&self) -> Result<Layer, Vec<String>> {
        let asked_for = self.helpers.iter().map(|table| id(table).to_owned()).collect();
        let mut layer = Layer { removed: self.removed.clone(), asked_for, ..Layer::default() };
        let mut mistakes = Vec::new();
        for table in self.added.iter().chain(&self.helpers) {
            layer.starts.push((layer.text.len(), id(table).to_owned()));
            match section(table) {
                Ok(section) => layer.text.push_str(&section),
                Err(why) => mistakes.push(format!("agent {}: {why}", code(id(table)))),
            }
        }
        if mistakes.is_empty() { Ok(layer) } else { Err(mistakes) }
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        let file = KeptFile::<Durable>::new(path, MAX_BYTES);
        if self.is_empty() {
            return file.remove();
        }
        let text = serde_json::to_string_pretty(self)?;
        if text.len() as u64 >= MAX_BYTES {
            let why = format!("it would be larger than {} KiB", MAX_BYTES / 1024);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        file.replace(format!("{text}\n").as_bytes())
    }
}

fn id(table: &AgentTable) -> &str {
    table.get("id").and_then(Value::as_str).unwrap_or_default()
}

fn parent(table: &AgentTable) -> &str {
    table.get("parent").and_then(Value::as_str).unwrap_or_default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Writes one agent as a section of a configuration.
fn section(table: &AgentTable) -> Result<String, String> {
    for (key, value) in table {
        if let Some(key) = null_in(key, value) {
            return Err(format!("{} is null: leave it out", code(&key)));
        }
    }
    let agents = toml::Table::try_from(table)
        .map(|agent| toml::Table::from_iter([("agents".to_owned(), vec![agent].into())]));
    let written = agents
        .map_err(|error| error.to_string())
        .and_then(|agents| toml::to_string(&agents).map_err(|error| error.to_string()))
        // A table that is nested too deeply to be read back is an error, not a silent loss.
        .and_then(|text| match DeTable::parse(&text) {
            Ok(_) => Ok(format!("{text}\n")),
            Err(error) => Err(error.message().to_owned()),
        });
    written
        .map_err(|error| format!("can't be written as a configuration: {}", printable(&error, 200)))
}

/// Returns the first key below `key` whose value is null, which TOML lacks.
fn null_in(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(key.to_owned()),
        Value::Array(items) => items.iter().find_map(|item| null_in(key, item)),
        Value::Object(table) => {
            table.iter().find_map(|(inner, value)| null_in(&format!("{key}.{inner}"), value))
        }
        _ => None,
    }
}
