//! A script as plain data: the agent's properties, and the steps for each prompt. Knows neither
//! TOML nor the protocol.

use serde_json::Value;

use crate::script::{Captures, PromptPattern};

/// A valid script.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) agent: Persona,
    /// In the file's order: the first that matches a prompt is used.
    pub(super) rules: Vec<PromptRule>,
}

/// The properties of the agent.
#[derive(Clone, Debug)]
pub(super) struct Persona {
    pub(super) name: String,
    pub(super) version: String,
    /// If not empty, a session needs `authenticate` first.
    pub(super) auth_methods: Vec<String>,
    /// The first is the initial mode of a session.
    pub(super) modes: Vec<String>,
    /// Offered as the configuration option `model`; the first is the initial model of a session.
    pub(super) models: Vec<String>,
    /// Played before `initialize` is answered.
    pub(super) start: Vec<Step>,
    /// Played before `session/load` is answered; None: not supported.
    pub(super) load: Option<Vec<Step>>,
    /// Offers `session/fork`.
    pub(super) fork: bool,
}

#[derive(Clone, Debug)]
pub(super) struct PromptRule {
    /// None matches every prompt.
    pub(super) pattern: Option<PromptPattern>,
    /// Maximum prompts of a session that it matches.
    pub(super) times: Option<u64>,
    /// The turn ignores `session/cancel`.
    pub(super) ignore_cancel: bool,
    pub(super) steps: Vec<Step>,
}

impl PromptRule {
    pub(super) fn matches(&self, prompt: &str) -> Option<Captures> {
        match &self.pattern {
            Some(pattern) => pattern.first(prompt),
            None => Some(Captures::new()),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) act: Act,
    /// The turn ends here if the step fails.
    pub(super) required: bool,
    pub(super) on_ok: Vec<Step>,
    pub(super) on_error: Vec<Step>,
}

/// Paths are relative to the session's `cwd`, and sent without normalization.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Say(String),
    Think(String),
    Plan {
        entries: Vec<String>,
        done: usize,
    },
    Usage {
        used: u64,
        size: u64,
        cost: Option<(f64, String)>,
    },
    Update(Value),
    /// Members of the answer to the prompt.
    Answer(Value),

    Read {
        path: String,
        line: Option<u64>,
        limit: Option<u64>,
    },
    Write {
        path: String,
        change: FileEdit,
    },
    Search {
        text: String,
        within: String,
    },
    Run {
        command: CommandLine,
        cwd: Option<String>,
        output_limit: Option<u64>,
    },
    Ask {
        kind: String,
        path: Option<String>,
        command: Option<String>,
        title: Option<String>,
        options: Vec<String>,
    },
    Request {
        method: String,
        params: Value,
    },
    DiskRead {
        path: String,
    },
    DiskWrite {
        path: String,
        content: String,
    },
    SpawnChild {
        command: String,
        detach: bool,
    },

    WaitMs(u64),
    WaitCancel,
    ForEach {
        pattern: PromptPattern,
        text: Option<String>,
        steps: Vec<Step>,
    },
    Repeat {
        times: u64,
        steps: Vec<Step>,
    },
    Stop(String),
    Fail(String),

    Raw {
        line: String,
        newline: bool,
    },
    Stderr(String),
    Exit(u8),
    Crash,
    Hang,
    IgnoreEof,
    IgnoreTerm,
}

#[derive(Clone, Debug)]
pub(super) enum FileEdit {
    Whole(String),
    Replace { old: String, new: String },
}

#[derive(Clone, Debug)]
pub(super) enum CommandLine {
    /// Sent as `command` alone, for the client's shell.
    Shell(String),
    /// Sent as `command` and `args`; never empty.
    Argv(Vec<String>),
}
