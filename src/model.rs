//! Plain data that every room speaks of: ids, accesses, activities, nodes of the map.
//!
//! Nothing here knows tokio, does I/O or depends on another room.

mod access;
mod activity;
mod agent;
mod event;
mod graph;
mod id;
mod lines;
mod map;
mod overlap;
mod path;
mod repeats;
mod shown;

pub use access::{Action, BlockedAccess, BlockedStatus, Via};
pub use activity::{Activity, ActivityKind, Model, Source, Touch};
pub use agent::{AgentState, AgentStatus};
pub use event::{Delta, Event, Snapshot, Topic, TurnEnd, UsageReport};
pub use graph::{
    GraphCall, GraphDelta, GraphKind, GraphNode, GraphPart, GraphRemains, GraphSnapshot, Span,
};
pub use id::{AgentId, BlockedId, SessionId, SessionKey};
pub use lines::Lines;
pub use map::{Cost, FileNode, Origin, SessionMode, Usage};
pub use overlap::{Overlap, OverlapKind};
pub use path::{fold, goes_up, wire_path, wire_real, within};
pub use repeats::Repeats;
pub use shown::{deceives, one_line, quoted};

/// Milliseconds since the Unix epoch.
pub type TimestampMs = u64;

/// Returns the time by the wall clock.
pub fn now_ms() -> TimestampMs {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
