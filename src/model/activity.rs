use std::path::Path;
use std::sync::Arc;

use super::{Action, Lines, SessionId, Touch, Usage};

/// What one line told of a session: the product of extraction, the food of the tracker.
#[derive(Clone, PartialEq, Debug)]
pub struct Activity {
    pub session: SessionId,
    pub kind: ActivityKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ActivityKind {
    /// The session was opened, or loaded again: it counts on.
    Opened,
    /// The session was closed by its client or agent.
    Closed,
    /// A file was touched. `path` is relative to the workspace, absolute if outside. Comes again
    /// when more of its lines are known.
    Touched { path: Arc<str>, touch: Touch, source: Source, lines: Lines },
    /// A tool call completed that, by its own account, accessed `path`. Comes once a call and
    /// path, beside the `Touched` that came when the path was first known.
    Performed { path: Arc<str>, action: Action },
    /// The client wrote what it was asked to by the request that a `Touched` came of.
    Written { path: Arc<str> },
    /// A tool call runs, or a terminal that was started for one, in the folder `cwd`: what it says
    /// of what it does, as text, or as JSON where it came as that. Comes again when more is said.
    Runs { call: Arc<str>, cwd: Arc<Path>, said: Vec<Arc<str>> },
    /// The tool call or terminal ended.
    Ran { call: Arc<str> },
    /// The agent's own count of its context.
    Usage(Usage),
    /// The model that the session runs on from now on.
    Model(Model),
    /// The agent said that it compacted its context.
    Compacted,
    /// A prompt was sent.
    TurnBegan,
    /// The prompt's answer came, or its agent died. `stop_reason` as the protocol has it
    /// (`end_turn`, `cancelled`, …), `error` with a `reason` if it ended in one.
    TurnEnded { stop_reason: Arc<str>, reason: Option<Arc<str>> },
    /// The client asked the agent to cancel what the session does.
    CancelRequested,
    /// The agent no longer wants the answer to its own request `id`, the JSON that it came as.
    RequestCancelled { id: Arc<str> },
    /// The `update` object of a `session/update`, as it came.
    Update(Arc<str>),
}

/// A language model as its agent names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    pub id: Arc<str>,
    /// For people.
    pub name: Arc<str>,
}

/// What kind of line told of a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Prompt,
    /// `fs/*`, and files that a `terminal/create` command line names.
    Request,
    Tool,
    /// Read off what a terminal printed.
    Output,
    /// An open that the kernel told of: what was done is certain, not that it is of any use.
    Kernel,
}
