//! Finds writes whose base was read before somebody else's write: what each session last knew of
//! each file, and who wrote since. Pure.

use std::collections::VecDeque;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::model::{AgentId, SessionId, SessionKey};

/// Sessions whose reads are remembered, and files of one; past either the oldest is forgotten, and
/// counts as never read.
const MOST_SESSIONS: usize = 1024;
const MOST_READS: usize = 10_000;

/// Reads of all sessions; past that the oldest session is forgotten.
const MOST_ALL_READS: usize = 100_000;

/// Files whose writes are remembered, and the writes of one; past either the oldest is forgotten.
const MOST_PATHS: usize = 10_000;
const MOST_WRITES: usize = 32;

/// Nanoseconds since 1970, by the clock that files have their times from.
pub(super) type Time = i128;

/// A point in the order of reads and writes: by the clock, and within its tick by a count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Point {
    at: Time,
    count: u64,
}

/// A write, after the fact.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SeenWrite {
    /// None: somebody outside the team.
    pub(super) by: Option<SessionKey>,
    pub(super) at: Time,
    pub(super) before: Version,
    pub(super) after: Version,
}

/// A content of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// There is no file.
    Missing,
    /// It is too large, or not readable.
    Unknown,
    Hash(Arc<str>),
}

/// A write whose base is older than another's write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stale {
    /// Agents that wrote since the base was read; empty if only others did.
    pub(super) agents: Vec<AgentId>,
    /// Whether somebody outside the team did.
    pub(super) outside: bool,
    /// The content that the writer knew.
    pub(super) base: Version,
    /// Whether the writer had read or written the file before.
    pub(super) was_read: bool,
}

#[derive(Default, Debug)]
pub(super) struct Stales {
    known: IndexMap<SessionKey, IndexMap<Arc<str>, Point>>,
    writes: IndexMap<Arc<str>, VecDeque<(Point, SeenWrite)>>,
    /// The last writes that were about to happen, by their count.
    begun: IndexMap<(AgentId, Arc<str>), u64>,
    count: u64,
    /// Reads of all sessions.
    reads: usize,
}

impl Stales {
    /// A session read a file.
    pub(super) fn read(&mut self, by: &SessionKey, path: &Arc<str>, at: Time) {
        let count = self.next();
        self.know(by, path, Point { at, count });
    }

    /// An agent is about to write a file.
    pub(super) fn begin(&mut self, agent: &AgentId, path: &Arc<str>) {
        let count = self.next();
        // Without one, a write counts as the first of its tick.
        if self.begun.len() >= MOST_PATHS {
            self.begun.clear();
        }
        self.begun.insert((agent.clone(), Arc::clone(path)), count);
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn know(&mut self, by: &SessionKey, path: &Arc<str>, at: Point) {
        if let Some(last) = self.known.get_mut(by).and_then(|reads| reads.get_mut(path)) {
            *last = (*last).max(at);
            return;
        }
        let is_new = !self.known.contains_key(by);
        if self.reads >= MOST_ALL_READS || is_new && self.known.len() >= MOST_SESSIONS {
            let oldest = self.known.shift_remove_index(0);
            self.reads -= oldest.map_or(0, |(_, reads)| reads.len());
        }
        let reads = self.known.entry(by.clone()).or_default();
        if reads.len() >= MOST_READS {
            reads.shift_remove_index(0);
            self.reads -= 1;
        }
        reads.insert(Arc::clone(path), at);
        self.reads += 1;
    }

    /// Somebody wrote a file. Returns what is known if its base was older than another's write.
    pub(super) fn wrote(&mut self, path: &Arc<str>, write: SeenWrite) -> Option<Stale> {
        let begun = |by: &SessionKey| {
            let begun = self.begun.get(&(by.agent.clone(), Arc::clone(path)));
            begun.copied().unwrap_or(0)
        };
        // A read in the tick of a write from outside counts as earlier.
        let count = write.by.as_ref().map_or(u64::MAX, begun);
        let point = Point { at: write.at, count };
        let stale = write.by.as_ref().and_then(|by| self.stale_at(by, path, point));
        if let Some(by) = &write.by {
            self.know(by, path, point);
        }
        if !self.writes.contains_key(path) {
            if self.writes.len() >= MOST_PATHS {
                self.writes.shift_remove_index(0);
            }
            self.writes.insert(Arc::clone(path), VecDeque::new());
        }
        let writes = &mut self.writes[path];
        if writes.len() >= MOST_WRITES {
            writes.pop_front();
        }
        writes.push_back((point, write));
        stale
    }

    /// The writes of others since a session last read or wrote a file.
    pub(super) fn stale(&self, by: &SessionKey, path: &str) -> Option<Stale> {
        self.stale_at(by, path, Point { at: Time::MAX, count: u64::MAX })
    }

    fn stale_at(&self, by: &SessionKey, path: &str, at: Point) -> Option<Stale> {
        let known = self.last_known(by, path);
        let is_since = |(point, write): &&(Point, SeenWrite)| {
            write.by.as_ref().is_none_or(|other| other.agent != by.agent)
                && known.is_none_or(|known| *point > known)
                && *point <= at
        };
        let since = self.writes.get(path)?.iter().filter(is_since);
        let since: Vec<_> = since.map(|(_, write)| write).collect();
        let first = since.first()?;
        let mut agents: Vec<AgentId> = Vec::new();
        for other in since.iter().filter_map(|write| write.by.as_ref()) {
            if !agents.contains(&other.agent) {
                agents.push(other.agent.clone());
            }
        }
        let outside = since.iter().any(|write| write.by.is_none());
        Some(Stale { agents, outside, base: first.before.clone(), was_read: known.is_some() })
    }

    /// A session ended.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.known.retain(|key, _| key.agent != *agent);
        self.reads = self.known.values().map(IndexMap::len).sum();
    }

    /// Events were missed: nothing is certain any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// With several running turns an access belongs to none of them, and may be of any.
    fn last_known(&self, by: &SessionKey, path: &str) -> Option<Point> {
        let at = |key: &SessionKey| self.known.get(key)?.get(path).copied();
        if by.session.as_str().is_empty() {
            let own = self.known.iter().filter(|(key, _)| key.agent == by.agent);
            return own.filter_map(|(_, reads)| reads.get(path).copied()).max();
        }
        at(by).max(at(&SessionKey::new(by.agent.clone(), SessionId::new(""))))
    }
}
