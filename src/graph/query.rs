//! Our queries, made into a table by the kind of node, which a walk over a tree looks up.
//!
//! They are tree-sitter's own queries, of which this knows the plain part: nodes by kind and field,
//! choices, absent fields, `#eq?`, `#match?` and `#set!`. tree-sitter's engine runs all of the
//! language and takes as long as half the parsing; for patterns as flat as ours a table does.
//! Other than there, the order of children does not matter.

mod children;
mod marks;
mod syntax;

use regex::bytes::Regex;
use tree_sitter::{Language as Grammar, Node, Tree, TreeCursor};

use self::children::{Field, collect, is_open, open_marked};
pub(super) use self::marks::Marks;
pub(crate) use self::syntax::SyntaxError;
use self::syntax::{Part, Written, patterns};

/// Matches that one node is the root of; of more, the rest is left out.
const MOST: usize = 10_000;

/// A query for one grammar.
pub(super) struct Query {
    patterns: Vec<Pattern>,
    /// By the kind of a node, the patterns that it may be the root of.
    by_kind: Vec<Vec<usize>>,
    /// By the kind of a node, whether one of these asks for the fields of its children.
    fields: Vec<bool>,
    captures: Vec<String>,
}

/// Nodes by the captures that they were found for.
pub(super) type Match<'tree> = Vec<(Capture, Node<'tree>)>;

/// An index into the names of captures.
pub(super) type Capture = usize;

struct Pattern {
    shape: Shape,
    tests: Vec<(Capture, Test)>,
    properties: Vec<String>,
}

enum Test {
    Is(String),
    Fits(Regex),
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
        let mut fields = vec![false; grammar.node_kind_count()];
        for written in patterns(text)? {
            let mut shapes = compiler.shapes(&written)?;
            let (Some(shape), true) = (shapes.pop(), shapes.is_empty()) else {
                return Err(QueryError::Root);
            };
            let kind = shape.kind.ok_or(QueryError::Root)?;
            let row: &mut Vec<usize> =
                by_kind.get_mut(usize::from(kind)).ok_or(QueryError::Root)?;
            row.push(done.len());
            fields[usize::from(kind)] |= shape.asks_for_fields();
            done.push(Pattern {
                shape,
                tests: std::mem::take(&mut compiler.tests),
                properties: std::mem::take(&mut compiler.properties),
            });
        }
        Ok(Self { patterns: done, by_kind, fields, captures: compiler.captures })
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
        let mut spare = vec![tree.walk()];
        let mut children = Vec::new();
        let mut way = Vec::new();
        let mut open = vec![tree.root_node()];
        while let Some(node) = open.pop() {
            let kind = usize::from(node.kind_id());
            let patterns = self.by_kind.get(kind).map_or(&[][..], |patterns| patterns);
            let below = open.len();
            if patterns.is_empty() && !node.has_error() {
                open_marked(node, marks, &mut spare, &mut open);
            } else {
                children.clear();
                let fields = self.fields.get(kind).is_some_and(|fields| *fields);
                collect(node, fields, &mut spare, &mut children);
                for at in patterns {
                    let pattern = &self.patterns[*at];
                    pattern.shape.each(node, &children, &mut spare, &mut way, |matched| {
                        if pattern.holds(matched, text) {
                            found(*at, matched);
                        }
                    });
                }
                let holds = |node: &Node<'_>| {
                    is_open(*node)
                        && (marks.next(node.start_byte()) < node.end_byte() || node.has_error())
                };
                open.extend(children.iter().map(|(_, child)| *child).filter(holds));
            }
            // The first is to be on top.
            open[below..].reverse();
        }
    }
}

impl Pattern {
    fn holds(&self, matched: &Match<'_>, text: &[u8]) -> bool {
        self.tests.iter().all(|(capture, test)| {
            matched.iter().filter(|(other, _)| other == capture).all(|(_, node)| {
                let text = text.get(node.byte_range()).unwrap_or_default();
                match test {
                    Test::Is(wanted) => text == wanted.as_bytes(),
                    Test::Fits(wanted) => wanted.is_match(text),
                }
            })
        })
    }
}

