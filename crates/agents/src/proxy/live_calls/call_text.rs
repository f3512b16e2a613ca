//! Decides whether the text of a tool call names a path. Knows no protocol: only texts, some of
//! them JSON, and the folder to which relative paths belong.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use serde_json::Value;

use super::NamedPath;
use crate::model::{fold, within};

/// Strings of one call that are read; later ones name nothing.
const MOST_STRINGS: usize = 2048;
/// Words of one call that are resolved as paths.
const MOST_WORDS: usize = 256;
/// Bytes of the longest word that may be a path.
const LONGEST_PATH: usize = 4096;

/// The text of one tool call or terminal so far.
#[derive(Debug)]
pub struct CallText {
    cwd: Arc<Path>,
    texts: Vec<Arc<str>>,
    /// The strings of the texts, with JSON decoded. Read on demand: most calls are never checked.
    strings: OnceLock<Vec<String>>,
    /// The real paths of words that may be paths.
    resolved: OnceLock<HashSet<PathBuf>>,
}

impl CallText {
    pub(super) fn new(cwd: Arc<Path>, texts: &[Arc<str>]) -> Self {
        let (strings, resolved) = (OnceLock::new(), OnceLock::new());
        Self { cwd, texts: texts.to_vec(), strings, resolved }
    }

    /// Returns the text with the new texts added; `None` if nothing is new.
    pub(super) fn with(&self, cwd: &Arc<Path>, texts: &[Arc<str>]) -> Option<Self> {
        let mut all = self.texts.clone();
        for text in texts {
            // Agents repeat texts, and stream input in growing pieces.
            if all.contains(text) {
                continue;
            }
            all.retain(|known| !text.starts_with(&**known));
            all.push(Arc::clone(text));
        }
        (all != self.texts).then(|| Self::new(Arc::clone(cwd), &all))
    }

    pub(super) fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }

    /// Whether the text has its relative or absolute path, or a path that leads there. Some agents
    /// take the workspace for the root: a text that is only `/ui/x` names `ui/x`.
    pub fn names(&self, place: NamedPath<'_>) -> bool {
        let real = place.workspace.join(place.wire);
        let spelled = [Some(place.wire), real.to_str(), self.beside_cwd(&real)];
        let strings = self.strings.get_or_init(|| strings(&self.texts));
        let is_spelled = |path: &str| strings.iter().any(|text| mentions(text, path));
        spelled.into_iter().flatten().any(is_spelled)
            || strings.iter().any(|text| text.strip_prefix('/') == Some(place.wire))
            || self.resolved.get_or_init(|| self.follow(strings, place.workspace)).contains(&real)
    }

    /// The file that a temporary one at `place` will replace: the only path beside it that is a
    /// text of its own.
    pub fn names_beside(&self, place: NamedPath<'_>) -> Option<PathBuf> {
        let real = place.workspace.join(place.wire);
        let strings = self.strings.get_or_init(|| strings(&self.texts));
        let paths = strings.iter().filter(|text| text.len() <= LONGEST_PATH);
        let named = paths.take(MOST_WORDS).flat_map(|text| {
            let rooted = text.strip_prefix('/').map(|path| place.workspace.join(path));
            std::iter::once(self.cwd.join(text)).chain(rooted).map(|path| fold(&path))
        });
        let is_beside = |path: &PathBuf| path.parent() == real.parent() && !path.is_dir();
        let mut beside = named.filter(is_beside);
        let first = beside.next()?;
        beside.all(|other| other == first).then_some(first)
    }

    /// A path below a folder that is not there: a text of its own, else the first in a text; of `a/b` and `a/b/c`
    /// what lies in the other, which is a folder then.
    pub fn names_below(&self, folder: NamedPath<'_>) -> Option<PathBuf> {
        let real = folder.workspace.join(folder.wire);
        let strings = self.strings.get_or_init(|| strings(&self.texts));
        // No link leads through a folder that is not there. Most words are sorted out without the disk.
        let has_name = |path: &Path| path.iter().any(|part| Some(part) == real.file_name());
        let below = |word: &str| {
            let rooted = word.strip_prefix('/').map(|path| folder.workspace.join(path));
            let spelled = [self.cwd.join(word), folder.workspace.join(word)].into_iter();
            let likely =
                spelled.chain(rooted).map(|path| fold(&path)).filter(|path| has_name(path));
            likely.map(planned).find(|path| is_below(&real, path))
        };
        let fits = |word: &&str| word.len() <= LONGEST_PATH;
        let whole = strings.iter().map(String::as_str).filter(fits).take(MOST_WORDS);
        let parts = strings.iter().flat_map(|text| words(text)).filter(fits).take(MOST_WORDS);
        innermost(whole.filter_map(below)).or_else(|| innermost(parts.filter_map(below)))
    }

    fn beside_cwd<'a>(&self, real: &'a Path) -> Option<&'a str> {
        real.strip_prefix(&self.cwd).ok().and_then(Path::to_str).filter(|path| !path.is_empty())
    }

    /// Resolves the words of `strings` that may be paths.
    fn follow(&self, strings: &[String], workspace: &Path) -> HashSet<PathBuf> {
        let mut resolved = HashSet::new();
        let mut bases = vec![&*self.cwd];
        bases.extend((workspace != &*self.cwd).then_some(workspace));
        let words = strings.iter().flat_map(|text| words(text));
        for word in words.filter(|word| word.len() <= LONGEST_PATH).take(MOST_WORDS) {
            for base in &bases {
                let path = base.join(word);
                resolved.extend(real(&path));
                resolved.insert(fold(&path));
            }
        }
        resolved
    }
}

