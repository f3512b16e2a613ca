//! The methods that only tools of the team call: tasks, questions, claims.

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{asking, conflicts, parse, spawning, subschema, tasks};
use crate::serve::Caller;
use crate::serve::shared::Shared;
use crate::wire::{self, RpcError};

#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Method {
    DelegateTask,
    CheckTasks,
    WaitForTasks,
    TaskResult,
    CancelTask,
    RequestAccess,
    AskOwner,
    Whose,
    Report,
    Claim,
    Release,
    StartHelper,
    AddMember,
    RemoveMember,
}

pub(super) async fn call(
    shared: &Shared,
    caller: Option<&Caller>,
    method: Method,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    match method {
        Method::DelegateTask => tasks::delegate_task(shared, caller, parse(params)?).await,
        Method::CheckTasks => tasks::check_tasks(shared, caller, parse(params)?),
        Method::WaitForTasks => tasks::wait_for_tasks(shared, caller, parse(params)?).await,
        Method::TaskResult => tasks::task_result(shared, caller, parse(params)?).await,
        Method::CancelTask => tasks::cancel_task(shared, caller, parse(params)?),
        Method::RequestAccess => asking::request_access(shared, caller, parse(params)?).await,
        Method::AskOwner => asking::ask_owner(shared, caller, parse(params)?).await,
        Method::Whose => asking::whose(shared, caller, parse(params)?).await,
        Method::Report => asking::report(shared, caller, parse(params)?),
        Method::Claim => conflicts::claim(shared, caller, parse(params)?).await,
        Method::Release => conflicts::release(shared, caller, parse(params)?).await,
        Method::StartHelper => spawning::start_helper(shared, caller, parse(params)?).await,
        Method::AddMember => spawning::add_member(shared, caller, parse(params)?).await,
        Method::RemoveMember => spawning::remove_member(shared, parse(params)?).await,
    }
}

pub(super) fn schemas(
    method: Method,
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> (Schema, Schema) {
    let mut of = |params: fn(&mut SchemaGenerator) -> Schema,
                  result: fn(&mut SchemaGenerator) -> Schema| {
        (params(requests), result(answers))
    };
    match method {
        Method::DelegateTask => of(subschema::<wire::DelegateParams>, subschema::<wire::Delegated>),
        Method::CheckTasks => of(subschema::<wire::CheckTasksParams>, subschema::<wire::Tasks>),
        Method::WaitForTasks => of(subschema::<wire::WaitForTasksParams>, subschema::<wire::Tasks>),
        Method::TaskResult => {
            of(subschema::<wire::TaskResultParams>, subschema::<wire::TaskResult>)
        }
        Method::CancelTask => of(subschema::<wire::CancelTaskParams>, subschema::<wire::TaskRow>),
        Method::RequestAccess => {
            of(subschema::<wire::RequestAccessParams>, subschema::<wire::Answer>)
        }
        Method::AskOwner => of(subschema::<wire::AskOwnerParams>, subschema::<wire::Answer>),
        Method::Whose => of(subschema::<wire::WhoseParams>, subschema::<wire::Whose>),
        Method::Report => of(subschema::<wire::ReportParams>, subschema::<wire::Reported>),
        Method::Claim => of(subschema::<wire::ClaimParams>, subschema::<wire::Claimed>),
        Method::Release => of(subschema::<wire::ReleaseParams>, subschema::<wire::Released>),
        Method::StartHelper => {
            of(subschema::<wire::StartHelperParams>, subschema::<wire::Delegated>)
        }
        Method::AddMember => of(subschema::<wire::AddMemberParams>, subschema::<wire::Delegated>),
        Method::RemoveMember => {
            of(subschema::<wire::RemoveMemberParams>, subschema::<wire::Agent<'_>>)
        }
    }
}
