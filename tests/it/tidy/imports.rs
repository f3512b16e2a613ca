//! Reads which modules each source file names, from its tokens: wrapped imports count like short
//! ones, and comments and strings never count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A path as it is written, `crate`, `super` and `self` included.
type Written = Vec<String>;

/// The paths that a file names, and the names that its imports bind.
#[derive(Default)]
struct Names {
    paths: Vec<Written>,
    bound: BTreeMap<String, Written>,
}

impl Names {
    /// Reads the code of a file, without what is compiled for tests only.
    fn read(code: &str) -> Names {
        let mut names = Names::default();
        names.scan(&tokens(code));
        names
    }

    fn scan(&mut self, mut tokens: &[&str]) {
        while let [first, rest @ ..] = tokens {
            tokens = match *first {
                "#" if rest.starts_with(&["[", "cfg", "(", "test", ")", "]"]) => after_item(rest),
                "use" => self.tree(rest, &[], true),
                "crate" | "super" | "self" => self.tree(tokens, &[], false),
                _ => rest,
            };
        }
    }

    /// Reads one path, or the tree of an import, that follows `before`; returns what is behind.
    fn tree<'a, 'b>(
        &mut self,
        mut tokens: &'a [&'b str],
        before: &[String],
        import: bool,
    ) -> &'a [&'b str] {
        let mut path = before.to_vec();
        loop {
            match tokens {
                ["{", rest @ ..] if import => {
                    tokens = rest;
                    while !matches!(tokens, ["}", ..] | []) {
                        tokens = self.tree(tokens, &path, true);
                        tokens = tokens.strip_prefix(&[","]).unwrap_or(tokens);
                    }
                    return tokens.get(1..).unwrap_or_default();
                }
                [word, rest @ ..] if is_word(word) => {
                    path.push((*word).to_owned());
                    tokens = rest;
                }
                [_, rest @ ..] if import => tokens = rest,
                _ => break,
            }
            match tokens {
                ["::", rest @ ..] => tokens = rest,
                _ => break,
            }
        }
        if import {
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let mut name = path.last().cloned();
            if let ["as", alias, rest @ ..] = tokens {
                name = Some((*alias).to_owned());
                tokens = rest;
            }
            self.bound.extend(name.map(|name| (name, path.clone())));
        }
        if path.len() > 1 {
            self.paths.push(path);
        }
        tokens
    }
}

/// The files of a crate, as modules.
pub(super) struct Modules {
    files: BTreeMap<Vec<String>, Names>,
}

impl Modules {
    /// Reads files whose paths are relative to `src`.
    pub(super) fn new(files: impl Iterator<Item = (PathBuf, String)>) -> Modules {
        let files = files.map(|(file, code)| (module(&file), Names::read(&code))).collect();
        Modules { files }
    }

