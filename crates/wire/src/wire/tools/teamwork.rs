//! Tools by which agents work beside others.

use super::{BOTH, MEMBER, TeamTool, tool_of};
use crate::wire;

pub(super) fn tools() -> Vec<TeamTool> {
    vec![
        tool_of::<wire::RequestAccess>(MEMBER, "Asks to read or write a path outside your zone, before you try. It waits for the decision, \
                      at most 45 seconds; with state `pending` the same call goes on waiting."),
        tool_of::<wire::AskOwner>(BOTH, "Asks the agent that owns a path a question, and waits for its answer, at most 45 seconds; \
                      with state `pending` the same call goes on waiting. The owner answers beside its work.").reads(),
        tool_of::<wire::Whose>(BOTH, "Says which agents own a path, and whether you may read and write it.").reads(),
        tool_of::<wire::Report>(BOTH, "Tells the people who watch the team something: progress, a problem, a decision."),
        tool_of::<wire::Claim>(MEMBER, "Locks files for your writes before you begin: other agents can't write them until `ttl_s` is over \
                      or you release them. All or nothing: it fails if another agent has one locked."),
        tool_of::<wire::Release>(MEMBER, "Ends locks of yours, so that other agents can write the files."),
    ]
}
