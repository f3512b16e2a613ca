//! Why a command was not started: what a warden reports, and what people read.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::Command;
use crate::confine::SetupStep;

/// Why a command was not started, in words that say what to mend.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot start `{program}`: not found on PATH; install it or give its full path")]
    NotOnPath { program: String },
    #[error("cannot start `{program}`: there is no such file")]
    NoSuchFile { program: String },
    #[error(
        "cannot start `{program}`: `{}` is there, but not the interpreter that it names \
         (its `#!` line, or the loader it was linked for)", .file.display()
    )]
    NoInterpreter { program: String, file: PathBuf },
    #[error("cannot start `{program}`: not permitted; it must be a file that may be executed")]
    NotExecutable { program: String },
    /// It may be executed, but not in there.
    #[error(
        "cannot start `{program}`: `{}` lies outside of what this agent may execute; add it to \
         what its profile or its zone may read, or set `confine = \"workspace\"`", .file.display()
    )]
    OutsideWall { program: String, file: PathBuf },
    #[error(
        "cannot start `{program}`: its arguments and environment are longer than the system \
         allows"
    )]
    TooLong { program: String },
    #[error("cannot start `{program}`: {what} contains a character that no command can be given")]
    Unsendable { program: String, what: String },
    #[error("cannot start `{program}` in `{}`: {}", .cwd.display(), plain(source))]
    Cwd { program: String, cwd: PathBuf, source: io::Error },
    #[error("cannot start `{program}`: {}", plain(source))]
    Program { program: String, source: io::Error },
    /// The fault is not the command's: no descriptors, no memory, a warden that was killed.
    #[error("cannot start `{program}`: its warden failed: {}", plain(source))]
    Warden { program: String, source: io::Error },
    #[error(
        "cannot start `{program}`: {}; `eisen-core check` tries what this kernel can enforce, and \
         `enforce = \"protocol\"` does without", unconfined(*step, source)
    )]
    Unconfined { program: String, step: SetupStep, source: io::Error },
}

/// What stood in the way of a start, with the system's error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The warden could not set itself up.
    Guard(i32),
    /// The working directory could not be entered.
    Folder(i32),
    Program(i32),
    /// The child could not be confined.
    Confinement(SetupStep, i32),
}

impl SpawnError {
    pub(super) fn warden(command: &Command, source: io::Error) -> Self {
        Self::Warden { program: name(command), source }
    }

    pub(super) fn too_long(command: &Command) -> Self {
        Self::TooLong { program: name(command) }
    }

    pub(super) fn unsendable(command: &Command, what: impl Into<String>) -> Self {
        Self::Unsendable { program: name(command), what: what.into() }
    }

    pub(super) fn refused(command: &Command, refusal: Refusal, confined: bool) -> Self {
        let program = name(command);
        let number = match refusal {
            Refusal::Guard(errno) => {
                return Self::Warden { program, source: io::Error::from_raw_os_error(errno) };
            }
            Refusal::Folder(errno) => {
                let source = io::Error::from_raw_os_error(errno);
                return Self::Cwd { program, cwd: command.cwd.clone(), source };
            }
            Refusal::Confinement(step, errno) => {
                let source = io::Error::from_raw_os_error(errno);
                return Self::Unconfined { program, step, source };
            }
            Refusal::Program(errno) => errno,
        };
        match number {
            libc::ENOENT => match find(command) {
                Some(file) => Self::NoInterpreter { program, file },
                None if has_slash(&command.program) => Self::NoSuchFile { program },
                None => Self::NotOnPath { program },
            },
            libc::EACCES if let (true, Some(file)) = (confined, find(command)) => {
                Self::OutsideWall { program, file }
            }
            libc::EACCES | libc::EPERM => Self::NotExecutable { program },
            libc::E2BIG => Self::TooLong { program },
            _ => Self::Program { program, source: io::Error::from_raw_os_error(number) },
        }
    }
}

/// What went wrong on the way into confinement.
fn unconfined(step: SetupStep, source: &io::Error) -> String {
    let errno = source.raw_os_error().unwrap_or_default();
    let source = plain(source);
    match (step, errno) {
        (SetupStep::Bait, _) => {
            format!("the file by which its wall is to be tried cannot be opened: {source}")
        }
        (SetupStep::Rights, _) => format!("it cannot give up its rights: {source}"),
        (SetupStep::Wall, libc::E2BIG) => {
            "too many walls stand around this program already".to_owned()
        }
        (SetupStep::Wall, _) => format!("the kernel does not put up its wall: {source}"),
        (SetupStep::Canary, 0) => {
            "behind its wall it could still open a file outside: this kernel does not enforce what \
             it promised to"
                .to_owned()
        }
        (SetupStep::Canary, _) => {
            format!("behind its wall it was not turned away from a file outside, but: {source}")
        }
        (SetupStep::Doorbell, libc::EBUSY) => {
            "this program runs behind somebody else's doorbell (seccomp user notification), and \
             the kernel takes only one"
                .to_owned()
        }
        (SetupStep::Doorbell, _) => format!("the kernel does not take its doorbell: {source}"),
    }
}

fn name(command: &Command) -> String {
    command.program.to_string_lossy().into_owned()
}

fn has_slash(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}

/// The file that the system meant when it said that something is not there.
fn find(command: &Command) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if has_slash(&command.program) {
        return Some(command.cwd.join(&command.program)).filter(executable);
    }
    let path = match command.env.get("PATH") {
        Some(path) => path.into(),
        None => std::env::var_os("PATH")?,
    };
    std::env::split_paths(&path)
        .map(|folder| command.cwd.join(folder).join(Path::new(&command.program)))
        .find(executable)
}

/// An error of the system's without its number, which tells nobody anything.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
