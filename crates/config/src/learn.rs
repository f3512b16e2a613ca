//! The smallest zone that covers what an agent used, by a history of uses and the files that are there.
//! Pure: it reads neither journal nor disk.
//!
//! A path that was written becomes `allowed`, and one that was read alone `readable`. A folder stands for its
//! files where most of it was used:
//!
//! - `F/*`: at least half of the files in `F` were used, and two or more; or the agent made a file in it. The top
//!   of the workspace is opened by the first reason alone.
//! - `F/**`: at least half of the files in `F` were used, the same is so of every folder below it, and two or more
//!   files were. A folder that the agent made, or that git ignores and in which it wrote, is opened whole.
//! - else the single file: also in a folder of which the files are not known.
//!
//! A file that is closed whoever asks is never opened: `denied` wins over every pattern, and no pattern has a
//! folder with a file that only the default list names.

mod pattern;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

pub use self::pattern::FoundPattern;
use self::pattern::can_be_written;
use self::tree::{CountedPaths, UsedFolder};
use crate::model::Action;

/// One use of a path by an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property of the use")]
pub struct UsedPath {
    /// Relative to the workspace, or absolute outside it.
    pub path: String,
    pub action: Action,
    /// The turn that it belongs to: of several uses in one turn a person is asked once.
    pub turn: u64,
    /// A tool call or the program's arguments name the path: the agent meant it.
    pub is_meant: bool,
    /// A search read the path, and passes over what it may not read.
    pub by_search: bool,
    /// The agent made the file.
    pub is_made: bool,
    /// The access was blocked, and nobody allowed it.
    pub is_refused: bool,
    /// The tool call that needed it, in words.
    pub tool: Option<String>,
    pub program: Option<String>,
}

/// A file that is there and that git does not ignore, or one that is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownFile {
    /// Relative to the workspace.
    pub path: String,
    /// Only the default list closes it, and not the zone.
    pub is_listed: bool,
}

/// Whether a path may be in a zone that is proposed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Openness {
    /// The path may be in the zone.
    Open,
    /// The part of all zones that the team writes opens it.
    Shared,
    /// `denied` has it.
    Denied,
    /// The default list of secrets has it.
    Listed,
    /// The path is in a git folder.
    Git,
    /// The path is outside the workspace.
    Outside,
    /// The path is the team's own.
    Own,
}

/// The kind of a folder that has no known files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FolderKind {
    /// The agent made it.
    Made,
    /// Git ignores all in it.
    Ignored,
    Other,
}

/// The rules by which a history is measured.
pub struct Measure<'a> {
    pub standing: &'a dyn Fn(&str, Action) -> Openness,
    pub folder: &'a dyn Fn(&str) -> FolderKind,
    /// Not all files are known: each is proposed by itself.
    pub is_cut: bool,
    /// Whether the zone as it is written allows an access.
    pub allows_now: &'a dyn Fn(&str, Action) -> bool,
}

/// A pattern that is proposed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProposedPattern {
    pub pattern: FoundPattern,
    /// Paths that were used by it.
    pub used: usize,
    /// Files that are there and that were not.
    pub further: usize,
    /// The tool calls and programs that needed it, with the number of paths, the most first.
    pub tools: Vec<(String, usize)>,
    pub programs: Vec<(String, usize)>,
}

/// The accesses of a history that a zone does not open.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Demand {
    /// Accesses that the agent meant: each is a question, or is denied.
    pub questions: usize,
    /// Accesses that only came past: denied without a question.
    pub passing: usize,
}

/// A zone that is proposed. Equal histories give equal ones.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProposedZone {
    pub allowed: Vec<ProposedPattern>,
    pub readable: Vec<ProposedPattern>,
    /// Paths that are left out, by the reason.
    pub left_out: BTreeMap<LeftOutFor, usize>,
    pub now: Demand,
    pub then: Demand,
}

/// Why a path that was used is not proposed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LeftOutFor {
    Standing(Openness),
    /// Only searches read it.
    Search,
    /// The access was blocked, and nobody allowed it.
    Refused,
    /// No pattern can have its name.
    Name,
}

impl ProposedZone {
    /// Whether a pattern matches a path.
    pub fn covers(&self, path: &str, action: Action) -> bool {
        let has = |all: &[ProposedPattern]| all.iter().any(|it| it.pattern.has(path));
        has(&self.allowed) || action == Action::Read && has(&self.readable)
    }
}

