//! The table of languages: each row has a grammar, queries in `languages/`, and a few words.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;

use tree_sitter::Language as Grammar;

use super::facts::Language;
use super::query::{Query, QueryError};

/// A language.
pub(super) struct Row {
    pub(super) name: &'static str,
    extensions: &'static [&'static str],
    grammar: fn() -> Grammar,
    /// Other names in fences of Markdown; its name and its extensions are known there, too.
    aliases: &'static [&'static str],
    /// The query, in parts.
    queries: &'static [&'static str],
    /// Prefixes of a member of the caller's own object or type.
    pub(super) own: &'static [&'static str],
    /// The prefix of a member of the base; called by itself, it is the base's constructor.
    pub(super) base: &'static str,
    /// Words of which every match has one in its text, a bracket not at its start. Nodes without any are
    /// skipped, but for the root and nodes with errors. Empty: no node is skipped.
    pub(super) marks: &'static [&'static str],
    /// Queries that its grammar ships, by which tokens are told apart; of several patterns of a node the last counts.
    highlights: &'static [&'static str],
    tools: OnceLock<Option<Tools>>,
    highlighting: OnceLock<Option<Highlighting>>,
}

/// The compiled row, made on first use.
pub(super) struct Tools {
    pub(super) grammar: Grammar,
    pub(super) query: Query,
    /// The role of each capture.
    pub(super) roles: Vec<Role>,
}

/// The grammar with the query that tells tokens apart, made on first use.
pub(super) struct Highlighting {
    pub(super) grammar: Grammar,
    pub(super) query: tree_sitter::Query,
}

/// The roles of captures, by their names in queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Class,
    Function,
    Module,
    Constant,
    Extension,
    Name,
    Base,
    Call,
    ImportModule,
    ImportName,
    ImportAlias,
    ImportAll,
    ImportTree,
    /// Used by predicates only.
    Nothing,
}

const ECMASCRIPT: &str = include_str!("languages/ecmascript.scm");
const JSX: &str = include_str!("languages/jsx.scm");
const TYPESCRIPT: &str = include_str!("languages/typescript.scm");
const JAVASCRIPT: &str = include_str!("languages/javascript.scm");

const SCRIPT_TOKENS: &str = tree_sitter_javascript::HIGHLIGHT_QUERY;
const JSX_TOKENS: &str = tree_sitter_javascript::JSX_HIGHLIGHT_QUERY;
const TYPESCRIPT_TOKENS: &str = tree_sitter_typescript::HIGHLIGHTS_QUERY;

const RUST_MARKS: &[&str] = &["(", "{", "!", "use", "mod", "struct", "const", "static", "type"];
const PYTHON_MARKS: &[&str] = &["(", "@", "class", "import", "lambda"];
const SCRIPT_MARKS: &[&str] = &[
    "(",
    "<",
    "`",
    "=>",
    "new",
    "class",
    "import",
    "export",
    "interface",
    "enum",
    "type",
    "module",
    "namespace",
];

