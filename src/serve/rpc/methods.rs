//! Owns the table of the methods: what each is called, who may call it on the port, and which scope
//! opens it on the web.

use super::{registry, runs, streams, tools};
use crate::model::Order;
use crate::serve::rights::ByWeb::{self, Control, Decide, Never, Read};
use crate::serve::rights::Right::{self, Anyone, Lead, Person, Reader, Register};

/// The method after which the connection speaks the agent's protocol.
pub(in crate::serve) const ATTACH: &str = "attach";

/// The method that takes as long as the session that it replays.
pub(super) const REPLAY: &str = "replay_session";

/// All methods: the name on the wire, what it does, who may call it, and the scope on the web.
///
/// A method is `Read` if it changes nothing, and shows what happened in the team. `show_blocked` is not:
/// it reads a file that an agent may not read, and chooses by its attempt. With a `read` token, which
/// stands in the configuration of a Prometheus, an agent could then read any file.
pub(in crate::serve) const METHODS: [(&str, Method, Right, ByWeb); 71] = [
    ("list_sessions", Method::Registry(registry::Method::List), Anyone, Read),
    ("create_session", Method::Registry(registry::Method::Create), Register, Control),
    ("close_session", Method::Registry(registry::Method::Close), Register, Control),
    ("set_active_session", Method::Registry(registry::Method::Activate), Register, Control),
    ("get_session_state", Method::Registry(registry::Method::Get), Anyone, Read),
    (
        "set_orchestrator_providers",
        Method::Registry(registry::Method::SetProviders),
        Register,
        Control,
    ),
    ("add_context_items", Method::Registry(registry::Method::AddContext), Register, Control),
    ("list_agents", Method::ListAgents, Anyone, Read),
    ("team_status", Method::TeamStatus, Anyone, Read),
    ("agent_status", Method::AgentStatus, Anyone, Read),
    ("list_blocked", Method::ListBlocked, Anyone, Read),
    ("list_budgets", Method::ListBudgets, Anyone, Read),
    ("get_graph", Method::GetGraph, Anyone, Read),
    ("get_layout", Method::GetLayout, Anyone, Read),
    ("get_journal", Method::GetJournal, Anyone, Read),
    ("list_events", Method::ListEvents, Reader, Read),
    ("get_event", Method::GetEvent, Reader, Read),
    ("search_events", Method::SearchEvents, Reader, Read),
    ("get_diff", Method::GetDiff, Reader, Read),
    ("blame", Method::Blame, Reader, Read),
    (REPLAY, Method::ReplaySession, Reader, Read),
    ("prompt", Method::Prompt, Lead, Control),
    ("cancel", Method::Cancel, Lead, Control),
    ("new_session", Method::NewSession, Lead, Control),
    ("fork_session", Method::ForkSession, Lead, Control),
    ("rewind_session", Method::RewindSession, Lead, Control),
    (ATTACH, Method::Attach, Person, Never),
    ("show_blocked", Method::ShowBlocked, Lead, Decide),
    ("resolve_blocked", Method::ResolveBlocked, Lead, Decide),
    ("raise_budget", Method::RaiseBudget, Person, Control),
    ("hot_files", Method::HotFiles, Anyone, Read),
    ("overlaps", Method::Overlaps, Anyone, Read),
    ("who_calls", Method::WhoCalls, Anyone, Read),
    ("delegate_task", Method::Tool(tools::Method::DelegateTask), Lead, Control),
    ("check_tasks", Method::Tool(tools::Method::CheckTasks), Reader, Read),
    ("wait_for_tasks", Method::Tool(tools::Method::WaitForTasks), Reader, Read),
    ("task_result", Method::Tool(tools::Method::TaskResult), Reader, Read),
    ("cancel_task", Method::Tool(tools::Method::CancelTask), Reader, Control),
    ("request_access", Method::Tool(tools::Method::RequestAccess), Reader, Control),
    ("ask_owner", Method::Tool(tools::Method::AskOwner), Reader, Control),
    ("whose", Method::Tool(tools::Method::Whose), Reader, Read),
    ("report", Method::Tool(tools::Method::Report), Reader, Control),
    ("list_conflicts", Method::ListConflicts, Anyone, Read),
    ("show_conflict", Method::ShowConflict, Person, Decide),
    ("resolve_conflict", Method::ResolveConflict, Person, Decide),
    ("claim", Method::Tool(tools::Method::Claim), Reader, Control),
    ("release", Method::Tool(tools::Method::Release), Reader, Control),
    ("start_helper", Method::Tool(tools::Method::StartHelper), Reader, Control),
    ("start_run", Method::Run(runs::Method::Start), Reader, Control),
    ("wait_for_runs", Method::Run(runs::Method::Wait), Reader, Read),
    ("end_runs", Method::Run(runs::Method::End), Reader, Control),
    ("add_member", Method::Tool(tools::Method::AddMember), Lead, Control),
    ("remove_member", Method::Tool(tools::Method::RemoveMember), Lead, Control),
    ("start_agent", Method::Order(Order::Start), Person, Control),
    ("stop_agent", Method::Order(Order::Stop), Person, Control),
    ("restart_agent", Method::Order(Order::Restart), Person, Control),
    ("add_agent", Method::AddAgent, Person, Control),
    ("remove_agent", Method::RemoveAgent, Person, Control),
    ("reload", Method::Reload, Person, Control),
    ("undo", Method::Undo, Person, Control),
    ("redo", Method::Redo, Person, Control),
    ("list_streams", Method::Stream(streams::Method::List), Anyone, Read),
    ("attach_stream", Method::Stream(streams::Method::Attach), Person, Control),
    ("detach_stream", Method::Stream(streams::Method::Detach), Person, Control),
    ("replay_to_stream", Method::Stream(streams::Method::Replay), Person, Control),
    ("web_link", Method::WebLink, Person, Never),
    ("web_token", Method::WebToken, Person, Never),
    ("web_revoke", Method::WebRevoke, Person, Never),
    ("token_create", Method::TokenCreate, Person, Never),
    ("token_list", Method::TokenList, Person, Never),
    ("token_revoke", Method::TokenRevoke, Person, Never),
];

impl Method {
    /// Whether it is about this port, whatever team that shows.
    pub(super) fn is_of_port(self) -> bool {
        matches!(
            self,
            Self::Attach
                | Self::WebLink
                | Self::WebToken
                | Self::WebRevoke
                | Self::TokenCreate
                | Self::TokenList
                | Self::TokenRevoke
        )
    }
}

/// What a method does.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Method {
    Registry(registry::Method),
    ListAgents,
    TeamStatus,
    AgentStatus,
    ListBlocked,
    ListBudgets,
    GetGraph,
    GetLayout,
    GetJournal,
    ListEvents,
    GetEvent,
    SearchEvents,
    GetDiff,
    Blame,
    ReplaySession,
    Prompt,
    Cancel,
    NewSession,
    ForkSession,
    RewindSession,
    Attach,
    ShowBlocked,
    ResolveBlocked,
    RaiseBudget,
    HotFiles,
    Overlaps,
    WhoCalls,
    Tool(tools::Method),
    Run(runs::Method),
    Stream(streams::Method),
    ListConflicts,
    ShowConflict,
    ResolveConflict,
    Order(Order),
    AddAgent,
    RemoveAgent,
    Reload,
    Undo,
    Redo,
    WebLink,
    WebToken,
    WebRevoke,
    TokenCreate,
    TokenList,
    TokenRevoke,
}
