//! The code graph as published: nodes, calls, snapshots and deltas.

use std::sync::Arc;

use super::TimestampMs;
use super::named::named;

/// A folder, file or symbol of the code graph.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphNode {
    pub kind: GraphKind,
    pub lines: Span,
    /// None if tokens are not counted.
    pub tokens: Option<u32>,
    /// Of a file that was parsed.
    pub language: Option<&'static str>,
    /// When an agent of the team last wrote it.
    pub last_write: Option<TimestampMs>,
}

named! {
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
    pub start: u32,
    pub end: u32,
}

/// `from` calls `to`, both ids of nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GraphCall {
    pub from: Arc<str>,
    pub to: Arc<str>,
}

/// The whole graph; contains every delta up to `seq`.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphSnapshot {
    pub seq: u64,
    /// By id.
    pub nodes: Vec<(Arc<str>, GraphNode)>,
    pub calls: Vec<GraphCall>,
}

/// The changes of the graph.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct GraphDelta {
    pub seq: u64,
    pub added: GraphPart,
    /// Nodes whose id existed before; never calls.
    pub changed: Vec<(Arc<str>, GraphNode)>,
    pub removed: GraphRemains,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct GraphPart {
    pub nodes: Vec<(Arc<str>, GraphNode)>,
    pub calls: Vec<GraphCall>,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct GraphRemains {
    pub nodes: Vec<Arc<str>>,
    pub calls: Vec<GraphCall>,
}
