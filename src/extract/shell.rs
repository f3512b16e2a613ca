//! What a command line does with files, as far as its text tells: a small reading of the shell,
//! with words unquoted, folders followed, and common programs known by a table.
//!
//! Best effort by nature, since only running a command shows what it does; but never fooled by
//! quoting, and never slow: a general grammar was tried and took memory without bound on
//! `a|a|a|…`. Knows the workspace through its port, and no protocol.

mod arguments;
mod lexer;
pub(crate) mod patch;
mod programs;
mod run;
mod word;

use std::path::{Path, PathBuf};

use super::Workspace;

/// Longest command line that is read, in bytes: twice what the kernel takes as one argument. Past
/// it a line counts as not wholly read.
const LONGEST: usize = 1 << 18;
/// Files that one line may name; past it, the line counts as not wholly read.
const MOST_FILES: usize = 4096;
/// Commands within commands (`sh -c`, substitutions) that are followed; what stands deeper
/// makes a line count as not wholly read.
const MOST_DEPTH: usize = 8;

/// Something to run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum ShellCommand {
    /// Text for a shell.
    Line(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

/// What a command does with a file that it names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum FileRole {
    Read,
    Write,
    Search,
    /// It is named, and looks like a file; what is done with it is the program's secret.
    Argument,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NamedFile {
    /// Absolute, neither folded nor resolved.
    pub(crate) path: PathBuf,
    pub(crate) role: FileRole,
    /// Whether exactly this file is meant: no pattern, and no folder that the text doesn't tell.
    pub(crate) plain: bool,
}

#[derive(Debug)]
pub(crate) struct Reading {
    /// In the order of the text, substitutions behind the line they stand in.
    pub(crate) named: Vec<NamedFile>,
    /// Whether all of the command was read; false past the bounds.
    pub(crate) whole: bool,
}

/// Reads a command that would run in `cwd`. Folders are not among what is named, nor are the
/// standard devices.
pub(crate) fn read(command: &ShellCommand, cwd: &Path, workspace: &dyn Workspace) -> Reading {
    run::Run::new(workspace).read(command, cwd)
}

#[cfg(test)]
mod tests;
