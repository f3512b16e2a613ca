//! Errors of a spawn: the reports of a warden, worded so that a user can fix the cause.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::libc;
use serde::{Deserialize, Serialize};

use super::Command;
use crate::confine::SetupStep;

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program's name has no slash, and no folder of PATH has an executable file of that name.
    #[error("cannot start `{program}`: not found on PATH; install it or give its full path")]
    NotOnPath {
        /// The program as the command names it.
        program: String,
    },
    /// The program's path leads to no executable file.
    #[error("cannot start `{program}`: there is no such file")]
    NoSuchFile {
        /// The program as the command names it.
        program: String,
    },
    /// The program's file is there, but the interpreter or loader that it names is not.
    #[error(
        "cannot start `{program}`: `{}` exists, but its interpreter does not (its `#!` line, or \
         the loader it was linked for)", .file.display()
    )]
    NoInterpreter {
        /// The program as the command names it.
        program: String,
        /// The file that was found.
        file: PathBuf,
    },
    /// The system does not permit executing the program.
    #[error("cannot start `{program}`: not permitted; it must be an executable file")]
    NotExecutable {
        /// The program as the command names it.
        program: String,
    },
    /// The file is executable, but the confinement forbids executing it.
    #[error(
        "cannot start `{program}`: `{}` is outside the paths this agent may execute; add it to the \
         readable paths of its profile or zone, or set `confine = \"workspace\"`", .file.display()
    )]
    OutsideWall {
        /// The program as the command names it.
        program: String,
        /// The file that was found.
        file: PathBuf,
    },
    /// The arguments and the environment are longer than the system allows.
    #[error(
        "cannot start `{program}`: its arguments and environment are longer than the system \
         allows"
    )]
    TooLong {
        /// The program as the command names it.
        program: String,
    },
    /// A part of the command has a NUL byte, or the name of a variable is empty or contains `=`.
    #[error("cannot start `{program}`: {part} contains a character not allowed in commands")]
    Unsendable {
        /// The program as the command names it.
        program: String,
        /// The part, in words such as `argument 2`.
        part: String,
    },
    /// The working directory can't be entered.
    #[error("cannot start `{program}` in `{}`: {}", .cwd.display(), plain(source))]
    Cwd {
        /// The program as the command names it.
        program: String,
        /// The working directory of the command.
        cwd: PathBuf,
        /// The error as the system reports it.
        source: io::Error,
    },
    /// The system does not start the program, for a reason that no other variant has.
    #[error("cannot start `{program}`: {}", plain(source))]
    Program {
        /// The program as the command names it.
        program: String,
        /// The error as the system reports it.
        source: io::Error,
    },
    /// Not the command's fault: no descriptors, no memory, a warden that was killed.
    #[error("cannot start `{program}`: its warden failed: {}", plain(source))]
    Warden {
        /// The program as the command names it.
        program: String,
        /// The error as the system reports it.
        source: io::Error,
    },
    /// The child could not be confined, so the program was not executed.
    #[error(
        "cannot start `{program}`: {}; `eisen-core check` tests what this kernel can enforce, and \
         `enforce = \"protocol\"` needs no kernel support", unconfined(*step, source)
    )]
    Unconfined {
        /// The program as the command names it.
        program: String,
        /// The step of the confinement that failed.
        step: SetupStep,
        /// The error as the system reports it. Number 0 if a file outside could be opened.
        source: io::Error,
    },
}

/// The obstacle to a start, with the system's error number.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(super) enum StartRefusal {
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

    pub(super) fn unsendable(command: &Command, part: impl Into<String>) -> Self {
        Self::Unsendable { program: name(command), part: part.into() }
    }

    pub(super) fn refused(command: &Command, refusal: StartRefusal, confined: bool) -> Self {
        let program = name(command);
        let number = match refusal {
            StartRefusal::Guard(errno) => {
                return Self::Warden { program, source: io::Error::from_raw_os_error(errno) };
            }
            StartRefusal::Folder(errno) => {
                let source = io::Error::from_raw_os_error(errno);
                return Self::Cwd { program, cwd: command.cwd.clone(), source };
            }
            StartRefusal::Confinement(step, errno) => {
                let source = io::Error::from_raw_os_error(errno);
                return Self::Unconfined { program, step, source };
            }
            StartRefusal::Program(errno) => errno,
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

/// The reason why a step of the confinement failed.
fn unconfined(step: SetupStep, source: &io::Error) -> String {
    let errno = source.raw_os_error().unwrap_or_default();
    let source = plain(source);
    match (step, errno) {
        (SetupStep::Bait, _) => {
            format!("the file for testing its wall cannot be opened: {source}")
        }
        (SetupStep::Rights, _) => format!("it cannot drop its privileges: {source}"),
        (SetupStep::Wall, libc::E2BIG) => {
            "this program is inside too many walls (Landlock domains) already".to_owned()
        }
        (SetupStep::Wall, _) => format!("the kernel refuses its wall (Landlock): {source}"),
        (SetupStep::Canary, 0) => {
            "inside its wall it could still open a file outside: this kernel does not enforce the \
             Landlock rules it accepted"
                .to_owned()
        }
        (SetupStep::Canary, _) => {
            format!("inside its wall, a file outside gave an unexpected error: {source}")
        }
        (SetupStep::Doorbell, libc::EBUSY) => {
            "another program's doorbell (seccomp user notification) is installed already, and the \
             kernel allows only one"
                .to_owned()
        }
        (SetupStep::Doorbell, _) => {
            format!("the kernel refuses its doorbell (seccomp user notification): {source}")
        }
    }
}

fn name(command: &Command) -> String {
    command.program.to_string_lossy().into_owned()
}

fn has_slash(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}

/// The executable file of a command: an ENOENT then refers to its interpreter.
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

/// The text of a system error, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
