//! The errors of a file and their rendering: each with its place, an excerpt, and the correction.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::fault::Fault;
use super::source::{line_at, position};

/// Faults beyond this many are counted, not shown.
pub(super) const MAX_SHOWN: usize = 100;

/// Bytes of a line that an excerpt shows; of a longer one only the place is given.
const MAX_EXCERPT: usize = 2000;

/// The errors of one file, in the order of the file. `Display` renders them without colour.
#[derive(Debug, thiserror::Error)]
pub struct ConfigErrors {
    file: PathBuf,
    text: String,
    faults: Vec<Fault>,
    omitted: usize,
}

/// One error with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Line and column from 1; (0, 0) for an error of the file as a whole.
    pub line: usize,
    pub column: usize,
    pub message: String,
    /// The correction.
    pub help: Option<String>,
}

impl ConfigErrors {
    pub(super) fn new(file: &Path, text: String, mut faults: Vec<Fault>) -> Self {
        let text = without_secrets(text, &faults);
        faults.sort_by_key(|fault| fault.span.as_ref().map(|span| span.start));
        let omitted = faults.len().saturating_sub(MAX_SHOWN);
        faults.truncate(MAX_SHOWN);
        Self { file: file.to_owned(), text, faults, omitted }
    }

    /// Returns the number of errors.
    pub fn count(&self) -> usize {
        self.faults.len() + self.omitted
    }

    /// Returns the first hundred errors.
    pub fn list(&self) -> Vec<ConfigError> {
        let place = |fault: &Fault| {
            let (line, column) =
                fault.span.as_ref().map_or((0, 0), |span| position(&self.text, span.start));
            ConfigError { line, column, message: fault.message.clone(), help: fault.help.clone() }
        };
        self.faults.iter().map(place).collect()
    }

    /// Renders every error with an excerpt of the file, for a terminal with `color`.
    pub fn render(&self, color: bool) -> String {
        let style = if color { Renderer::styled() } else { Renderer::plain() };
        let mut rendered: Vec<String> =
            self.faults.iter().map(|fault| self.render_one(fault, &style)).collect();
        if self.omitted > 0 {
            rendered.push(format!("… and {} errors more", self.omitted));
        }
        rendered.join("\n\n")
    }

    fn render_one(&self, fault: &Fault, renderer: &Renderer) -> String {
        let path = printable(&self.file.to_string_lossy(), usize::MAX);
        let mut group = Group::with_title(Level::ERROR.primary_title(fault.message.as_str()));
        match &fault.span {
            None => group = group.element(Origin::path(path)),
            Some(span) => {
                let (number, column) = position(&self.text, span.start);
                let line = line_at(&self.text, span.start);
                if line.len() > MAX_EXCERPT {
                    group = group.element(Origin::path(path).line(number).char_column(column));
                } else {
                    let content = self.text[line.clone()].trim_end_matches('\r');
                    // Control characters that TOML allows in strings, and a terminal would act on.
                    // Both are two bytes long, so offsets stay.
                    let content =
                        content.replace(|char| matches!(char, '\u{80}'..='\u{9f}'), "\u{b7}");
                    let length = content.len();
                    let mark = span.start - line.start..span.end.min(line.end) - line.start;
                    group = group.element(
                        Snippet::source(content)
                            .path(path)
                            .line_start(number)
                            .annotation(AnnotationKind::Primary.span(held(mark, length))),
                    );
                }
            }
        }
        if let Some(help) = &fault.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// Puts stars in the place of secrets, so that no excerpt shows one. All offsets stay.
fn without_secrets(text: String, faults: &[Fault]) -> String {
    let secrets = faults.iter().filter(|fault| fault.is_secret);
    let spans: Vec<_> = secrets.filter_map(|fault| fault.span.clone()).collect();
    if spans.is_empty() {
        return text;
    }
    let mut bytes = text.into_bytes();
    for span in spans {
        let end = span.end.min(bytes.len());
        let secret = bytes.get_mut(span.start..end).unwrap_or_default();
        secret.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b'*');
    }
    // The spans are whole strings, but for a file that is not read whole.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns `text` in backticks, safe to print and of bounded length.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", printable(text, 60))
}

/// Returns `text` as a TOML string, safe to print and of bounded length.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", printable(&text.replace('\\', "\\\\").replace('"', "\\\""), 60))
}

/// Escapes characters that control a terminal, and cuts after `max` characters.
pub(super) fn printable(text: &str, max: usize) -> String {
    let mut shown = String::new();
    for (count, char) in text.chars().enumerate() {
        if count == max {
            shown.push('…');
            break;
        }
        if char.is_control() {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}

fn held(mark: Range<usize>, length: usize) -> Range<usize> {
    let start = mark.start.min(length);
    start..mark.end.clamp(start, length)
}