    /// Returns the circles of modules: each as the names of those that reach each other.
    ///
    /// Compared are modules that stand side by side, each with all that is beneath it. So
    /// `a::x → b → a::y` is a circle of `a` and `b`. A name that `super` re-exports counts as the
    /// child's that has it. What a module and those beneath it take of each other does not count:
    /// a parent shows what its children have, and they may use what it defines.
    pub(super) fn circles(&self) -> Vec<String> {
        let mut beside: BTreeMap<&[String], BTreeSet<(&str, &str)>> = BTreeMap::new();
        let edges: Vec<_> = self.edges().collect();
        for (from, to) in &edges {
            let shared = shared(from, to);
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                beside.entry(&from[..shared]).or_default().insert((a, b));
            }
        }
        let mut circles = Vec::new();
        for (parent, edges) in beside {
            let mut left: BTreeSet<_> = edges.iter().map(|(from, _)| *from).collect();
            while let Some(first) = left.pop_first() {
                let reached = reach(&edges, first);
                let circle: Vec<_> = reached
                    .iter()
                    .copied()
                    .filter(|name| reach(&edges, name).contains(first))
                    .collect();
                left.retain(|name| !circle.contains(name));
                if !circle.is_empty() {
                    circles.push(format!("{}: {}", parent.join("::"), circle.join(" ")));
                }
            }
        }
        circles
    }

    /// Returns which files of the circle `parent: a b c` name which, to show what to mend.
    pub(super) fn steps(&self, circle: &str) -> String {
        let (parent, members) = circle.split_once(": ").unwrap();
        let parent: Vec<_> = parent.split("::").collect();
        let of_circle = |path: &[String], at: usize| {
            path.get(at).is_some_and(|name| members.split(' ').any(|member| member == name))
        };
        let steps: BTreeSet<_> = self
            .edges()
            .filter(|(from, to)| shared(from, to) == parent.len())
            .filter(|(from, _)| from.iter().zip(&parent).all(|(a, b)| a == b))
            .filter(|(from, to)| of_circle(from, parent.len()) && of_circle(to, parent.len()))
            .map(|(from, to)| format!("    {} names {}", from.join("::"), to.join("::")))
            .collect();
        steps.into_iter().collect::<Vec<_>>().join("\n")
    }

    /// Returns the rooms that a file names.
    pub(super) fn rooms_named_by(&self, file: &Path) -> BTreeSet<String> {
        let from = module(file);
        let imports = &self.files[&from];
        let rooms = imports.paths.iter().map(|path| match &path[..] {
            [root, name, ..] if root == "crate" => Some(name.clone()),
            _ => self.resolve(&from, path, 0).first().cloned(),
        });
        rooms.flatten().collect()
    }

    fn edges(&self) -> impl Iterator<Item = (Vec<String>, Vec<String>)> {
        self.files.iter().flat_map(|(from, names)| {
            names.paths.iter().map(|path| (from.clone(), self.resolve(from, path, 0)))
        })
    }

    /// Returns the module that has what `path` names in the module `from`.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Vec<String> {
        let mut at = from.to_vec();
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop();
                }
                name => {
                    let child = [&at[..], &[name.to_owned()]].concat();
                    if self.files.contains_key(&child) {
                        at = child;
                        continue;
                    }
                    let bound = self.files.get(&at).and_then(|names| names.bound.get(name));
                    return match bound {
                        Some(bound) if depth < 8 && (index > 0 || depth > 0) => {
                            let whole = [&bound[..], &path[index + 1..]].concat();
                            self.resolve_import(&at, &whole, depth + 1)
                        }
                        _ => at,
                    };
                }
            }
        }
        at
    }

    /// Resolves an import of `at`; one of another crate stays with the module that has it.
    fn resolve_import(&self, at: &[String], path: &[String], depth: usize) -> Vec<String> {
        let first = &path[0];
        let child = [at, std::slice::from_ref(first)].concat();
        if ["crate", "super", "self"].contains(&first.as_str()) || self.files.contains_key(&child) {
            return self.resolve(at, path, depth);
        }
        at.to_vec()
    }
}

fn shared(a: &[String], b: &[String]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn reach<'a>(edges: &BTreeSet<(&'a str, &'a str)>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(name) = next.pop() {
        for (_, to) in edges.iter().filter(|(a, _)| *a == name) {
            if reached.insert(*to) {
                next.push(to);
            }
        }
    }
    reached
}

fn module(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    let mut path: Vec<_> = parts.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path == ["lib"] {
        path.clear();
    }
    path
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Skips an item: to its `;`, or over its block.
fn after_item<'a, 'b>(tokens: &'a [&'b str]) -> &'a [&'b str] {
    let mut depth = 0;
    let end = tokens.iter().position(|token| {
        depth += match *token {
            "{" => 1,
            "}" => -1,
            _ => 0,
        };
        depth == 0 && matches!(*token, ";" | "}")
    });
    end.map_or(&[], |end| &tokens[end + 1..])
}

/// Splits code into words, `::` and single signs, without comments and literals.
fn tokens(code: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), code);
    while let Some(first) = rest.chars().next() {
        let length = if let Some(comment) = rest.strip_prefix("//") {
            2 + comment.find('\n').unwrap_or(comment.len())
        } else if let Some(length) = literal(rest) {
            length
        } else if is_word(rest) {
            rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(length);
        if is_word(token) && !token.contains(['"', '\''])
            || token == "::"
            || !first.is_whitespace() && length == 1
        {
            tokens.push(token);
        }
        rest = behind;
    }
    tokens
}

/// Returns the length of a string or a character that the text begins with.
fn literal(text: &str) -> Option<usize> {
    let body = text.trim_start_matches(['b', 'c', 'r']);
    let prefix = text.len() - body.len();
    if prefix > 2 {
        return None;
    }
    if text[..prefix].contains('r') {
        let hashes = body.len() - body.trim_start_matches('#').len();
        let inner = body[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        return Some(prefix + hashes + 1 + inner.find(&close)? + close.len());
    }
    let quote = body.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    if quote == '\'' && !body.starts_with("'\\") && body.chars().nth(2) != Some('\'') {
        // A lifetime.
        return None;
    }
    let mut escaped = false;
    let end = body.char_indices().skip(1).find(|(_, char)| {
        let ends = !escaped && *char == quote;
        escaped = !escaped && *char == '\\';
        ends
    });
    end.map(|(at, _)| prefix + at + 1)
}
