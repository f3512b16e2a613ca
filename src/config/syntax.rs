//! Recovery from broken TOML: the rest of the text is still read.
//!
//! The parser recovers from an error, but its result for the lines that follow is often wrong. So
//! each broken statement is reported once and blanked out, and the rest is parsed again; all
//! offsets stay.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::errors::{code, printable, quoted};
use super::fault::Fault;
use super::source::line_at;

/// Bytes that may be parsed in all: bounds the work for a hostile file.
const MAX_PARSED: usize = 4 * 1024 * 1024;

/// A text that parses, except for duplicate keys, of which the first counts.
#[derive(Debug)]
pub(super) struct Repaired {
    pub(super) text: String,
    pub(super) faults: Vec<Fault>,
    /// The ranges that were blanked out, in order.
    pub(super) gaps: Vec<Range<usize>>,
}

/// Reports every broken statement of `text` and blanks it out.
pub(super) fn repair(text: &str) -> Repaired {
    let mut repaired = Repaired { text: text.to_owned(), faults: Vec::new(), gaps: Vec::new() };
    let rounds = (MAX_PARSED / text.len().max(1)).clamp(4, 32);
    for round in 1..=rounds {
        let before = repaired.text.clone();
        let duplicates = repaired.round(&before);
        let settled = repaired.text == before;
        if settled || round == rounds {
            // Duplicates stay in the text, so every round finds them again.
            repaired.faults.extend(duplicates);
        }
        if settled {
            repaired.gaps.sort_by_key(|gap| gap.start);
            return repaired;
        }
    }
    // The rest may parse to anything, so it is not read.
    let last = repaired.gaps.last().map_or(0, |gap| gap.end);
    repaired.faults.push(
        Fault::new(last..last, "too many mistakes: what follows was not checked")
            .help("mend those above first"),
    );
    repaired.blank(last..text.len());
    repaired.gaps.sort_by_key(|gap| gap.start);
    repaired
}

/// Returns the end of the section at `offset`: the next header, or the end of the text.
pub(super) fn section_end(text: &str, offset: usize) -> usize {
    let mut start = line_at(text, offset).end + 1;
    while start < text.len() {
        let line = line_at(text, start);
        if is_header(&text[line.clone()]) {
            return line.start;
        }
        start = line.end + 1;
    }
    text.len()
}

impl Repaired {
    /// Parses once, and handles the errors that can be trusted. Returns the duplicate keys.
    fn round(&mut self, text: &str) -> Vec<Fault> {
        let (document, mut errors) = DeTable::parse_recoverable(text);
        errors.sort_by_key(|error| error.span().map_or(0, |span| span.start));
        let mut statements = Vec::new();
        collect(text, document.get_ref(), &mut statements);
        statements.sort_by_key(|statement| statement.value.start);

        let mut duplicates = Vec::new();
        let mut done = 0;
        for error in errors {
            let span = within(text, error.span().unwrap_or_default());
            if span.start < done {
                continue;
            }
            let line = line_at(text, span.start);
            if error.message().starts_with("duplicate key") && !is_header(&text[line.clone()]) {
                let message = format!("{} is set twice in this table", code(&text[span.clone()]));
                duplicates.push(Fault::new(span, message).help("keep one of the two"));
                continue;
            }
            // The value around the error, if the parser got that far.
            let inside =
                statements.partition_point(|statement| statement.value.start <= span.start);
            let statement =
                statements[..inside].last().filter(|statement| span.start <= statement.value.end);
            let Some(statement) = statement else {
                let gap = if is_header(&text[line.clone()])
                    || text[line.clone()].trim_start().starts_with('[')
                {
                    line.start..section_end(text, line.start)
                } else {
                    line
                };
                self.fault_outside(text, &span, error.message());
                self.blank(gap);
                // The parser's result for the lines that follow cannot be trusted.
                return duplicates;
            };
            let first_line = line_at(text, statement.key);
            if statement.value.end <= first_line.end {
                self.faults.push(in_value(text, &span, error.message()));
                done = first_line.end;
                self.blank(first_line);
                continue;
            }
            if let Some(next) = next_statement(text, &statement.value) {
                self.faults.push(unclosed(text, &statement.value));
                self.blank(first_line.start..next);
            } else {
                self.faults.push(in_value(text, &span, error.message()));
                self.blank(first_line.start..line_at(text, statement.value.end).end);
            }
            return duplicates;
        }
        duplicates
    }

    fn fault_outside(&mut self, text: &str, span: &Range<usize>, message: &str) {
        let line = &text[line_at(text, span.start)];
        let fault = if let Some(fault) = too_deep(span, message) {
            fault
        } else if message.starts_with("duplicate key") {
            let header = code(line.split('#').next().unwrap_or(line).trim());
            Fault::new(span.clone(), format!("{header} opens a table that is there already"))
                .help("put its keys under the first one; agents are `[[agents]]`, one each")
        } else if let Some((key, value)) = line.split_once(':')
            && !key.contains(['=', '"', '\'', '['])
        {
            let help = format!("write `{} = {}`", key.trim(), value.trim());
            Fault::new(span.clone(), message).help(printable(&help, 80))
        } else {
            Fault::new(span.clone(), message)
        };
        self.faults.push(fault);
    }

