//! Standard input and output of commands that pass bytes on: read and written as they come, with no
//! thread in between where the system allows that.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use nix::sys::stat::{FileStat, SFlag, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

type Input = Box<dyn AsyncRead + Unpin + Send>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Standard input; a thread reads it if it is neither a pipe nor a socket.
pub(super) fn input() -> Input {
    let stdin = io::stdin();
    let opened: io::Result<Input> = match kind(&stdin) {
        Stdio::Pipe => {
            dup(&stdin).and_then(pipe::Receiver::from_owned_fd).map(|it| Box::new(it) as _)
        }
        Stdio::Socket => socket(&stdin).map(|it| Box::new(it) as _),
        Stdio::Other => return Box::new(tokio::io::stdin()),
    };
    opened.unwrap_or_else(|_| Box::new(tokio::io::stdin()))
}

/// Standard output, likewise. Standard error must not share it: it would not wait for a reader.
pub(super) fn output() -> Output {
    let stdout = io::stdout();
    let kind = if is_same(&stdout, &io::stderr()) { Stdio::Other } else { kind(&stdout) };
    let opened: io::Result<Output> = match kind {
        Stdio::Pipe => {
            dup(&stdout).and_then(pipe::Sender::from_owned_fd).map(|it| Box::new(it) as _)
        }
        Stdio::Socket => socket(&stdout).map(|it| Box::new(it) as _),
        Stdio::Other => return Box::new(tokio::io::stdout()),
    };
    opened.unwrap_or_else(|_| Box::new(tokio::io::stdout()))
}

enum Stdio {
    Pipe,
    Socket,
    Other,
}

fn kind(end: &impl AsFd) -> Stdio {
    let mode = fstat(end).map_or(SFlag::empty(), |it| SFlag::from_bits_truncate(it.st_mode));
    match mode & SFlag::S_IFMT {
        SFlag::S_IFIFO => Stdio::Pipe,
        SFlag::S_IFSOCK => Stdio::Socket,
        _ => Stdio::Other,
    }
}

fn is_same(one: &impl AsFd, other: &impl AsFd) -> bool {
    let (one, other) = (fstat(one), fstat(other));
    let identity = |stat: FileStat| (stat.st_dev, stat.st_ino);
    one.map(identity) == other.map(identity)
}

fn dup(end: &impl AsFd) -> io::Result<OwnedFd> {
    end.as_fd().try_clone_to_owned()
}

fn socket(end: &impl AsFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(dup(end)?);
    // Not one of another family.
    socket.local_addr()?;
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
