use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::app::Failure;
use crate::model::{deceives, one_line};

/// Whoever read our standard output has seen enough: the end, and no failure.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(super) struct Closed;

/// Prints a line; its colours only where they are wanted. What else would steer a terminal or
/// reorder the line stands in it as JSON writes it: names of files are in the JSON that goes here.
pub(super) fn print(line: impl Display) -> Result<(), Failure> {
    let line = escaped(line.to_string());
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(failure)
}

/// Prints bytes as they are.
pub(super) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(failure)
}

/// Says something beside the output, on standard error.
pub(super) fn note(line: impl Display) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

pub(super) fn failure(error: io::Error) -> Failure {
    Failure::Run(match error.kind() {
        ErrorKind::BrokenPipe => Closed.into(),
        _ => anyhow::Error::new(error).context("cannot write to standard output"),
    })
}

/// Has the program end, as done, once nobody reads standard output any more: for what goes on until
/// then. A team that is quiet gives it nothing to write, so no write would fail.
pub(super) fn end_with_reader() {
    const LOOK_EVERY: Duration = Duration::from_millis(250);
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    std::thread::spawn(move || {
        loop {
            let stdout = io::stdout();
            let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
            let is_polled = poll(&mut polled, PollTimeout::ZERO).is_ok();
            if is_polled && polled[0].revents().is_some_and(|events| events.intersects(gone)) {
                std::process::exit(0);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    });
}

/// Whether a person looks at standard output.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Makes one line of what an agent or a path says, which must not steer the terminal.
pub(super) fn plain(text: &str) -> String {
    one_line(text)
}

fn escaped(line: String) -> String {
    let steers = |c: char| ('\u{7f}'..='\u{9f}').contains(&c) || deceives(c) && !joins(c);
    if !line.contains(steers) {
        return line;
    }
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        if steers(c) {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Takes out of what an agent says what would steer a terminal; lines and tabs stay.
pub(super) fn escape_controls(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t' || deceives(c) && !joins(c);
    strip_str(text).to_string().replace(steers, "")
}

/// Joiners are a part of emoji and of several scripts, and reorder nothing.
fn joins(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
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
    fn what_steers_a_terminal_is_taken_out() {
        for (text, left) in [
            ("a\tb\nc", "a\tb\nc"),
            ("a\u{1b}[31mb\u{1b}]0;title\u{7}c", "abc"),
            // A sequence that is cut into two pieces shows, and does nothing.
            ("a\u{1b}", "a"),
            ("[2Jb", "[2Jb"),
            ("a\rb\u{8}c\u{7f}d\0e", "abcde"),
            // The one-character form of an escape.
            ("a\u{9b}31mb", "a31mb"),
            ("a\u{202e}b\u{2067}c", "abc"),
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
