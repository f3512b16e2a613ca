//! Compiles queries: reads the part of tree-sitter's query language that ours use.

use regex::bytes::Regex;
use tree_sitter::Language as Grammar;

use super::{Capture, Child, Pattern, Shape, Test};

/// Why a query does not compile, and the line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct QueryError {
    pub(super) line: usize,
    pub(super) what: String,
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Mark(char),
    Word(String),
    Text(String),
}

pub(super) struct QueryReader<'a> {
    grammar: &'a Grammar,
    /// Each with its line.
    tokens: Vec<(usize, Token)>,
    at: usize,
    captures: Vec<String>,
    /// The tests of the present pattern.
    tests: Vec<(Capture, Test)>,
    properties: Vec<String>,
}

impl<'a> QueryReader<'a> {
    pub(super) fn new(grammar: &'a Grammar, query: &str) -> Result<Self, QueryError> {
        let (captures, tests, properties) = Default::default();
        Ok(Self { grammar, tokens: tokens(query)?, at: 0, captures, tests, properties })
    }

    /// The next pattern, and the kind of node that it begins with; None at the end.
    pub(super) fn pattern(&mut self) -> Result<Option<(u16, Pattern)>, QueryError> {
        if self.peek(0).is_none() {
            return Ok(None);
        }
        let (mut shapes, _) = self.node()?;
        let shape = shapes.pop().filter(|_| shapes.is_empty());
        let Some((kind, shape)) = shape.and_then(|shape| Some((shape.kind?, shape))) else {
            return Err(self.error("a pattern must begin with a node of a known kind"));
        };
        let tests = std::mem::take(&mut self.tests);
        let properties = std::mem::take(&mut self.properties);
        Ok(Some((kind, Pattern { shape, tests, properties })))
    }

    /// The names of all captures, by their indexes.
    pub(super) fn into_captures(self) -> Vec<String> {
        self.captures
    }

    /// `(…)`, `"token"`, `_`, or a choice of these in `[…]`; and whether several may match.
    fn node(&mut self) -> Result<(Vec<Shape>, bool), QueryError> {
        let mut shapes = match self.next() {
            Some(Token::Mark('(')) => vec![self.bracketed()?],
            Some(Token::Mark('[')) => {
                let mut shapes = Vec::new();
                while !self.takes(']') {
                    shapes.extend(self.node()?.0);
                }
                shapes
            }
            Some(Token::Text(kind)) => vec![self.shape(&kind, false)?],
            Some(Token::Word(kind)) if kind == "_" => vec![Shape::default()],
            _ => return Err(self.error("expected a node")),
        };
        let several = self.takes('+');
        while self.takes('@') {
            let name = self.word()?;
            let capture = self.capture(&name);
            for shape in &mut shapes {
                shape.captures.push(capture);
            }
        }
        Ok((shapes, several))
    }

    /// `kind …)`: children, absent fields and predicates.
    fn bracketed(&mut self) -> Result<Shape, QueryError> {
        let kind = self.word()?;
        let mut shape = self.shape(&kind, true)?;
        while !self.takes(')') {
            if self.takes('!') {
                shape.without.push(self.field()?);
                continue;
            }
            let field = match (self.peek(0), self.peek(1)) {
                (Some(Token::Mark('(')), Some(Token::Word(word))) if word.starts_with('#') => {
                    self.at += 1;
                    self.predicate()?;
                    continue;
                }
                (Some(Token::Word(_)), Some(Token::Mark(':'))) => {
                    let field = self.field()?;
                    self.at += 1;
                    Some(field)
                }
                _ => None,
            };
            let (one_of, several) = self.node()?;
            shape.children.push(Child { field, several, one_of });
        }
        Ok(shape)
    }

    /// `#name …)`.
    fn predicate(&mut self) -> Result<(), QueryError> {
        let mut words = Vec::new();
        while !self.takes(')') {
            match self.next() {
                Some(Token::Word(word) | Token::Text(word)) => words.push(word),
                Some(Token::Mark('@')) => {}
                _ => return Err(self.error("unterminated predicate")),
            }
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let (capture, test) = match words[..] {
            ["#set!", property] => {
                self.properties.push(property.to_owned());
                return Ok(());
            }
            ["#eq?", capture, text] => (capture, Test::Is(text.to_owned())),
            [fits @ ("#match?" | "#not-match?"), capture, text] => {
                let regex = Regex::new(text).map_err(|error| self.error(&error.to_string()))?;
                (capture, Test::Matches(regex, fits == "#match?"))
            }
            ["#bracket?", capture] => (capture, Test::BeforeBracket),
            _ => return self.unknown(&words.join(" ")),
        };
        let capture = self.capture(capture);
        self.tests.push((capture, test));
        Ok(())
    }

    fn shape(&self, kind: &str, named: bool) -> Result<Shape, QueryError> {
        let kind = match (kind, self.grammar.id_for_node_kind(kind, named)) {
            ("_", _) => None,
            (_, 0) => return self.unknown(kind),
            (_, id) => Some(id),
        };
        Ok(Shape { kind, ..Shape::default() })
    }

    fn field(&mut self) -> Result<u16, QueryError> {
        let name = self.word()?;
        let id = self.grammar.field_id_for_name(&name);
        id.map_or_else(|| self.unknown(&name), |id| Ok(id.get()))
    }

    /// The index of a capture's name.
    fn capture(&mut self, name: &str) -> Capture {
        let known = self.captures.iter().position(|other| other == name);
        known.unwrap_or_else(|| {
            self.captures.push(name.to_owned());
            self.captures.len() - 1
        })
    }

    fn word(&mut self) -> Result<String, QueryError> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(self.error("expected a name")),
        }
    }

    fn peek(&self, by: usize) -> Option<&Token> {
        self.tokens.get(self.at + by).map(|(_, token)| token)
    }

    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).map(|(_, token)| token.clone())
    }

    fn takes(&mut self, mark: char) -> bool {
        let there = self.peek(0) == Some(&Token::Mark(mark));
        self.at += usize::from(there);
        there
    }

    fn unknown<T>(&self, name: &str) -> Result<T, QueryError> {
        Err(self.error(&format!("there is no {name}")))
    }

    fn error(&self, what: &str) -> QueryError {
        let last = self.tokens.get(self.at.saturating_sub(1)).or(self.tokens.last());
        QueryError { line: last.map_or(0, |(line, _)| *line), what: what.to_owned() }
    }
}

fn tokens(query: &str) -> Result<Vec<(usize, Token)>, QueryError> {
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(query.lines()) {
        let error = |what: &str| QueryError { line, what: what.to_owned() };
        let mut rest = text.trim_start();
        while let Some(c) = rest.chars().next().filter(|c| *c != ';') {
            let (token, after) = match c {
                '(' | ')' | '[' | ']' | ':' | '!' | '@' | '+' => (Token::Mark(c), &rest[1..]),
                '"' => {
                    let text = rest[1..].split_once('"');
                    let (text, after) = text.ok_or_else(|| error("unterminated string"))?;
                    (Token::Text(text.to_owned()), after)
                }
                _ => {
                    let of_word =
                        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '#' | '?');
                    let end = rest.find(|c| !(of_word(c) || c == '!' && rest.starts_with('#')));
                    let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                    if word.is_empty() {
                        return Err(error("unexpected character"));
                    }
                    (Token::Word(word.to_owned()), after)
                }
            };
            tokens.push((line, token));
            rest = after.trim_start();
        }
    }
    Ok(tokens)
}
