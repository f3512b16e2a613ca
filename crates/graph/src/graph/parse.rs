//! From a file's text to its facts: parses it and runs the query of its language.
//!
//! Knows no other file. The cost of a hostile text is bounded in steps, time, depth and names.

mod imports;
mod mend;
mod outline;
mod receiver;

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tree_sitter::{ParseOptions, ParseState, Tree};

use self::outline::{Definition, Outline};
use self::receiver::receiver;
use super::facts::{Base, Call, Facts, Kind, Language, Lines, Receiver};
use super::languages::{Role, Tools};
use super::query::{Marks, Match};

/// The parser's steps for a file of any size and for each KiB, in hundreds. Real files take 4 to 28 for
/// each KiB.
const STEPS: usize = 5_000;
const STEPS_PER_KIB: usize = 40;

/// Steps in which every interpretation has an error, in hundreds. They take fifty times as long;
/// real files have at most one hundred, also where the grammar does not know their syntax.
const ERROR_STEPS: usize = 500;

/// CPU time for a file of any size and for each KiB, several times that of real files. Where every
/// token is an error, a step takes a hundred times as long.
const MAX_TIME: Duration = Duration::from_secs(2);
const MAX_TIME_PER_KIB: Duration = Duration::from_millis(1);

/// Steps between two looks at the clock, in hundreds.
const STEPS_PER_LOOK: usize = 256;

/// Bytes at the start of a text that are searched for control characters, and their maximum: a
/// number, or one in so many bytes.
const PREFIX: usize = 8 << 10;
const MAX_CONTROLS: usize = 16;
const BYTES_PER_CONTROL: usize = 50;

/// Longest name in bytes; the rest is cut off.
const LONGEST_NAME: usize = 256;

/// Parses one file after the other.
pub(super) struct Parser {
    inner: tree_sitter::Parser,
    language: Option<Language>,
    max_time: Duration,
}

impl Parser {
    pub(super) fn new() -> Self {
        Self { inner: tree_sitter::Parser::new(), language: None, max_time: MAX_TIME }
    }

    /// Returns the facts of a text. One that takes too long has neither a language nor symbols.
    pub(super) fn facts(&mut self, language: Option<Language>, text: &[u8]) -> Facts {
        let read = language.and_then(|language| {
            let (tree, text) = self.parse(language, text)?;
            read(language, &text, &tree)
        });
        read.unwrap_or_else(|| unknown(text))
    }

    /// Returns the tree and the text that it belongs to, which may be [`mend::mended`]. None: no text, or
    /// it takes too long.
    pub(super) fn parse<'t>(
        &mut self,
        language: Language,
        text: &'t [u8],
    ) -> Option<(Tree, Cow<'t, [u8]>)> {
        let tree = self.parse_as_it_is(language, text, None);
        let is_whole = tree.as_ref().is_some_and(|tree| !tree.root_node().has_error());
        let mended = if is_whole { None } else { mend::mended(language, text) };
        match mended {
            Some(mended) => Some((self.parse_as_it_is(language, &mended, None)?, mended.into())),
            None => Some((tree?, text.into())),
        }
    }

    /// `old`: the edited tree of the text before.
    pub(super) fn parse_as_it_is(
        &mut self,
        language: Language,
        text: &[u8],
        old: Option<&Tree>,
    ) -> Option<Tree> {
        let tools = language.row()?.tools()?;
        if is_odd(text) {
            return None;
        }
        if self.language != Some(language) {
            self.inner.set_language(&tools.grammar).ok()?;
            self.language = Some(language);
        }
        let kib = text.len() >> 10;
        let mut steps = STEPS + kib * STEPS_PER_KIB;
        let mut error_steps = ERROR_STEPS;
        let more = MAX_TIME_PER_KIB.saturating_mul(u32::try_from(kib).unwrap_or(u32::MAX));
        let end = processor_time().saturating_add(self.max_time).saturating_add(more);
        let mut go_on = |state: &ParseState| {
            steps = steps.saturating_sub(1);
            error_steps = error_steps.saturating_sub(usize::from(state.has_error()));
            let is_late = steps.is_multiple_of(STEPS_PER_LOOK) && processor_time() >= end;
            let is_over = steps.min(error_steps) == 0 || is_late;
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut go_on);
        let tree = self.inner.parse_with_options(
            &mut |at, _| text.get(at..).unwrap_or_default(),
            old,
            Some(options),
        );
        if tree.is_none() {
            self.inner.reset();
        }
        tree
    }
}

