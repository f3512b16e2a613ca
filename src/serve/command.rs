//! What the reading half of a connection asks of the writing half.

use bytes::Bytes;
use tokio::io::{DuplexStream, ReadHalf};

use super::Caller;
use super::filter::Filter;
use crate::model::{SessionId, Topic};

/// What the reading half wants sent.
#[derive(Debug)]
pub(super) enum ViewerCommand {
    /// An answer; what was on the bus before it goes first.
    Answer(Bytes),
    /// Fresh snapshots: of the sessions with that id, of all that the filter covers if None.
    Snapshots(Option<SessionId>),
    /// Fresh snapshots, and from then on only what passes.
    Filter(Filter),
    /// From now on what is of that topic too.
    Want(Topic),
    /// The client has shown a token; where everything needs one, the stream begins now.
    Known(Caller),
    /// Something harmless, to find out whether the client still reads.
    Probe,
    /// The last thing said here: from now on the client hears an agent.
    Attach(Bytes, ReadHalf<DuplexStream>),
}
