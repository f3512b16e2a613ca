//! Our queries, made into a table by the kind of node, which a walk over a tree looks up.
//!
//! They are tree-sitter's own queries, of which this knows the plain part: nodes by kind and field,
//! choices, absent fields, `#eq?`, `#match?`, `#not-match?` and `#set!`. tree-sitter's engine runs all of the
//! language and takes as long as half the parsing; for patterns as flat as ours a table does.
//! Other than there, the order of children does not matter.

mod children;
mod marks;
mod syntax;

use regex::bytes::Regex;
use tree_sitter::{Language as Grammar, Node, Parser, Tree};

use self::children::{Field, collect, holds_marks, marked};
pub(super) use self::marks::Marks;
pub(crate) use self::syntax::SyntaxError;
use self::syntax::{Part, Written, patterns};

/// Nodes that are looked at for one pattern below one root; what more would match is left out.
const MOST: usize = 100_000;

/// A query for one grammar.
pub(super) struct Query {
    /// The kind of the root of a text, which a root that is an error stands for.
    root: u16,
    patterns: Vec<Pattern>,
    /// By the kind of a node, the patterns that it may be the root of.
    by_kind: Vec<Vec<usize>>,
    /// By the kind of a node, which of its children these ask for.
    asked: Vec<Asked>,
    captures: Vec<String>,
}

/// Nodes by the captures that they were found for.
pub(super) type Match<'tree> = Vec<(Capture, Node<'tree>)>;

/// An index into the names of captures.
pub(super) type Capture = usize;

/// Which of a node's children are looked at, besides those that are asked for by their field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    None,
    /// Those that a bracket follows.
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
    /// Whether it does, or does not.
    Fits(Regex, bool),
    /// `(`, or a macro's `!(`, comes right behind it.
    BeforeBracket,
}

/// What a node is to look like.
struct Shape {
    /// None: any that has a name.
    kind: Option<u16>,
    captures: Vec<Capture>,
    children: Vec<Child>,
    without: Vec<u16>,
}

/// A child that there is to be.
struct Child {
    field: Option<u16>,
    /// Whether there may be more than one of the field.
    several: bool,
    one_of: Vec<Shape>,
}

/// Why a query does not fit.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error("the grammar has no {0}")]
    Unknown(String),
    #[error("cannot read the predicate {0:?}")]
    Predicate(Vec<String>),
    #[error("a pattern begins with a node of some kind")]
    Root,
}

