//! Going from a node to its children.

use tree_sitter::{Node, TreeCursor};

use super::Marks;

/// A child, and the number of its field; 0: none.
pub(super) type Field<'tree> = (u16, Node<'tree>);

/// How often children of one node are leapt over. Each leap may go past all before.
const LEAPS: usize = 64;

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

/// Collects the children with a mark in their text, or, if `before`, right behind it; as if none had
/// a field.
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
    let mut leaps = LEAPS;
    let mut more = cursor.goto_first_child_for_byte(next.saturating_sub(behind)).is_some();
    while more && next < end {
        let child = cursor.node();
        next = marks.next(next.max(inside(child, text)));
        if next < child.end_byte() + behind {
            children.push((0, child));
            next = marks.next(next.max(child.end_byte()));
        } else if leaps > 0 && next < end {
            // Of a long list, what is leapt over is not even touched.
            leaps -= 1;
            cursor.goto_parent();
            more = cursor.goto_first_child_for_byte(next.saturating_sub(behind)).is_some();
            continue;
        }
        more = cursor.goto_next_sibling();
    }
}

/// Whether matches may begin with a node or below. Most nodes are leaves, with which none begins; nor
/// does one with a comment.
pub(super) fn holds_marks(node: Node<'_>, text: &[u8], marks: &Marks) -> bool {
    let has_error = node.has_error();
    node.child_count() > 0
        && (!node.is_extra() || has_error)
        && (has_error || marks.next(inside(node, text)) < node.end_byte())
}

/// Where marks of a node begin: a bracket that it begins with is none of its own, but of what is
/// called, made or declared before the bracket.
fn inside(node: Node<'_>, text: &[u8]) -> usize {
    let start = node.start_byte();
    start + usize::from(matches!(text.get(start), Some(b'(' | b'{')))
}
