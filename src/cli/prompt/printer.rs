//! Owns how the answer to a prompt is printed as it arrives, with lines for the person between its lines.

use std::io::{self, Write as _};
use std::sync::mpsc;

use eisen_base::task;
use tokio::task::JoinHandle;

use crate::cli::output::{self, escape_controls, note};
use crate::program::Failure;

/// A piece of output.
enum Piece {
    /// A part of the answer.
    Text(String),
    /// A line for the person, to standard error.
    Note(String),
    End,
}

/// Writes the answer to standard output, in a thread of its own: a slow reader must not block the
/// port or Ctrl-C. The queue holds at most the answer.
pub(in crate::cli) struct Printer {
    pieces: mpsc::Sender<Piece>,
    task: JoinHandle<io::Result<()>>,
}

impl Printer {
    pub(super) fn start() -> Self {
        let (pieces, waiting) = mpsc::channel();
        Self { pieces, task: task::spawn_blocking(move || print_all(&waiting)) }
    }

    pub(super) fn write(&self, text: &str) {
        if !text.is_empty() {
            self.send(Piece::Text(text.to_owned()));
        }
    }

    /// Prints a line for the person to standard error, after what was written.
    pub(super) fn note(&self, line: String) {
        self.send(Piece::Note(line));
    }

    pub(super) fn close(&self) {
        self.send(Piece::End);
    }

    fn send(&self, piece: Piece) {
        // `ended` reports a printer that has failed.
        let _ = self.pieces.send(piece);
    }

    /// Waits until everything is printed, or printing fails; forever without a printer.
    pub(super) async fn ended(printer: &mut Option<Self>) -> Result<(), Failure> {
        match printer {
            Some(printer) => match (&mut printer.task).await {
                Ok(ended) => ended.map_err(output::failure),
                Err(error) => Err(Failure::Run(error.into())),
            },
            None => std::future::pending().await,
        }
    }
}

fn print_all(pieces: &mpsc::Receiver<Piece>) -> io::Result<()> {
    let (mut stdout, terminal) = (io::stdout().lock(), output::is_terminal());
    let mut ended = true;
    while let Ok(piece) = pieces.recv() {
        match piece {
            Piece::Text(text) => {
                ended = text.ends_with('\n');
                let text = if terminal { escape_controls(&text) } else { text };
                stdout.write_all(text.as_bytes())?;
                stdout.flush()?;
            }
            Piece::Note(line) => {
                if !std::mem::replace(&mut ended, true) {
                    stdout.write_all(b"\n")?;
                    stdout.flush()?;
                }
                note(line);
            }
            Piece::End => break,
        }
    }
    if !ended {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()
}
