//! Runs the queries of `languages/`, compiled into a table by the kind of node, on a tree.
//!
//! They are written in tree-sitter's query language, of which this has a part: nodes by kind and field,
//! choices, absent fields, `#eq?`, `#match?`, `#not-match?` and `#set!`. tree-sitter's own engine adds
//! 44 % to parsing (`benches/graph.rs` measures it), more than twice this one, which skips parts of a
//! file without [`Marks`]. A test checks that both find the same.

mod children;
mod compile;
mod marks;

use regex::bytes::Regex;
use tree_sitter::{Language as Grammar, Node, Parser, Tree};

use self::children::{Field, collect, holds_marks, marked};
pub(crate) use self::compile::QueryError;
use self::compile::QueryReader;
pub(super) use self::marks::Marks;

/// Nodes that are compared for one pattern at one node; further matches are left out.
const MAX_NODES: usize = 100_000;

/// A query for one grammar.
pub(super) struct Query {
    /// The kind of a tree's root; a root that is an error counts as this kind.
    root: u16,
    patterns: Vec<Pattern>,
    /// By the kind of a node, the patterns that begin with it.
    by_kind: Vec<Vec<usize>>,
    /// By the kind of a node, the children that these patterns need.
    needed: Vec<Children>,
    captures: Vec<String>,
}

/// The captured nodes.
pub(super) type Match<'tree> = Vec<(Capture, Node<'tree>)>;

/// The index of a capture's name.
pub(super) type Capture = usize;

/// The children of a node that are visited, beside those that a pattern finds by field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Children {
    None,
    /// Only children before a bracket.
    BeforeBracket,
    All,
}

struct Pattern {
    shape: Shape,
    tests: Vec<(Capture, Test)>,
    properties: Vec<String>,
}

enum Test {
    Is(String),
    /// Whether it matches, or does not.
    Matches(Regex, bool),
    /// The capture is followed by `(`, or by `!(` of a macro.
    BeforeBracket,
}

/// The conditions of a node.
#[derive(Default)]
struct Shape {
    /// None: any named node.
    kind: Option<u16>,
    captures: Vec<Capture>,
    children: Vec<Child>,
    without: Vec<u16>,
}

/// A required child.
struct Child {
    field: Option<u16>,
    /// Whether the field may have several children.
    several: bool,
    one_of: Vec<Shape>,
}

impl Query {
    pub(super) fn new(grammar: &Grammar, text: &str) -> Result<Self, QueryError> {
        let mut reader = QueryReader::new(grammar, text)?;
        let mut patterns = Vec::new();
        let mut by_kind = vec![Vec::new(); grammar.node_kind_count()];
        let mut needed = vec![Children::None; grammar.node_kind_count()];
        while let Some((kind, pattern)) = reader.pattern()? {
            by_kind[usize::from(kind)].push(patterns.len());
            let needs = &mut needed[usize::from(kind)];
            *needs = pattern.needs().max(*needs);
            patterns.push(pattern);
        }
        let captures = reader.into_captures();
        Ok(Self { root: root(grammar)?, patterns, by_kind, needed, captures })
    }

    pub(super) fn captures(&self) -> &[String] {
        &self.captures
    }

    /// Whether a pattern says `(#set! property)`.
    pub(super) fn sets(&self, pattern: usize, property: &str) -> bool {
        self.patterns[pattern].properties.iter().any(|set| set == property)
    }

    /// Calls `found` with each match and its pattern, ordered by the first node of the pattern.
    ///
    /// Skips nodes without a mark and without an error: they have no match.
    pub(super) fn each<'tree>(
        &self,
        tree: &'tree Tree,
        text: &[u8],
        marks: &Marks,
        mut found: impl FnMut(usize, &Match<'tree>),
    ) {
        let mut cursor = tree.walk();
        let mut children = Vec::new();
        let mut search = Search { nodes: Vec::new(), left: 0 };
        let mut open = vec![tree.root_node()];
        while let Some(node) = open.pop() {
            let is_root = node.is_error() && node.id() == tree.root_node().id();
            let kind = usize::from(if is_root { self.root } else { node.kind_id() });
            let patterns = self.by_kind.get(kind).map_or(&[][..], |patterns| patterns);
            let needed = self.needed.get(kind).copied().unwrap_or(Children::None);
            children.clear();
            if needed == Children::All || node.has_error() {
                collect(node, &mut cursor, &mut children);
            } else {
                let before = needed == Children::BeforeBracket;
                marked(node, text, marks, before, &mut cursor, &mut children);
            }
            for at in patterns {
                let pattern = &self.patterns[*at];
                search.left = MAX_NODES;
                pattern.shape.within(node, &children, &mut search, &mut |search| {
                    if pattern.holds(&search.nodes, text) {
                        found(*at, &search.nodes);
                    }
                });
            }
            // The first child is visited next.
            let children = children.iter().rev().map(|(_, child)| *child);
            open.extend(children.filter(|child| holds_marks(*child, text, marks)));
        }
    }
}

