//! Owns the TCP port: ndjson requests in, lines out, as `docs/wire.md` describes. A reader runs
//! each connection's requests; a viewer alone writes, which fixes the order of events and answers.

mod attached;
pub mod client;
mod client_view;
mod command;
mod details;
mod entrance;
mod first_task;
mod reasons;
mod remote_teams;
mod side_sessions;

mod gateway;
mod handles;
mod helpers;
mod http;
mod kept_answers;
mod lines;
mod open_questions;
mod outgoing;
mod owner_questions;
mod ownership;
mod peer;
mod places;
mod progress;
mod reader;
mod refused;
mod rights;
mod rpc;
mod run_file;
mod schema;
mod server;
mod shared;
mod sight;
mod sources;
mod task_run;
mod team;
mod team_agent;
mod token;
mod tools;
mod tools_http;
mod traffic;
mod unauthenticated;
mod viewer;
mod web_access;

#[cfg(test)]
mod tests;

pub use crate::mcp::ToolUses;
pub use details::{AgentDetails, SessionDetails};
pub use entrance::ScopeOfToken;
pub use gateway::Gateway;
pub use handles::{Handles, Recorder};
pub use helpers::{
    BranchBy, HelperEnd, NewBranch, NewHelper, NewMember, StartedHelper, StartedRun,
};
pub use lines::encode;
pub use refused::{RefusalKind, Refused, blocking};
pub use remote_teams::RemoteTeams;
pub use rights::PROGRAM;
pub use rpc::{call_about_tokens, facts, grant_row, names};
pub use run_file::{
    Held, KEPT, Ledger, Remains, RunFile, RunFileError, RunInfo, StaleRun, hold, live_teams,
    stale_runs,
};
pub use schema::schema;
pub use server::{BindError, Server, answers, bind};
pub use shared::Limits;
pub use sources::Sources;
pub use team::{BoxFuture, Fork, Prompt, ReviewRequest, Rewind, Team};
pub use token::{Caller, TokenError, Tokens};
pub use tools_http::TOOLS_PATH;
pub use traffic::Traffic;
pub use unauthenticated::{Arrival, Unauthenticated};
pub use web_access::{OpenedOnWeb, WebLink, WebToken};
