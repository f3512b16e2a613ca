//! One pattern in a normal form: braces expanded, split at its slashes, `.` and `..` folded.
//!
//! Braces are expanded because an alternative may be absolute, or climb, or hold slashes, where its
//! neighbour does not. Matching a component is left to globset, but for `[!a]`, which there matches
//! a slash.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use globset::{Error, GlobBuilder};

use super::Workspace;

/// A pattern whose braces multiply beyond this stays as it is: it matches the same paths, only
/// the folders above them are then found less exactly.
const ALTERNATIVES_MAX: usize = 1024;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Glob {
    absolute: bool,
    /// Leading `..` of a relative pattern.
    climbs: usize,
    /// Globs of one component each, `**` among them.
    parts: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobToken<'a> {
    Slash,
    Open,
    Close,
    Comma,
    /// A character, an escaped character, or a whole class.
    Text(&'a str),
}

/// Compiles what a zone calls a pattern: case sensitive, `\` escapes, `*` stops at a slash.
pub fn compile(glob: &str) -> Result<globset::Glob, Error> {
    GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
}

impl Glob {
    /// Parses patterns as a person wrote them. An error names the pattern in these words.
    pub(super) fn parse_all(globs: &[String]) -> Result<Vec<Self>, Error> {
        let mut parsed = Vec::new();
        for glob in globs {
            compile(glob)?;
            parsed.extend(expand(tokens(glob)).iter().filter_map(|tokens| Self::parse(tokens)));
        }
        Ok(parsed)
    }

    /// None for a blank pattern.
    fn parse(tokens: &[GlobToken]) -> Option<Self> {
        let absolute = *tokens.first()? == GlobToken::Slash;
        let mut glob = Self { absolute, climbs: 0, parts: Vec::new() };
        for part in split(tokens) {
            match part.as_str() {
                "" | "." => {}
                ".." if glob.parts.pop().is_some() || absolute => {}
                ".." => glob.climbs += 1,
                _ => glob.parts.push(part),
            }
        }
        // `ui/` is the folder with all it holds; `/` alone stays the one folder it names.
        if tokens.last() == Some(&GlobToken::Slash) && !(absolute && glob.parts.is_empty()) {
            glob.parts.push("**".to_owned());
        }
        Some(glob)
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// Whether it names one path.
    pub(super) fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| literal(part).is_some())
    }

    /// Whether it leaves the workspace by `..`.
    pub(super) fn climbs(&self) -> bool {
        self.climbs > 0
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(String::as_str)
    }

    pub(super) fn text(&self) -> String {
        let root = if self.absolute { "/" } else { "" };
        format!("{root}{}", self.parts.join("/"))
    }

    /// Everything below its matches.
    pub(super) fn below(&self) -> Self {
        let mut below = self.clone();
        below.parts.push("**".to_owned());
        below
    }

    /// The patterns of the folders above its matches.
    pub(super) fn above(&self) -> impl Iterator<Item = Self> {
        (1..self.parts.len()).map(|end| Self { parts: self.parts[..end].to_vec(), ..*self })
    }

    /// Makes a pattern that climbs out of the workspace absolute.
    pub(super) fn climbed(self, workspace: &Workspace) -> Self {
        if !self.climbs() {
            return self;
        }
        let landing = workspace.real.ancestors().nth(self.climbs).unwrap_or(Path::new("/"));
        match Self::literal(landing) {
            Some(landing) => landing.join(&self.parts),
            None => self,
        }
    }

    /// Makes an absolute pattern that names the workspace relative to it.
    pub(super) fn within(self, workspace: &Workspace) -> Self {
        if !self.absolute {
            return self;
        }
        let (prefix, _) = self.literal_prefix(Path::new("/"));
        let roots = [&workspace.real, &workspace.spelled];
        let Some(root) = roots.into_iter().find(|root| prefix.starts_with(root)) else {
            return self;
        };
        let depth = root.components().count() - 1;
        Self { absolute: false, climbs: 0, parts: self.parts[depth..].to_vec() }
    }

    /// The same pattern with its named folder replaced by the result of `real`, if that is another.
    pub(super) fn relocated(
        &self,
        workspace: &Workspace,
        real: impl Fn(&Path) -> Option<PathBuf>,
    ) -> Option<Self> {
        let base = if self.absolute { Path::new("/") } else { &workspace.real };
        let (prefix, rest) = self.literal_prefix(base);
        let moved = real(&prefix).filter(|moved| *moved != prefix)?;
        Some(Self::literal(&moved)?.join(rest))
    }

    /// The path before its first wildcard.
    pub(super) fn beginning(&self) -> String {
        let base = if self.absolute { "/" } else { "" };
        self.literal_prefix(Path::new(base)).0.to_string_lossy().into_owned()
    }

    /// The path before its first wildcard, below `base`, and the parts behind that.
    fn literal_prefix(&self, base: &Path) -> (PathBuf, &[String]) {
        let names: Vec<_> = self.parts.iter().map_while(|part| literal(part)).collect();
        let mut prefix = base.to_path_buf();
        prefix.extend(&names);
        (prefix, &self.parts[names.len()..])
    }

    /// The pattern of exactly one absolute path; None if it is no UTF-8.
    fn literal(path: &Path) -> Option<Self> {
        let names = path.to_str()?.split('/').filter(|name| !name.is_empty());
        let parts = names.map(escaped).collect();
        Some(Self { absolute: true, climbs: 0, parts })
    }

    fn join(mut self, parts: &[String]) -> Self {
        self.parts.extend_from_slice(parts);
        self
    }
}

