//! The terminals that the client runs for the agent, and how much of their output was read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use memchr::memmem;

use super::sessions::LONGEST_ID;
use crate::model::SessionId;

/// Terminals to keep; when full, the oldest is dropped, and its output is not read.
const MOST_TERMINALS: usize = 256;
/// Files to report from one terminal's output; the rest is ignored.
const MAX_REPORTED: usize = 512;
/// Bytes of the last output, kept to find its end in the next one.
const TAIL: usize = 256;

#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) cwd: PathBuf,
    /// Its name in `ActivityKind::Runs`.
    pub(crate) call: Arc<str>,
    /// Length of the last output, and how it ended.
    length: usize,
    tail: String,
    reported: HashSet<Arc<str>>,
    /// Neither it nor the turn that started it has ended.
    pub(crate) runs: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Terminals(IndexMap<(SessionId, String), Terminal>);

impl Terminals {
    /// Adds a terminal, in place of a released one with the same id.
    pub(crate) fn opened(&mut self, session: SessionId, id: &str, cwd: &Path, call: Arc<str>) {
        if id.len() > LONGEST_ID {
            return;
        }
        let key = (session, id.to_owned());
        self.0.shift_remove(&key);
        if self.0.len() >= MOST_TERMINALS {
            self.0.shift_remove_index(0);
        }
        let terminal = Terminal {
            cwd: cwd.to_path_buf(),
            call,
            length: 0,
            tail: String::new(),
            reported: HashSet::new(),
            runs: true,
        };
        self.0.insert(key, terminal);
    }

    pub(crate) fn get_mut(&mut self, session: SessionId, id: String) -> Option<&mut Terminal> {
        self.0.get_mut(&(session, id))
    }

    pub(crate) fn any_runs(&self) -> bool {
        self.0.values().any(|terminal| terminal.runs)
    }

    /// Ends the session's terminals: nothing waits for them after the turn.
    pub(crate) fn turn_ended(&mut self, session: &SessionId) {
        for (_, terminal) in self.0.iter_mut().filter(|((of, _), _)| of == session) {
            terminal.runs = false;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Terminal {
    /// Returns the part of `output` that came since the last call. `output` is all that the client
    /// retains; its beginning may be cut off.
    pub(crate) fn new_output<'a>(&mut self, output: &'a str) -> &'a str {
        let seen = output.get(..self.length).filter(|seen| seen.ends_with(&self.tail));
        let from = match seen {
            Some(seen) => seen.len(),
            None => memmem::rfind(output.as_bytes(), self.tail.as_bytes())
                .map_or(0, |at| at + self.tail.len()),
        };
        // A torn line is read again as a whole.
        let from = output[..from].rfind('\n').map_or(0, |at| at + 1);
        self.length = output.len();
        let tail = output.ceil_char_boundary(output.len().saturating_sub(TAIL));
        output[tail..].clone_into(&mut self.tail);
        &output[from..]
    }

    /// Marks a file as reported; false if it already was.
    pub(crate) fn mark_reported(&mut self, path: &Arc<str>) -> bool {
        self.reported.len() < MAX_REPORTED && self.reported.insert(Arc::clone(path))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_new_output_is_read() {
        let mut terminals = Terminals::default();
        let session = SessionId::new("s");
        terminals.opened(session.clone(), "t", Path::new("/w"), "1".into());
        let terminal = terminals.get_mut(session, "t".to_owned()).unwrap();
        assert_eq!(terminal.new_output("one\ntw"), "one\ntw");
        assert_eq!(terminal.new_output("one\ntwo\n"), "two\n");
        assert_eq!(terminal.new_output("one\ntwo\n"), "");
        let long = "x".repeat(1000);
        assert_eq!(terminal.new_output(&format!("one\ntwo\n{long}\n")), format!("{long}\n"));
        // The beginning was cut off.
        assert_eq!(terminal.new_output(&format!("{}\nnew\n", "x".repeat(500))), "new\n");
        assert_eq!(terminal.new_output("something else"), "something else");
    }
}
