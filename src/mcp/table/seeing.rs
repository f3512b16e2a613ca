//! Tools by which the orchestrator sees its team, and decides.

use super::{CONTENT, LARGEST, LEAD, MESSAGE, PAGE_OF_LIST, TeamTool};
use crate::mcp::parameter::ArgumentShape::{Choice, Number, Text, Whole};
use crate::mcp::parameter::{NAME, optional, required};

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
];
