//! Finds the files that a command line reads and writes: unquotes words, follows `cd`, and knows
//! common programs from a table.
//!
//! Best effort, since only running a command shows its effects; but quoting cannot fool it, and
//! time and memory are bounded (a general grammar was not, on `a|a|a|…`). Knows no protocol.

mod arguments;
mod lexer;
pub(crate) mod patch;
mod programs;
mod run;
mod word;

use std::path::{Path, PathBuf};

use super::Workspace;

/// Bytes of the longest command line to read as a whole: twice the kernel's limit of one argument.
const LONGEST: usize = 1 << 18;
/// Files that one line may name; over it the line is not read as a whole.
const MOST_FILES: usize = 4096;
/// Depth of nested commands (`sh -c`, substitutions); over it the line is not read as a whole.
const MOST_DEPTH: usize = 8;

/// A command to run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ShellCommand {
    /// Text for a shell.
    Line(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// The role of a file in a command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FileRole {
    Read,
    Write,
    Search,
    /// An argument that looks like a file; the program's use of it is not known.
    Argument,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NamedFile {
    /// Absolute, neither folded nor resolved.
    pub(crate) path: PathBuf,
    pub(crate) role: FileRole,
    /// Whether the path is certain: no pattern, and no unknown folder.
    pub(crate) plain: bool,
}

#[derive(Debug)]
pub(crate) struct Reading {
    /// In the order of the text, substitutions after the rest of their line.
    pub(crate) named: Vec<NamedFile>,
    /// Whether the whole command was read; false over the bounds.
    pub(crate) whole: bool,
}

/// Reads a command that would run in `cwd`. The result has neither folders nor standard devices.
pub(crate) fn read(command: &ShellCommand, cwd: &Path, workspace: &dyn Workspace) -> Reading {
    run::Run::new(workspace).read(command, cwd)
}

#[cfg(test)]
mod tests;
