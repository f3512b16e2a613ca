//! Trees of the files that changed last. When one changes again, only the edited part is parsed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use tree_sitter::{InputEdit, Point, Tree};

use super::facts::{Facts, Language};
use super::parse::{self, Parser};
use super::tokens::Tokenizer;

/// Bounds of the kept files, in number and bytes of text. A tree takes about ten times its text, fifty
/// times for a text of brackets.
const MOST_FILES: usize = 32;
const MOST_BYTES: usize = 2 << 20;

/// A parser with the trees of the files that changed last, within a bound.
pub struct Recent {
    parser: Parser,
    pub(super) tokenizer: LazyLock<Tokenizer>,
    /// The last one changed last.
    files: VecDeque<Parsed>,
    bytes: usize,
}

/// A file that was parsed without an error.
struct Parsed {
    id: Arc<str>,
    language: Language,
    /// As it was parsed.
    text: Vec<u8>,
    tree: Tree,
}

impl Default for Recent {
    fn default() -> Self {
        let tokenizer = LazyLock::new(Tokenizer::new as fn() -> _);
        Self { parser: Parser::new(), tokenizer, files: VecDeque::new(), bytes: 0 }
    }
}

impl Recent {
    /// Returns the facts of a file, as [`Parser::facts`].
    pub(super) fn facts(
        &mut self,
        id: &Arc<str>,
        language: Option<Language>,
        text: &[u8],
    ) -> Facts {
        let before = self.take(id);
        let parsed = language.and_then(|language| {
            let (tree, text) = self.parse(language, text, before)?;
            let facts = parse::read(language, &text, &tree)?;
            Some((facts, Parsed { id: id.clone(), language, text: text.into_owned(), tree }))
        });
        let Some((facts, parsed)) = parsed else { return parse::unknown(text) };
        // With errors, the tree depends on the text before.
        if !parsed.tree.root_node().has_error() {
            self.keep(parsed);
        }
        facts
    }

    fn parse<'t>(
        &mut self,
        language: Language,
        text: &'t [u8],
        before: Option<Parsed>,
    ) -> Option<(Tree, Cow<'t, [u8]>)> {
        let again = before.filter(|before| before.language == language).and_then(|mut before| {
            before.tree.edit(&edit(&before.text, text));
            self.parser.parse_as_it_is(language, text, Some(&before.tree))
        });
        let again = again.filter(|tree| !tree.root_node().has_error());
        match again {
            Some(tree) => Some((tree, text.into())),
            None => self.parser.parse(language, text),
        }
    }

    fn take(&mut self, id: &str) -> Option<Parsed> {
        let at = self.files.iter().position(|file| *file.id == *id)?;
        let file = self.files.remove(at)?;
        self.bytes -= file.text.len();
        Some(file)
    }

    fn keep(&mut self, file: Parsed) {
        self.bytes += file.text.len();
        self.files.push_back(file);
        while self.files.len() > MOST_FILES || self.bytes > MOST_BYTES {
            let Some(oldest) = self.files.pop_front() else { return };
            self.bytes -= oldest.text.len();
        }
    }
}

/// The edit between two texts: everything between their common start and their common end.
fn edit(before: &[u8], now: &[u8]) -> InputEdit {
    let mut start = common(before.iter().zip(now));
    // The edit begins at the first byte of a character, since the parser looks one byte past a token.
    let inside = |text: &[u8], at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    while start > 0 && (inside(before, start) || inside(now, start)) {
        start -= 1;
    }
    let end = common(before[start..].iter().rev().zip(now[start..].iter().rev()));
    let (old_end, new_end) = (before.len() - end, now.len() - end);
    InputEdit {
        start_byte: start,
        old_end_byte: old_end,
        new_end_byte: new_end,
        start_position: point(before, start),
        old_end_position: point(before, old_end),
        new_end_position: point(now, new_end),
    }
}

fn common<'a>(mut pairs: impl Iterator<Item = (&'a u8, &'a u8)>) -> usize {
    let mut count = 0;
    while pairs.next().is_some_and(|(one, other)| one == other) {
        count += 1;
    }
    count
}

fn point(text: &[u8], at: usize) -> Point {
    let above = &text[..at];
    let line = memchr::memrchr(b'\n', above).map_or(0, |end| end + 1);
    Point { row: memchr::memchr_iter(b'\n', above).count(), column: at - line }
}

#[cfg(test)]
mod tests;
