//! An agent's words and acts, in bounded lines.

use std::collections::VecDeque;

use crate::cli::transcript::{Fold, ShownLine};

/// Lines of a transcript that are kept for each agent, and their bytes; the oldest is dropped first.
const MOST_LINES: usize = 2000;
const LONGEST_TRANSCRIPT: usize = 256 * 1024;

pub(super) struct Transcript {
    pub(super) fold: Fold,
    pub(super) lines: VecDeque<ShownLine>,
    bytes: usize,
    /// The number of the first line that is kept.
    pub(super) first: usize,
    /// The number of the first line of a turn whose prompt is not among them.
    begun: Option<usize>,
}

impl Default for Transcript {
    /// Leaves numbers for what was before.
    fn default() -> Self {
        Self {
            fold: Fold::default(),
            lines: VecDeque::new(),
            bytes: 0,
            first: MOST_LINES,
            begun: None,
        }
    }
}

impl Transcript {
    /// Puts lines from before in front, as far as there is room.
    pub(super) fn earlier(&mut self, lines: Vec<ShownLine>) {
        for line in lines.into_iter().rev() {
            self.bytes += line.text.len();
            if self.lines.len() >= MOST_LINES || self.bytes > LONGEST_TRANSCRIPT {
                self.bytes -= line.text.len();
                return;
            }
            self.lines.push_front(line);
            self.first -= 1;
        }
    }

    /// A turn begins here.
    pub(super) fn begin(&mut self) {
        self.begun = Some(self.first + self.lines.len());
    }

    /// Puts the lines of a prompt where its turn began.
    pub(super) fn prompted(&mut self, lines: Vec<ShownLine>) {
        let begun = self.begun.take();
        let Some(at) = begun.and_then(|begun| begun.checked_sub(self.first)) else { return };
        let rest = self.lines.split_off(at.min(self.lines.len()));
        self.bytes += lines.iter().map(|line| line.text.len()).sum::<usize>();
        self.lines.extend(lines);
        self.lines.extend(rest);
        self.bound();
    }

    /// Says that something is missing here.
    pub(super) fn mark(&mut self, why: &str) {
        // What was begun before may have ended meanwhile.
        let mut lines = self.fold.flush();
        lines.push((String::new(), ShownLine::note(format!("── {why} ──"))));
        self.add(lines);
    }

    pub(super) fn add(&mut self, lines: Vec<(String, ShownLine)>) {
        for (_, line) in lines {
            self.bytes += line.text.len();
            self.lines.push_back(line);
        }
        self.bound();
    }

    fn bound(&mut self) {
        let is_too_long = |it: &Self| it.lines.len() > MOST_LINES || it.bytes > LONGEST_TRANSCRIPT;
        // The last line stays, however long it is.
        while self.lines.len() > 1 && is_too_long(self) {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.first += 1;
        }
    }
}