static ROWS: [Row; 6] = [
    Row {
        name: "rust",
        extensions: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        aliases: &[],
        queries: &[include_str!("languages/rust.scm")],
        own: &["self.", "Self::"],
        base: "",
        marks: RUST_MARKS,
        highlights: &[tree_sitter_rust::HIGHLIGHTS_QUERY],
        tools: OnceLock::new(),
        highlighting: OnceLock::new(),
    },
    Row {
        name: "python",
        extensions: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        aliases: &["python3"],
        queries: &[include_str!("languages/python.scm")],
        own: &["self.", "cls."],
        base: "super()",
        marks: PYTHON_MARKS,
        highlights: &[tree_sitter_python::HIGHLIGHTS_QUERY],
        tools: OnceLock::new(),
        highlighting: OnceLock::new(),
    },
    Row {
        name: "typescript",
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        aliases: &[],
        queries: &[ECMASCRIPT, TYPESCRIPT],
        own: &["this."],
        base: "super",
        marks: SCRIPT_MARKS,
        highlights: &[SCRIPT_TOKENS, TYPESCRIPT_TOKENS],
        tools: OnceLock::new(),
        highlighting: OnceLock::new(),
    },
    Row {
        name: "tsx",
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        aliases: &[],
        queries: &[ECMASCRIPT, TYPESCRIPT, JSX],
        own: &["this."],
        base: "super",
        marks: SCRIPT_MARKS,
        highlights: &[SCRIPT_TOKENS, JSX_TOKENS, TYPESCRIPT_TOKENS],
        tools: OnceLock::new(),
        highlighting: OnceLock::new(),
    },
    Row {
        name: "javascript",
        extensions: &["js", "mjs", "cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        aliases: &["ecmascript", "node"],
        queries: &[ECMASCRIPT, JAVASCRIPT, JSX],
        own: &["this."],
        base: "super",
        marks: SCRIPT_MARKS,
        highlights: &[SCRIPT_TOKENS, JSX_TOKENS],
        tools: OnceLock::new(),
        highlighting: OnceLock::new(),
    },
    Row {
        name: "jsx",
        extensions: &["jsx"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        aliases: &[],
        queries: &[ECMASCRIPT, JAVASCRIPT, JSX],
        own: &["this."],
        base: "super",
        marks: SCRIPT_MARKS,
        highlights: &[SCRIPT_TOKENS, JSX_TOKENS],
        tools: OnceLock::new(),
        highlighting: OnceLock::new(),
    },
];

impl Language {
    /// By the extension of the file.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        let row = ROWS.iter().position(|row| row.extensions.contains(&extension))?;
        u8::try_from(row).ok().map(Self)
    }

    /// By a name, as a fence of Markdown has it: `typescript`, `ts`, `Rust`.
    pub fn named(name: &str) -> Option<Self> {
        let is_named = |row: &Row| {
            let known = row.extensions.iter().chain(row.aliases).chain([&row.name]);
            known.into_iter().any(|known| known.eq_ignore_ascii_case(name))
        };
        u8::try_from(ROWS.iter().position(is_named)?).ok().map(Self)
    }

    /// The name in lower case, such as `rust`; `unknown` for a language of another version.
    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.name)
    }

    /// None: not in the table; the cache of another version may have such a number.
    pub(super) fn row(self) -> Option<&'static Row> {
        ROWS.get(usize::from(self.0))
    }
}

impl Row {
    /// None: the query does not compile, which a test rules out.
    pub(super) fn tools(&self) -> Option<&Tools> {
        self.tools.get_or_init(|| self.compile().ok()).as_ref()
    }

    /// None: the query does not compile, which a test rules out.
    pub(super) fn highlighting(&self) -> Option<&Highlighting> {
        let compile = || {
            let grammar = (self.grammar)();
            let query = tree_sitter::Query::new(&grammar, &self.highlights.join("\n")).ok()?;
            Some(Highlighting { grammar, query })
        };
        self.highlighting.get_or_init(compile).as_ref()
    }

    pub(super) fn query_text(&self) -> String {
        self.queries.join("\n")
    }

    fn compile(&self) -> Result<Tools, QueryError> {
        let grammar = (self.grammar)();
        let query = Query::new(&grammar, &self.query_text())?;
        let roles = query.captures().iter().map(|name| role(name)).collect();
        Ok(Tools { grammar, query, roles })
    }
}

/// The content of the table: cached facts are valid as long as it is the same.
pub(super) fn fingerprint() -> impl Iterator<Item = String> {
    ROWS.iter().map(|row| {
        let grammar = (row.grammar)();
        let size = (grammar.node_kind_count(), grammar.parse_state_count(), grammar.field_count());
        format!("{} {size:?} {:?} {:?} {:?}", row.name, row.own, row.base, row.queries)
    })
}

