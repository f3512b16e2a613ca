//! Tools by which agents give work to others.

use super::{BOTH, LEAD, TeamTool, tool_of};
use crate::wire;

pub(super) fn tools() -> Vec<TeamTool> {
    vec![
        tool_of::<wire::DelegateTask>(LEAD, "Gives an agent a task, and answers with its id at once. The agent works on it in a turn of \
                      its own, after those that it has. Wait for it with wait_for_tasks."),
        tool_of::<wire::CheckTasks>(BOTH, "Shows where tasks stand, without waiting. `needs_approval`: an access of it waits for your \
                      decision (list_blocked, resolve_blocked).").reads().list("tasks").pages(),
        tool_of::<wire::WaitForTasks>(BOTH, "Waits until tasks have ended, at most 45 seconds. With `timed_out` call it again with the \
                      returned cursor. It also returns when a task needs your decision (`needs_approval`) or \
                      stalls. It shows 25 tasks at most; check_tasks pages through more.").reads().list("tasks"),
        tool_of::<wire::TaskResult>(BOTH, "Shows the result of a task: the end of what the agent said, and with `page` all of it. \
                      Results are kept for a week, or until acknowledged."),
        tool_of::<wire::CancelTask>(BOTH, "Withdraws a task that has not begun, or cancels its turn."),
        tool_of::<wire::StartHelper>(BOTH, "Starts a helper of yours for one task, and answers with the task's id at once. The helper may access \
                      only what you may, uses your budget, and ends with the task. Wait for it with wait_for_tasks."),
        tool_of::<wire::AddMember>(LEAD, "Adds an agent to your team, as far as the configuration lets you, and gives it a first task, whose id is \
                      returned at once. It stays until remove_member."),
        tool_of::<wire::RemoveMember>(LEAD, "Ends an agent that you added by add_member, and removes it from the team."),
        tool_of::<wire::ListBudgets>(BOTH, "Shows the budgets of the team and its agents: what is used, and the limits. Only a person can raise them.").named("budget").reads().list("budgets").pages(),
    ]
}
