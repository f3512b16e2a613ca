//! Finds writes over another content than the writer knew: what each session last knew of each file,
//! and who wrote since. Pure.
//!
//! A known version is told by its content: by a hash, else by the file's stamp. The order of reads and writes
//! is a count that is taken under this room's lock. No clock is asked: clocks are set back.

use std::collections::VecDeque;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::model::{AgentId, FileStamp, SessionId, SessionKey};

/// Sessions whose knowledge is remembered, and files of one; past either the oldest is forgotten, and
/// counts as never read.
const MOST_SESSIONS: usize = 1024;
const MOST_READS: usize = 10_000;

/// Files of all sessions; past that the oldest session is forgotten.
const MOST_ALL_READS: usize = 100_000;

/// Files whose writes are remembered, and the writes of one; past either the oldest is forgotten.
const MOST_PATHS: usize = 10_000;
const MOST_WRITES: usize = 32;

/// Begun writes of one agent to one file that are remembered; past that the oldest is judged by what is
/// known when it is seen.
const MOST_BEGUN: usize = 16;

/// A write, after the fact. Writes of one file come in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SeenWrite {
    /// None: somebody outside the team.
    pub(super) by: Option<SessionKey>,
    /// By the client host, which says itself what its session knows then.
    pub(super) is_put: bool,
    pub(super) before: FileVersion,
    pub(super) after: FileVersion,
}

/// A file with a content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FileVersion {
    pub(super) content: Version,
    pub(super) stamp: Option<FileStamp>,
}

/// A content of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Version {
    /// There is no file.
    Missing,
    /// The content is too large, not readable, or was not looked at.
    Unknown,
    Hash(Arc<str>),
}

/// The content of a file that a session last knew.
#[derive(Clone, PartialEq, Eq, Debug)]
struct KnownFile {
    version: FileVersion,
    count: u64,
}

/// A write that was about to happen.
#[derive(Debug)]
struct BegunWrite {
    /// The content that the client host puts; None: a program writes.
    puts: Option<Version>,
    /// The content that its session knew then.
    known: Option<KnownFile>,
}

/// A write over another content than its writer knew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stale {
    /// Agents that wrote since; empty if only others did.
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
    known: IndexMap<SessionKey, IndexMap<Arc<str>, KnownFile>>,
    writes: IndexMap<Arc<str>, VecDeque<(u64, SeenWrite)>>,
    begun: IndexMap<(AgentId, Arc<str>), VecDeque<BegunWrite>>,
    count: u64,
    /// Files of all sessions.
    reads: usize,
}

impl FileVersion {
    pub(super) fn of(content: Version) -> Self {
        Self { content, stamp: None }
    }

    /// Whether both are surely the same content.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Version::Unknown, _) | (_, Version::Unknown) => {
                self.stamp.is_some() && self.stamp == other.stamp
            }
            (content, other) => content == other,
        }
    }
}

impl Stales {
    /// A session knows a file's content from now on.
    pub(super) fn knows(&mut self, by: &SessionKey, path: &Arc<str>, version: FileVersion) {
        let count = self.next();
        self.set(by, path, KnownFile { version, count });
    }

    /// A session's content was merged with what others wrote: it knows the content that it sent, and of
    /// their writes no more than before.
    pub(super) fn sent(&mut self, by: &SessionKey, path: &Arc<str>, version: FileVersion) {
        let count = self.last_known(by, path).map_or(0, |known| known.count);
        self.set(by, path, KnownFile { version, count });
    }

    /// A session is about to write a file. `puts`: the content, if the client host puts it there.
    pub(super) fn begin(&mut self, by: &SessionKey, path: &Arc<str>, puts: Option<Version>) {
        let known = self.last_known(by, path).cloned();
        let place = (by.agent.clone(), Arc::clone(path));
        // Without one, the write is judged by what is known when it is seen.
        if self.begun.len() >= MOST_PATHS && !self.begun.contains_key(&place) {
            self.begun.clear();
        }
        let begun = self.begun.entry(place).or_default();
        // A program may open a file and not write it.
        begun.retain(|it| puts.is_some() || it.puts.is_some());
        if begun.len() >= MOST_BEGUN {
            begun.pop_front();
        }
        begun.push_back(BegunWrite { puts, known });
    }

