//! Tools by which agents work beside others.

use super::{BOTH, LARGEST, MEMBER, MESSAGE, TeamTool};
use crate::mcp::parameter::ArgumentShape::{Choice, Number, Text, Texts, Whole};
use crate::mcp::parameter::{NAME, optional, required};

pub(super) const TOOLS: &[TeamTool] = &[
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
