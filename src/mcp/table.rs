//! The tools, a row for each. A new tool needs only a row, once the port has its method.

use super::Audience;
use super::parameter::ArgumentShape::{Choice, Flag, Number, Text, Texts, Whole};
use super::parameter::{ArgumentShape, NAME, PAGE, Parameter, optional, required};

/// A tool of the team.
#[derive(Debug)]
pub(super) struct TeamTool {
    /// At most 64 characters with a client's prefix, and not a name that vendors use themselves.
    pub(super) name: &'static str,
    /// The method of the port.
    pub(super) method: &'static str,
    /// The audience that is offered the tool; the method checks the caller's right anyway.
    pub(super) audience: &'static [Audience],
    pub(super) description: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) only_reads: bool,
    /// The list that is shown page by page: a member of the result, or the name under which a result
    /// that is a list is shown.
    pub(super) list: Option<&'static str>,
    /// The member of the result that is shown page by page, if one may be long.
    pub(super) text: Option<&'static str>,
}

/// Bytes of a file's content in an argument.
const CONTENT: usize = 2 * 1024 * 1024;

/// Bytes of a message in an argument.
const MESSAGE: usize = 16 * 1024;

/// Bytes of a task.
const TASK: usize = 256 * 1024;

/// The largest whole number that all JSON readers keep exactly.
const LARGEST: u64 = (1 << 53) - 1;

const CURSOR: ArgumentShape = Whole { least: 0, most: LARGEST };

const LEAD: &[Audience] = &[Audience::Lead];
const MEMBER: &[Audience] = &[Audience::Member];
const BOTH: &[Audience] = &[Audience::Lead, Audience::Member];

const PAGE_OF_LIST: Parameter = optional(
    PAGE,
    Whole { least: 1, most: 1_000_000 },
    "Which page of the list; the first if left out",
);