/// The pattern of exactly one path, or of one folder where more stands behind it. A letter that has a meaning
/// of its own at the beginning of a pattern loses it.
pub fn pattern_of(path: &str) -> String {
    let first = if path.starts_with(['!', '~']) { "\\" } else { "" };
    format!("{first}{}", escaped(path))
}

/// A name, or a path, without a meaning in a pattern but for its first letter.
fn escaped(name: &str) -> String {
    // A class takes a backslash as it is.
    globset::escape(name).replace('\\', r"[\]")
}

/// Splits a pattern that globset has accepted.
fn tokens(glob: &str) -> Vec<GlobToken<'_>> {
    let mut tokens = Vec::new();
    let mut rest = glob;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_len(rest),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(len);
        rest = behind;
        tokens.push(match token {
            "/" | r"\/" => GlobToken::Slash,
            "{" => GlobToken::Open,
            "}" => GlobToken::Close,
            "," => GlobToken::Comma,
            text => GlobToken::Text(text),
        });
    }
    tokens
}

/// The length of the class that `glob` begins with. A `]` that stands first is a member of it.
fn class_len(glob: &str) -> usize {
    let negation = usize::from(glob[1..].starts_with(['!', '^']));
    let first = glob[1 + negation..].chars().next().map_or(0, char::len_utf8);
    let members = 1 + negation + first;
    glob[members..].find(']').map_or(glob.len(), |end| members + end + 1)
}

/// The components of a pattern, split at slashes outside of braces.
fn split(tokens: &[GlobToken]) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for token in tokens {
        let text = match token {
            GlobToken::Slash if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            GlobToken::Slash => "/",
            GlobToken::Open => {
                depth += 1;
                "{"
            }
            GlobToken::Close => {
                depth = depth.saturating_sub(1);
                "}"
            }
            GlobToken::Comma => ",",
            GlobToken::Text(text) => text,
        };
        if let Some(part) = parts.last_mut() {
            part.push_str(&within_segment(text));
        }
    }
    parts
}

/// Makes a negated class exclude the slash. A `-` that stands last must go on doing so: before
/// the slash it would span a range.
fn within_segment(text: &str) -> Cow<'_, str> {
    match text.strip_suffix(']') {
        Some(class) if class.starts_with("[!") || class.starts_with("[^") => {
            match class.strip_suffix('-') {
                Some(class) => format!("{class}/-]").into(),
                None => format!("{class}/]").into(),
            }
        }
        _ => text.into(),
    }
}

/// The one name that a component's pattern matches, if it is one: escapes are undone.
pub(super) fn literal(part: &str) -> Option<String> {
    let mut name = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?),
            '[' => {
                let member = chars.next().filter(|member| !"!^".contains(*member))?;
                chars.next().filter(|end| *end == ']')?;
                name.push(member);
            }
            '*' | '?' | '{' | '}' => return None,
            c => name.push(c),
        }
    }
    (name != "." && name != ".." && !name.contains('/')).then_some(name)
}

/// Expands every brace.
fn expand(glob: Vec<GlobToken<'_>>) -> Vec<Vec<GlobToken<'_>>> {
    let mut pending = vec![glob.clone()];
    let mut expanded = Vec::new();
    while let Some(next) = pending.pop() {
        match Group::first(&next) {
            Some(group) => pending.extend(group.expand()),
            None => expanded.push(next),
        }
        if pending.len() + expanded.len() > ALTERNATIVES_MAX {
            return vec![glob];
        }
    }
    expanded
}

/// The first brace of a pattern, with the text before and behind it.
struct Group<'t, 'a> {
    before: &'t [GlobToken<'a>],
    alternatives: Vec<&'t [GlobToken<'a>]>,
    behind: &'t [GlobToken<'a>],
}

impl<'t, 'a> Group<'t, 'a> {
    fn first(glob: &'t [GlobToken<'a>]) -> Option<Self> {
        let open = glob.iter().position(|token| *token == GlobToken::Open)?;
        let mut alternatives = Vec::new();
        let mut depth = 0_usize;
        let mut from = open + 1;
        for (at, token) in glob.iter().enumerate().skip(from) {
            match token {
                GlobToken::Open => depth += 1,
                GlobToken::Comma if depth == 0 => {
                    alternatives.push(&glob[from..at]);
                    from = at + 1;
                }
                GlobToken::Close if depth == 0 => {
                    alternatives.push(&glob[from..at]);
                    return Some(Self {
                        before: &glob[..open],
                        alternatives,
                        behind: &glob[at + 1..],
                    });
                }
                GlobToken::Close => depth -= 1,
                GlobToken::Slash | GlobToken::Comma | GlobToken::Text(_) => {}
            }
        }
        None
    }

    fn expand(&self) -> impl Iterator<Item = Vec<GlobToken<'a>>> {
        let Self { before, alternatives, behind } = self;
        alternatives.iter().map(|alternative| [before, *alternative, behind].concat())
    }
}
