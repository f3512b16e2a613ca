//! Activities of a session: the output of extraction and the input of the tracker.

use std::path::Path;
use std::sync::Arc;

use super::{Action, Lines, Loop, Model, Record, SessionId, SessionStep, Spending, Touch, Usage};

/// One activity of a session, from one line.
#[derive(Clone, PartialEq, Debug)]
pub struct Activity {
    /// The agent's id of the session.
    pub session: SessionId,
    /// The event, with its data.
    pub kind: ActivityKind,
}

/// How much of an agent's updates is reported.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UpdateDetail {
    /// No update is reported.
    None,
    /// Message chunks that follow each other may be one update with their texts.
    Merged,
    /// Each update is reported, verbatim.
    #[default]
    Each,
}

/// An event of a session, with its data.
#[derive(Clone, PartialEq, Debug)]
pub enum ActivityKind {
    /// The session was opened. One that is not new goes on, as one that is loaded does.
    Opened {
        /// Whether the session begins; false: it goes on.
        is_new: bool,
    },
    /// The session was closed by its client or agent.
    Closed,
    /// A file was touched; repeated when more lines are known. `path` is absolute if outside.
    Touched {
        /// Relative to the workspace; absolute if outside.
        path: Arc<str>,
        /// The kind of the touch.
        touch: Touch,
        /// The source of the report.
        source: Source,
        /// The lines that were read or changed; empty if they are not known.
        lines: Lines,
    },
    /// A completed tool call reported that it accessed `path`. Sent once for each call and path,
    /// in addition to the earlier `Touched`.
    Performed {
        /// As in `Touched`.
        path: Arc<str>,
        /// The action that the call reports.
        action: Action,
        /// A command line that ran names it: a program made the access, if anybody did.
        by_program: bool,
    },
    /// The client wrote the file of an earlier `Touched` request.
    Written {
        /// As in `Touched`.
        path: Arc<str>,
    },
    /// A tool call or terminal runs in the folder `cwd`. `said` are the texts that describe it, as
    /// text or raw JSON. Repeated when there is more.
    Runs {
        /// The id of the tool call; `terminal ID` for the request of a terminal, `prompt ID` for a prompt.
        call: Arc<str>,
        /// The working folder, absolute.
        cwd: Arc<Path>,
        /// The title, paths and input of the call, or the text of a prompt; long ones are cut.
        said: Vec<Arc<str>>,
    },
    /// The tool call or terminal ended.
    Ran {
        /// As in `Runs`.
        call: Arc<str>,
        /// Whether the call was reported as failed.
        failed: bool,
    },
    /// The agent's usage of its context; a past one repeats the session's history.
    Usage {
        /// The tokens in the context, and the cost of the session.
        usage: Usage,
        /// Whether the report is a part of the history that the session repeats.
        is_past: bool,
    },
    /// Model calls were made. A turn without such a report before its end has one all the same.
    Spent(Spending),
    /// The running turn used between so many tokens, which `Spent` replaces.
    Foreseen {
        /// The lower bound in tokens, which may end the turn by its budget.
        least: u64,
        /// The upper bound in tokens, which may keep further prompts back.
        most: u64,
    },
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
    TurnEnded {
        /// The stop reason of the protocol, or `error`.
        stop_reason: Arc<str>,
        /// The cause for people; None: nothing is to be added.
        reason: Option<Arc<str>>,
    },
    /// The agent reported a trouble that may not end its turn.
    Troubled {
        /// The error that the agent reported, in a sentence.
        why: Arc<str>,
    },
    /// The client cancelled the session's turn.
    CancelRequested,
    /// The agent cancelled its own request `id` (raw JSON).
    RequestCancelled {
        /// The id of the request, as raw JSON.
        id: Arc<str>,
    },
    /// The `update` object of a `session/update`, verbatim.
    Update(Arc<str>),
    /// For the journal only.
    Record(Record),
}

/// The source of a touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// A prompt that embeds the file, or links to it.
    Prompt,
    /// `fs/*`, and files that a `terminal/create` command line names.
    Request,
    /// A tool call that the agent reports.
    Tool,
    /// A terminal's output.
    Output,
    /// An open seen by the kernel: it certainly happened, but may be irrelevant.
    Kernel,
}