impl Query {
    pub(super) fn new(grammar: &Grammar, text: &str) -> Result<Self, QueryError> {
        let mut compiler =
            Compiler { grammar, captures: Vec::new(), tests: Vec::new(), properties: Vec::new() };
        let mut done = Vec::new();
        let mut by_kind = vec![Vec::new(); grammar.node_kind_count()];
        let mut asked = vec![Asked::None; grammar.node_kind_count()];
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
            let asks = &mut asked[usize::from(kind)];
            *asks = pattern.asks().max(*asks);
            done.push(pattern);
        }
        Ok(Self {
            root: root(grammar)?,
            patterns: done,
            by_kind,
            asked,
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

    /// Finds all matches in a tree, by the order of their roots; tells each with its pattern.
    ///
    /// What has no mark in its text, and no error, holds no match and is passed over.
    pub(super) fn each<'tree>(
        &self,
        tree: &'tree Tree,
        text: &[u8],
        marks: &Marks,
        mut found: impl FnMut(usize, &Match<'tree>),
    ) {
        let mut cursor = tree.walk();
        let mut children = Vec::new();
        let mut way = Way { nodes: Vec::new(), left: 0 };
        let mut open = vec![tree.root_node()];
        while let Some(node) = open.pop() {
            let is_root = node.is_error() && node.id() == tree.root_node().id();
            let kind = usize::from(if is_root { self.root } else { node.kind_id() });
            let patterns = self.by_kind.get(kind).map_or(&[][..], |patterns| patterns);
            let asked = self.asked.get(kind).copied().unwrap_or(Asked::None);
            children.clear();
            if asked == Asked::All || node.has_error() {
                collect(node, &mut cursor, &mut children);
            } else {
                let before = asked == Asked::BeforeBracket;
                marked(node, text, marks, before, &mut cursor, &mut children);
            }
            for at in patterns {
                let pattern = &self.patterns[*at];
                way.left = MOST;
                pattern.shape.within(node, &children, &mut way, &mut |way| {
                    if pattern.holds(&way.nodes, text) {
                        found(*at, &way.nodes);
                    }
                });
            }
            // The first is to be on top.
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
    fn asks(&self) -> Asked {
        let before_bracket = self.tests.iter().any(|(_, test)| matches!(test, Test::BeforeBracket));
        match self.shape.asks_for_all() {
            false => Asked::None,
            true if before_bracket => Asked::BeforeBracket,
            true => Asked::All,
        }
    }

    fn holds(&self, matched: &Match<'_>, text: &[u8]) -> bool {
        self.tests.iter().all(|(capture, test)| {
            matched.iter().filter(|(other, _)| other == capture).all(|(_, node)| {
                let own = || text.get(node.byte_range()).unwrap_or_default();
                match test {
                    Test::Is(wanted) => own() == wanted.as_bytes(),
                    Test::Fits(wanted, does) => wanted.is_match(own()) == *does,
                    Test::BeforeBracket => bracket_follows(text, node.end_byte()),
                }
            })
        })
    }
}

/// What was found so far on the way to a match, and how many nodes may still be looked at.
struct Way<'tree> {
    nodes: Match<'tree>,
    left: usize,
}

impl Shape {
    /// Goes on with every way in which a node looks like this.
    fn each<'tree>(
        &self,
        node: Node<'tree>,
        way: &mut Way<'tree>,
        go_on: &mut dyn FnMut(&mut Way<'tree>),
    ) {
        if !self.kind.map_or(node.is_named(), |kind| kind == node.kind_id()) || way.left == 0 {
            return;
        }
        way.left -= 1;
        let mut children = Vec::new();
        if self.asks_for_all() {
            collect(node, &mut node.walk(), &mut children);
        }
        self.within(node, &children, way, go_on);
    }

    /// The same of a node of this kind; `children`: those of it that are not asked for by their field.
    fn within<'tree>(
        &self,
        node: Node<'tree>,
        children: &[Field<'tree>],
        way: &mut Way<'tree>,
        go_on: &mut dyn FnMut(&mut Way<'tree>),
    ) {
        if self.without.iter().any(|field| node.child_by_field_id(*field).is_some()) {
            return;
        }
        let before = way.nodes.len();
        way.nodes.extend(self.captures.iter().map(|capture| (*capture, node)));
        Child::all(&self.children, node, children, way, go_on);
        way.nodes.truncate(before);
    }

    fn asks_for_all(&self) -> bool {
        self.children.iter().any(|child| child.single().is_none())
    }
}

impl Child {
    /// The field, if there is but one child of it.
    fn single(&self) -> Option<u16> {
        self.field.filter(|_| !self.several)
    }

    /// Goes on with every way in which a node has all that is wanted.
    fn all<'tree>(
        wanted: &[Self],
        node: Node<'tree>,
        children: &[Field<'tree>],
        way: &mut Way<'tree>,
        go_on: &mut dyn FnMut(&mut Way<'tree>),
    ) {
        let Some((first, rest)) = wanted.split_first() else { return go_on(way) };
        let mut look = |child| {
            for shape in &first.one_of {
                shape.each(child, way, &mut |way| Self::all(rest, node, children, way, go_on));
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

/// Whether a name that ends here is followed by what is handed over: `(…)`, or a macro's `!(…)`.
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

    fn part(&mut self, part: &Part, shape: &mut Shape) -> Result<(), QueryError> {
        match part {
            Part::Child { field, several, node } => {
                let field = field.as_ref().map(|field| self.field(field)).transpose()?;
                shape.children.push(Child { field, several: *several, one_of: self.shapes(node)? });
            }
            Part::Without(field) => shape.without.push(self.field(field)?),
            Part::Predicate(words) => {
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
                        self.tests.push((capture, Test::Fits(regex, fits == "#match?")));
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
