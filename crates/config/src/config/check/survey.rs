//! A walk through the workspace: the owners of each file, and the patterns without a match.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use globset::Candidate;
use ignore::WalkBuilder;

use super::patterns::Patterns;
use super::sockets::Sockets;
use super::{counted, shown};
use crate::config::errors::printable;
use crate::config::places::is_lock;
use crate::config::{Agent, Config, profiles};
use crate::ignored::{Further, Ignored};
use crate::zone::{Class, Zone};

/// Entries after which a walk ends, with a note in the report. A walk only counts, so this bounds
/// its time, not its memory.
const MAX_ENTRIES: u64 = 200_000;

/// Files that are listed for each agent; more are counted.
const MAX_NAMED: usize = 5;

/// Pairs of patterns that are listed as overlaps; for others only the files are counted.
const MAX_OVERLAPS: usize = 50;

/// Agents that share a file and are compared in pairs; the first ones show the mistake.
const MAX_SHARERS: usize = 8;

/// Entries between two reports of progress.
const PROGRESS_EVERY: u64 = 1000;

#[derive(Debug)]
pub(super) struct Survey {
    /// Files of the workspace, without ignored ones.
    pub(super) files: u64,
    /// For each agent, in their order.
    pub(super) claims: Vec<Claims>,
    /// Files that no agent's own `allowed` contains.
    pub(super) nobody: Share,
    pub(super) overlaps: BTreeMap<Overlap, Share>,
    /// Further overlaps, each file counted once for each.
    pub(super) further_overlaps: u64,
    /// The shared patterns, which all agents have in common.
    pub(super) shared: Option<Patterns>,
    /// The walk reached its limit.
    pub(super) cut: bool,
    pub(super) unreadable: u64,
    pub(super) sockets: Sockets,
}

/// A set of files: their number, and the first names.
#[derive(Default, Debug)]
pub(super) struct Share {
    pub(super) files: u64,
    pub(super) named: Vec<String>,
}

/// The files of one agent.
#[derive(Debug)]
pub(super) struct Claims {
    /// Decides the agent's own files; None if it has no zone table and owns nothing.
    zone: Option<Zone>,
    allowed: Patterns,
    denied: Patterns,
    readable: Patterns,
    pub(super) share: Share,
}

/// Two agents that may write the same files, each by its own pattern.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Overlap {
    pub(super) first: Claim,
    pub(super) second: Claim,
}

/// The pattern that gives files to an agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Claim {
    /// Its index.
    pub(super) agent: usize,
    /// Index in its `allowed`; None if only the zone can interpret the spelling.
    pattern: Option<usize>,
}

impl Survey {
    pub(super) fn of(workspace: &Path, agents: &[Agent], progress: &mut dyn FnMut(u64)) -> Self {
        let mut survey = Self {
            files: 0,
            claims: agents.iter().map(Claims::new).collect(),
            nobody: Share::default(),
            overlaps: BTreeMap::new(),
            further_overlaps: 0,
            shared: agents.first().map(|agent| Patterns::granting(&agent.zone.spec.shared)),
            cut: false,
            unreadable: 0,
            sockets: Sockets::of(workspace),
        };
        survey.walk(workspace, progress);
        // Files such as `.env` are denied because they are never committed, so ignored files count
        // too; sockets are mostly ignored.
        if survey.any_idle() || survey.sockets.may_be {
            survey.walk_ignored(workspace, progress);
        }
        survey
    }

    /// Returns the pattern of an agent in an overlap.
    pub(super) fn pattern(&self, claim: Claim) -> Option<&str> {
        Some(&self.claims[claim.agent].allowed.used[claim.pattern?].pattern)
    }

    /// Returns a sentence for each pattern without a match.
    pub(super) fn warnings(&self, config: &Config) -> Vec<String> {
        let agents = &config.agents;
        let base = profiles::base_patterns();
        let mut idle: BTreeMap<(&str, &str, bool), Vec<&str>> = BTreeMap::new();
        let lists = self.claims.iter().zip(agents).flat_map(|(claims, agent)| {
            let lists = [
                ("allowed", &claims.allowed),
                ("denied", &claims.denied),
                ("readable", &claims.readable),
            ];
            lists.map(|(list, patterns)| (list, patterns, agent.id.as_str()))
        });
        let shared = self.shared.iter().map(|shared| ("shared", shared, "all"));
        for (list, patterns, agent) in lists.chain(shared) {
            for used in patterns.used.iter().filter(|used| used.idle()) {
                // Built-in patterns match files that a workspace may have, but need not; so do the
                // patterns of builds and of rule files.
                let pattern = used.pattern.as_str();
                let may_come = match list {
                    "readable" => base.contains(&pattern) || pattern.starts_with("**/"),
                    "shared" => {
                        is_lock(pattern.trim_end_matches('*')) || config.zones.builds(pattern)
                    }
                    _ => false,
                };
                if !may_come {
                    let agents = idle.entry((list, &used.pattern, used.folder)).or_default();
                    agents.push(agent);
                }
            }
        }
        let so_far = if self.cut { " among those looked at" } else { "" };
        idle.into_iter()
            .map(|((list, pattern, folder), agents)| {
                let agents = agents.join(", ");
                if folder {
                    format!(
                        "{agents}: {list} `{pattern}` matches a folder, but not what is in it; write `{pattern}/**`"
                    )
                } else {
                    format!("{agents}: {list} `{pattern}` matches no file{so_far}")
                }
            })
            .collect()
    }

    fn any_idle(&self) -> bool {
        let idle = |claims: &Claims| {
            claims.allowed.any_idle() || claims.denied.any_idle() || claims.readable.any_idle()
        };
        self.claims.iter().any(idle) || self.shared.as_ref().is_some_and(Patterns::any_idle)
    }

