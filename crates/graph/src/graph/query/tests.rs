//! Matches with and without marks, and against the engine of tree-sitter.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use tree_sitter::{QueryCursor, QueryPredicateArg, StreamingIterator as _};

use super::*;
use crate::graph::facts::Language;
use crate::graph::languages::Tools;
use crate::graph::languages::tests::SMALLEST;
use crate::graph::walk;

fn tools(file: &str) -> &'static Tools {
    Language::of(Path::new(file)).unwrap().row().unwrap().tools().unwrap()
}

/// The texts of all that is captured, with the marks and without any.
fn found(file: &str, text: &str, marks: &[&str]) -> [Vec<String>; 2] {
    let tools = tools(file);
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(&tools.grammar).unwrap();
    let tree = parser.parse(text, None).unwrap();
    [marks, &[]].map(|marks| {
        let mut found = Vec::new();
        tools.query.each(
            &tree,
            text.as_bytes(),
            &Marks::new(marks, text.as_bytes()),
            |_, nodes| {
                found.extend(nodes.iter().map(|(_, node)| text[node.byte_range()].to_owned()));
            },
        );
        found
    })
}

#[test]
fn all_of_a_long_list_is_found_though_most_is_leapt_over() {
    let mut list = String::new();
    for number in 0..300 {
        write!(list, "{}go{number}(g), ", "0, x(), ".repeat(number % 3) + "y.z, (w), \"(\", ")
            .unwrap();
    }
    for text in [format!("fn a() {{ [{list}]; }}"), format!("fn a() {{ v!({list}) }}")] {
        let [marked, all] = found("a.rs", &text, &["(", "{", "!"]);
        assert!(marked == all, "{text}");
        for number in 0..300 {
            let name = format!("go{number}");
            assert_eq!(marked.iter().filter(|found| **found == name).count(), 1, "{name}");
        }
    }
}

#[test]
fn what_is_looked_for_once_is_there_once_at_most() {
    fn check(shape: &Shape, grammar: &Grammar, types: &[serde_json::Value]) {
        let kind = shape.kind.and_then(|kind| grammar.node_kind_for_id(kind));
        for child in &shape.children {
            if let (Some(field), Some(kind)) = (child.single(), kind) {
                let field = grammar.field_name_for_id(field).unwrap();
                let of_kind = types.iter().find(|one| one["type"] == kind && one["named"] == true);
                let multiple = &of_kind.unwrap()["fields"][field]["multiple"];
                assert_eq!(multiple, false, "{kind} {field}");
            }
            child.one_of.iter().for_each(|shape| check(shape, grammar, types));
        }
    }
    for (file, types) in [
        ("a.rs", tree_sitter_rust::NODE_TYPES),
        ("a.py", tree_sitter_python::NODE_TYPES),
        ("a.ts", tree_sitter_typescript::TYPESCRIPT_NODE_TYPES),
        ("a.tsx", tree_sitter_typescript::TSX_NODE_TYPES),
        ("a.js", tree_sitter_javascript::NODE_TYPES),
        ("a.jsx", tree_sitter_javascript::NODE_TYPES),
    ] {
        let types: Vec<serde_json::Value> = serde_json::from_str(types).unwrap();
        let tools = tools(file);
        for pattern in &tools.query.patterns {
            check(&pattern.shape, &tools.grammar, &types);
        }
    }
}

#[test]
fn a_product_of_many_has_an_end() {
    let names = "a, ".repeat(5_000);
    let texts = "'b', ".repeat(5_000);
    let text = format!("const {{{names}}} = require({texts});");
    let [found, _] = found("a.js", &text, &["("]);
    assert!((1..1_000_000).contains(&found.len()), "{}", found.len());
}

/// A match: its pattern, and its captures in order.
type Found = (usize, Vec<(String, usize, usize)>);

/// The matches of tree-sitter's own engine.
fn reference(query: &tree_sitter::Query, tree: &Tree, text: &str) -> BTreeSet<Found> {
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(query, tree.root_node(), text.as_bytes());
    let mut all = BTreeSet::new();
    while let Some(found) = matches.next() {
        let before_bracket = query.general_predicates(found.pattern_index).iter().all(|test| {
            assert_eq!(&*test.operator, "bracket?");
            let QueryPredicateArg::Capture(capture) = test.args[0] else { panic!("{test:?}") };
            let mut nodes = found.nodes_for_capture_index(capture);
            nodes.all(|node| bracket_follows(text.as_bytes(), node.end_byte()))
        });
        if before_bracket {
            let name = |index: u32| query.capture_names()[index as usize].to_owned();
            let captures = found.captures().iter();
            let captures = captures.map(|found| (name(found.index), found.node.byte_range()));
            all.insert(in_order(found.pattern_index, captures));
        }
    }
    all
}

fn in_order(pattern: usize, captures: impl Iterator<Item = (String, Range<usize>)>) -> Found {
    let mut captures: Vec<_> =
        captures.map(|(name, range)| (name, range.start, range.end)).collect();
    captures.sort_unstable();
    (pattern, captures)
}

#[test]
fn queries_find_what_the_engine_of_tree_sitter_finds() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut texts: Vec<(Language, String)> = Vec::new();
    for (name, text) in SMALLEST {
        let extension = ["rs", "py", "ts", "tsx", "js", "jsx"].into_iter().find(|extension| {
            Language::of(Path::new(&format!("a.{extension}"))).is_some_and(|of| of.name() == name)
        });
        let language = Language::of(Path::new(&format!("a.{}", extension.unwrap())));
        texts.push((language.unwrap(), text.to_owned()));
    }
    for entry in walk::list(root, 2, None).unwrap().files {
        let is_far = ["crates/", "src/", "tests/it/"].iter().any(|folder| {
            entry.id.starts_with(folder) && !entry.id[folder.len()..].starts_with("graph/")
        });
        if let Some(language) = Language::of(&entry.path).filter(|_| !is_far) {
            texts.push((language, std::fs::read_to_string(&entry.path).unwrap()));
        }
    }
    for (language, text) in texts {
        let tools = language.row().unwrap().tools().unwrap();
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tools.grammar).unwrap();
        let tree = parser.parse(&text, None).unwrap();
        // Ours looks for more where a text has errors.
        if tree.root_node().has_error() {
            continue;
        }
        // Behind a field, ours needs a `+` to look for more than one child.
        let query = language.row().unwrap().query_text().replace(")+", ")");
        let query = tree_sitter::Query::new(&tools.grammar, &query).unwrap();
        let mut found = BTreeSet::new();
        let marks = Marks::new(language.row().unwrap().marks, text.as_bytes());
        tools.query.each(&tree, text.as_bytes(), &marks, |pattern, nodes| {
            let name = |capture: usize| tools.query.captures()[capture].clone();
            let captures = nodes.iter().map(|(capture, node)| (name(*capture), node.byte_range()));
            found.insert(in_order(pattern, captures));
        });
        let reference = reference(&query, &tree, &text);
        let difference: Vec<_> = found.symmetric_difference(&reference).collect();
        assert!(difference.is_empty(), "{}: {difference:?} {text}", language.name());
    }
}
