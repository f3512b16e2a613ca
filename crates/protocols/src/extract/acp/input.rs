//! Reads the raw input of a tool call: its paths, folders and command lines under any key, and
//! whether it looks like a write or a search.
//!
//! The rules match the words of a key and the shape of its value, never a product. Does not know
//! sessions or the disk.

mod meaning;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use agent_client_protocol_schema::v1::ToolKind;

use self::meaning::{Meaning, meaning};
use crate::extract::json::{Members, elements, is_json, text};
use crate::extract::shell::{ShellCommand, patch};
use crate::extract::uri;

/// Deepest nesting of objects to read. Agents nest two or three deep.
const MOST_DEPTH: usize = 8;
/// Values of one input to read; the rest is ignored.
const MOST_VALUES: usize = 2048;

/// The contents of an input.
#[derive(Default, Debug)]
pub(crate) struct Named {
    /// The kind of the call, if it is known.
    kind: Option<ToolKind>,
    /// Paths as written, relative or absolute.
    pub(crate) paths: Vec<String>,
    /// Paths that the input names as targets of a write.
    pub(crate) written: Vec<String>,
    /// Working directories.
    pub(crate) folders: Vec<String>,
    pub(crate) commands: Vec<ShellCommand>,
    pub(crate) shape: Shape,
    /// A path has no certain reading.
    pub(crate) unreadable: bool,
    /// Files in diff headers. They may be bare or invented names, so any other path replaces them.
    headed: Vec<String>,
}

/// An object or array within an input.
struct Nested<'a> {
    raw: &'a str,
    depth: usize,
    /// Its keys may be files.
    is_table: bool,
}

/// The program and the arguments of an object, which stand under keys of their own.
#[derive(Default)]
struct Invocation<'a> {
    program: Option<ShellCommand>,
    arguments: Vec<String>,
    /// Arguments in one text, for a shell to split.
    line: Option<Cow<'a, str>>,
}

/// The purpose of an input, by its keys.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Shape {
    /// Some key holds a text to write.
    pub(crate) writes: bool,
    /// Some key holds a pattern to search for.
    pub(crate) searches: bool,
    /// The search is for a pattern: files, not the web, are searched by pattern.
    pub(crate) matches: bool,
    /// Some key is unusual for a read.
    pub(crate) more_than_reads: bool,
}

impl Invocation<'_> {
    fn command(self) -> Option<ShellCommand> {
        Some(match (self.program?, self.line) {
            (ShellCommand::Line(program), _) if !self.arguments.is_empty() => {
                ShellCommand::Argv([vec![program], self.arguments].concat())
            }
            (ShellCommand::Line(program), Some(line)) => {
                ShellCommand::Line(format!("{program} {line}"))
            }
            (program, _) => program,
        })
    }
}

impl Shape {
    fn take(&mut self, meaning: Meaning) {
        self.writes |= matches!(meaning, Meaning::Content | Meaning::Changes | Meaning::Diff);
        self.searches |= matches!(meaning, Meaning::Query | Meaning::Pattern);
        self.matches |= meaning == Meaning::Pattern;
        self.more_than_reads |= matches!(meaning, Meaning::Other | Meaning::Target);
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            writes: self.writes || other.writes,
            searches: self.searches || other.searches,
            matches: self.matches || other.matches,
            more_than_reads: self.more_than_reads || other.more_than_reads,
        }
    }
}

/// Reads the input of a call of that kind. Values of an unexpected type are ignored.
pub(crate) fn read(raw: &str, kind: Option<ToolKind>) -> Named {
    if let Some(inner) = text(raw).filter(|body| holds_json(body)) {
        return read(&inner, kind);
    }
    let mut named = Named { kind, ..Named::default() };
    named.bare(raw);
    let mut budget = MOST_VALUES;
    let mut todo = vec![Nested { raw, depth: 0, is_table: false }];
    while let Some(nested) = todo.pop() {
        if let Some(members) = Members::of(nested.raw) {
            named.object(&members, &nested, &mut budget, &mut todo);
        } else if let Some(items) = elements(nested.raw) {
            named.unreadable |= items.len() > budget;
            let depth = nested.depth + 1;
            let inner = items.into_iter().take(budget).filter(|item| is_nested(item));
            todo.extend(inner.map(|raw| Nested { raw, depth, is_table: false }));
        }
    }
    if named.paths.is_empty() && named.written.is_empty() {
        named.written = std::mem::take(&mut named.headed);
    }
    named
}

impl Named {
    /// Reads an input without keys, by the kind of its call.
    fn bare(&mut self, raw: &str) {
        if let Some(body) = text(raw) {
            self.body(&body);
        }
        match self.kind {
            Some(ToolKind::Execute) => self.commands.extend(command(raw)),
            Some(ToolKind::Read | ToolKind::Edit | ToolKind::Delete) => {
                self.paths.extend(texts(raw).into_iter().filter(|text| looks_like_file(text)));
            }
            _ => {}
        }
    }

