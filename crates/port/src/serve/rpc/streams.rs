//! Owns the methods of streams.

use super::{MethodCall, Reply, reply};
use crate::serve::Refused;
use crate::wire::{
    AttachStream, AttachStreamParams, DetachStream, DetachStreamParams, Empty, ListStreams,
    ReplayToStream, ReplayToStreamParams, ReplayedToStream, StreamStatus,
};

pub(super) async fn list_streams(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListStreams>, Refused> {
    reply(&call.shared.team.streams().iter().map(StreamStatus::from).collect())
}

pub(super) async fn attach_stream(
    call: MethodCall<'_>,
    params: AttachStreamParams,
) -> Result<Reply<AttachStream>, Refused> {
    reply(&(&call.shared.team.attach_stream(params.config.0).await?).into())
}

pub(super) async fn detach_stream(
    call: MethodCall<'_>,
    params: DetachStreamParams,
) -> Result<Reply<DetachStream>, Refused> {
    reply(&(&call.shared.team.detach_stream(params.name).await?).into())
}

pub(super) async fn replay_to_stream(
    call: MethodCall<'_>,
    params: ReplayToStreamParams,
) -> Result<Reply<ReplayToStream>, Refused> {
    let ReplayToStreamParams { session_id, stream } = params;
    // What has happened until now is a part of it.
    let _ = call.shared.sources.recorded().await;
    let done = call.shared.team.replay_to_stream(session_id, stream).await?;
    reply(&ReplayedToStream {
        replay_id: (&*done.replay_id).into(),
        journal_session_id: (&*done.session).into(),
        events: done.events,
        dead: done.dead,
    })
}