pub(super) const TOOLS: &[TeamTool] = &[
    TeamTool {
        name: "team_status",
        method: "team_status",
        audience: LEAD,
        description: "Lists the agents of your team: their state, whether a turn runs, and how many of \
                      their accesses wait for a decision.",
        parameters: &[],
        only_reads: true,
        list: None,
        text: None,
    },
    TeamTool {
        name: "agent_status",
        method: "agent_status",
        audience: LEAD,
        description: "Describes one agent of your team: its state, sessions, usage, and the accesses of it \
                      that wait for a decision.",
        parameters: &[required("agent", Text(NAME), "Id of the agent, as team_status lists it")],
        only_reads: true,
        list: None,
        text: None,
    },
    TeamTool {
        name: "list_blocked",
        method: "list_blocked",
        audience: LEAD,
        description: "Lists accesses outside an agent's zone, oldest first. With status `pending`: those \
                      that wait for resolve_blocked.",
        parameters: &[
            optional(
                "status",
                Choice(&["pending", "denied", "allowed", "answered", "expired", "observed"]),
                "Only accesses with this status; all if left out",
            ),
            PAGE_OF_LIST,
        ],
        only_reads: true,
        list: Some("blocked"),
        text: None,
    },
    TeamTool {
        name: "resolve_blocked",
        method: "resolve_blocked",
        audience: LEAD,
        description: "Decides an access outside an agent's zone: allow it, deny it, or answer a read with \
                      content of yours. You can't decide accesses of your own.",
        parameters: &[
            required("id", Text(NAME), "Id of the access, as list_blocked lists it"),
            required("decision", Choice(&["allow", "deny", "answer"]), "What becomes of it"),
            optional(
                "scope",
                Choice(&["once", "session"]),
                "With `allow`: this access (if left out), or this path and action until the session ends",
            ),
            optional("ttl_s", Number, "With `allow`: seconds that the permission lasts at most"),
            optional("message", Text(MESSAGE), "With `deny`: what the agent is told"),
            optional("content", Text(CONTENT), "With `answer`: what the agent reads"),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
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
        audience: LEAD,
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
        audience: LEAD,
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
        audience: LEAD,
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
        audience: LEAD,
        description: "Withdraws a task that has not begun, or cancels its turn.",
        parameters: &[required("id", Text(NAME), "Id of the task")],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "read_diff",
        method: "get_diff",
        audience: LEAD,
        description: "Shows what agents changed in files, as a patch, page by page.",
        parameters: &[
            optional("agent", Text(NAME), "Only what this agent changed"),
            optional("session_id", Text(NAME), "Only what was changed in this session"),
            optional(
                "turn",
                Whole { least: 0, most: LARGEST },
                "Only what was changed in this turn",
            ),
            PAGE_OF_LIST,
        ],
        only_reads: true,
        list: None,
        text: Some("diff"),
    },
    TeamTool {
        name: "hot_files",
        method: "hot_files",
        audience: LEAD,
        description: "Lists the files that agents work on, the hottest first, with who touched them.",
        parameters: &[
            optional("limit", Whole { least: 1, most: 100 }, "How many; 20 if left out"),
            PAGE_OF_LIST,
        ],
        only_reads: true,
        list: Some("files"),
        text: None,
    },
    TeamTool {
        name: "overlaps",
        method: "overlaps",
        audience: LEAD,
        description: "Lists symbols that two agents work on now: both edited it, or one edited what the other \
                      has in its context.",
        parameters: &[PAGE_OF_LIST],
        only_reads: true,
        list: Some("overlaps"),
        text: None,
    },
    TeamTool {
        name: "who_calls",
        method: "who_calls",
        audience: LEAD,
        description: "Lists the callers of a function or method, by the code graph.",
        parameters: &[
            required(
                "symbol",
                Text(NAME),
                "Its name, or its id in the code graph (`src/cart.rs::total`)",
            ),
            PAGE_OF_LIST,
        ],
        only_reads: true,
        list: Some("symbols"),
        text: None,
    },
    TeamTool {
        name: "request_access",
        method: "request_access",
        audience: MEMBER,
        description: "Asks to read or write a path outside your zone, before you try. It waits for the decision, \
                      at most 45 seconds; with state `pending` the same call goes on waiting.",
        parameters: &[
            required("path", Text(NAME), "The path, relative to the workspace"),
            required("action", Choice(&["read", "write"]), "What you want to do"),
            required("reason", Text(MESSAGE), "Why: the decider reads it"),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "ask_owner",
        method: "ask_owner",
        audience: BOTH,
        description: "Asks the agent that owns a path a question, and waits for its answer, at most 45 seconds; \
                      with state `pending` the same call goes on waiting. The owner answers beside its work.",
        parameters: &[
            required(
                "question",
                Text(MESSAGE),
                "The question: the owner sees only this text and the path",
            ),
            optional("path", Text(NAME), "The path whose owner is asked; this or `agent`"),
            optional("agent", Text(NAME), "Id of the agent to ask"),
        ],
        only_reads: true,
        list: None,
        text: None,
    },
    TeamTool {
        name: "whose",
        method: "whose",
        audience: BOTH,
        description: "Says which agents own a path, and whether you may read and write it.",
        parameters: &[required("path", Text(NAME), "The path, relative to the workspace")],
        only_reads: true,
        list: None,
        text: None,
    },
    TeamTool {
        name: "report",
        method: "report",
        audience: BOTH,
        description: "Tells the people who watch the team something: progress, a problem, a decision.",
        parameters: &[required("text", Text(MESSAGE), "What to tell")],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "conflicts",
        method: "list_conflicts",
        audience: LEAD,
        description: "Lists writes of several agents to one file, oldest first: lost updates, and writes that were \
                      held, denied or merged since another agent had the file locked; and the locks.",
        parameters: &[
            optional(
                "status",
                Choice(&["pending", "allowed", "denied", "expired", "observed"]),
                "Only conflicts with this status; all if left out",
            ),
            PAGE_OF_LIST,
        ],
        only_reads: true,
        list: Some("conflicts"),
        text: None,
    },
    TeamTool {
        name: "claim",
        method: "claim",
        audience: MEMBER,
        description: "Locks files for your writes before you begin: other agents can't write them until `ttl_s` is over \
                      or you release them. All or nothing: it fails if another agent has one locked.",
        parameters: &[
            optional(
                "paths",
                Texts(100),
                "Files or folders of your zone, relative to the workspace",
            ),
            optional(
                "symbols",
                Texts(100),
                "Ids of symbols (`src/cart.rs::total`): their files are claimed",
            ),
            optional("ttl_s", Number, "Seconds that the claim lasts, at most 3600"),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
    TeamTool {
        name: "release",
        method: "release",
        audience: MEMBER,
        description: "Ends locks of yours, so that other agents can write the files.",
        parameters: &[
            optional("paths", Texts(100), "The paths; all that you have locked if left out"),
            optional(
                "fence",
                Whole { least: 0, most: LARGEST },
                "Only the lock with this number, as claim returned it",
            ),
        ],
        only_reads: false,
        list: None,
        text: None,
    },
];

pub(super) fn of(audience: Audience) -> impl Iterator<Item = &'static TeamTool> {
    TOOLS.iter().filter(move |tool| tool.audience.contains(&audience))
}
