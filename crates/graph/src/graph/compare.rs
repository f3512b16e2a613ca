//! The symbols that a change of a file touches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::facts::{Facts, Language};
use super::parse::Parser;

/// The symbols that differ between two texts of a file: changed, new or gone. Each has the names of those around it, as in
/// `Shop::open`; a symbol around a changed one has not changed by that. A text of an unknown language has none.
pub fn changed_symbols(path: &Path, before: &[u8], now: &[u8]) -> BTreeSet<String> {
    let Some(language) = Language::of(path) else { return BTreeSet::new() };
    let mut parser = Parser::new();
    let mut texts = |text| own_texts(&parser.facts(Some(language), text), text);
    let (before, now) = (texts(before), texts(now));
    let names = before.keys().chain(now.keys());
    names.filter(|name| before.get(*name) != now.get(*name)).cloned().collect()
}

/// The lines of each symbol without those of the symbols in it. Overloads have one name.
fn own_texts(facts: &Facts, text: &[u8]) -> BTreeMap<String, Vec<Vec<u8>>> {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let mut owner: Vec<Option<usize>> = vec![None; lines.len()];
    let mut names: Vec<String> = Vec::with_capacity(facts.symbols.len());
    let mut own: Vec<Vec<u8>> = vec![Vec::new(); facts.symbols.len()];
    for (at, symbol) in facts.symbols.iter().enumerate() {
        let parent = symbol.parent.and_then(|parent| names.get(parent as usize));
        names.push(parent.map_or(symbol.name.to_string(), |it| format!("{it}::{}", symbol.name)));
        // Parents stand before their children.
        let range = symbol.lines.start.saturating_sub(1) as usize..symbol.lines.end as usize;
        for line in owner.get_mut(range).into_iter().flatten() {
            *line = Some(at);
        }
    }
    for (line, owner) in lines.iter().zip(&owner) {
        if let Some(at) = owner {
            own[*at].extend_from_slice(line);
        }
    }
    let mut all: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (name, own) in names.into_iter().zip(own) {
        all.entry(name).or_default().push(own);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, before: &str, now: &str, expected: &[&str]) {
        let changed = changed_symbols(Path::new(path), before.as_bytes(), now.as_bytes());
        assert_eq!(changed.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_change_touches_the_innermost_symbol_alone() {
        let before = "import x\n\nclass Shop:\n    size = 1\n    def open(self):\n        return 1\n    def shut(self):\n        return 2\n\ndef total():\n    return 3\n";
        let path = "shop.py";
        check(path, before, before, &[]);
        check(path, before, &before.replace("return 1", "return 10"), &["Shop::open"]);
        check(path, before, &before.replace("size = 1", "size = 2"), &["Shop"]);
        check(path, before, &before.replace("import x", "import y"), &[]);
        check(path, before, &before.replace("total", "sum"), &["sum", "total"]);
        // What moves down has not changed.
        check(path, before, &format!("import y\n{before}"), &[]);
        check("notes.txt", "a", "b", &[]);
    }
}
