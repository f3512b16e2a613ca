//! Standard output and standard error of commands: lines, colours, and text made safe for
//! terminals.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::model::{judged, one_line};
use crate::program::Failure;

/// The reader closed our standard output: the command ends without an error.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(super) struct Closed;

/// Prints a line, with colours if standard output takes them, made [`harmless`].
pub(super) fn print(line: impl Display) -> Result<(), Failure> {
    let line = harmless(line.to_string());
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(failure)
}

/// Standard output for many lines, with colours if it takes them, each made [`harmless`].
pub(super) fn lines() -> Harmless<impl Write> {
    Harmless { out: BufWriter::new(anstream::AutoStream::auto(io::stdout())), line: Vec::new() }
}

/// Makes each line [`harmless`] before it is written.
pub(super) struct Harmless<W: Write> {
    out: W,
    /// The last line, which has no end yet.
    line: Vec<u8>,
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.end_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()
    }
}

impl<W: Write> Harmless<W> {
    fn end_line(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        self.out.write_all(harmless(line).as_bytes())
    }
}

/// Writes bytes unchanged.
pub(super) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(failure)
}

/// Prints a line to standard error; errors are ignored.
pub(super) fn note(line: impl Display) {
    let mut line = harmless(line.to_string());
    line.push('\n');
    if anstream::AutoStream::choice(&io::stderr()) == anstream::ColorChoice::Never {
        line = anstream::adapter::strip_str(&line).to_string();
    }
    // In one piece: what is said on standard output meanwhile does not get between.
    let _ = io::stderr().write_all(line.as_bytes());
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

/// Escapes, as JSON does, all characters of a text that steer a terminal or deceive who reads it, but for colours.
/// The one place where that is done for whatever a command prints.
pub(super) fn harmless(text: String) -> String {
    let steers = |c: char, deceives: bool| deceives || c.is_control() && !matches!(c, '\n' | '\t');
    if !judged(&text).any(|(c, deceives)| steers(c, deceives)) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    let (mut at, mut color_end) = (0, 0);
    for (c, deceives) in judged(&text) {
        if c == '\u{1b}' && at >= color_end {
            color_end = at + color_at(&text[at..]);
        }
        if at < color_end || !steers(c, deceives) {
            shown.push(c);
        } else {
            let mut units = [0; 2];
            shown.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
        at += c.len_utf8();
    }
    shown
}

/// The bytes of the sequence that a text begins with, if it sets a colour or a style.
fn color_at(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let length =
        parameters.bytes().take_while(|it| it.is_ascii_digit() || b";:".contains(it)).count();
    if parameters[length..].starts_with('m') { 2 + length + 1 } else { 0 }
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
    fn of_sequences_only_colours_are_printed() {
        let title = "\u{1b}]0;pwn\u{7}\u{1b}]52;c;ZXZpbA==\u{7}";
        for (text, shown) in [
            ("\u{1b}[1;31mred\u{1b}[0m\tb\nc", "\u{1b}[1;31mred\u{1b}[0m\tb\nc"),
            (title, r"\u001b]0;pwn\u0007\u001b]52;c;ZXZpbA==\u0007"),
            ("a\u{1b}[2Jb\rc\u{1b}", r"a\u001b[2Jb\u000dc\u001b"),
            ("\u{1b}[1;", r"\u001b[1;"),
        ] {
            assert_eq!(harmless(text.to_owned()), shown, "{text:?}");
        }
        let mut out = Harmless { out: Vec::new(), line: Vec::new() };
        write!(out, "a{title}\nb\u{1b}").and_then(|()| out.flush()).ok();
        let said = String::from_utf8(out.out).unwrap_or_default();
        assert!(!said.contains('\u{1b}') && said.ends_with("\nb\\u001b"), "{said:?}");
    }

    #[test]
    fn json_of_names_reaches_a_terminal_without_what_steers_it() {
        let name = "a\u{9b}31m\u{202e}b\u{e0041}\u{1f469}\u{200d}\u{1f680}é";
        let line = harmless(serde_json::json!({ "path": name }).to_string());
        assert!(!line.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{line:?}");
        let read =
            serde_json::from_str::<serde_json::Value>(&line).map(|read| read["path"].clone());
        assert_eq!(read.ok(), Some(name.into()));
    }
}
