//! What comes of a request before its result: the turn of a prompt, as it goes. Knows nothing of
//! how lines are written.

use std::pin::pin;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};

use super::command::ViewerCommand;
use super::wire;
use crate::client_host::Said;

/// Bytes of text in one line; what is longer takes several.
const PIECE: usize = 64 * 1024;

/// The way from one request to whoever made it.
pub(super) struct Progress {
    id: Box<RawValue>,
    commands: mpsc::Sender<ViewerCommand>,
}

impl Progress {
    pub(super) fn new(id: Box<RawValue>, commands: mpsc::Sender<ViewerCommand>) -> Self {
        Self { id, commands }
    }

    /// Waits for the end of a turn, and shows meanwhile what is said in it. A client that reads
    /// slowly gets fewer and longer lines, and holds up nothing but its own answer.
    pub(super) async fn show<T>(
        &self,
        mut said: watch::Receiver<Said>,
        turn: impl Future<Output = T>,
    ) -> T {
        let mut shown = None;
        let outcome = {
            let telling = async {
                while said.changed().await.is_ok() {
                    self.send(&said, &mut shown).await;
                }
                // All is said; the end itself follows.
                std::future::pending().await
            };
            tokio::select! {
                biased;
                outcome = pin!(turn) => outcome,
                outcome = telling => outcome,
            }
        };
        self.send(&said, &mut shown).await;
        outcome
    }

    /// Sends what was said and not shown yet; `shown` bytes were, None if not even the beginning.
    async fn send(&self, said: &watch::Receiver<Said>, shown: &mut Option<usize>) {
        loop {
            let (line, end) = {
                let said = said.borrow();
                let Some(session) = &said.session else { return };
                let (from, end) = match *shown {
                    None => (0, 0),
                    Some(from) if from == said.text.len() => return,
                    Some(from) => (from, said.text.floor_char_boundary(from + PIECE)),
                };
                (wire::progress(&self.id, session, &said.text[from..end]), end)
            };
            // Without a viewer this request is about to be dropped too.
            let _ = self.commands.send(ViewerCommand::Answer(line)).await;
            *shown = Some(end);
        }
    }
}
