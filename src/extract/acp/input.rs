//! What the raw input of a tool call names: paths under whatever key its maker chose, folders,
//! command lines, and whether it looks like a write or a search.
//!
//! The rules go by the words that a key is made of and by the shape of its value, never by
//! maker. Knows no session and no disk.

use crate::extract::json::{Members, elements, text};
use crate::extract::shell::{Command, patch};
use crate::extract::uri;

/// Objects within objects that are looked into. Makers nest two or three deep.
const MOST_DEPTH: usize = 8;
/// Values of one input that are looked at; what comes behind them is not seen.
const MOST_VALUES: usize = 2048;

/// What an input names.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    /// Paths as they stand there, relative or absolute.
    pub(crate) paths: Vec<String>,
    /// Paths that the input itself says are written.
    pub(crate) written: Vec<String>,
    /// Working directories.
    pub(crate) folders: Vec<String>,
    pub(crate) commands: Vec<Command>,
    pub(crate) shape: Shape,
    /// A text under a key that names paths cannot be read for certain.
    pub(crate) unreadable: bool,
    /// Files in the heads of diffs, which only count where nothing else says what is written: some
    /// makers have bare names there, or names of their own.
    headed: Vec<String>,
}

/// What the keys of an input say of its purpose.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Shape {
    /// Some key holds something to write.
    pub(crate) writes: bool,
    /// Some key holds something to search for.
    pub(crate) searches: bool,
    /// What is searched for is a pattern: the web takes none, files do.
    pub(crate) matches: bool,
    /// Some key is none that a mere read would have.
    pub(crate) more_than_reads: bool,
}

impl Shape {
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            writes: self.writes || other.writes,
            searches: self.searches || other.searches,
            matches: self.matches || other.matches,
            more_than_reads: self.more_than_reads || other.more_than_reads,
        }
    }
}

/// What the value of a key is, by the key's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    Path,
    Target,
    Folder,
    Command,
    Commands,
    Arguments,
    Content,
    Diff,
    Query,
    Pattern,
    /// A range, a flag: what a read has beside its path.
    Detail,
    Other,
}

/// Reads an input. What is no object, or no text where one is expected, names nothing.
pub(crate) fn read(raw: &str) -> Named {
    let mut named = Named::default();
    let mut budget = MOST_VALUES;
    if let Some(body) = text(raw) {
        named.patch(&body);
    }
    let mut todo = vec![(raw, 0)];
    while let Some((raw, depth)) = todo.pop() {
        if let Some(members) = Members::of(raw) {
            named.object(&members, depth, &mut budget, &mut todo);
        } else if let Some(items) = elements(raw) {
            named.unreadable |= items.len() > budget;
            let inner = items.into_iter().take(budget).filter(|item| is_nested(item));
            todo.extend(inner.map(|item| (item, depth + 1)));
        }
    }
    if named.paths.is_empty() && named.written.is_empty() {
        named.written = std::mem::take(&mut named.headed);
    }
    named
}

impl Named {
    fn object<'a>(
        &mut self,
        members: &Members<'a>,
        depth: usize,
        budget: &mut usize,
        todo: &mut Vec<(&'a str, usize)>,
    ) {
        let mut program: Option<String> = None;
        let mut arguments: Vec<String> = Vec::new();
        for (key, value) in members.iter() {
            if *budget == 0 {
                self.unreadable = true;
                return;
            }
            *budget -= 1;
            if is_empty(value) {
                continue;
            }
            let meaning = meaning(key);
            self.shape.writes |= matches!(meaning, Meaning::Content | Meaning::Diff);
            self.shape.searches |= matches!(meaning, Meaning::Query | Meaning::Pattern);
            self.shape.matches |= meaning == Meaning::Pattern;
            self.shape.more_than_reads |= meaning == Meaning::Other || meaning == Meaning::Target;
            match meaning {
                Meaning::Path => self.values(value, |named, path| named.paths.push(path)),
                Meaning::Target => self.values(value, |named, path| named.written.push(path)),
                Meaning::Folder => self.values(value, |named, path| named.folders.push(path)),
                Meaning::Command => match (text(value), strings(value)) {
                    (Some(line), _) => program = Some(line.into_owned()),
                    (_, Some(argv)) => self.commands.push(Command::Argv(argv)),
                    _ => {}
                },
                Meaning::Commands => {
                    self.commands.extend(strings(value).into_iter().flatten().map(Command::Line));
                }
                Meaning::Arguments => match text(value) {
                    // Models write them as text, and some makers pass that on.
                    Some(inner) => self.add(read(&inner)),
                    None => arguments.extend(strings(value).into_iter().flatten()),
                },
                Meaning::Diff => {
                    if let Some(body) = text(value) {
                        self.patch(&body);
                        self.headed.extend(patch::files(&body).into_iter().map(str::to_owned));
                    }
                }
                Meaning::Content
                | Meaning::Query
                | Meaning::Pattern
                | Meaning::Detail
                | Meaning::Other => {
                    if let Some(body) = text(value) {
                        self.patch(&body);
                    }
                }
            }
            // A table of files: each path is a key.
            if key.starts_with('/') && value.starts_with('{') && uri::path_of(key).is_some() {
                self.written.push(key.to_owned());
            }
            if is_nested(value) {
                if depth < MOST_DEPTH {
                    todo.push((value, depth + 1));
                } else {
                    self.unreadable = true;
                }
            }
        }
        match program {
            Some(program) if !arguments.is_empty() => {
                arguments.insert(0, program);
                self.commands.push(Command::Argv(arguments));
            }
            Some(line) => self.commands.push(Command::Line(line)),
            None => {}
        }
    }

