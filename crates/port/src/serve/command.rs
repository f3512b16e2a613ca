//! Owns the commands from a connection's reader to its viewer.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{DuplexStream, ReadHalf};

use super::Caller;
use crate::bus::Published;
use crate::model::{SessionId, Topic};
use crate::wire::request::Filter;

/// A command to the viewer.
#[derive(Debug)]
pub(super) enum ViewerCommand {
    /// Send an answer, after all events that are on the bus.
    Answer(Bytes),
    /// Send an event of an earlier run, if the client wants its topic.
    Replayed(Arc<Published>),
    /// Send fresh snapshots: of the sessions with that id, or of all that the filter covers.
    Snapshots(Option<SessionId>),
    /// Set the filter, and send fresh snapshots.
    Filter(Filter),
    /// Also send events of this topic.
    Want(Topic),
    /// The client has shown a token. On a guarded connection the stream begins now.
    Known(Caller),
    /// Send a harmless line, to test whether the client still reads.
    Probe,
    /// Send the last answer, and then only the agent's bytes.
    Attach(Bytes, ReadHalf<DuplexStream>),
}
