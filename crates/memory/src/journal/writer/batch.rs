//! Collects the work for one transaction.

use tokio::sync::oneshot;

use super::{Reply, Work};
use crate::journal::event::{Blob, Committed, NewEvent};
use crate::journal::fold::Row;

/// The work of one transaction, and the replies that wait for it.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<Row>,
    pub(super) replies: Vec<Reply<()>>,
    pub(super) appends: Vec<(Vec<NewEvent>, Reply<Vec<Committed>>)>,
    /// Contents without an event; their replies are among the others.
    pub(super) blobs: Vec<Blob>,
    pub(super) is_synced: bool,
    pub(super) closes: Vec<oneshot::Sender<()>>,
    pub(super) is_tick: bool,
    pub(super) notes: Vec<(&'static str, String)>,
}

impl Batch {
    pub(super) fn add(&mut self, work: Work) {
        match work {
            Work::Batch { rows, replies } => {
                self.rows.extend(rows);
                self.replies.extend(replies);
            }
            Work::Append { events, reply } => self.appends.push((events, reply)),
            Work::AppendSynced { events, reply } => {
                self.appends.push((events, reply));
                self.is_synced = true;
            }
            Work::Keep { blobs, reply } => {
                self.blobs.extend(blobs);
                self.replies.push(reply);
                self.is_synced = true;
            }
            Work::Offer(events) => self.rows.extend(events.into_iter().map(Row::Event)),
            Work::Open(reply) => self.replies.push(reply),
            Work::Tick => self.is_tick = true,
            Work::Note { key, value } => self.notes.push((key, value)),
            Work::Close(closed) => self.closes.push(closed),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.replies.is_empty()
            && self.appends.is_empty()
            && self.closes.is_empty()
            && !self.is_tick
            && self.notes.is_empty()
    }
}

/// About how many bytes a row takes in memory.
pub(super) fn bytes_of(row: &Row) -> usize {
    match row {
        Row::Event(event) => {
            let text = event.text.as_ref().map_or(0, String::len);
            event.payload.len() + text + event.content_bytes() + 256
        }
        Row::Draft(draft) => draft.text.len() + 256,
    }
}

pub(super) fn content_bytes(row: &Row) -> usize {
    match row {
        Row::Event(event) => event.content_bytes(),
        Row::Draft(_) => 0,
    }
}
