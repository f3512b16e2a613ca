//! Tools by which the orchestrator sees its team, and decides.

use super::{LEAD, TeamTool, tool_of};
use crate::wire;

pub(super) fn tools() -> Vec<TeamTool> {
    vec![
        tool_of::<wire::TeamStatus>(LEAD, "Lists the agents of your team: their state, whether a turn runs, and how many of \
                      their accesses wait for a decision.").reads(),
        tool_of::<wire::AgentStatus>(LEAD, "Describes one agent of your team: its state, sessions, usage, and the accesses of it \
                      that wait for a decision.").reads(),
        tool_of::<wire::ListBlocked>(LEAD, "Lists accesses outside an agent's zone, oldest first. With status `pending`: those \
                      that wait for resolve_blocked.").reads().list("blocked").pages(),
        tool_of::<wire::ResolveBlocked>(LEAD, "Decides an access outside an agent's zone: allow it, deny it, or answer a read with \
                      content of yours. You can't decide accesses of your own."),
        tool_of::<wire::GetDiff>(LEAD, "Shows what agents changed in files, as a patch, page by page.").named("read_diff").reads().text("diff").pages(),
        tool_of::<wire::HotFiles>(LEAD, "Lists the files that agents work on, the hottest first, with who touched them.").reads().list("files").pages(),
        tool_of::<wire::Overlaps>(LEAD, "Lists symbols that two agents work on now: both edited it, or one edited what the other \
                      has in its context.").reads().list("overlaps").pages(),
        tool_of::<wire::WhoCalls>(LEAD, "Lists the callers of a function or method, by the code graph.").reads().list("symbols").pages(),
        tool_of::<wire::ListConflicts>(LEAD, "Lists writes of several agents to one file, oldest first: lost updates, and writes that were \
                      held, denied or merged since another agent had the file locked; and the locks.").named("conflicts").reads().list("conflicts").pages(),
    ]
}