fn role(capture: &str) -> Role {
    match capture {
        "definition.class" => Role::Class,
        "definition.function" => Role::Function,
        "definition.module" => Role::Module,
        "definition.constant" => Role::Constant,
        "definition.extension" => Role::Extension,
        "name" => Role::Name,
        "base" => Role::Base,
        "call" => Role::Call,
        "import.module" => Role::ImportModule,
        "import.name" => Role::ImportName,
        "import.alias" => Role::ImportAlias,
        "import.all" => Role::ImportAll,
        "import.tree" => Role::ImportTree,
        _ => Role::Nothing,
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::graph::query::Marks;

    /// For each language, the smallest text for each pattern of its query.
    pub(in crate::graph) const SMALLEST: [(&str, &str); 6] = [
        (
            "rust",
            "fn a();\nstruct B;\nstruct C(u8);\nenum D {}\nunion E {}\ntrait F {}\nimpl G {}\nmod h;\n\
             const I: J = k;\nstatic L: M = n;\ntype O = P;\nuse q;\nmacro_rules! r { () => {} }\n\
             fn s() { t(); u!{}; v!(w(), x![], (a)(b(c)(d))); Y {}; z.a(); b::<C>() }\n\
             fn d() { (e.f)(g()); (h, i()).j(); {k()}.l(); ((m)).n() }",
        ),
        (
            "python",
            "A = 1\ntype B = C\ndef d(): pass\n@e\nclass F(G, h.I[J]): pass\nif g:\n import h\n from i import j\n\
             for k in l: from m import *\nn.o()\n(p).q((r)(), [s, (t, u())])\nimport v, w as x\n\
             from y import z, a as b, c\n",
        ),
        (
            "typescript",
            "import a from 'b'; export { c } from 'd'; export * from 'e'; export default f\ntype G = H\n\
             interface I {}\nenum J {}\ndeclare module 'k'\nnamespace L {}\nif (m) { type N = O }\n\
             abstract class P extends b { q = r => s; abstract t(): u }\nnew V\nw`x`\ny = z => a\nimport b = require('c')",
        ),
        (
            "tsx",
            "const { A, B: C, D = E } = F;\nconst A = b => <C/>; const d = <E.F></E.F>; g`h`; new I; function* j() {}",
        ),
        (
            "javascript",
            "var a = class {}; b = { c: d => e, f() {} }; export { g as h }; i.j = function() {}\n\
             ((k), l).m((n()), (o => p)()); (function() { q() })(); ({ r() {} }).s`t`;\n\
             module.exports = u; exports = v; module.exports = class {}; exports = function w() {};\n\
             module.exports = require('x')",
        ),
        (
            "jsx",
            "export default A\nclass B extends h.I { c = d => e; #f() { super(); this.#f() } }\nconst g = require('h')",
        ),
    ];

    #[test]
    fn nothing_that_a_query_finds_is_passed_over() {
        for (name, text) in SMALLEST {
            let row = ROWS.iter().find(|row| row.name == name).unwrap();
            let tools = row.tools().unwrap();
            let mut parser = tree_sitter::Parser::new();
            parser.set_language(&tools.grammar).unwrap();
            // Each line by itself, too: in the whole, others' marks are near.
            for text in std::iter::once(text).chain(text.split_inclusive(['\n', ';'])) {
                let tree = parser.parse(text, None).unwrap();
                let found = |marks: &[&str]| {
                    let mut found = Vec::new();
                    let marks = Marks::new(marks, text.as_bytes());
                    tools.query.each(&tree, text.as_bytes(), &marks, |pattern, matched| {
                        let nodes =
                            matched.iter().map(|(capture, node)| (*capture, node.byte_range()));
                        found.push((pattern, nodes.collect::<Vec<_>>()));
                    });
                    found
                };
                assert_eq!(found(row.marks), found(&[]), "{name}: {text}");
            }
        }
    }

    #[test]
    fn the_queries_that_grammars_ship_fit_them() {
        for row in &ROWS {
            assert!(!row.highlights.is_empty() && row.highlighting().is_some(), "{}", row.name);
        }
    }

    #[test]
    fn every_query_fits_its_grammar_and_captures_what_is_known() {
        for row in &ROWS {
            let tools = row.compile().map_err(|error| format!("{}: {error}", row.name));
            let tools = tools.unwrap_or_else(|error| panic!("{error}"));
            for (name, role) in tools.query.captures().iter().zip(&tools.roles) {
                let known = *role != Role::Nothing || name.starts_with('_');
                assert!(known, "{}: unknown capture @{name}", row.name);
            }
        }
    }
}