    fn object<'a>(
        &mut self,
        members: &Members<'a>,
        nested: &Nested<'_>,
        budget: &mut usize,
        todo: &mut Vec<Nested<'a>>,
    ) {
        let mut invocation = Invocation::default();
        for (key, value) in members.iter() {
            if *budget == 0 {
                self.unreadable = true;
                return;
            }
            *budget -= 1;
            if is_empty(value) {
                continue;
            }
            let is_file = key.starts_with('/') && value.starts_with('{') && is_pathlike(key)
                || nested.is_table && looks_like_file(key);
            let meaning = if is_file {
                let reads = self.kind == Some(ToolKind::Read);
                let files = if reads { &mut self.paths } else { &mut self.written };
                files.push(key.to_owned());
                Meaning::Other
            } else {
                meaning(key, has_text(value), self.kind)
            };
            self.shape.take(meaning);
            self.member(meaning, value, &mut invocation);
            if is_nested(value) {
                if nested.depth < MOST_DEPTH {
                    let is_table = matches!(meaning, Meaning::Path | Meaning::Changes);
                    todo.push(Nested { raw: value, depth: nested.depth + 1, is_table });
                } else {
                    self.unreadable = true;
                }
            }
        }
        self.commands.extend(invocation.command());
    }

    /// Takes the value of a key by what the key means.
    fn member<'a>(&mut self, meaning: Meaning, value: &'a str, invocation: &mut Invocation<'a>) {
        match meaning {
            Meaning::Path => self.values(value, |named, path| named.paths.push(path)),
            Meaning::Target => self.values(value, |named, path| named.written.push(path)),
            Meaning::Folder => self.values(value, |named, path| named.folders.push(path)),
            Meaning::Command => {
                invocation.program = command(value).or(invocation.program.take());
            }
            Meaning::Commands => {
                self.commands.extend(texts(value).into_iter().map(ShellCommand::Line));
            }
            Meaning::Arguments | Meaning::Input => match text(value) {
                // Models write JSON as text, which some agents pass on.
                Some(inner) if holds_json(&inner) => self.add(read(&inner, self.kind)),
                Some(body) => {
                    self.body(&body);
                    self.shape.more_than_reads |= meaning == Meaning::Input;
                    if meaning == Meaning::Arguments {
                        invocation.line = Some(body);
                    }
                }
                None => {
                    self.shape.more_than_reads |= !has_text(value);
                    invocation.arguments.extend(strings(value).into_iter().flatten());
                }
            },
            Meaning::Diff => {
                if let Some(body) = text(value) {
                    self.body(&body);
                    self.headed.extend(patch::files(&body).into_iter().map(str::to_owned));
                }
            }
            Meaning::Content
            | Meaning::Changes
            | Meaning::Query
            | Meaning::Pattern
            | Meaning::Detail => {
                if let Some(body) = text(value) {
                    self.patch(&body);
                }
            }
            Meaning::Other => {
                if let Some(body) = text(value) {
                    self.body(&body);
                }
            }
        }
    }

    /// Adds a text, or each text of an array, that may be a path.
    fn values(&mut self, value: &str, mut take: impl FnMut(&mut Self, String)) {
        let inner = text(value).filter(|text| text.starts_with('[') && is_json(text));
        let value = inner.as_deref().unwrap_or(value);
        let items = elements(value).unwrap_or_else(|| vec![value]);
        for item in items {
            match text(item) {
                Some(path) if is_pathlike(path.trim_end()) => {
                    take(self, path.trim_end_matches(['\r', '\n']).to_owned());
                }
                Some(_) => {}
                // A string that is not Unicode.
                None => self.unreadable |= item.starts_with('"'),
            }
        }
    }

    fn add(&mut self, inner: Self) {
        self.paths.extend(inner.paths);
        self.written.extend(inner.written);
        self.folders.extend(inner.folders);
        self.commands.extend(inner.commands);
        self.shape = self.shape.or(inner.shape);
        self.unreadable |= inner.unreadable;
    }

    /// Reads a text that may be a patch of either format.
    fn body(&mut self, body: &str) {
        self.patch(body);
        if patch::is_unified(body) {
            self.shape.writes = true;
            self.headed.extend(patch::files(body).into_iter().map(str::to_owned));
        }
    }

    fn patch(&mut self, body: &str) {
        if patch::is_patch(body) {
            self.shape.writes = true;
            self.written.extend(patch::files(body).into_iter().map(str::to_owned));
        }
    }
}

/// Whether a text can be a path: one line, and no URI of another scheme.
fn is_pathlike(text: &str) -> bool {
    !text.contains('\n') && uri::path_of(text).is_some()
}

/// Whether a text can hardly be anything but a file.
fn looks_like_file(text: &str) -> bool {
    let inner = text.trim_end_matches('.');
    is_pathlike(text) && !text.contains(char::is_whitespace) && inner.contains(['/', '.'])
}

/// Whether a text is JSON that may name paths.
fn holds_json(text: &str) -> bool {
    is_nested(text.trim_start()) && is_json(text)
}

/// A command line, or a program with its arguments, which some agents write as JSON text.
fn command(raw: &str) -> Option<ShellCommand> {
    let line = text(raw);
    let words = line.as_deref().filter(|line| line.starts_with('[') && is_json(line));
    match strings(words.unwrap_or(raw)) {
        Some(argv) => Some(ShellCommand::Argv(argv)),
        None => line.map(|line| ShellCommand::Line(line.into_owned())),
    }
}

/// A text, or the texts of an array.
fn texts(raw: &str) -> Vec<String> {
    let one = text(raw).map(|text| vec![text.into_owned()]);
    one.or_else(|| strings(raw)).unwrap_or_default()
}

/// Whether a value is or may hold a text.
fn has_text(raw: &str) -> bool {
    raw.starts_with('"') || is_nested(raw)
}

fn is_nested(raw: &str) -> bool {
    raw.starts_with(['{', '['])
}

fn is_empty(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"" | "[]" | "{}" | "false")
}

/// The strings of an array; None if it holds anything else.
fn strings(raw: &str) -> Option<Vec<String>> {
    elements(raw)?.into_iter().map(|item| text(item).map(Cow::into_owned)).collect()
}
