//! Owns the progress lines of a prompt: the turn's text until the result. Does not write them
//! itself.

use std::pin::pin;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use super::command::ViewerCommand;
use crate::client_host::Said;
use crate::serve::lines;

/// Bytes of text in one line; longer text takes several.
const PIECE: usize = 64 * 1024;

/// The progress lines of one request.
pub(super) struct Progress {
    id: Box<RawValue>,
    commands: mpsc::Sender<ViewerCommand>,
}

impl Progress {
    pub(super) fn new(id: Box<RawValue>, commands: mpsc::Sender<ViewerCommand>) -> Self {
        Self { id, commands }
    }

    /// Hands the viewer a command; waits while it is busy.
    pub(super) async fn command(&self, command: ViewerCommand) {
        // Without a viewer this request is about to be dropped too.
        let _ = self.commands.send(command).await;
    }

    /// Awaits a turn, and sends its text meanwhile. A slow client gets fewer and longer lines, and
    /// delays only its own answer.
    pub(super) async fn show<T>(
        &self,
        mut said: watch::Receiver<Said>,
        turn: impl Future<Output = T>,
    ) -> T {
        let mut shown = None;
        let outcome = {
            let sending = async {
                while said.changed().await.is_ok() {
                    self.send(&said, &mut shown).await;
                }
                // The text is complete; the turn's end follows.
                std::future::pending().await
            };
            tokio::select! {
                biased;
                outcome = pin!(turn) => outcome,
                outcome = sending => outcome,
            }
        };
        self.send(&said, &mut shown).await;
        outcome
    }

    /// Sends the text that `shown`, an attempt and a byte of its text, lacks; None: not even the turn's
    /// beginning was sent.
    async fn send(&self, said: &watch::Receiver<Said>, shown: &mut Option<(u32, usize)>) {
        loop {
            let (line, now) = {
                let said = said.borrow();
                let Some(session) = &said.session else { return };
                let (from, end) = match *shown {
                    Some((attempt, from)) if attempt == said.attempt => {
                        if from == said.text.len() {
                            return;
                        }
                        (from, said.text.floor_char_boundary(from + PIECE))
                    }
                    _ => (0, 0),
                };
                (lines::progress(&self.id, session, &said.text[from..end]), (said.attempt, end))
            };
            self.command(ViewerCommand::Answer(line)).await;
            *shown = Some(now);
        }
    }
}
