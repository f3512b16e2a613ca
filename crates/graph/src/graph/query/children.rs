//! Collects the children of a node that a query visits.

use tree_sitter::{Node, TreeCursor};

use super::Marks;

/// A child and the id of its field; 0: none.
pub(super) type Field<'tree> = (u16, Node<'tree>);

/// How often children of one node are skipped at once. Each skip may visit all children before.
const MAX_SKIPS: usize = 64;

pub(super) fn collect<'tree>(
    node: Node<'tree>,
    cursor: &mut TreeCursor<'tree>,
    children: &mut Vec<Field<'tree>>,
) {
    cursor.reset(node);
    let mut more = cursor.goto_first_child();
    while more {
        let field = cursor.field_id().map_or(0, std::num::NonZero::get);
        children.push((field, cursor.node()));
        more = cursor.goto_next_sibling();
    }
}

/// Collects the children with a mark in their text or, if `before`, right behind it; all with field 0.
pub(super) fn marked<'tree>(
    node: Node<'tree>,
    text: &[u8],
    marks: &Marks,
    before: bool,
    cursor: &mut TreeCursor<'tree>,
    children: &mut Vec<Field<'tree>>,
) {
    let (end, behind) = (node.end_byte(), usize::from(before));
    let mut next = marks.next(inside(node, text));
    if next >= end {
        return;
    }
    cursor.reset(node);
    let mut skips = MAX_SKIPS;
    let mut more = cursor.goto_first_child_for_byte(next.saturating_sub(behind)).is_some();
    while more && next < end {
        let child = cursor.node();
        next = marks.next(next.max(inside(child, text)));
        if next < child.end_byte() + behind {
            children.push((0, child));
            next = marks.next(next.max(child.end_byte()));
        } else if skips > 0 && next < end {
            // Skips the part of a long list without marks.
            skips -= 1;
            cursor.goto_parent();
            more = cursor.goto_first_child_for_byte(next.saturating_sub(behind)).is_some();
            continue;
        }
        more = cursor.goto_next_sibling();
    }
}

/// Whether a match may begin at a node or below. None begins at a leaf, as most nodes are, or at a
/// comment.
pub(super) fn holds_marks(node: Node<'_>, text: &[u8], marks: &Marks) -> bool {
    let has_error = node.has_error();
    node.child_count() > 0
        && (!node.is_extra() || has_error)
        && (has_error || marks.next(inside(node, text)) < node.end_byte())
}

/// Where the marks of a node begin. A bracket at its start is left out: it belongs to the name before
/// it.
fn inside(node: Node<'_>, text: &[u8]) -> usize {
    let start = node.start_byte();
    start + usize::from(matches!(text.get(start), Some(b'(' | b'{')))
}
