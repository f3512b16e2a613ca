//! Runs the queries of `languages/`, compiled into a table by the kind of node, on a tree.
//!
//! They are written in tree-sitter's query language, of which this has a part: nodes by kind and field,
//! choices, absent fields, `#eq?`, `#match?`, `#not-match?` and `#set!`. tree-sitter's own engine adds
//! 44 % to parsing (`benches/graph.rs` measures it), more than twice this one, which skips parts of a
//! file without [`Marks`]. A test checks that both find the same.

mod children;
mod marks;
mod syntax;

use regex::bytes::Regex;
use tree_sitter::{Language as Grammar, Node, Parser, Tree};

use self::children::{Field, collect, holds_marks, marked};
pub(super) use self::marks::Marks;
pub(crate) use self::syntax::SyntaxError;
use self::syntax::{QueryPart, Written, patterns};

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
    /// Those before a bracket.
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
    /// It is followed by `(`, or by `!(` of a macro.
    BeforeBracket,
}

/// The conditions of a node.
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

/// Why a query does not compile.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error("the grammar has no {0}")]
    Unknown(String),
    #[error("cannot read the predicate {0:?}")]
    Predicate(Vec<String>),
    #[error("a pattern must begin with a node of a known kind")]
    Root,
}

impl Query {
    pub(super) fn new(grammar: &Grammar, text: &str) -> Result<Self, QueryError> {
        let mut compiler =
            Compiler { grammar, captures: Vec::new(), tests: Vec::new(), properties: Vec::new() };
        let mut done = Vec::new();
        let mut by_kind = vec![Vec::new(); grammar.node_kind_count()];
        let mut needed = vec![Children::None; grammar.node_kind_count()];
        for written in patterns(text)? {
            let mut shapes = compiler.shapes(&written)?;
            let (Some(shape), true) = (shapes.pop(), shapes.is_empty()) else {
                return Err(QueryError::Root);
            };
            let kind = shape.kind.ok_or(QueryError::Root)?;
            let row: &mut Vec<usize> =
                by_kind.get_mut(usize::from(kind)).ok_or(QueryError::Root)?;
            row.push(done.len());
            let pattern = Pattern {
                shape,
                tests: std::mem::take(&mut compiler.tests),
                properties: std::mem::take(&mut compiler.properties),
            };
            let needs = &mut needed[usize::from(kind)];
            *needs = pattern.needs().max(*needs);
            done.push(pattern);
        }
        Ok(Self {
            root: root(grammar)?,
            patterns: done,
            by_kind,
            needed,
            captures: compiler.captures,
        })
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
    parser.set_language(grammar).map_err(|_| QueryError::Root)?;
    let tree = parser.parse("", None).ok_or(QueryError::Root)?;
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

struct Compiler<'a> {
    grammar: &'a Grammar,
    captures: Vec<String>,
    tests: Vec<(Capture, Test)>,
    properties: Vec<String>,
}

impl Compiler<'_> {
    fn shapes(&mut self, written: &Written) -> Result<Vec<Shape>, QueryError> {
        match written {
            Written::OneOf { of, captures } => {
                let captures = self.all(captures);
                let mut shapes = Vec::new();
                for one in of {
                    shapes.extend(self.shapes(one)?);
                }
                for shape in &mut shapes {
                    shape.captures.extend(&captures);
                }
                Ok(shapes)
            }
            Written::Node { kind, named, parts, captures } => {
                let unknown = || QueryError::Unknown(kind.clone());
                let kind = match kind.as_str() {
                    "_" => None,
                    _ => match self.grammar.id_for_node_kind(kind, *named) {
                        0 => return Err(unknown()),
                        id => Some(id),
                    },
                };
                let captures = self.all(captures);
                let mut shape = Shape { kind, captures, children: Vec::new(), without: Vec::new() };
                for part in parts {
                    self.part(part, &mut shape)?;
                }
                Ok(vec![shape])
            }
        }
    }

    fn part(&mut self, part: &QueryPart, shape: &mut Shape) -> Result<(), QueryError> {
        match part {
            QueryPart::Child { field, several, node } => {
                let field = field.as_ref().map(|field| self.field(field)).transpose()?;
                shape.children.push(Child { field, several: *several, one_of: self.shapes(node)? });
            }
            QueryPart::Without(field) => shape.without.push(self.field(field)?),
            QueryPart::Predicate(words) => {
                let wrong = || QueryError::Predicate(words.clone());
                let words: Vec<_> = words.iter().map(String::as_str).collect();
                match words[..] {
                    ["#set!", property] => self.properties.push(property.to_owned()),
                    ["#eq?", capture, text] => {
                        let capture = self.capture(capture);
                        self.tests.push((capture, Test::Is(text.to_owned())));
                    }
                    [fits @ ("#match?" | "#not-match?"), capture, text] => {
                        let capture = self.capture(capture);
                        let regex = Regex::new(text).map_err(|_| wrong())?;
                        self.tests.push((capture, Test::Matches(regex, fits == "#match?")));
                    }
                    ["#bracket?", capture] => {
                        let capture = self.capture(capture);
                        self.tests.push((capture, Test::BeforeBracket));
                    }
                    _ => return Err(wrong()),
                }
            }
        }
        Ok(())
    }

    fn field(&self, name: &str) -> Result<u16, QueryError> {
        let id = self.grammar.field_id_for_name(name);
        Ok(id.ok_or_else(|| QueryError::Unknown(name.to_owned()))?.get())
    }

    fn all(&mut self, names: &[String]) -> Vec<Capture> {
        names.iter().map(|name| self.capture(name)).collect()
    }

    fn capture(&mut self, name: &str) -> Capture {
        let known = self.captures.iter().position(|other| other == name);
        known.unwrap_or_else(|| {
            self.captures.push(name.to_owned());
            self.captures.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