    /// Somebody wrote a file. Returns what is known if that was over another content than it knew.
    pub(super) fn wrote(&mut self, path: &Arc<str>, write: SeenWrite) -> Option<Stale> {
        let count = self.next();
        let stale = write.by.as_ref().and_then(|by| {
            let known = match self.take_begun(by, path, &write) {
                Some(begun) => begun.known,
                None => self.last_known(by, path).cloned(),
            };
            self.since(&by.agent, path, known.as_ref(), &write.before)
        });
        if let Some(by) = write.by.as_ref().filter(|_| !write.is_put) {
            self.set(by, path, KnownFile { version: write.after.clone(), count });
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
        writes.push_back((count, write));
        stale
    }

    /// The writes since a session last knew a file, if its content is another one now.
    pub(super) fn stale(
        &self,
        by: &SessionKey,
        path: &str,
        present: &FileVersion,
    ) -> Option<Stale> {
        let known = self.last_known(by, path);
        if known.is_some_and(|known| known.version.is(present)) {
            return None;
        }
        self.since(&by.agent, path, known, present).or_else(|| {
            // A content that the session surely knew is its base, also where no other writer is known.
            let base = known.map(|known| known.version.content.clone());
            let base = base.filter(|base| *base != Version::Unknown)?;
            Some(Stale { agents: Vec::new(), outside: false, base, was_read: true })
        })
    }

    /// Whether a session surely knows a file as it is now.
    pub(super) fn is_known(&self, by: &SessionKey, path: &str, present: &FileVersion) -> bool {
        self.last_known(by, path).is_some_and(|known| known.version.is(present))
    }

    /// An agent left.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.known.retain(|key, _| key.agent != *agent);
        self.reads = self.known.values().map(IndexMap::len).sum();
    }

    /// Events were missed: who wrote what is not certain any more.
    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.begun.clear();
    }

    /// The writes of others than an agent since it knew a file, before it wrote over `before`.
    fn since(
        &self,
        agent: &AgentId,
        path: &str,
        known: Option<&KnownFile>,
        before: &FileVersion,
    ) -> Option<Stale> {
        if known.is_some_and(|known| known.version.is(before)) {
            return None;
        }
        let writes = self.writes.get(path)?;
        let start = known.map_or(0, |known| start(writes, known));
        let is_other = |write: &&SeenWrite| write.by.as_ref().is_none_or(|by| by.agent != *agent);
        let since: Vec<_> =
            writes.iter().skip(start).map(|(_, write)| write).filter(is_other).collect();
        let first = since.first()?;
        let mut agents: Vec<AgentId> = Vec::new();
        for other in since.iter().filter_map(|write| write.by.as_ref()) {
            if !agents.contains(&other.agent) {
                agents.push(other.agent.clone());
            }
        }
        let outside = since.iter().any(|write| write.by.is_none());
        let base = known.map(|known| &known.version.content);
        let base = base.filter(|base| **base != Version::Unknown).unwrap_or(&first.before.content);
        Some(Stale { agents, outside, base: base.clone(), was_read: known.is_some() })
    }

    /// Takes the begun write that a seen one is.
    fn take_begun(
        &mut self,
        by: &SessionKey,
        path: &Arc<str>,
        write: &SeenWrite,
    ) -> Option<BegunWrite> {
        let place = (by.agent.clone(), Arc::clone(path));
        let begun = self.begun.get_mut(&place)?;
        let is_it = |it: &BegunWrite| match &it.puts {
            Some(puts) => write.is_put && *puts == write.after.content,
            None => !write.is_put,
        };
        let found = begun.iter().position(is_it).and_then(|at| begun.remove(at));
        if begun.is_empty() {
            self.begun.swap_remove(&place);
        }
        found
    }

    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn set(&mut self, by: &SessionKey, path: &Arc<str>, known: KnownFile) {
        if let Some(last) = self.known.get_mut(by).and_then(|reads| reads.get_mut(path)) {
            *last = known;
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
        reads.insert(Arc::clone(path), known);
        self.reads += 1;
    }

    /// With several running turns an access belongs to none of them, and may be of any.
    fn last_known(&self, by: &SessionKey, path: &str) -> Option<&KnownFile> {
        let of = |key: &SessionKey| self.known.get(key)?.get(path);
        if by.session.as_str().is_empty() {
            let own = self.known.iter().filter(|(key, _)| key.agent == by.agent);
            return own.filter_map(|(_, reads)| reads.get(path)).max_by_key(|known| known.count);
        }
        let nameless = SessionKey::new(by.agent.clone(), SessionId::new(""));
        [of(by), of(&nameless)].into_iter().flatten().max_by_key(|known| known.count)
    }
}

/// The index of the first write that a session did not know.
fn start(writes: &VecDeque<(u64, SeenWrite)>, known: &KnownFile) -> usize {
    let was_before = writes.iter().position(|(_, write)| known.version.is(&write.before));
    let was_after = || {
        let after = writes.iter().rposition(|(_, write)| known.version.is(&write.after));
        after.map(|at| at + 1)
    };
    // A content that no write is known to have left: what came later is not known.
    let by_count = || writes.iter().position(|(count, _)| *count > known.count);
    was_before.or_else(was_after).or_else(by_count).unwrap_or(writes.len())
}
