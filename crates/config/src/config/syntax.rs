//! Recovery from broken TOML: each broken statement is reported once and blanked out, so that the
//! rest of the text is still read. All offsets stay.
//!
//! The lexer's tokens show where a statement ends. Each statement is parsed alone, so that an error
//! in one does not change the meaning of the next.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::DeTable;
use toml::value::Datetime;
use toml_parser::decoder::{Encoding, ScalarKind};
use toml_parser::lexer::{Token, TokenKind};
use toml_parser::parser::{EventReceiver, RecursionGuard, ValidateWhitespace, parse_document};
use toml_parser::{ErrorSink, Expected, ParseError, Raw, Source, Span};

use super::errors::{code, printable, quoted};
use super::fault::Fault;
use super::source::line_at;

/// Bytes that may be parsed in all: bounds the work for a hostile file.
const MAX_PARSED: usize = 8 * 1024 * 1024;

/// The parser of documents accepts this many nested values, and as many parts of a dotted key.
const MAX_DEPTH: u32 = 80;

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
    let mut tokens = Source::new(text).lex().into_vec();
    let mut parsed = text.len();
    let mut first = 0;
    while first < tokens.len() {
        let statement = Statement::new(text, &tokens[first..]);
        parsed += statement.span.len();
        if parsed > MAX_PARSED {
            repaired.give_up(statement.span.start);
            break;
        }
        first += statement.tokens.len();
        let Some((fault, gap)) = statement.mistake() else { continue };
        let next = gap.end;
        repaired.faults.push(fault);
        repaired.blank(gap);
        let at_next =
            |tokens: &[Token]| tokens.partition_point(|token| token.span().start() < next);
        first = at_next(&tokens);
        if tokens.get(first).is_some_and(|token| token.span().start() > next) {
            // The lines that follow were part of an unclosed string.
            tokens = Source::new(&repaired.text).lex().into_vec();
            first = at_next(&tokens);
            parsed += text.len();
        }
    }
    repaired.resolve_conflicts();
    repaired.gaps.sort_by_key(|gap| gap.start);
    repaired
}

/// Returns the end of the section at `offset`: the next header, or the end of the text.
pub(super) fn section_end(text: &str, offset: usize) -> usize {
    let next = lines_after(text, offset).find(|(_, line)| is_header(line));
    next.map_or(text.len(), |(start, _)| start)
}

impl Repaired {
    /// Reports keys and tables that are defined twice. A second table is blanked out with its keys.
    fn resolve_conflicts(&mut self) {
        let rounds = (MAX_PARSED / self.text.len().max(1)).clamp(4, 32);
        for _ in 0..rounds {
            let text = self.text.clone();
            // Every statement is valid alone, so each error is a conflict of two.
            let (_, errors) = DeTable::parse_recoverable(&text);
            let mut spans: Vec<_> = errors.iter().filter_map(toml::de::Error::span).collect();
            spans.sort_by_key(|span| span.start);
            let header = |span: &Range<usize>| {
                let line = line_at(&text, span.start);
                is_header(&text[line.clone()]).then_some(line)
            };
            let Some((span, line)) =
                spans.iter().find_map(|span| Some((span.clone(), header(span)?)))
            else {
                self.faults.extend(spans.into_iter().map(|span| {
                    let message =
                        format!("{} is set twice in this table", code(&text[span.clone()]));
                    Fault::new(span, message).help("keep one of the two")
                }));
                return;
            };
            let name = code(text[line.clone()].split('#').next().unwrap_or_default().trim());
            self.faults.push(
                Fault::new(span, format!("{name} is defined twice"))
                    .help("put its keys under the first one; agents are `[[agents]]`, one each"),
            );
            self.blank(line.start..section_end(&text, line.start));
        }
        self.give_up(self.gaps.last().map_or(0, |gap| gap.end));
    }

    /// Drops the rest of the text.
    fn give_up(&mut self, at: usize) {
        self.faults.push(
            Fault::new(at..at, "too many mistakes: what follows was not checked")
                .help("mend those above first"),
        );
        self.blank(at..self.text.len());
    }

    fn blank(&mut self, gap: Range<usize>) {
        let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
        let blanks: String = self.text[gap.clone()].bytes().map(blank).collect();
        self.text.replace_range(gap.clone(), &blanks);
        self.gaps.push(gap);
    }
}

/// A line, and the lines over which its value extends.
struct Statement<'t> {
    text: &'t str,
    tokens: &'t [Token],
    span: Range<usize>,
    /// Its value is not closed, and so extends to the end of the text.
    is_open: bool,
    /// The first bracket or dot past [`MAX_DEPTH`].
    too_deep: Option<Span>,
}

