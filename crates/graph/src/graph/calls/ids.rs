//! Ids of files and of the nodes of edges, and the families of languages.

use crate::graph::facts::Language;

/// Index of a file in the index of all files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct FileId(pub(super) u32);

/// A file or a symbol. It keeps its id while its file is edited around it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::graph) struct NodeId(pub(super) u32);

/// Languages whose files call each other, by how they name files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Family {
    Rust,
    Python,
    /// JavaScript and TypeScript, with or without JSX.
    Script,
    /// Imports are not followed.
    Other(Language),
}

impl Family {
    pub(super) fn of(language: Language) -> Self {
        match language.name() {
            "rust" => Self::Rust,
            "python" => Self::Python,
            "javascript" | "jsx" | "typescript" | "tsx" => Self::Script,
            _ => Self::Other(language),
        }
    }
}
