#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::graph::facts::Language;
use crate::graph::languages::Tools;

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
