//! Going from a node to its children.

use tree_sitter::{Node, TreeCursor};

use super::Marks;

/// A child, and the number of its field; 0: none.
pub(super) type Field<'tree> = (u16, Node<'tree>);

/// Without `fields`, children are collected as if they had none: looking takes as long as the rest.
pub(super) fn collect<'tree>(
    node: Node<'tree>,
    fields: bool,
    spare: &mut Vec<TreeCursor<'tree>>,
    children: &mut Vec<Field<'tree>>,
) {
    let mut cursor = spare.pop().unwrap_or_else(|| node.walk());
    cursor.reset(node);
    let mut more = cursor.goto_first_child();
    while more {
        let field = if fields { cursor.field_id() } else { None };
        children.push((field.map_or(0, std::num::NonZero::get), cursor.node()));
        more = cursor.goto_next_sibling();
    }
    spare.push(cursor);
}

/// Opens those children with a mark in their text. The node has no error.
pub(super) fn open_marked<'tree>(
    node: Node<'tree>,
    marks: &Marks,
    spare: &mut Vec<TreeCursor<'tree>>,
    open: &mut Vec<Node<'tree>>,
) {
    let mut cursor = spare.pop().unwrap_or_else(|| node.walk());
    cursor.reset(node);
    let end = node.end_byte();
    let mut next = marks.next(node.start_byte());
    let mut more = next < end && cursor.goto_first_child_for_byte(next).is_some();
    while more {
        let child = cursor.node();
        next = marks.next(next.max(child.start_byte()));
        if next < child.end_byte() {
            if is_open(child) {
                open.push(child);
            }
            next = marks.next(child.end_byte());
        }
        more = next < end && cursor.goto_next_sibling();
    }
    spare.push(cursor);
}

/// Most nodes are leaves, with which no match begins; nor does one with a comment.
pub(super) fn is_open(node: Node<'_>) -> bool {
    node.child_count() > 0 && (!node.is_extra() || node.has_error())
}
