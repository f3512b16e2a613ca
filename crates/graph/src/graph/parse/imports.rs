//! The imports of a file, from the captures of the query.

use std::ops::Range;

use super::name;
use crate::graph::facts::Import;

/// The depth of nested braces.
const DEEPEST: usize = 32;

/// Imports of a file; further ones are left out.
const MAX_IMPORTS: usize = 10_000;

/// Longest path in bytes; longer ones are left out.
const LONGEST: usize = 512;

/// The captures of an import.
#[derive(Default)]
pub(super) struct Written {
    pub(super) module: Option<Range<usize>>,
    pub(super) name: Option<Range<usize>>,
    pub(super) alias: Option<Range<usize>>,
    /// Whether it imports everything.
    pub(super) all: bool,
    /// Several imports in one: `a::{b, c as d, e::*}`.
    pub(super) tree: Option<Range<usize>>,
    pub(super) exported: bool,
    /// Whether it is another name for a symbol of this file.
    pub(super) here: bool,
}

impl Written {
    pub(super) fn start(&self) -> usize {
        let pieces = [&self.module, &self.name, &self.alias, &self.tree];
        pieces.into_iter().flatten().map(|range| range.start).min().unwrap_or(0)
    }
}

/// `modules` returns the inline modules around the import at an index, outer ones first.
pub(super) fn imports(
    written: &[Written],
    text: &[u8],
    modules: impl Fn(usize) -> Vec<Box<str>>,
) -> Vec<Import> {
    let mut imports = Vec::new();
    for (at, import) in written.iter().enumerate() {
        if imports.len() >= MAX_IMPORTS {
            break;
        }
        if let Some(range) = &import.tree {
            let tree = text.get(range.clone()).unwrap_or_default();
            let mut tree = String::from_utf8_lossy(tree).into_owned();
            if tree.starts_with("super") || tree.starts_with("self") {
                tree = from_file(&tree, modules(at));
            }
            flatten(&tree, import.exported, &mut imports);
        } else if import.module.is_some() || import.here {
            let of = |range: &Option<Range<usize>>| range.as_ref().map(|range| name(text, range));
            let module = of(&import.module).unwrap_or_default();
            let there = of(&import.name);
            let alias = match (import.all, of(&import.alias), &there) {
                (true, ..) => "*".into(),
                (false, Some(here), _) => here,
                (false, None, Some(there)) => there.clone(),
                (false, None, None) => module.clone(),
            };
            imports.push(Import { module, name: there, alias, exported: import.exported });
        }
    }
    imports
}

/// Rewrites a path with `self` or `super` in inline modules as it is written at the top of the file.
fn from_file(path: &str, mut modules: Vec<Box<str>>) -> String {
    let mut rest = path.strip_prefix("self::").unwrap_or(path);
    while let Some(outer) = rest.strip_prefix("super::").filter(|_| !modules.is_empty()) {
        modules.pop();
        rest = outer;
    }
    if rest.starts_with("super") {
        return rest.to_owned();
    }
    let mut whole = "self::".to_owned();
    for module in modules {
        whole.push_str(&module);
        whole.push_str("::");
    }
    whole + rest
}

/// Splits `a::{b, c as d, e::*, self}`.
fn flatten(tree: &str, exported: bool, imports: &mut Vec<Import>) {
    let mut prefixes: Vec<String> = Vec::new();
    let mut piece = String::new();
    let mut take = |prefixes: &[String], piece: &mut String| {
        let path = prefixes.concat() + piece.trim();
        if !piece.trim().is_empty() && imports.len() < MAX_IMPORTS {
            imports.extend(single(&path, exported));
        }
        piece.clear();
    };
    for c in tree.chars() {
        match c {
            '{' if prefixes.len() >= DEEPEST => return,
            '{' => prefixes.push(std::mem::take(&mut piece).trim().to_owned()),
            ',' => take(&prefixes, &mut piece),
            '}' => {
                take(&prefixes, &mut piece);
                prefixes.pop();
            }
            _ => piece.push(c),
        }
    }
    take(&prefixes, &mut piece);
}

/// `a::b as c`, `a::*`, `a::self`.
fn single(path: &str, exported: bool) -> Option<Import> {
    let (path, alias) = match path.split_once(" as ") {
        Some((path, alias)) => (path.trim(), Some(alias.trim())),
        None => (path, None),
    };
    let path: String = path.split_whitespace().collect();
    let path = path.strip_suffix("::self").unwrap_or(&path);
    let last = path.rsplit("::").next().unwrap_or(path);
    if path.len() > LONGEST || last.is_empty() {
        return None;
    }
    let (module, name) = match path.rsplit_once("::") {
        Some((module, "*")) => (module, None),
        Some((module, name)) => (module, Some(name.into())),
        None => (path, None),
    };
    let alias = alias.unwrap_or(last).into();
    Some(Import { module: module.into(), name, alias, exported })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_imports_is_taken_apart() {
        for (tree, expected) in [
            ("std::fs", "std fs fs"),
            ("serde", "serde - serde"),
            ("a::b as c", "a b c"),
            ("a::*", "a - *"),
            ("a::{self, b::{c, d as e}, f::*,\n}", "- - a; a::b c c; a::b d e; a::f - *"),
            ("{a, b::c}", "- - a; b c c"),
            ("a::{", ""),
            ("", ""),
        ] {
            let mut imports = Vec::new();
            flatten(tree, false, &mut imports);
            let shown: Vec<_> = imports
                .iter()
                .map(|i| format!("{} {} {}", i.module, i.name.as_deref().unwrap_or("-"), i.alias))
                .collect();
            assert_eq!(shown.join("; "), expected.replace("- - a", "a - a"), "{tree}");
        }
    }

    #[test]
    fn braces_without_an_end_cost_little() {
        let mut imports = Vec::new();
        flatten(&"a::{".repeat(100_000), false, &mut imports);
        assert!(imports.is_empty());
    }

    #[test]
    fn what_is_above_a_module_may_be_in_the_file() {
        let check = |path, modules: &[&str], expected| {
            let modules = modules.iter().map(|name| (*name).into()).collect();
            assert_eq!(from_file(path, modules), expected, "{path}");
        };
        check("super::*", &["tests"], "self::*");
        check("super::super::Shop", &["tests"], "super::Shop");
        check("super::Shop", &["shop", "tests"], "self::shop::Shop");
        check("self::{a, b}", &["shop"], "self::shop::{a, b}");
        check("super::Shop", &[], "super::Shop");
    }
}
