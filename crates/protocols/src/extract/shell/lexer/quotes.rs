//! Quotes, escapes and expansions within words.

use super::super::word::WordPart;
use super::Lexer;

/// Depth of nested expansions to read; deeper ones are unknown.
const MOST_DEPTH: usize = 8;

impl<'a> Lexer<'a> {
    pub(super) fn escape(&mut self) {
        match self.next() {
            // A line continuation.
            Some('\n') | None => {}
            Some(c) => {
                let word = self.word();
                word.push(c);
                word.quoted = true;
            }
        }
    }

    pub(super) fn single_quoted(&mut self) {
        let end = self.rest.find('\'').unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix('\'').unwrap_or(rest);
        let word = self.word();
        word.push_str(text);
        word.quoted = true;
    }

    /// Reads up to the closing quote, or to the end of the text.
    pub(super) fn double_quoted(&mut self, closes: bool) {
        while let Some(c) = self.next() {
            match c {
                '"' if closes => return,
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.word().push(c),
                    Some(c) => {
                        self.word().push('\\');
                        self.word().push(c);
                    }
                },
                '$' => self.dollar(false),
                '`' => self.backticks(),
                c => self.word().push(c),
            }
        }
    }

    pub(super) fn backticks(&mut self) {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '`' => break,
                '\\' => match self.next() {
                    Some(c @ ('$' | '`' | '\\')) => text.push(c),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                c => text.push(c),
            }
        }
        self.lexed.substitutions.push(text);
        self.word().parts.push(WordPart::Unknown);
    }

    /// Reads an expansion after its `$`; `bare` outside double quotes.
    pub(super) fn dollar(&mut self, bare: bool) {
        match self.peek() {
            Some('\'') if bare => {
                self.next();
                self.ansi_quoted();
            }
            Some('"') if bare => {}
            Some('(') => {
                self.next();
                let inner = self.balanced(')');
                self.lexed.substitutions.push(inner.to_owned());
                self.word().parts.push(WordPart::Unknown);
            }
            Some('{') => {
                self.next();
                let inner = self.balanced('}');
                let part = if is_name(inner) {
                    WordPart::Variable(inner.to_owned())
                } else {
                    self.inner.push((inner, self.depth + 1));
                    WordPart::Unknown
                };
                self.word().parts.push(part);
            }
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let end = self
                    .rest
                    .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
                    .unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                self.word().parts.push(WordPart::Variable(name.to_owned()));
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.next();
                self.word().parts.push(WordPart::Unknown);
            }
            _ => self.word().push('$'),
        }
    }

    /// `$'…'`.
    fn ansi_quoted(&mut self) {
        self.word().quoted = true;
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => {
                    let c = match self.next() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('r') => '\r',
                        Some('a') => '\u{7}',
                        Some('b') => '\u{8}',
                        Some('e' | 'E') => '\u{1b}',
                        Some('f') => '\u{c}',
                        Some('v') => '\u{b}',
                        Some('x') => self.number(16, 2),
                        Some('u') => self.number(16, 4),
                        Some('U') => self.number(16, 8),
                        Some(c) if c.is_digit(8) => {
                            let more = self.digits(8, 2);
                            code(u32::from_str_radix(&format!("{c}{more}"), 8))
                        }
                        Some(c) => c,
                        None => return,
                    };
                    self.word().push(c);
                }
                c => self.word().push(c),
            }
        }
    }

    fn number(&mut self, radix: u32, most: usize) -> char {
        let digits = self.digits(radix, most);
        code(u32::from_str_radix(digits, radix))
    }

    fn digits(&mut self, radix: u32, most: usize) -> &'a str {
        let count =
            self.rest.bytes().take(most).take_while(|b| char::from(*b).is_digit(radix)).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits
    }

    /// Takes the text up to the bracket that closes the one just read.
    pub(super) fn balanced(&mut self, close: char) -> &'a str {
        let start = self.rest;
        let mut open = vec![close];
        while let Some(c) = self.next() {
            let top = open.last().copied();
            match c {
                '\\' => {
                    self.next();
                }
                '\'' if top != Some('"') => {
                    let end = self.rest.find('\'').map_or(self.rest.len(), |at| at + 1);
                    self.rest = &self.rest[end..];
                }
                '"' if top != Some('"') => open.push('"'),
                '$' if self.peek() == Some('(') => {
                    self.next();
                    open.push(')');
                }
                '$' if self.peek() == Some('{') => {
                    self.next();
                    open.push('}');
                }
                '(' if top == Some(')') => open.push(')'),
                c if top == Some(c) => {
                    open.pop();
                    if open.is_empty() {
                        let length = start.len() - self.rest.len() - c.len_utf8();
                        return &start[..length];
                    }
                }
                _ => {}
            }
        }
        start
    }

    /// Finds substitutions in expanded texts: here-documents, defaults of parameters.
    pub(super) fn scan_inner(&mut self) {
        while let Some((text, depth)) = self.inner.pop() {
            if depth <= MOST_DEPTH {
                self.depth = depth;
                self.rest = text;
                self.double_quoted(false);
                self.word = None;
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric())
}

fn code(number: Result<u32, std::num::ParseIntError>) -> char {
    number.ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}