    fn blank(&mut self, gap: Range<usize>) {
        let blank: Vec<u8> = self.text.as_bytes()[gap.clone()]
            .iter()
            .map(|byte| if matches!(byte, b'\n' | b'\r') { *byte } else { b' ' })
            .collect();
        self.text.replace_range(gap.clone(), &String::from_utf8_lossy(&blank));
        self.gaps.push(gap);
    }
}

/// A key with its value, not within another value.
struct Statement {
    key: usize,
    value: Range<usize>,
}

fn collect(text: &str, table: &DeTable<'_>, statements: &mut Vec<Statement>) {
    for (key, value) in table {
        let span = value.span();
        let opens = text.get(span.start..).and_then(|rest| rest.chars().next());
        match value.get_ref() {
            // An inline table is a value; others are sections, or come from dotted keys.
            DeValue::Table(table) if opens != Some('{') => collect(text, table, statements),
            DeValue::Array(array) if array.iter().any(|item| is_section(text, item)) => {
                for item in array {
                    if let DeValue::Table(table) = item.get_ref() {
                        collect(text, table, statements);
                    }
                }
            }
            _ => statements.push(Statement { key: key.span().start, value: span }),
        }
    }
}

fn is_section(text: &str, item: &toml::Spanned<DeValue<'_>>) -> bool {
    item.get_ref().is_table() && text[within(text, item.span())].starts_with('[')
}

/// Returns the fault of a value that is nested past the parser's limit.
fn too_deep(span: &Range<usize>, message: &str) -> Option<Fault> {
    let is_meant = message.contains("recurs");
    is_meant.then(|| {
        Fault::new(span.clone(), "tables and arrays are nested too deep here")
            .help("no key takes more than a few levels of them")
    })
}

fn in_value(text: &str, span: &Range<usize>, message: &str) -> Fault {
    for quote in ["\"", "'"] {
        if message.ends_with(&format!(" string, expected `{quote}`")) {
            return Fault::new(span.clone(), "this string is not closed")
                .help(format!("close it with `{quote}`"));
        }
    }
    if let Some(fault) = too_deep(span, message) {
        return fault;
    }
    match message.strip_suffix(", expected literal string") {
        Some(_) if text[span.clone()].is_empty() => {
            Fault::new(span.clone(), "the value is missing").help("write a value behind `=`")
        }
        Some(message)
            if text[span.clone()].contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']) =>
        {
            Fault::new(span.clone(), message).help("write it in plain quotes, `\"`")
        }
        Some(message) => {
            Fault::new(span.clone(), message).help(format!("write {}", quoted(&text[span.clone()])))
        }
        None => Fault::new(span.clone(), message),
    }
}

fn unclosed(text: &str, value: &Range<usize>) -> Fault {
    let (what, close) = match &text[value.start..] {
        rest if rest.starts_with('[') => ("array", "]"),
        rest if rest.starts_with('{') => ("inline table", "}"),
        rest if rest.starts_with('\'') => ("string", "'''"),
        _ => ("string", "\"\"\""),
    };
    let end = line_at(text, value.start).end;
    Fault::new(value.start..end, format!("this {what} is not closed"))
        .help(format!("close it with `{close}`"))
}

/// Returns the first line within a value that looks like the start of another statement.
fn next_statement(text: &str, value: &Range<usize>) -> Option<usize> {
    let in_array = text[value.start..].starts_with('[');
    let mut start = line_at(text, value.start).end + 1;
    while start < value.end {
        let line = line_at(text, start);
        let content = &text[line.clone()];
        if is_header(content) || in_array && is_assignment(content) {
            return Some(line.start);
        }
        start = line.end + 1;
    }
    // An unclosed value extends to the end of the text.
    let to_the_end = text[value.end..].trim().is_empty();
    (to_the_end && !closes(text, value)).then_some(text.len())
}

fn closes(text: &str, value: &Range<usize>) -> bool {
    let value = &text[value.clone()];
    let closing = match value.chars().next() {
        Some('[') => "]",
        Some('{') => "}",
        Some('\'') => "'''",
        _ => "\"\"\"",
    };
    value.len() > closing.len() && value.ends_with(closing)
}

fn is_header(line: &str) -> bool {
    let line = line.trim_start();
    let Some(inner) = line.strip_prefix("[[").or_else(|| line.strip_prefix('[')) else {
        return false;
    };
    let Some((name, _)) = inner.split_once(']') else { return false };
    let name = name.trim();
    name.starts_with(|char: char| char.is_ascii_alphabetic())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || "_-.\"' ".contains(char))
}

fn is_assignment(line: &str) -> bool {
    let Some((key, _)) = line.split_once('=') else { return false };
    let key = key.trim();
    key.starts_with(|char: char| char.is_ascii_alphabetic())
        && key.chars().all(|char| char.is_ascii_alphanumeric() || "_-.".contains(char))
}

/// Clamps a span to the text and its character boundaries.
fn within(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    start..text.ceil_char_boundary(span.end).max(start)
}
