//! Plain data shared by all rooms: ids, accesses, activities, events, nodes of the map.
//!
//! Does no I/O, and depends on neither tokio nor another room.

mod access;
mod activity;
mod agent;
mod behalf;
mod budget;
mod chat;
pub mod code;
mod code_token;
mod conflict;
mod event;
mod file_change;
mod grant;
mod graph;
mod id;
mod kept_call;
mod kept_files;
mod lines;
mod loops;
mod map;
mod mask;
mod named;
mod outside_files;
mod overlap;
mod path;
mod price;
mod provider;
mod quiet;
mod record;
mod repeats;
mod secret;
mod shown;
mod spending;
mod stream;
mod system;
mod task;
mod team_update;
mod time;
mod web_scope;

pub use access::{
    AccessRule, Action, BlockedAccess, BlockedStatus, Decide, DecidedBy, HARMLESS, OnViolation,
    OwnerAnswer, RuleSpec, SERVER, TokensSaved, Via, denial,
};
pub use activity::{Activity, ActivityKind, Source, UpdateDetail};
pub use agent::{AgentState, AgentStatus, Order, STALLED, TakenCandidate};
pub use behalf::{AgentMemory, MemoryThere, NoMemory, TeamMemory, UsedMemory};
pub use budget::{BudgetLimits, BudgetReport, BudgetState, EarlierUse, OnExceed, Used};
pub use chat::{ChatService, ChatTarget};
pub use code_token::CodeTokenKind;
pub use conflict::{Conflict, ConflictKind, ConflictStatus, ConflictStrategy};
pub use event::{ChosenOptions, Delta, Event, Relayed, Snapshot, Topic, TurnEnd, UsageReport};
pub use file_change::{
    FileCause, FileChange, FileChangeKind, FileContent, FileContents, FileKind, FileName,
    FileStamp, FileState, SET_ID, SeenBy,
};
pub use grant::{GrantSpan, TeamGrant};
pub use graph::{
    GraphCall, GraphDelta, GraphKind, GraphNode, GraphPart, GraphRemains, GraphSnapshot, Span,
};
pub use id::{AgentId, BlockedId, ConflictId, SessionId, SessionKey, TaskId, is_name};
pub use kept_call::KeptCall;
pub use kept_files::{KeptFiles, KeptForm};
pub use lines::Lines;
pub use loops::{Loop, LoopKind, LoopReport, OnLoop, SessionStep};
pub use map::{Cost, FileNode, Model, Origin, SessionMode, Touch, Usage};
pub use mask::{mask, mask_commands, mask_texts, masked_keys, masked_line, masked_output};
pub use named::Variants;
pub use named::named;
pub use outside_files::OutsideFiles;
pub use overlap::{Overlap, OverlapKind};
pub use path::{fold, goes_up, is_aside, walk_first, wire_path, wire_real, within};
pub use price::Price;
pub use provider::{OpenCalls, ProviderKind};
pub use quiet::QuietSpan;
pub use record::{Decided, Fork, How, PathUse, Record};
pub use repeats::Repeats;
pub use secret::SecretText;
pub use shown::{UNSEEN, judged, one_line, quoted};
pub use spending::{
    Charge, Figure, FigureSum, PerKind, Spending, Spent, TokenKind, Tokens, UsageScope,
};
pub use stream::{
    FileTarget, NatsAccess, NatsTarget, OtlpTarget, StreamKind, StreamReplay, StreamReport,
    StreamScope, StreamSpec, StreamState, StreamTarget, WebhookTarget,
};
pub use system::{KERNEL_FOLDERS, SYSTEM_FOLDERS, is_of_machine, is_of_system};
pub use task::{AgentReport, TEAM_SERVER, TaskReport, TaskState, ToolsForm};
pub use team_update::{MOST_OUTPUT, ShownPrompt, ShownTerminal, TeamUpdate, TerminalExit};
pub use time::{TimestampMs, left, now_ms, rfc3339, turn_ended, turn_name};
pub use web_scope::WebScope;
