//! Parses queries: the part of tree-sitter's query language that ours use.

/// A node of a pattern, as written.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Written {
    /// `(kind …)`, `(_ …)` or `_`; with `"text"`, a token.
    Node { kind: String, named: bool, parts: Vec<QueryPart>, captures: Vec<String> },
    /// `[…]`
    OneOf { of: Vec<Written>, captures: Vec<String> },
}

/// A part of a node's pattern, behind its kind.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum QueryPart {
    /// `(…)` or `field: (…)`; with `+`, `several` children may match.
    Child { field: Option<String>, several: bool, node: Written },
    /// `!field`
    Without(String),
    /// `(#name …)`
    Predicate(Vec<String>),
}

/// A syntax error and its line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct SyntaxError {
    line: usize,
    what: &'static str,
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Mark(char),
    Word(String),
    Text(String),
}

/// Parses all patterns of a query.
pub(super) fn patterns(query: &str) -> Result<Vec<Written>, SyntaxError> {
    let mut reader = Reader { tokens: tokens(query)?, at: 0 };
    let mut patterns = Vec::new();
    while reader.peek().is_some() {
        patterns.push(reader.node()?.0);
    }
    Ok(patterns)
}

fn tokens(query: &str) -> Result<Vec<(usize, Token)>, SyntaxError> {
    let mut tokens = Vec::new();
    for (number, line) in query.lines().enumerate() {
        let number = number + 1;
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next().filter(|c| *c != ';') {
            let (token, after) = match c {
                '(' | ')' | '[' | ']' | ':' | '!' | '@' | '+' => (Token::Mark(c), &rest[1..]),
                '"' => {
                    let end = rest[1..].find('"');
                    let end =
                        end.ok_or(SyntaxError { line: number, what: "unterminated string" })?;
                    (Token::Text(rest[1..=end].to_owned()), &rest[end + 2..])
                }
                _ => {
                    let of_word =
                        |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '#' | '?');
                    let end = rest.find(|c| !(of_word(c) || c == '!' && rest.starts_with('#')));
                    let end = end.unwrap_or(rest.len());
                    if end == 0 {
                        return Err(SyntaxError { line: number, what: "unexpected character" });
                    }
                    (Token::Word(rest[..end].to_owned()), &rest[end..])
                }
            };
            tokens.push((number, token));
            rest = after.trim_start();
        }
    }
    Ok(tokens)
}

struct Reader {
    tokens: Vec<(usize, Token)>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn next(&mut self) -> Option<Token> {
        self.at += 1;
        self.tokens.get(self.at - 1).map(|(_, token)| token.clone())
    }

    fn error(&self, what: &'static str) -> SyntaxError {
        let last = self.tokens.get(self.at.saturating_sub(1)).or(self.tokens.last());
        SyntaxError { line: last.map_or(0, |(line, _)| *line), what }
    }

    fn takes(&mut self, mark: char) -> bool {
        let there = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(there);
        there
    }

    fn word(&mut self) -> Result<String, SyntaxError> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(self.error("expected a name")),
        }
    }

    /// A node, and whether several may match.
    fn node(&mut self) -> Result<(Written, bool), SyntaxError> {
        let mut node = match self.next() {
            Some(Token::Mark('(')) => self.bracketed()?,
            Some(Token::Mark('[')) => {
                let mut of = Vec::new();
                while !self.takes(']') {
                    of.push(self.node()?.0);
                }
                Written::OneOf { of, captures: Vec::new() }
            }
            Some(Token::Text(kind)) => {
                Written::Node { kind, named: false, parts: Vec::new(), captures: Vec::new() }
            }
            Some(Token::Word(kind)) if kind == "_" => {
                Written::Node { kind, named: true, parts: Vec::new(), captures: Vec::new() }
            }
            _ => return Err(self.error("expected a node")),
        };
        let several = self.takes('+');
        while self.takes('@') {
            let capture = self.word()?;
            let (Written::Node { captures, .. } | Written::OneOf { captures, .. }) = &mut node;
            captures.push(capture);
        }
        Ok((node, several))
    }

    fn bracketed(&mut self) -> Result<Written, SyntaxError> {
        let kind = self.word()?;
        let mut parts = Vec::new();
        while !self.takes(')') {
            parts.push(self.part()?);
        }
        Ok(Written::Node { kind, named: true, parts, captures: Vec::new() })
    }

    fn part(&mut self) -> Result<QueryPart, SyntaxError> {
        if self.takes('!') {
            return Ok(QueryPart::Without(self.word()?));
        }
        let ahead = |by: usize| self.tokens.get(self.at + by).map(|(_, token)| token);
        match (ahead(0), ahead(1)) {
            (Some(Token::Mark('(')), Some(Token::Word(word))) if word.starts_with('#') => {
                self.at += 1;
                let mut words = Vec::new();
                while !self.takes(')') {
                    match self.next() {
                        Some(Token::Word(word) | Token::Text(word)) => words.push(word),
                        Some(Token::Mark('@')) => {}
                        _ => return Err(self.error("unterminated predicate")),
                    }
                }
                Ok(QueryPart::Predicate(words))
            }
            (Some(Token::Word(_)), Some(Token::Mark(':'))) => {
                let field = Some(self.word()?);
                self.at += 1;
                self.child(field)
            }
            _ => self.child(None),
        }
    }

    fn child(&mut self, field: Option<String>) -> Result<QueryPart, SyntaxError> {
        let (node, several) = self.node()?;
        Ok(QueryPart::Child { field, several, node })
    }
}