impl Shape {
    /// Tells of all ways in which a node with these children looks like this; `way` is but room.
    fn each<'tree>(
        &self,
        node: Node<'tree>,
        children: &[Field<'tree>],
        spare: &mut Vec<TreeCursor<'tree>>,
        way: &mut Match<'tree>,
        mut tell: impl FnMut(&Match<'tree>),
    ) {
        // Nearly all patterns are this plain, and take half the time if nothing is put together.
        if let ([wanted], true) = (&self.children[..], self.without.is_empty())
            && wanted.one_of.iter().all(Self::is_leaf)
        {
            let fields = children.iter().filter(|(field, _)| wanted.is_in(*field));
            for (_, child) in fields {
                for shape in wanted.one_of.iter().filter(|shape| shape.fits(*child)) {
                    way.clear();
                    way.extend(shape.captures.iter().map(|capture| (*capture, *child)));
                    way.extend(self.captures.iter().map(|capture| (*capture, node)));
                    tell(way);
                }
            }
            return;
        }
        self.matches(node, children, spare).iter().for_each(tell);
    }

    /// All ways in which a node with these children looks like this. `spare`: cursors to be used
    /// again.
    fn matches<'tree>(
        &self,
        node: Node<'tree>,
        children: &[Field<'tree>],
        spare: &mut Vec<TreeCursor<'tree>>,
    ) -> Vec<Match<'tree>> {
        if !self.fits(node)
            || children.iter().any(|(field, _)| self.without.contains(field) && *field != 0)
        {
            return Vec::new();
        }
        let mut ways: Vec<Match<'_>> = Vec::new();
        for wanted in &self.children {
            let here = wanted.matches(children, spare);
            if here.is_empty() {
                return here;
            }
            ways = if ways.is_empty() { here } else { combined(&ways, &here) };
        }
        if ways.is_empty() {
            ways.push(Vec::new());
        }
        for way in ways.iter_mut().filter(|_| !self.captures.is_empty()) {
            way.extend(self.captures.iter().map(|capture| (*capture, node)));
        }
        ways
    }

    fn asks_for_fields(&self) -> bool {
        !self.without.is_empty() || self.children.iter().any(|child| child.field.is_some())
    }

    /// Whether it says nothing of children.
    fn is_leaf(&self) -> bool {
        self.children.is_empty() && self.without.is_empty()
    }

    fn fits(&self, node: Node<'_>) -> bool {
        self.kind.map_or(node.is_named(), |kind| kind == node.kind_id())
    }
}

impl Child {
    fn is_in(&self, field: u16) -> bool {
        self.field.is_none_or(|wanted| wanted == field)
    }

    fn matches<'tree>(
        &self,
        children: &[Field<'tree>],
        spare: &mut Vec<TreeCursor<'tree>>,
    ) -> Vec<Match<'tree>> {
        let mut here = Vec::new();
        for (field, child) in children {
            if !self.is_in(*field) || here.len() >= MOST {
                continue;
            }
            for shape in self.one_of.iter().filter(|shape| shape.fits(*child)) {
                let mut below = Vec::new();
                if !shape.is_leaf() {
                    collect(*child, shape.asks_for_fields(), spare, &mut below);
                }
                here.append(&mut shape.matches(*child, &below, spare));
            }
        }
        here
    }
}

fn combined<'tree>(ways: &[Match<'tree>], here: &[Match<'tree>]) -> Vec<Match<'tree>> {
    let each = ways.iter().flat_map(|way| here.iter().map(|more| [&way[..], &more[..]].concat()));
    each.take(MOST).collect()
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
            Part::Child { field, node } => {
                let field = field.as_ref().map(|field| self.field(field)).transpose()?;
                shape.children.push(Child { field, one_of: self.shapes(node)? });
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
                    ["#match?", capture, text] => {
                        let capture = self.capture(capture);
                        let regex = Regex::new(text).map_err(|_| wrong())?;
                        self.tests.push((capture, Test::Fits(regex)));
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
