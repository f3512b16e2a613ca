//! From a folder to its graph: walks it and parses its files on several threads.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use super::cache::{self, Cache, Kept};
use super::facts::{Facts, Language};
use super::manifest;
use super::parse::Parser;
use super::recent::Recent;
use super::snapshot::Snapshot;
use super::tokens::{self, Tokenizer};
use super::walk::{self, Content, Entry, Stamp};
use super::whole::{Files, Graph};

/// Files that are worth another thread.
const FILES_A_THREAD: usize = 16;

/// How a workspace is scanned.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Threads; at least one.
    pub jobs: usize,
    /// Whether to count tokens.
    pub tokens: bool,
    /// The folder of the cache; None: no cache.
    pub cache: Option<PathBuf>,
}

/// The work of a scan.
#[derive(Clone, Copy, Default, Debug)]
pub struct Work {
    /// Files that were read, and their bytes.
    pub read: usize,
    /// The bytes of the files that were read.
    pub bytes: u64,
    /// Files that were parsed: not those in the cache, nor those of an unknown language.
    pub parsed: usize,
}

/// A scanned file.
struct Done {
    id: Arc<str>,
    stamp: Stamp,
    kept: Kept,
    bytes: Option<u64>,
    parsed: bool,
}

/// Called with the number of files done and of all files; returns whether to continue.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) -> bool + Sync);

/// Scans a workspace: returns its graph, the snapshot of it, and the work done.
pub fn scan(
    root: &Path,
    settings: &Settings,
    progress: Progress<'_>,
) -> io::Result<(Graph, Snapshot, Work)> {
    let entries = walk::list(root, settings.jobs.max(1), None)?.files;
    let (files, work) = read(root, &entries, settings, progress);
    let (graph, snapshot) = Graph::new(root, files, settings.jobs);
    Ok((graph, snapshot, work))
}

/// Reads files of a workspace. With a cache these must be all files: it keeps the facts of these only.
/// Files that were removed meanwhile have no facts.
pub fn read(
    root: &Path,
    entries: &[Entry],
    settings: &Settings,
    progress: Progress<'_>,
) -> (Files, Work) {
    let jobs = settings.jobs.clamp(1, entries.len().div_ceil(FILES_A_THREAD).max(1));
    let cache = match (&settings.cache, root.canonicalize()) {
        (Some(folder), Ok(root)) => Cache::open(folder, &root),
        _ => Cache::none(),
    };
    // Large files first: no thread shall start one at the end.
    let mut order: Vec<_> = entries.iter().collect();
    order.sort_by_key(|entry| std::cmp::Reverse(entry.stamp.size));
    let tokenizer: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::new);
    let next = AtomicUsize::new(0);
    let run = || {
        let (mut parser, mut buffer) = (Parser::new(), Vec::new());
        let mut done = Vec::new();
        while let Some(entry) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let tokenizer = settings.tokens.then_some(&tokenizer);
            done.extend(one(entry, tokenizer, &cache, &mut parser, &mut buffer));
            if !progress(next.load(Ordering::Relaxed).min(order.len()), order.len()) {
                break;
            }
        }
        done
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..jobs).map(|_| scope.spawn(run)).collect();
        let own = run();
        let others = threads.into_iter().filter_map(|thread| thread.join().ok());
        std::iter::once(own).chain(others).flatten().collect()
    });
    let mut work = Work::default();
    let mut found = BTreeMap::new();
    for done in done {
        work.read += usize::from(done.bytes.is_some());
        work.bytes += done.bytes.unwrap_or(0);
        work.parsed += usize::from(done.parsed);
        found.insert(done.id, (done.stamp, done.kept));
    }
    if let Err(error) = cache.keep(&found) {
        tracing::info!(%error, "the graph is not kept for the next time");
    }
    let mut files: Files = entries.iter().map(|entry| (entry.id.clone(), None)).collect();
    files.extend(found.into_iter().map(|(id, (_, kept))| {
        let facts = if settings.tokens { kept.facts } else { without_tokens(kept.facts) };
        (id, Some(facts))
    }));
    (files, work)
}

/// Reads changed files on this thread, with the trees of their last change. Files that were removed
/// meanwhile have no facts.
pub fn reread(
    entries: &[Entry],
    recent: &mut Recent,
    tokens: bool,
    go_on: impl Fn() -> bool,
) -> Files {
    let mut buffer = Vec::new();
    let mut facts = |entry: &Entry| {
        let (text, _) = content(entry, &mut buffer)?;
        let Some(text) = text else { return Some(no_text()) };
        let mut facts = recent.facts(&entry.id, Language::of(&entry.path), text);
        facts.package = manifest::package(&entry.path, text);
        if tokens {
            tokens::count(&recent.tokenizer, text, &mut facts);
        }
        Some(facts)
    };
    let files = entries.iter().take_while(|_| go_on());
    files.map(|entry| (entry.id.clone(), facts(entry).map(Arc::new))).collect()
}

fn without_tokens(mut facts: Arc<Facts>) -> Arc<Facts> {
    if facts.tokens.is_some() {
        let facts = Arc::make_mut(&mut facts);
        facts.tokens = None;
        facts.symbols.iter_mut().for_each(|symbol| symbol.tokens = None);
    }
    facts
}

/// Scans one file. None: it was removed.
fn one(
    entry: &Entry,
    tokenizer: Option<&LazyLock<Tokenizer>>,
    cache: &Cache,
    parser: &mut Parser,
    buffer: &mut Vec<u8>,
) -> Option<Done> {
    let enough = |kept: &&Kept| tokenizer.is_none() || kept.counted;
    let id = entry.id.clone();
    if let Some(kept) = cache.unchanged(entry).filter(enough) {
        return Some(Done {
            id,
            stamp: entry.stamp,
            kept: kept.clone(),
            bytes: None,
            parsed: false,
        });
    }
    let (text, stamp) = content(entry, buffer)?;
    let Some(text) = text else {
        let facts = Arc::new(no_text());
        let kept = Kept { key: cache::Key::default(), facts, counted: true };
        return Some(Done { id, stamp, kept, bytes: Some(0), parsed: false });
    };
    let bytes = Some(text.len() as u64);
    let key = if cache.keeps() { cache::key(entry, text) } else { cache::Key::default() };
    if let Some(kept) = cache.by_key(&key).filter(enough) {
        return Some(Done { id, stamp, kept: kept.clone(), bytes, parsed: false });
    }
    let mut facts = parser.facts(Language::of(&entry.path), text);
    facts.package = manifest::package(&entry.path, text);
    if let Some(tokenizer) = tokenizer {
        tokens::count(tokenizer, text, &mut facts);
    }
    let parsed = facts.language.is_some();
    Some(Done {
        id,
        stamp,
        kept: Kept { key, facts: Arc::new(facts), counted: tokenizer.is_some() },
        bytes,
        parsed,
    })
}

/// Reads a file. None: it was removed; without a text: it is no text or unreadable.
fn content<'a>(entry: &Entry, buffer: &'a mut Vec<u8>) -> Option<(Option<&'a [u8]>, Stamp)> {
    match walk::read(&entry.path, buffer) {
        Ok((Content::Text(text), stamp)) => Some((Some(text), stamp)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Ok((Content::Other, _)) | Err(_) => Some((None, entry.stamp)),
    }
}

/// The facts of a file that is no text.
fn no_text() -> Facts {
    Facts { lines: 1, ..Facts::default() }
}

#[cfg(test)]
mod tests;