/// Proposes the smallest zone for a history.
pub fn propose(uses: &[UsedPath], files: &[KnownFile], measure: &Measure<'_>) -> ProposedZone {
    let mut found = CountedPaths::default();
    let mut left_out: BTreeMap<LeftOutFor, BTreeSet<&str>> = BTreeMap::new();
    for used in uses {
        match why_left_out(used, measure) {
            Some(why) => drop(left_out.entry(why).or_default().insert(&used.path)),
            None => found.add(used),
        }
    }
    found.leave_folders_out(files);
    let patterns =
        |written| UsedFolder::new(files, &found, measure.folder, written).patterns(measure.is_cut);
    let allowed = patterns(true);
    let covered = |path: &str| allowed.iter().any(|pattern| pattern.has(path));
    let readable = patterns(false);
    // All that is left of a pattern may be open for writing.
    let adds = |pattern: &FoundPattern| {
        let known = files.iter().map(|file| file.path.as_str()).chain(found.paths());
        known.filter(|path| pattern.has(path)).any(|path| !covered(path))
    };
    let readable: Vec<_> = readable.into_iter().filter(adds).collect();
    let line = |pattern| proposed(pattern, uses, files, measure);
    let mut zone = ProposedZone {
        allowed: allowed.into_iter().map(line).collect(),
        readable: readable.into_iter().map(line).collect(),
        ..ProposedZone::default()
    };
    // Of what is proposed anyway nothing is left out.
    for (why, paths) in left_out {
        let is_out = |path: &&&str| {
            !matches!(why, LeftOutFor::Search | LeftOutFor::Refused | LeftOutFor::Name)
                || !zone.covers(path, Action::Read)
        };
        let count = paths.iter().filter(is_out).count();
        if count > 0 && why != LeftOutFor::Standing(Openness::Shared) {
            zone.left_out.insert(why, count);
        }
    }
    zone.now = demand(uses, measure, measure.allows_now);
    zone.then = demand(uses, measure, &|path, action| zone.covers(path, action));
    zone
}

fn why_left_out(used: &UsedPath, measure: &Measure<'_>) -> Option<LeftOutFor> {
    match (measure.standing)(&used.path, used.action) {
        Openness::Listed => Some(LeftOutFor::Standing(Openness::Listed)),
        _ if used.is_refused => Some(LeftOutFor::Refused),
        Openness::Open if used.by_search && !used.is_meant && used.action == Action::Read => {
            Some(LeftOutFor::Search)
        }
        Openness::Open if !can_be_written(&used.path) => Some(LeftOutFor::Name),
        Openness::Open => None,
        standing => Some(LeftOutFor::Standing(standing)),
    }
}

/// Counts the questions of a history, of each path once a turn; the part of all zones asks none.
fn demand(
    uses: &[UsedPath],
    measure: &Measure<'_>,
    allows: &dyn Fn(&str, Action) -> bool,
) -> Demand {
    let mut meant: BTreeMap<(u64, &str, bool), bool> = BTreeMap::new();
    for used in uses {
        let standing = (measure.standing)(&used.path, used.action);
        let is_asked = match standing {
            Openness::Listed => true,
            Openness::Open => !allows(&used.path, used.action),
            _ => false,
        };
        if is_asked {
            let key = (used.turn, used.path.as_str(), used.action == Action::Write);
            *meant.entry(key).or_default() |= used.is_meant || standing == Openness::Listed;
        }
    }
    let questions = meant.values().filter(|meant| **meant).count();
    Demand { questions, passing: meant.len() - questions }
}

fn proposed(
    pattern: FoundPattern,
    history: &[UsedPath],
    files: &[KnownFile],
    measure: &Measure<'_>,
) -> ProposedPattern {
    let of_it = || {
        let has = |used: &&UsedPath| pattern.has(&used.path);
        history.iter().filter(has).filter(|used| why_left_out(used, measure).is_none())
    };
    let used: BTreeSet<&str> = of_it().map(|used| used.path.as_str()).collect();
    let is_open = |file: &&KnownFile| {
        pattern.has(&file.path)
            && !used.contains(file.path.as_str())
            && (measure.standing)(&file.path, Action::Read) == Openness::Open
    };
    ProposedPattern {
        used: used.len(),
        further: files.iter().filter(is_open).count(),
        tools: counted(of_it().filter_map(|used| Some((used.tool.as_deref()?, &*used.path)))),
        programs: counted(of_it().filter_map(|used| Some((used.program.as_deref()?, &*used.path)))),
        pattern,
    }
}

/// The names with the number of their paths, the most first.
fn counted<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, usize)> {
    let mut paths: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, path) in named {
        paths.entry(name).or_default().insert(path);
    }
    let mut counted: Vec<_> =
        paths.into_iter().map(|(name, paths)| (name.to_owned(), paths.len())).collect();
    // Equal ones stay in the order of their names.
    counted.sort_by_key(|(_, paths)| std::cmp::Reverse(*paths));
    counted
}

#[cfg(test)]
mod tests;
