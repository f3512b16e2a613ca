//! Standard output and standard error of commands: lines, colours, and text made safe for
//! terminals.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::app::Failure;
use crate::model::{judged, one_line};

/// The reader closed our standard output: the command ends without an error.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(super) struct Closed;

/// Prints a line, with colours if standard output takes them. Characters that steer a terminal or
/// reorder the line are escaped as in JSON.
pub(super) fn print(line: impl Display) -> Result<(), Failure> {
    let line = escaped(line.to_string());
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(failure)
}

/// Writes bytes unchanged.
pub(super) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(failure)
}

/// Prints a line to standard error; errors are ignored.
pub(super) fn note(line: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

pub(super) fn failure(error: io::Error) -> Failure {
    Failure::Run(match error.kind() {
        ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    })
}

/// Ends the program with success once the reader of standard output is gone. A quiet team gives it
/// nothing to write, so no write would fail.
pub(super) fn end_with_reader() {
    const POLL_INTERVAL: Duration = Duration::from_millis(250);
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    std::thread::spawn(move || {
        loop {
            let stdout = io::stdout();
            let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
            let is_polled = poll(&mut polled, PollTimeout::ZERO).is_ok();
            if is_polled && polled[0].revents().is_some_and(|events| events.intersects(gone)) {
                std::process::exit(0);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    });
}

/// Whether standard output is a terminal.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Turns untrusted text into one line without control characters.
pub(super) fn plain(text: &str) -> String {
    one_line(text)
}

fn escaped(line: String) -> String {
    let steers = |(c, deceives): (char, bool)| deceives || ('\u{7f}'..='\u{9f}').contains(&c);
    if !judged(&line).any(steers) {
        return line;
    }
    let mut shown = String::with_capacity(line.len());
    for (c, deceives) in judged(&line) {
        if steers((c, deceives)) {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Removes control sequences from untrusted text, and escapes what deceives; newlines and tabs stay.
pub(super) fn escape_controls(text: &str) -> String {
    let text = strip_str(text).to_string();
    let mut shown = String::with_capacity(text.len());
    for (c, deceives) in judged(&text) {
        match c {
            '\n' | '\t' => shown.push(c),
            _ if c.is_control() => {}
            _ if deceives => shown.extend(c.escape_unicode()),
            _ => shown.push(c),
        }
    }
    shown
}

/// The colour of an agent's state or an access's status.
pub(super) fn style(word: &str) -> Style {
    match word {
        "ready" | "allowed" | "answered" => AnsiColor::Green.on_default(),
        "error" | "denied" | "expired" | "observed" => AnsiColor::Red.on_default(),
        "restarting" | "pending" => AnsiColor::Yellow.on_default(),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_removed() {
        for (text, left) in [
            ("a\tb\nc", "a\tb\nc"),
            ("a\u{1b}[31mb\u{1b}]0;title\u{7}c", "abc"),
            // A sequence that is split in two is shown as text.
            ("a\u{1b}", "a"),
            ("[2Jb", "[2Jb"),
            ("a\rb\u{8}c\u{7f}d\0e", "abcde"),
            // The one-character form of an escape.
            ("a\u{9b}31mb", "a31mb"),
            ("a\u{202e}b\u{2067}c", "a\\u{202e}b\\u{2067}c"),
        ] {
            assert_eq!(escape_controls(text), left, "{text:?}");
        }
    }

    #[test]
    fn json_of_names_reaches_a_terminal_without_what_steers_it() {
        let name = "a\u{9b}31m\u{202e}b\u{e0041}\u{1f469}\u{200d}\u{1f680}é";
        let line = escaped(serde_json::json!({ "path": name }).to_string());
        assert!(!line.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{line:?}");
        let read =
            serde_json::from_str::<serde_json::Value>(&line).map(|read| read["path"].clone());
        assert_eq!(read.ok(), Some(name.into()));
    }
}