    /// Walks the files that are not ignored, which are counted.
    fn walk(&mut self, workspace: &Path, progress: &mut dyn FnMut(u64)) {
        let mut entries = 0;
        for entry in walker(workspace, true) {
            let Ok(entry) = entry else {
                self.unreadable += 1;
                continue;
            };
            entries += 1;
            if entries % PROGRESS_EVERY == 0 {
                progress(self.files);
            }
            if entries > MAX_ENTRIES {
                self.cut = true;
                return;
            }
            let path = shown(entry.path(), workspace);
            match kind(&entry) {
                Some(EntryKind::Folder) => self.folder(&path),
                Some(EntryKind::File) => self.file(&path),
                Some(EntryKind::Socket) => self.sockets.note(entry.path()),
                None => {}
            }
        }
    }

    fn folder(&mut self, path: &str) {
        let candidate = Candidate::new(path);
        self.lists(|patterns| patterns.note_folder(&candidate));
    }

    fn file(&mut self, path: &str) {
        self.files += 1;
        let candidate = Candidate::new(path);
        if let Some(shared) = &mut self.shared {
            shared.count(&candidate);
        }
        let mut owners: Vec<Claim> = Vec::new();
        for (agent, claims) in self.claims.iter_mut().enumerate() {
            claims.readable.count(&candidate);
            claims.denied.count(&candidate);
            let pattern = claims.allowed.count(&candidate);
            if claims.own(path) {
                owners.push(Claim { agent, pattern });
                claims.share.add(path);
            }
        }
        if owners.is_empty() {
            self.nobody.add(path);
        }
        owners.truncate(MAX_SHARERS);
        for (at, second) in owners.iter().enumerate() {
            for first in &owners[..at] {
                let overlap = Overlap { first: *first, second: *second };
                if self.overlaps.len() < MAX_OVERLAPS || self.overlaps.contains_key(&overlap) {
                    self.overlaps.entry(overlap).or_default().add(path);
                } else {
                    self.further_overlaps += 1;
                }
            }
        }
    }

    /// Walks ignored files too, until every pattern has a match, or for sockets.
    fn walk_ignored(&mut self, workspace: &Path, progress: &mut dyn FnMut(u64)) {
        for (entries, entry) in (1_u64..).zip(walker(workspace, false)) {
            if entries % PROGRESS_EVERY == 0 {
                progress(self.files);
                if !self.any_idle() && !self.sockets.may_be {
                    return;
                }
            }
            if entries > MAX_ENTRIES {
                self.cut = true;
                return;
            }
            let Ok(entry) = entry else { continue };
            let path = shown(entry.path(), workspace);
            match kind(&entry) {
                Some(EntryKind::Folder) => self.folder(&path),
                Some(EntryKind::File) => {
                    let candidate = Candidate::new(&path);
                    self.lists(|patterns| patterns.note_ignored(&candidate));
                }
                Some(EntryKind::Socket) => self.sockets.note(entry.path()),
                None => {}
            }
        }
    }

    fn lists(&mut self, mut each: impl FnMut(&mut Patterns)) {
        for Claims { allowed, denied, readable, .. } in &mut self.claims {
            each(allowed);
            each(denied);
            each(readable);
        }
        self.shared.as_mut().map(each);
    }
}

enum EntryKind {
    Folder,
    File,
    Socket,
}

/// Returns the kind of an entry; None for the workspace itself, links, pipes and the like.
fn kind(entry: &ignore::DirEntry) -> Option<EntryKind> {
    let kind = entry.file_type()?;
    match kind.is_dir() {
        true if entry.depth() > 0 => Some(EntryKind::Folder),
        false if kind.is_file() => Some(EntryKind::File),
        false if kind.is_socket() => Some(EntryKind::Socket),
        _ => None,
    }
}

impl Claims {
    fn new(agent: &Agent) -> Self {
        let zone = &agent.zone;
        Self {
            zone: zone.own.then(|| Zone::compile(&zone.spec).ok()).flatten(),
            allowed: Patterns::granting(&zone.spec.allowed),
            denied: Patterns::denying(&zone.spec.denied),
            readable: Patterns::granting(&zone.spec.readable),
            share: Share::default(),
        }
    }

    /// Whether the agent's own `allowed` lets it write the file.
    fn own(&self, path: &str) -> bool {
        self.zone.as_ref().is_some_and(|zone| zone.owns(path) && zone.class(path) == Class::Write)
    }
}

impl Share {
    fn add(&mut self, path: &str) {
        self.files += 1;
        if self.named.len() < MAX_NAMED {
            // A file name may contain anything, even a line break.
            self.named.push(printable(path, usize::MAX));
        }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&counted(self.files, "file"))?;
        if !self.named.is_empty() {
            write!(f, ": {}", self.named.join(", "))?;
        }
        let more = self.files - self.named.len() as u64;
        if more > 0 {
            write!(f, ", and {more} more")?;
        }
        Ok(())
    }
}

/// Walks in order of name, with hidden entries, without git's own folder, following no symbolic
/// link.
fn walker(workspace: &Path, ignores: bool) -> ignore::Walk {
    // Only the workspace decides what is ignored, not the user's settings.
    let further = Further { above: true, of_user: false };
    let files = ignores.then(|| Ignored::new(workspace, further));
    let is_ignored = move |entry: &ignore::DirEntry| files.as_ref().is_some_and(|it| it.has(entry));
    WalkBuilder::new(workspace)
        .standard_filters(false)
        .filter_entry(move |entry| entry.file_name() != ".git" && !is_ignored(entry))
        .sort_by_file_name(Ord::cmp)
        .build()
}
