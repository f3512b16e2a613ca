//! Owns the methods of the branches of tasks, which the team performs.

use super::{MethodCall, Reply, reply, status};
use crate::serve::Refused;
use crate::wire::{
    CheckBranch, CheckBranchParams, Empty, ListBranches, MergeBranch, MergeBranchParams,
    OpenPullRequest, OpenPullRequestParams,
};

pub(super) async fn list_branches(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListBranches>, Refused> {
    let agents = call.shared.team.agents();
    let report = status::report(call.shared, &agents).await;
    reply(&call.shared.team.branches(report).await?)
}

pub(super) async fn merge_branch(
    call: MethodCall<'_>,
    params: MergeBranchParams,
) -> Result<Reply<MergeBranch>, Refused> {
    reply(&call.shared.team.merge_branch(params).await?)
}

pub(super) async fn check_branch(
    call: MethodCall<'_>,
    params: CheckBranchParams,
) -> Result<Reply<CheckBranch>, Refused> {
    reply(&call.shared.team.check_branch(params.branch).await?)
}

pub(super) async fn open_pull_request(
    call: MethodCall<'_>,
    params: OpenPullRequestParams,
) -> Result<Reply<OpenPullRequest>, Refused> {
    reply(&call.shared.team.open_pull_request(params).await?)
}
