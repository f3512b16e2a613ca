//! Reads an agent's standard error: writes it to the log file and the debug log, and keeps its last
//! lines.
//!
//! Each line of the file starts with the time it was read and the process id of the run:
//! `[2026-01-31T12:00:00Z 4711] text`. Earlier versions wrote lines without this stamp.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use eisen_base::task;
use tokio::fs::{DirBuilder, File, OpenOptions, rename};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::line::{Framer, content, lines};
use crate::model::{AgentId, KeptFiles, KeptForm, now_ms, rfc3339};

/// The files with agents' standard error.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new("log", KeptForm::Log, &["logs/*/*"])];

/// Maximum bytes of a line; longer lines are split.
const LONGEST_LINE: usize = 64 * 1024;
/// A file that would grow past this is renamed to `NAME.1`, replacing the previous one.
const LARGEST_FILE: u64 = 10 * 1024 * 1024;
/// Lines kept for the reason of an error, and their total characters; the file has all lines.
const KEPT_LINES: usize = 20;
const KEPT_CHARACTERS: usize = 1_000;
/// A kept line is cut to this many characters.
const KEPT_WIDTH: usize = 500;
/// Bytes still read after the agent's end, if descendants keep writing, and bytes of one such read.
const LAST_BYTES: usize = 1024 * 1024;
const NOW_BYTES: usize = 16 * 1024;

/// Maximum lines of a run that are logged because they ask for a login.
const NOTICES: usize = 3;
/// Phrases by which agents ask for a login.
const LOGIN: [&str; 12] = [
    "please log in",
    "please login",
    "please sign in",
    "please run /login",
    "please authenticate",
    "not logged in",
    "login required",
    "authentication required",
    "not authenticated",
    "no api key",
    "missing api key",
    "invalid api key",
];

/// Reads an agent's standard error until its end, so that the agent never waits for a reader.
/// Dropping it stops the reading.
#[derive(Debug)]
pub struct StderrLog {
    agent_ended: CancellationToken,
    pump: AbortOnDropHandle<VecDeque<String>>,
}

impl StderrLog {
    /// Appends to the file at `path`, which is created with its folders, for its owner alone. If it
    /// can't be written, one warning is logged and the reading goes on.
    pub fn spawn(stderr: pipe::Receiver, path: PathBuf, agent: AgentId, pid: u32) -> Self {
        let agent_ended = CancellationToken::new();
        let pump = Pump {
            agent,
            noticed: 0,
            pid,
            within_line: false,
            framer: Framer::new(LONGEST_LINE),
            kept: VecDeque::new(),
            file: LogFile { path, open: None, warned: false },
        };
        let pump = task::spawn(pump.run(stderr, agent_ended.clone()));
        Self { agent_ended, pump: AbortOnDropHandle::new(pump) }
    }

    /// Call it once the agent has ended: reads the rest of the pipe, without waiting for
    /// descendants that hold it open, and returns the last lines without colours, frames and
    /// controls.
    pub async fn tail(self) -> Vec<String> {
        self.agent_ended.cancel();
        self.pump.await.map(Vec::from).unwrap_or_default()
    }
}

struct Pump {
    agent: AgentId,
    /// Lines logged because they ask for a login.
    noticed: usize,
    pid: u32,
    /// The file ends inside a line, which was longer than [`LONGEST_LINE`].
    within_line: bool,
    framer: Framer,
    kept: VecDeque<String>,
    file: LogFile,
}

