//! Owns the table of the methods: which function performs each.

use schemars::{Schema, SchemaGenerator};
use serde_json::value::RawValue;

use super::reply::{MethodCall, Reply, parse};
use super::{
    branches, budgets, changes, conflicts, control, events, forks, grants, helpers, highlight,
    layout, map, options, preview, prompts, questions, read, registry, replay, reviews, runs,
    scoped, status, streams, tasks, undo, web,
};
use crate::serve::{BoxFuture, Refused};
use crate::wire::{self, Facts, Method, MethodNames};

type Performing<'a> = BoxFuture<'a, Result<Box<RawValue>, Refused>>;

/// A method with the function that performs it.
pub(in crate::serve) struct MethodRow {
    pub(in crate::serve) facts: Facts,
    /// Returns the schemas of the params and of the result.
    pub(in crate::serve) schemas:
        fn(&mut SchemaGenerator, &mut SchemaGenerator) -> (Schema, Schema),
    pub(super) names: fn() -> MethodNames,
    pub(super) perform: for<'a> fn(MethodCall<'a>, Option<&'a RawValue>) -> Performing<'a>,
    /// Reads params as the server does, and writes them again.
    #[cfg(test)]
    pub(in crate::serve) params: fn(&str) -> serde_json::Result<String>,
    /// Reads a result as a client does, and writes it again.
    #[cfg(test)]
    pub(in crate::serve) again: fn(&str) -> serde_json::Result<String>,
}

/// Declares the rows, as in `HotFiles => map::hot_files`.
macro_rules! rows {
    ($($method:ident => $handler:path,)*) => {
        /// All methods, in the order of the documents.
        pub(in crate::serve) static METHODS: [MethodRow; [$(stringify!($method)),*].len()] = [$(MethodRow {
            facts: <wire::$method as Method>::FACTS,
            schemas: schemas::<wire::$method>,
            names: MethodNames::of::<wire::$method>,
            perform: |call, params| {
                Box::pin(async move {
                    let reply: Reply<wire::$method> = $handler(call, parse(params)?).await?;
                    Ok(reply.json)
                })
            },
            #[cfg(test)]
            params: |params| {
                let read: <wire::$method as Method>::Params = serde_json::from_str(params)?;
                serde_json::to_string(&read)
            },
            #[cfg(test)]
            again: |result| {
                let read: <wire::$method as Method>::Result<'static> = serde_json::from_str(result)?;
                serde_json::to_string(&read)
            },
        },)*];
    };
}

rows! {
    ListSessions => registry::list_sessions,
    CreateSession => registry::create_session,
    CloseSession => registry::close_session,
    SetActiveSession => registry::set_active_session,
    GetSessionState => registry::get_session_state,
    SetOrchestratorProviders => registry::set_orchestrator_providers,
    AddContextItems => registry::add_context_items,
    ListAgents => read::list_agents,
    TeamStatus => status::team_status,
    AgentStatus => status::agent_status,
    ListBlocked => read::list_blocked,
    ListBudgets => budgets::list_budgets,
    GetGraph => read::get_graph,
    GetLayout => layout::get_layout,
    GetJournal => read::get_journal,
    ListEvents => events::list_events,
    GetEvent => events::get_event,
    SearchEvents => events::search_events,
    GetDiff => changes::get_diff,
    Blame => changes::blame,
    ReplaySession => replay::replay_session,
    PromptAgent => control::prompt,
    Cancel => control::cancel,
    ListPrompts => prompts::list_prompts,
    EditPrompt => prompts::edit_prompt,
    WithdrawPrompt => prompts::withdraw_prompt,
    ListSessionOptions => options::list_session_options,
    SetSessionOption => options::set_session_option,
    NewSession => control::new_session,
    ForkSession => forks::fork_session,
    RewindSession => forks::rewind_session,
    Attach => control::attach_too_late,
    ShowBlocked => preview::show_blocked,
    ResolveBlocked => control::resolve_blocked,
    ListGrants => grants::list_grants,
    RevokeGrant => grants::revoke_grant,
    RaiseBudget => budgets::raise_budget,
    HotFiles => map::hot_files,
    Overlaps => map::overlaps,
    WhoCalls => map::who_calls,
    Highlight => highlight::highlight,
    DelegateTask => tasks::delegate_task,
    CheckTasks => tasks::check_tasks,
    WaitForTasks => tasks::wait_for_tasks,
    TaskResult => tasks::task_result,
    CancelTask => tasks::cancel_task,
    RequestAccess => questions::request_access,
    AskOwner => questions::ask_owner,
    Whose => questions::whose,
    Report => questions::report,
    ListConflicts => conflicts::list_conflicts,
    ShowConflict => preview::show_conflict,
    ResolveConflict => conflicts::resolve_conflict,
    Claim => conflicts::claim,
    Release => conflicts::release,
    StartHelper => helpers::start_helper,
    StartRun => runs::start_run,
    WaitForRuns => runs::wait_for_runs,
    EndRuns => runs::end_runs,
    AddMember => helpers::add_member,
    RemoveMember => helpers::remove_member,
    StartAgent => control::start_agent,
    StopAgent => control::stop_agent,
    RestartAgent => control::restart_agent,
    AddAgent => control::add_agent,
    RemoveAgent => control::remove_agent,
    Reload => control::reload,
    ListBranches => branches::list_branches,
    MergeBranch => branches::merge_branch,
    CheckBranch => branches::check_branch,
    OpenPullRequest => branches::open_pull_request,
    GetReview => reviews::get_review,
    ReviewHunk => reviews::review_hunk,
    CommentHunk => reviews::comment,
    Undo => undo::undo,
    Redo => undo::redo,
    ListStreams => streams::list_streams,
    AttachStream => streams::attach_stream,
    DetachStream => streams::detach_stream,
    ReplayToStream => streams::replay_to_stream,
    MakeWebLink => web::web_link,
    MakeWebToken => web::web_token,
    RevokeWeb => web::web_revoke,
    CreateToken => scoped::token_create,
    ListTokens => scoped::token_list,
    RevokeToken => scoped::token_revoke,
}

/// Finds a method by its name.
pub(in crate::serve) fn find(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.facts.name == name)
}

fn schemas<M: Method>(
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> (Schema, Schema) {
    (requests.subschema_for::<M::Params>(), answers.subschema_for::<M::Result<'static>>())
}