/// The first path, or what of the others lies in it.
fn innermost(paths: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let paths: Vec<_> = paths.collect();
    let mut found = paths.first()?;
    while let Some(within) = paths.iter().find(|path| is_below(found, path)) {
        found = within;
    }
    Some(found.clone())
}

/// Whether `text` contains `path` as a whole, not as part of another path or word.
fn mentions(text: &str, path: &str) -> bool {
    // Every text would name the workspace itself.
    if path.is_empty() || path == "." {
        return false;
    }
    memmem::find_iter(text.as_bytes(), path)
        .any(|at| begins(&text[..at], path.starts_with('/')) && ends(&text[at + path.len()..]))
}

/// Whether a path may begin after `before`.
fn begins(before: &str, absolute: bool) -> bool {
    if absolute {
        // As in `file:///w/x`.
        return before.ends_with("://") || !before.ends_with(is_of_path);
    }
    let before = before.strip_suffix("./").unwrap_or(before);
    !before.ends_with(is_of_path)
}

/// Whether a path may end before `after`.
fn ends(after: &str) -> bool {
    let after = after.strip_prefix('/').unwrap_or(after);
    let mut rest = after.chars();
    match rest.next() {
        // The end of a sentence, not of `x.ts.bak`.
        Some('.') => !rest.next().is_some_and(is_of_path),
        Some(next) => !is_of_path(next),
        None => true,
    }
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "_-./~".contains(c)
}

/// The pieces of a text that may be paths: the whole text, and the parts between blanks and the
/// punctuation of shells and languages.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let marks = |c: char| c.is_whitespace() || "\"'`()[]{}<>|&;,=:$*?!\\".contains(c);
    let whole = (!text.contains('\n')).then_some(text);
    let pieces = text.split(marks).filter(move |piece| Some(*piece) != whole);
    let is_only_dots = |word: &&str| word.is_empty() || word.chars().all(|c| c == '.' || c == '/');
    whole.into_iter().chain(pieces).filter(move |word| !is_only_dots(word))
}

/// Resolves a path; for one that does not exist yet, its folder.
fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent()?.canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// The real path of a folded one of whose folders some may be missing.
fn planned(path: PathBuf) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        Some(real) => real,
        None => path,
    }
}

fn is_below(folder: &Path, path: &Path) -> bool {
    path != folder && within(folder, path).is_some()
}

/// The strings of texts: all strings of JSON, other texts as they are.
fn strings(texts: &[Arc<str>]) -> Vec<String> {
    let mut strings = Vec::new();
    for text in texts {
        match serde_json::from_str(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) => {
                gather(value, &mut strings);
            }
            // This includes truncated JSON.
            _ => strings.push(text.to_string()),
        }
    }
    strings
}

/// The recursion is bounded by the JSON parser's limit on depth.
fn gather(value: Value, strings: &mut Vec<String>) {
    if strings.len() >= MOST_STRINGS {
        return;
    }
    match value {
        Value::String(text) => strings.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| gather(item, strings)),
        Value::Object(members) => {
            for (key, value) in members {
                strings.push(key);
                gather(value, strings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
