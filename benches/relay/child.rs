//! What the bench starts beside the relay: the copying child, and the agent behind either.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;

use nix::fcntl::{FcntlArg, fcntl};

/// Bytes that an enlarged pipe holds.
const WIDE: i32 = 1024 * 1024;

/// What is read and written at once.
pub(crate) const BLOCK: usize = 64 * 1024;

/// How the agent writes: each message by itself.
pub(crate) const LINES: &str = "lines";

/// The same bytes in blocks of [`BLOCK`], as no agent does.
pub(crate) const BLOCKS: &str = "blocks";

/// Writes one message for each line that it reads, so that none is there before it is waited for.
pub(crate) const NEXT: &str = "next";

pub(crate) fn run(args: &[String]) {
    match args {
        [mode, writes, file] if mode == "copy" => copy(writes, file, false),
        [mode, writes, file] if mode == "copy-wide" => copy(writes, file, true),
        [mode, writes, file] if mode == "answer" => answer(writes, file),
        _ => panic!("no child of this bench: {args:?}"),
    }
}

/// Copies between its own streams and those of an agent, as cheaply as can be without splicing.
fn copy(writes: &str, file: &str, wide: bool) {
    let mut command = crate::part("relay");
    command.args(["child", "answer", writes, file]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = command.spawn().unwrap();
    let (to_agent, from_agent) = (agent.stdin.take().unwrap(), agent.stdout.take().unwrap());
    if wide {
        widen(&to_agent);
        widen(&from_agent);
    }
    let (stdin, stdout) = (unbuffered(io::stdin().as_fd()), unbuffered(io::stdout().as_fd()));
    let there = std::thread::spawn(move || pass_on(stdin, to_agent));
    pass_on(from_agent, stdout);
    agent.wait().unwrap();
    there.join().unwrap();
}

fn pass_on(mut from: impl Read, mut to: impl Write) {
    let mut block = vec![0; BLOCK];
    loop {
        match from.read(&mut block).unwrap() {
            0 => return,
            read => to.write_all(&block[..read]).unwrap(),
        }
    }
}

/// Answers each line with all that stands in a file, or with its next message.
fn answer(writes: &str, file: &str) {
    let answer = std::fs::read(file).unwrap();
    let at_once = if writes == NEXT { 1 } else { usize::MAX };
    let writes: Vec<&[u8]> = match writes {
        LINES | NEXT => answer.split_inclusive(|byte| *byte == b'\n').collect(),
        _ => answer.chunks(BLOCK).collect(),
    };
    let mut stdout = unbuffered(io::stdout().as_fd());
    let mut answers = writes.chunks(at_once.min(writes.len())).cycle();
    for line in BufReader::new(io::stdin()).split(b'\n') {
        line.unwrap();
        for bytes in answers.next().unwrap() {
            stdout.write_all(bytes).unwrap();
        }
    }
}

fn unbuffered(stream: BorrowedFd<'_>) -> File {
    stream.try_clone_to_owned().unwrap().into()
}

pub(crate) fn widen(pipe: impl AsFd) {
    fcntl(pipe, FcntlArg::F_SETPIPE_SZ(WIDE)).unwrap();
}