fn root(grammar: &Grammar) -> Result<u16, QueryError> {
    let mut parser = Parser::new();
    let set = parser.set_language(grammar).ok();
    let tree = set.and_then(|()| parser.parse("", None));
    let tree = tree.ok_or(QueryError { line: 0, what: "the grammar parses nothing".to_owned() })?;
    Ok(tree.root_node().kind_id())
}

impl Pattern {
    fn needs(&self) -> Children {
        let before_bracket = self.tests.iter().any(|(_, test)| matches!(test, Test::BeforeBracket));
        match self.shape.needs_children() {
            false => Children::None,
            true if before_bracket => Children::BeforeBracket,
            true => Children::All,
        }
    }

    fn holds(&self, matched: &Match<'_>, text: &[u8]) -> bool {
        self.tests.iter().all(|(capture, test)| {
            matched.iter().filter(|(other, _)| other == capture).all(|(_, node)| {
                let own = || text.get(node.byte_range()).unwrap_or_default();
                match test {
                    Test::Is(wanted) => own() == wanted.as_bytes(),
                    Test::Matches(wanted, does) => wanted.is_match(own()) == *does,
                    Test::BeforeBracket => bracket_follows(text, node.end_byte()),
                }
            })
        })
    }
}

/// A match in the making, and the number of nodes that may still be compared.
struct Search<'tree> {
    nodes: Match<'tree>,
    left: usize,
}

impl Shape {
    /// Calls `next` for each way in which a node meets the conditions.
    fn each<'tree>(
        &self,
        node: Node<'tree>,
        search: &mut Search<'tree>,
        next: &mut dyn FnMut(&mut Search<'tree>),
    ) {
        if !self.kind.map_or(node.is_named(), |kind| kind == node.kind_id()) || search.left == 0 {
            return;
        }
        search.left -= 1;
        let mut children = Vec::new();
        if self.needs_children() {
            collect(node, &mut node.walk(), &mut children);
        }
        self.within(node, &children, search, next);
    }

    /// The same for a node of this kind. `children`: those that are not found by field.
    fn within<'tree>(
        &self,
        node: Node<'tree>,
        children: &[Field<'tree>],
        search: &mut Search<'tree>,
        next: &mut dyn FnMut(&mut Search<'tree>),
    ) {
        if self.without.iter().any(|field| node.child_by_field_id(*field).is_some()) {
            return;
        }
        let before = search.nodes.len();
        search.nodes.extend(self.captures.iter().map(|capture| (*capture, node)));
        Child::all(&self.children, node, children, search, next);
        search.nodes.truncate(before);
    }

    fn needs_children(&self) -> bool {
        self.children.iter().any(|child| child.single().is_none())
    }
}

impl Child {
    /// The field, if it has at most one child.
    fn single(&self) -> Option<u16> {
        self.field.filter(|_| !self.several)
    }

    /// Calls `next` for each way in which a node has all required children.
    fn all<'tree>(
        wanted: &[Self],
        node: Node<'tree>,
        children: &[Field<'tree>],
        search: &mut Search<'tree>,
        next: &mut dyn FnMut(&mut Search<'tree>),
    ) {
        let Some((first, rest)) = wanted.split_first() else { return next(search) };
        let mut look = |child| {
            for shape in &first.one_of {
                shape.each(child, search, &mut |search| {
                    Self::all(rest, node, children, search, next);
                });
            }
        };
        if let Some(field) = first.single() {
            node.child_by_field_id(field).into_iter().for_each(look);
            return;
        }
        for (field, child) in children {
            if first.field.is_none_or(|wanted| wanted == *field) {
                look(*child);
            }
        }
    }
}

/// Whether arguments follow a name that ends here: `(…)`, or `!(…)` of a macro.
fn bracket_follows(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let macros = rest
        .strip_prefix(b"!")
        .is_some_and(|rest| matches!(rest.first(), Some(b'(' | b'[' | b'{')));
    macros || rest.first() == Some(&b'(')
}

#[cfg(test)]
mod tests;