/// The CPU time of this thread, so that other threads do not count.
pub(super) fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Returns the facts of a text from its tree.
pub(super) fn read(language: Language, text: &[u8], tree: &Tree) -> Option<Facts> {
    let row = language.row()?;
    let tools = row.tools()?;
    let mut found = Found::default();
    let marks = Marks::new(row.marks, text);
    tools.query.each(tree, text, &marks, |pattern, matched| {
        found.add(tools, pattern, matched);
    });
    found.sort();
    let places = found.places();
    let Outline { symbols, modules, within } = outline::outline(found.definitions, &places, text);
    let holder = |place: usize| {
        let at = places.partition_point(|other| *other < place);
        within.get(at).copied().flatten()
    };
    let calls = found.calls.iter().map(|call| {
        let (name, within) = (name(text, call), holder(call.start));
        match receiver(text, call.start, row.own, row.base) {
            Receiver::Nothing if *name == *row.base => {
                Call { name: "constructor".into(), on: Receiver::Base, within }
            }
            on => Call { name, on, within },
        }
    });
    let calls = calls.collect();
    let bases = found.bases.iter().filter_map(|base| {
        let class = holder(base.start)?;
        let path = name(text, base);
        let is_class = symbols.get(class as usize)?.kind == Kind::Class;
        (is_class && is_path(&path)).then_some(Base { class, path })
    });
    let bases = bases.collect();
    let imports = imports::imports(&found.imports, text, |at| {
        let mut names = Vec::new();
        let mut next = holder(found.imports[at].start());
        while let Some((at, symbol)) = next.and_then(|at| Some((at, symbols.get(at as usize)?))) {
            if modules[at as usize] {
                names.push(symbol.name.clone());
            }
            next = symbol.parent;
        }
        names.reverse();
        names
    });
    Some(Facts {
        language: Some(language),
        lines: count_lines(text),
        tokens: None,
        package: None,
        symbols,
        bases,
        calls,
        imports,
    })
}

/// The matches of the query.
#[derive(Default)]
struct Found {
    definitions: Vec<Definition>,
    bases: Vec<Range<usize>>,
    calls: Vec<Range<usize>>,
    imports: Vec<imports::Written>,
}

impl Found {
    /// Sorts by position and removes duplicates.
    fn sort(&mut self) {
        for found in [&mut self.calls, &mut self.bases] {
            found.sort_unstable_by_key(|range| range.start);
            found.dedup();
        }
        // Of duplicates, the exported one stays.
        self.imports.sort_by_key(|import| (import.start(), !import.exported));
        self.imports.dedup_by(|again, first| again.tree.is_some() && again.tree == first.tree);
    }

    /// The positions whose innermost symbol is needed.
    fn places(&self) -> Vec<usize> {
        let trees = self.imports.iter().filter(|import| import.tree.is_some());
        let mut places: Vec<_> = trees.map(imports::Written::start).collect();
        places.extend(self.calls.iter().chain(&self.bases).map(|range| range.start));
        places.sort_unstable();
        places
    }

    fn add(&mut self, tools: &Tools, pattern: usize, matched: &Match<'_>) {
        let mut definition = None;
        let mut name = None;
        let mut import = imports::Written::default();
        for (capture, node) in matched {
            let role = tools.roles.get(*capture).copied().unwrap_or(Role::Nothing);
            let range = node.byte_range();
            match role {
                Role::Class | Role::Function | Role::Module | Role::Constant | Role::Extension => {
                    definition = Some((role, *node));
                }
                Role::Name => name = Some(range),
                Role::Base => self.bases.push(range),
                Role::Call => self.calls.push(range),
                Role::ImportModule => import.module = Some(range),
                Role::ImportName => import.name = Some(range),
                Role::ImportAlias => import.alias = Some(range),
                Role::ImportAll => import.all = true,
                Role::ImportTree => import.tree = Some(range),
                Role::Nothing => {}
            }
        }
        if let (Some((role, node)), Some(name)) = (definition, name) {
            self.definitions.push(Definition {
                role,
                name,
                bytes: node.byte_range(),
                lines: lines(node),
                pattern,
            });
        }
        import.here = tools.query.sets(pattern, "here");
        if import.module.is_some() || import.tree.is_some() || import.here {
            import.exported = tools.query.sets(pattern, "exported");
            self.imports.push(import);
        }
    }
}

/// The facts of a text that is not parsed.
pub(super) fn unknown(text: &[u8]) -> Facts {
    Facts { lines: count_lines(text), ..Facts::default() }
}

/// The number of lines, at least one.
fn count_lines(text: &[u8]) -> u32 {
    let ends = memchr::memchr_iter(b'\n', text).count();
    let open = text.last().is_some_and(|last| *last != b'\n');
    u32::try_from(ends + usize::from(open)).unwrap_or(u32::MAX).max(1)
}

/// A name, cut to [`LONGEST_NAME`], invalid UTF-8 replaced.
fn name(text: &[u8], range: &Range<usize>) -> Box<str> {
    let bytes = text.get(range.clone()).unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(LONGEST_NAME)];
    String::from_utf8_lossy(bytes).into()
}

/// Whether it is names separated by dots.
fn is_path(text: &str) -> bool {
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    text.split('.').all(|name| !name.is_empty() && name.chars().all(of_name))
}

fn lines(node: tree_sitter::Node<'_>) -> Lines {
    let (start, end) = (node.start_position(), node.end_position());
    // A node that ends with a line break does not extend to the next line.
    let last = if end.column == 0 && end.row > start.row { end.row } else { end.row + 1 };
    let line = |row: usize| u32::try_from(row).unwrap_or(u32::MAX);
    Lines { start: line(start.row + 1), end: line(last) }
}

/// Whether a text has many control characters. Invalid UTF-8 does not count: texts have many encodings.
fn is_odd(text: &[u8]) -> bool {
    let text = &text[..text.len().min(PREFIX)];
    let is_odd = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    text.iter().filter(is_odd).count() > MAX_CONTROLS.max(text.len() / BYTES_PER_CONTROL)
}

#[cfg(test)]
mod tests;