    /// Takes a text, or each text of an array, that may be a path.
    fn values(&mut self, value: &str, mut take: impl FnMut(&mut Self, String)) {
        let items = elements(value).unwrap_or_else(|| vec![value]);
        for item in items {
            match text(item) {
                Some(path) if is_pathlike(&path) => take(self, path.into_owned()),
                Some(_) => {}
                // A string that is no Unicode.
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

    fn patch(&mut self, body: &str) {
        if patch::is_patch(body) {
            self.shape.writes = true;
            self.written.extend(patch::files(body).into_iter().map(str::to_owned));
        }
    }
}

/// Goes by the last words of a key: `abs_path`, `targetFile`, `notebook_path`, `cwd`, ….
fn meaning(key: &str) -> Meaning {
    let key: String =
        key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let ends_with = |ends: &[&str]| ends.iter().any(|end| key.ends_with(end));
    match key.as_str() {
        "profile" | "xpath" | "jsonpath" | "outputfile" | "showfile" => Meaning::Other,
        "movepath" | "newpath" | "destination" | "destinationpath" | "dest" | "destpath"
        | "moveto" | "outputpath" => Meaning::Target,
        "cwd" | "workdir" | "workingdir" | "workingdirectory" | "dir" | "directory" | "folder"
        | "directories" | "dirs" => Meaning::Folder,
        "command" | "cmd" | "script" | "commandline" | "shellcommand" | "bashcommand" | "argv"
        | "program" | "executable" => Meaning::Command,
        "commands" => Meaning::Commands,
        "args" | "arguments" | "params" | "parameters" => Meaning::Arguments,
        "diff" | "unifieddiff" | "patch" => Meaning::Diff,
        "query" | "search" | "searchterm" | "needle" => Meaning::Query,
        "pattern" | "regex" | "regexp" | "glob" | "include" | "globpattern" | "searchpattern" => {
            Meaning::Pattern
        }
        "content" | "contents" | "filetext" | "filecontent" | "newcontent" | "text" | "newtext"
        | "oldtext" | "old" | "new" | "newstr" | "oldstr" | "newstring" | "oldstring" | "edit"
        | "edits" | "changes" | "replacement" | "replacements" | "insert" | "inserttext"
        | "insertline" | "codeedit" | "newsource" | "replace" | "replaceall" => Meaning::Content,
        _ if ends_with(&[
            "path",
            "paths",
            "file",
            "files",
            "filename",
            "filenames",
            "uri",
            "uris",
        ]) =>
        {
            Meaning::Path
        }
        _ if ends_with(&[
            "line", "lines", "limit", "offset", "range", "start", "end", "encoding",
        ]) || [
            "max", "start", "end", "line", "view", "ignore", "head", "tail", "case", "output",
        ]
        .iter()
        .any(|start| key.starts_with(start))
            || matches!(key.as_str(), "description" | "title" | "type" | "name" | "recursive") =>
        {
            Meaning::Detail
        }
        _ => Meaning::Other,
    }
}

/// Whether a text can be meant as a path: one line, and no URI of another kind.
fn is_pathlike(text: &str) -> bool {
    !text.contains('\n') && uri::path_of(text).is_some()
}

fn is_nested(raw: &str) -> bool {
    raw.starts_with(['{', '['])
}

fn is_empty(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"" | "[]" | "{}" | "false")
}

/// The strings of an array; None if it holds anything else.
fn strings(raw: &str) -> Option<Vec<String>> {
    elements(raw)?.into_iter().map(|item| text(item).map(std::borrow::Cow::into_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(raw: &str) -> Vec<String> {
        let mut named = read(raw);
        named.paths.append(&mut named.written);
        named.paths
    }

    #[test]
    fn makers_name_paths_under_keys_of_their_own() {
        for key in [
            "path",
            "file_path",
            "filePath",
            "FilePath",
            "abs_path",
            "absolute_path",
            "filename",
            "fileName",
            "target_file",
            "notebook_path",
            "relative_workspace_path",
            "uri",
            "file",
            "paths",
            "files",
            "new_path",
            "move_path",
        ] {
            assert_eq!(paths(&format!(r#"{{"{key}":"a/b.rs"}}"#)), ["a/b.rs"], "{key}");
        }
        assert_eq!(paths(r#"{"paths":["a","b"]}"#), ["a", "b"]);
        assert_eq!(
            paths(r#"{"parsed_cmd":[{"type":"read","path":"x.rs","name":"x.rs"}]}"#),
            ["x.rs"]
        );
        assert_eq!(paths(r#"{"changes":{"/w/a":{"type":"update","move_path":null}}}"#), ["/w/a"]);
        assert_eq!(paths(r#"{"input":"*** Begin Patch\n*** Add File: n.rs\n"}"#), ["n.rs"]);
    }

    #[test]
    fn what_is_no_path_is_left_out() {
        for raw in [
            r#"{"profile":"x","content":"a/b","query":"path","url":"https://x/y"}"#,
            r#"{"uri":"https://x/y"}"#,
            r#"{"path":null,"file":""}"#,
            r#"{"file":"line one\nline two"}"#,
            r#"{"path":3}"#,
            "[]",
            "7",
        ] {
            assert!(paths(raw).is_empty(), "{raw}");
        }
    }

    #[test]
    fn commands_come_as_text_and_as_arguments() {
        let line = |text: &str| Command::Line(text.to_owned());
        let argv = |argv: &[&str]| Command::Argv(argv.iter().map(|a| (*a).to_owned()).collect());
        let cases = [
            (r#"{"command":"cat x","timeout":1}"#, vec![line("cat x")]),
            (r#"{"cmd":["bash","-lc","cat x"]}"#, vec![argv(&["bash", "-lc", "cat x"])]),
            (r#"{"command":"cat","args":["x","y"]}"#, vec![argv(&["cat", "x", "y"])]),
            (r#"{"commands":["a","b"]}"#, vec![line("a"), line("b")]),
        ];
        for (raw, commands) in cases {
            assert_eq!(read(raw).commands, commands, "{raw}");
        }
        assert_eq!(read(r#"{"command":"x","cwd":"/w","workdir":"/v"}"#).folders, ["/w", "/v"]);
    }

    #[test]
    fn keys_tell_writes_and_searches() {
        let shape = |raw| {
            let Shape { writes, searches, more_than_reads, .. } = read(raw).shape;
            (writes, searches, more_than_reads)
        };
        assert_eq!(shape(r#"{"path":"a","offset":1,"limit":2}"#), (false, false, false));
        assert_eq!(shape(r#"{"path":"a","content":"x"}"#), (true, false, false));
        assert_eq!(
            shape(r#"{"file_path":"a","old_string":"x","new_string":"y"}"#),
            (true, false, false)
        );
        assert_eq!(shape(r#"{"pattern":"a","path":"."}"#), (false, true, false));
        assert_eq!(shape(r#"{"path":"a","sign":true}"#), (false, false, true));
    }

    #[test]
    fn odd_inputs_are_bounded() {
        read(&format!("{}1{}", r#"{"a":["#.repeat(20_000), "]}".repeat(20_000)));
        assert!(read(r#"{"path":"\ud800"}"#).unreadable);
        assert!(!read(r#"{"content":"\ud800","path":"a"}"#).unreadable);
    }
}
