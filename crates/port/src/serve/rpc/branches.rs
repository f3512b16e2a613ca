//! Owns the methods of the branches of tasks, which the team performs.

use super::{MethodCall, Reply, reply, status};
use crate::serve::Refused;
use crate::wire::{Empty, ListBranches};

pub(super) async fn list_branches(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListBranches>, Refused> {
    let agents = call.shared.team.agents();
    let report = status::report(call.shared, &agents).await;
    reply(&call.shared.team.branches(report).await?)
}