impl Pump {
    async fn run(
        mut self,
        mut stderr: pipe::Receiver,
        agent_ended: CancellationToken,
    ) -> VecDeque<String> {
        loop {
            tokio::select! {
                biased;
                () = agent_ended.cancelled() => break,
                read = stderr.read_buf(self.framer.space()) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(_) => self.take_lines().await,
                },
            }
        }
        let mut left = LAST_BYTES;
        while left > 0
            && let Some(read) = self.read_now(&stderr)
        {
            left = left.saturating_sub(read);
            self.take_lines().await;
        }
        let mut last = self.framer.rest().map(Vec::from).unwrap_or_default();
        if !last.is_empty() || self.within_line {
            last.push(b'\n');
            self.log(&last).await;
        }
        self.kept
    }

    /// Reads what is in the pipe already; None if it is empty. Bypasses the runtime, whose
    /// readiness may be outdated.
    fn read_now(&mut self, stderr: &pipe::Receiver) -> Option<usize> {
        let space = self.framer.space();
        let length = space.len();
        space.resize(length + NOW_BYTES, 0);
        let read = nix::unistd::read(stderr, &mut space[length..]).unwrap_or(0);
        space.truncate(length + read);
        Some(read).filter(|&read| read > 0)
    }

    async fn take_lines(&mut self) {
        while let Some(block) = self.framer.block_or_part() {
            self.log(&block).await;
        }
    }

    async fn log(&mut self, block: &[u8]) {
        for line in lines(block) {
            let line = readable(content(line));
            tracing::debug!(agent = %self.agent, stderr = line);
            self.notice(&line);
            self.keep(line);
        }
        let stamped = self.stamped(block);
        self.file.append(&stamped).await;
    }

    /// Adds the stamp to each line that begins.
    fn stamped(&mut self, block: &[u8]) -> Vec<u8> {
        let stamp = format!("[{} {}] ", rfc3339(now_ms() / 1000), self.pid).into_bytes();
        let mut stamped = Vec::with_capacity(block.len() + stamp.len());
        for line in lines(block) {
            if !std::mem::replace(&mut self.within_line, !line.ends_with(b"\n")) {
                stamped.extend_from_slice(&stamp);
            }
            stamped.extend_from_slice(line);
        }
        stamped
    }

    /// Logs a line that asks for a login at once: users rarely look into the file.
    fn notice(&mut self, line: &str) {
        let lower = line.to_lowercase();
        if self.noticed < NOTICES && LOGIN.iter().any(|words| lower.contains(words)) {
            self.noticed += 1;
            let line: String = line.chars().take(KEPT_WIDTH).collect();
            tracing::warn!(agent = %self.agent, line, "an agent asks for a login");
        }
    }

    fn keep(&mut self, line: String) {
        // Stack frames are of no use to the user.
        let is_frame = line.starts_with("at ");
        if line.is_empty() || is_frame {
            return;
        }
        self.kept.push_back(line);
        let length = |kept: &VecDeque<String>| kept.iter().flat_map(|line| line.chars()).count();
        while self.kept.len() > KEPT_LINES || length(&self.kept) > KEPT_CHARACTERS {
            self.kept.pop_front();
        }
    }
}

/// A line that is safe to show: without control sequences, drawn frames and repeated blanks, and of
/// bounded length.
fn readable(line: &[u8]) -> String {
    // A character takes at most four bytes; leave room for control sequences.
    let line = &line[..line.len().min(KEPT_WIDTH * 8)];
    let text = anstream::adapter::strip_str(&String::from_utf8_lossy(line)).to_string();
    let is_drawn = |char: &char| ('\u{2500}'..='\u{259f}').contains(char);
    let is_text = |char: &char| (*char == '\t' || !char.is_control()) && !is_drawn(char);
    let text: String = text.chars().filter(is_text).collect();
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(KEPT_WIDTH).collect()
}

struct LogFile {
    path: PathBuf,
    open: Option<(File, u64)>,
    warned: bool,
}

impl LogFile {
    async fn append(&mut self, lines: &[u8]) {
        if let Err(error) = self.try_append(lines).await {
            // The next lines retry: the disk may have space again.
            self.open = None;
            if !std::mem::replace(&mut self.warned, true) {
                let path = self.path.display();
                tracing::warn!(%path, %error, "an agent's log can't be written; the agent goes on");
            }
        }
    }

    async fn try_append(&mut self, lines: &[u8]) -> io::Result<()> {
        let (mut file, mut length) = match self.open.take() {
            Some(open) => open,
            None => open(&self.path).await?,
        };
        if length > 0 && length + lines.len() as u64 > LARGEST_FILE {
            let mut rotated = self.path.clone().into_os_string();
            rotated.push(".1");
            rename(&self.path, rotated).await?;
            (file, length) = open(&self.path).await?;
        }
        file.write_all(lines).await?;
        // Without a flush, an error would surface with the next lines.
        file.flush().await?;
        self.open = Some((file, length + lines.len() as u64));
        Ok(())
    }
}

async fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).await?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).await?;
    let length = file.metadata().await?.len();
    Ok((file, length))
}

#[cfg(test)]
mod tests;
