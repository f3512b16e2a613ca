//! Nodes and the ids that users see: `path`, `path::symbol`, `path::Class::method#2`.

use super::{Index, NONE, Node, NodeId};
use crate::graph::calls::names::{Name, number};

impl Index {
    /// Returns the node of such an id.
    pub(in crate::graph::calls) fn node(&self, id: &str) -> Option<NodeId> {
        // A path may contain `::`.
        let mut cuts = id.match_indices("::").map(|(at, _)| at).chain([id.len()]);
        let file = cuts.find_map(|at| self.file(self.id(&id[..at])?))?;
        let mut text = String::new();
        let nodes = std::iter::once(file.node).chain(file.symbols.iter().map(|symbol| symbol.node));
        nodes.into_iter().find(|node| {
            text.clear();
            self.write_id(*node, &mut text);
            text == id
        })
    }

    /// Writes the id of a file or symbol.
    pub(in crate::graph::calls) fn write_id(&self, id: NodeId, into: &mut String) {
        let Some(node) = self.nodes.get(id.0 as usize) else { return };
        if node.parent == id {
            into.push_str(self.names.text(node.name));
            return;
        }
        self.write_id(node.parent, into);
        into.push_str("::");
        into.push_str(self.names.text(node.name));
        if node.nth > 0 {
            into.push('#');
            into.push_str(&(node.nth + 1).to_string());
        }
    }

    pub(super) fn key(&self, id: NodeId) -> (NodeId, Name, u32) {
        let node = &self.nodes[id.0 as usize];
        (node.parent, node.name, node.nth)
    }

    pub(super) fn add_node(&mut self, parent: Option<NodeId>, nth: u32, name: &str) -> NodeId {
        let name = self.names.add(name);
        let next = self.free.last().copied().unwrap_or(NodeId(number(self.nodes.len())));
        self.add_symbol(Node { symbol: NONE, parent: parent.unwrap_or(next), name, nth })
    }

    pub(super) fn add_symbol(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.free.pop() {
            self.nodes[id.0 as usize] = node;
            return id;
        }
        self.nodes.push(node);
        NodeId(number(self.nodes.len() - 1))
    }
}
