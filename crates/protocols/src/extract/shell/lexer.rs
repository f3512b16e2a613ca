//! Splits shell text into words and operators, as a POSIX shell (and bash, where it differs)
//! does: quoting, escapes, expansions, here-documents, comments.
//!
//! Accepts any text: open quotes end with it. Linear and without recursion, since the text may be
//! hostile; substitutions are returned as separate texts. Knows no programs and no files.

mod quotes;

use super::word::{Word, WordPart};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Redirect {
    Read,
    Write,
    /// `<>`.
    Both,
    /// `>&` and `<&`: a file unless the word is a descriptor.
    Descriptor,
    /// `<<<`: the word is text, not a file.
    Text,
    /// `<<` and `<<-`: the word ends the document.
    Document,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Word(Word),
    /// Followed by the word that it takes.
    Redirect(Redirect),
    /// Ends a command: `;`, `&`, `|`, a new line, and combinations of them.
    End,
    /// `(` and `)`.
    Open,
    Close,
}

/// The parts of a text.
#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    /// Bodies of the here-documents, in the order of their redirections.
    pub(super) documents: Vec<String>,
    /// Texts of all command and process substitutions.
    pub(super) substitutions: Vec<String>,
}

pub(super) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer::new(text);
    lexer.run();
    lexer.scan_inner();
    lexer.lexed
}

/// The end of a here-document.
struct Delimiter {
    text: String,
    strips_tabs: bool,
    expands: bool,
}

struct Lexer<'a> {
    rest: &'a str,
    word: Option<Word>,
    lexed: Lexed,
    /// Here-documents whose bodies begin on the next line.
    waiting: Vec<Delimiter>,
    /// Whether the last `<<` was a `<<-`.
    strips_tabs: bool,
    /// Texts to expand as if in double quotes, with their depth.
    inner: Vec<(&'a str, usize)>,
    depth: usize,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            word: None,
            lexed: Lexed::default(),
            waiting: Vec::new(),
            strips_tabs: false,
            inner: Vec::new(),
            depth: 0,
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end(Token::End);
                    self.read_documents();
                }
                '#' if self.word.is_none() => {
                    let line = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = &self.rest[line..];
                }
                '&' if self.peek() == Some('>') => {
                    self.end_word();
                    self.take(">");
                    self.take(">");
                    self.push(Token::Redirect(Redirect::Write));
                }
                ';' | '|' | '&' => self.end(Token::End),
                '(' => self.end(Token::Open),
                ')' => self.end(Token::Close),
                '<' | '>' => self.redirect(c),
                '\\' => self.escape(),
                '\'' => self.single_quoted(),
                '"' => {
                    self.word().quoted = true;
                    self.double_quoted(true);
                }
                '`' => self.backticks(),
                '$' => self.dollar(true),
                '*' | '?' | '[' => self.word().parts.push(WordPart::Glob(c)),
                '{' | ',' | '}' => self.word().parts.push(WordPart::Brace(c)),
                // Followed by a name, it is another user's home.
                '~' if self.word.is_none()
                    && self.peek().is_none_or(|c| "/ \t\n;&|)".contains(c)) =>
                {
                    self.word().parts.push(WordPart::Home);
                }
                c => self.word().push(c),
            }
        }
        self.end(Token::End);
        self.read_documents();
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes `text` if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, token: Token) {
        self.lexed.tokens.push(token);
    }

    fn end(&mut self, token: Token) {
        self.end_word();
        self.push(token);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if self.lexed.tokens.last() == Some(&Token::Redirect(Redirect::Document)) {
            self.waiting.push(Delimiter {
                text: word.source(),
                strips_tabs: self.strips_tabs,
                expands: !word.quoted,
            });
        }
        self.push(Token::Word(word));
    }

    fn redirect(&mut self, c: char) {
        if self.take("(") {
            let inner = self.balanced(')');
            self.lexed.substitutions.push(inner.to_owned());
            self.word().parts.push(WordPart::Unknown);
            return;
        }
        // Digits that touch the operator are a descriptor, not a word.
        let is_descriptor = |word: &Word| {
            matches!(word.parts.as_slice(), [WordPart::Text(text)] if text.bytes().all(|b| b.is_ascii_digit()))
                && !word.quoted
        };
        self.word.take_if(|word| is_descriptor(word));
        self.end_word();
        let redirect = if c == '>' {
            let descriptor = !self.take(">") && !self.take("|") && self.take("&");
            if descriptor { Redirect::Descriptor } else { Redirect::Write }
        } else if self.take("<<") {
            Redirect::Text
        } else if self.take("<") {
            self.strips_tabs = self.take("-");
            Redirect::Document
        } else if self.take(">") {
            Redirect::Both
        } else if self.take("&") {
            Redirect::Descriptor
        } else {
            Redirect::Read
        };
        self.push(Token::Redirect(redirect));
    }

    /// Reads the bodies of the here-documents that wait for the line that begins here.
    fn read_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.waiting) {
            let start = self.rest;
            let mut body = String::new();
            let mut length = 0;
            while !self.rest.is_empty() {
                let line = self.rest.split_inclusive('\n').next().unwrap_or_default();
                self.rest = &self.rest[line.len()..];
                let bare = if delimiter.strips_tabs { line.trim_start_matches('\t') } else { line };
                if bare.strip_suffix('\n').unwrap_or(bare) == delimiter.text {
                    break;
                }
                length += line.len();
                body.push_str(bare);
            }
            if delimiter.expands {
                self.inner.push((&start[..length], self.depth + 1));
            }
            self.lexed.documents.push(body);
        }
    }
}

#[cfg(test)]
mod tests;