impl<'t> Statement<'t> {
    /// Finds the first statement of the tokens.
    fn new(text: &'t str, tokens: &'t [Token]) -> Self {
        let (mut in_value, mut dots, mut too_deep) = (false, 0, None);
        let mut closers = Vec::new();
        let last = tokens.iter().position(|token| {
            match token.kind() {
                TokenKind::Equals => in_value = true,
                TokenKind::LeftSquareBracket if in_value => {
                    closers.push(TokenKind::RightSquareBracket);
                }
                TokenKind::LeftCurlyBracket if in_value => {
                    closers.push(TokenKind::RightCurlyBracket);
                }
                close if closers.last() == Some(&close) => drop(closers.pop()),
                _ => {}
            }
            match token.kind() {
                TokenKind::Dot => dots += 1,
                TokenKind::Atom | TokenKind::BasicString | TokenKind::LiteralString => {}
                _ => dots = 0,
            }
            if closers.len().max(dots) > MAX_DEPTH as usize {
                too_deep = too_deep.or(Some(token.span()));
            }
            token.kind() == TokenKind::Newline && closers.is_empty()
        });
        let tokens = &tokens[..last.map_or(tokens.len(), |last| last + 1)];
        let span = tokens[0].span().start()..tokens[tokens.len() - 1].span().end();
        let string = tokens.iter().rev().find(|token| token.kind() != TokenKind::Eof);
        let is_open = !closers.is_empty() || string.is_some_and(|string| is_open(text, string));
        Self { text, tokens, span, is_open, too_deep }
    }

    /// Returns the first mistake, and the range that cannot be read because of it.
    fn mistake(&self) -> Option<(Fault, Range<usize>)> {
        let fault =
            self.too_deep.map_or_else(|| self.parse(), |span| Some(too_deep(self.text, span)))?;
        let line = &self.text[line_at(self.text, self.span.start)];
        if line.trim_start().starts_with('[') {
            return Some((fault, self.span.start..section_end(self.text, self.span.start)));
        }
        if let Some((key, value)) = line.split_once(':')
            && self.tokens.iter().all(|token| token.kind() != TokenKind::Equals)
        {
            let help = format!("write `{} = {}`", key.trim(), value.trim());
            return Some((fault.help(printable(&help, 80)), self.span.clone()));
        }
        let (unclosed, gap) = self.unclosed().unwrap_or((fault.clone(), self.span.clone()));
        Some((if self.too_deep.is_some() { fault } else { unclosed }, gap))
    }

    fn parse(&self) -> Option<Fault> {
        let mut values = Values { text: self.text, fault: None };
        let mut checked = ValidateWhitespace::new(&mut values, Source::new(self.text));
        let mut guarded = RecursionGuard::new(&mut checked, MAX_DEPTH);
        let mut error: Option<ParseError> = None;
        parse_document(self.tokens, &mut guarded, &mut error);
        let of_parser = error.map(|error| plain_fault(self.text, &error));
        let start = |fault: &Fault| fault.span.as_ref().map(|span| span.start);
        values.fault.into_iter().chain(of_parser).min_by_key(start)
    }

    /// Returns the mistake of a value that is not closed. It ends where the next statement seems to
    /// begin.
    fn unclosed(&self) -> Option<(Fault, Range<usize>)> {
        let mut behind = self.tokens.iter().skip_while(|token| token.kind() != TokenKind::Equals);
        let value = behind
            .find(|token| !matches!(token.kind(), TokenKind::Equals | TokenKind::Whitespace))?;
        let (what, close) = match value.kind() {
            _ if !self.is_open => return None,
            TokenKind::LeftSquareBracket => ("array", "]"),
            TokenKind::LeftCurlyBracket => ("inline table", "}"),
            TokenKind::MlLiteralString => ("string", "'''"),
            TokenKind::MlBasicString => ("string", "\"\"\""),
            _ => return None,
        };
        let in_array = value.kind() == TokenKind::LeftSquareBracket;
        let start = value.span().start();
        let next = lines_after(self.text, start)
            .find(|(_, line)| is_header(line) || in_array && is_assignment(line));
        let place = start..line_at(self.text, start).end;
        let fault = Fault::new(place, format!("this {what} is not closed"));
        let gap = self.span.start..next.map_or(self.span.end, |(next, _)| next);
        Some((fault.help(format!("close it with `{close}`")), gap))
    }
}

/// Checks keys and values, which the parser leaves to the receiver of its events.
struct Values<'t> {
    text: &'t str,
    /// The first one.
    fault: Option<Fault>,
}

