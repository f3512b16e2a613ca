//! Tools by which agents give work to others.

use super::{BOTH, CURSOR, LEAD, PAGE_OF_LIST, TASK, TeamTool};
use crate::mcp::parameter::ArgumentShape::{Choice, Flag, Number, Text, Texts, Whole};
use crate::mcp::parameter::{NAME, optional, required};

pub(super) const TOOLS: &[TeamTool] = &[
    TeamTool {
        name: "delegate_task",
        method: "delegate_task",
        audience: LEAD,
        description: "Gives an agent a task, and answers with its id at once. The agent works on it in a turn of \
                      its own, after those that it has. Wait for it with wait_for_tasks.",
        parameters: &[
            required("agent", Text(NAME), "Id of the agent, as team_status lists it"),
            required("task", Text(TASK), "What the agent is to do: it sees only this text"),
            optional("files", Texts(200), "Paths that the task is about"),
            optional(
                "key",
                Text(256),
                "A name of yours: a repeated call with it begins no second task",
            ),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "check_tasks",
        method: "check_tasks",
        audience: BOTH,
        description: "Shows where tasks stand, without waiting. `needs_approval`: an access of it waits for your \
                      decision (list_blocked, resolve_blocked).",
        parameters: &[
            optional("ids", Texts(1000), "Ids of tasks; all that you gave if left out"),
            PAGE_OF_LIST,
        ],
        only_reads: true,
        list: Some("tasks"),
        text: None,
    },
    TeamTool {
        name: "wait_for_tasks",
        method: "wait_for_tasks",
        audience: BOTH,
        description: "Waits until tasks have ended, at most 45 seconds. With `timed_out` call it again with the \
                      returned cursor. It also returns when a task needs your decision (`needs_approval`) or \
                      stalls. It shows 25 tasks at most; check_tasks pages through more.",
        parameters: &[
            required("ids", Texts(1000), "Ids of the tasks"),
            optional(
                "mode",
                Choice(&["all", "first"]),
                "Until all have ended (if left out), or the first",
            ),
            optional(
                "cursor",
                CURSOR,
                "As returned before: what changed until then does not end the wait",
            ),
            optional("timeout_s", Number, "Seconds to wait, at most 45"),
        ],
        only_reads: true,
        list: Some("tasks"),
        text: None,
    },
    TeamTool {
        name: "task_result",
        method: "task_result",
        audience: BOTH,
        description: "Shows the result of a task: the end of what the agent said, and with `page` all of it. \
                      Results are kept for a week, or until acknowledged.",
        parameters: &[
            required("id", Text(NAME), "Id of the task"),
            optional(
                "page",
                Whole { least: 1, most: 1_000_000 },
                "Which page of the whole text to show",
            ),
            optional("ack", Flag, "You have the result: it need not be kept"),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "cancel_task",
        method: "cancel_task",
        audience: BOTH,
        description: "Withdraws a task that has not begun, or cancels its turn.",
        parameters: &[required("id", Text(NAME), "Id of the task")],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "start_helper",
        method: "start_helper",
        audience: BOTH,
        description: "Starts a helper of yours for one task, and answers with the task's id at once. The helper may access \
                      only what you may, uses your budget, and ends with the task. Wait for it with wait_for_tasks.",
        parameters: &[
            required("task", Text(TASK), "What the helper is to do: it sees only this text"),
            required(
                "zone",
                Texts(100),
                "Patterns of the files that it may write, within your own zone (`src/ui/tests/**`)",
            ),
            optional(
                "profile",
                Text(NAME),
                "The launch profile of its program; your own program if left out",
            ),
            optional(
                "key",
                Text(256),
                "A name of yours: a repeated call with it starts no second helper",
            ),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "add_member",
        method: "add_member",
        audience: LEAD,
        description: "Adds an agent to your team, as far as the configuration lets you, and gives it a first task, whose id is \
                      returned at once. It stays until remove_member.",
        parameters: &[
            required("id", Text(64), "A name for the agent"),
            required("profile", Text(NAME), "The launch profile of its program"),
            required("zone", Texts(100), "Patterns of the files that it may write"),
            required("task", Text(TASK), "What the agent is to do: it sees only this text"),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "remove_member",
        method: "remove_member",
        audience: LEAD,
        description: "Ends an agent that you added by add_member, and removes it from the team.",
        parameters: &[required("id", Text(NAME), "Id of the agent")],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "budget",
        method: "list_budgets",
        audience: BOTH,
        description: "Shows the budgets of the team and its agents: what is used, and the limits. Only a person can raise them.",
        parameters: &[PAGE_OF_LIST],
        only_reads: true,
        list: Some("budgets"),
        text: None,
    },
];
