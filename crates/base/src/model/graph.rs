//! The code graph as published: nodes, calls, snapshots and deltas.

use std::sync::Arc;

use super::TimestampMs;
use super::named::named;

/// A folder, file or symbol of the code graph.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphNode {
    /// Folder, file, or the kind of the symbol.
    pub kind: GraphKind,
    /// The lines of the file, or of the definition of the symbol.
    pub lines: Span,
    /// None if tokens are not counted.
    pub tokens: Option<u32>,
    /// The language of a file that was parsed.
    pub language: Option<&'static str>,
    /// When an agent of the team last wrote it.
    pub last_write: Option<TimestampMs>,
}

named! {
    /// The kind of a node of the code graph.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum GraphKind {
        Folder = "folder",
        File = "file",
        /// A class, struct, trait, interface or enum, or the type of an `impl`.
        Class = "class",
        /// A function of a class.
        Method = "method",
        /// A function, constant, type alias or module.
        Function = "function",
    }
}

/// Lines from 1, both ends included. An empty file has 1 to 1, a folder 0 to 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first line.
    pub start: u32,
    /// The last line.
    pub end: u32,
}

/// `from` calls `to`, both ids of nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GraphCall {
    /// The id of the caller.
    pub from: Arc<str>,
    /// The id of the called symbol.
    pub to: Arc<str>,
}

/// The whole graph; contains every delta up to `seq`.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphSnapshot {
    /// The number of the last delta that the graph contains.
    pub seq: u64,
    /// By id.
    pub nodes: Vec<(Arc<str>, GraphNode)>,
    /// All calls, each once.
    pub calls: Vec<GraphCall>,
}

/// The changes of the graph.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct GraphDelta {
    /// The number of the delta, one more than that of the delta before.
    pub seq: u64,
    /// Nodes and calls that are new.
    pub added: GraphPart,
    /// Nodes whose id existed before; never calls.
    pub changed: Vec<(Arc<str>, GraphNode)>,
    /// Nodes and calls that are gone.
    pub removed: GraphRemains,
}

/// Nodes and calls that a delta adds.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct GraphPart {
    /// The nodes with their ids.
    pub nodes: Vec<(Arc<str>, GraphNode)>,
    /// The calls between these or other nodes.
    pub calls: Vec<GraphCall>,
}

/// Nodes and calls that a delta removes.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct GraphRemains {
    /// The ids of the nodes.
    pub nodes: Vec<Arc<str>>,
    /// The calls between these or other nodes.
    pub calls: Vec<GraphCall>,
}
