//! Activities of a session: the output of extraction and the input of the tracker.

use std::path::Path;
use std::sync::Arc;

use super::{Action, Lines, Loop, Model, Record, SessionId, SessionStep, Spending, Touch, Usage};

/// One activity of a session, from one line.
#[derive(Clone, PartialEq, Debug)]
pub struct Activity {
    pub session: SessionId,
    pub kind: ActivityKind,
}

/// How much of an agent's updates is reported.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UpdateDetail {
    None,
    /// Message chunks that follow each other may be one update with their texts.
    Merged,
    #[default]
    Each,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ActivityKind {
    /// The session was opened. One that is not new goes on, as one that is loaded does.
    Opened { is_new: bool },
    /// The session was closed by its client or agent.
    Closed,
    /// A file was touched; repeated when more lines are known. `path` is absolute if outside.
    Touched { path: Arc<str>, touch: Touch, source: Source, lines: Lines },
    /// A completed tool call reported that it accessed `path`. Sent once for each call and path,
    /// in addition to the earlier `Touched`.
    Performed {
        path: Arc<str>,
        action: Action,
        /// A command line that ran names it: a program made the access, if anybody did.
        by_program: bool,
    },
    /// The client wrote the file of an earlier `Touched` request.
    Written { path: Arc<str> },
    /// A tool call or terminal runs in the folder `cwd`. `said` are the texts that describe it, as
    /// text or raw JSON. Repeated when there is more.
    Runs { call: Arc<str>, cwd: Arc<Path>, said: Vec<Arc<str>> },
    /// The tool call or terminal ended.
    Ran { call: Arc<str>, failed: bool },
    /// The agent's usage of its context; a past one repeats the session's history.
    Usage { usage: Usage, is_past: bool },
    /// Model calls were made. A turn without such a report before its end has one all the same.
    Spent(Spending),
    /// The running turn used between so many tokens, which `Spent` replaces.
    Foreseen { least: u64, most: u64 },
    /// One step of the session, where loops are looked for.
    Step(SessionStep),
    /// The session goes in a loop.
    Looped(Loop),
    /// The model that the session runs on from now on.
    Model(Model),
    /// The agent reported that it compacted its context.
    Compacted,
    /// A prompt was sent.
    TurnBegan,
    /// The prompt's turn ended, or its agent exited. `stop_reason` is the protocol's (`end_turn`,
    /// `cancelled`, …), or `error` with a `reason`.
    TurnEnded { stop_reason: Arc<str>, reason: Option<Arc<str>> },
    /// The agent reported a trouble that may not end its turn.
    Troubled { why: Arc<str> },
    /// The client cancelled the session's turn.
    CancelRequested,
    /// The agent cancelled its own request `id` (raw JSON).
    RequestCancelled { id: Arc<str> },
    /// The `update` object of a `session/update`, verbatim.
    Update(Arc<str>),
    /// For the journal only.
    Record(Record),
}

/// The source of a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Prompt,
    /// `fs/*`, and files that a `terminal/create` command line names.
    Request,
    Tool,
    /// A terminal's output.
    Output,
    /// An open seen by the kernel: it certainly happened, but may be irrelevant.
    Kernel,
}