impl EventReceiver for Values<'_> {
    fn simple_key(&mut self, span: Span, encoding: Option<Encoding>, _: &mut dyn ErrorSink) {
        let mut error: Option<ParseError> = None;
        let key = &self.text[range(self.text, span)];
        Raw::new_unchecked(key, encoding, span).decode_key(&mut (), &mut error);
        self.fault = self.fault.take().or(error.map(|error| plain_fault(self.text, &error)));
    }

    fn scalar(&mut self, span: Span, encoding: Option<Encoding>, _: &mut dyn ErrorSink) {
        self.fault = self.fault.take().or_else(|| value_fault(self.text, span, encoding));
    }
}

fn too_deep(text: &str, span: Span) -> Fault {
    Fault::new(range(text, span), "tables and arrays are nested too deep here")
        .help("no key takes more than a few levels of them")
}

/// Returns the fault of a string, number or date that cannot be read.
fn value_fault(text: &str, span: Span, encoding: Option<Encoding>) -> Option<Fault> {
    let place = range(text, span);
    let value = &text[place.clone()];
    if value.is_empty() {
        return Some(Fault::new(place, "the value is missing").help("write a value after `=`"));
    }
    let mut error: Option<ParseError> = None;
    let mut decoded = Cow::Borrowed("");
    let kind = Raw::new_unchecked(value, encoding, span).decode_scalar(&mut decoded, &mut error);
    if kind == ScalarKind::DateTime
        && let Err(why) = decoded.parse::<Datetime>()
    {
        error.get_or_insert_with(|| ParseError::new(why.to_string()).with_unexpected(span));
    }
    let error = error?;
    Some(match (encoding, error.expected()) {
        (Some(_), Some([Expected::Literal(quote @ ("\"" | "'"))])) => {
            Fault::new(range(text, error.unexpected()?), "this string is not closed")
                .help(format!("close it with `{quote}`"))
        }
        (None, Some([Expected::Description(_)])) if error.unexpected() == Some(span) => {
            let is_quoted = value.contains(['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}']);
            Fault::new(place, error.description()).help(if is_quoted {
                "write it in plain quotes, `\"`".to_owned()
            } else {
                format!("write {}", quoted(value))
            })
        }
        _ => plain_fault(text, &error),
    })
}

/// Returns the parser's error in its own words.
fn plain_fault(text: &str, error: &ParseError) -> Fault {
    let expected = error.expected().unwrap_or_default().iter().map(|expected| match expected {
        Expected::Literal(literal) => format!("`{}`", literal.escape_debug()),
        Expected::Description(words) => (*words).to_owned(),
        _ => "something else".to_owned(),
    });
    let expected: Vec<String> = expected.collect();
    let expected = match &expected[..] {
        [] => String::new(),
        some => format!(", expected {}", some.join(", ")),
    };
    let span = error.unexpected().or(error.context()).unwrap_or_default();
    Fault::new(range(text, span), format!("{}{expected}", error.description()))
}

/// Whether the token is a string of several lines that is not closed.
fn is_open(text: &str, token: &Token) -> bool {
    let quotes = match token.kind() {
        TokenKind::MlBasicString => "\"\"\"",
        TokenKind::MlLiteralString => "'''",
        _ => return false,
    };
    let string = &text[range(text, token.span())];
    string.len() == quotes.len() || !string.ends_with(quotes)
}

/// Returns the lines behind the one at `offset`, each with its start.
fn lines_after(text: &str, offset: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut start = line_at(text, offset).end + 1;
    std::iter::from_fn(move || {
        let line = (start < text.len()).then(|| line_at(text, start))?;
        start = line.end + 1;
        Some((line.start, &text[line]))
    })
}

fn is_header(line: &str) -> bool {
    let line = line.trim_start();
    let Some(inner) = line.strip_prefix("[[").or_else(|| line.strip_prefix('[')) else {
        return false;
    };
    inner.split_once(']').is_some_and(|(name, _)| is_bare(name, "_-.\"' "))
}

fn is_assignment(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| is_bare(key, "_-."))
}

/// Whether a name begins with a letter, and has nothing but letters, digits and `signs`.
fn is_bare(name: &str, signs: &str) -> bool {
    let name = name.trim();
    name.starts_with(|char: char| char.is_ascii_alphabetic())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || signs.contains(char))
}

/// Clamps a span to the text and its character boundaries.
fn range(text: &str, span: Span) -> Range<usize> {
    let start = text.floor_char_boundary(span.start());
    start..text.ceil_char_boundary(span.end()).max(start)
}
