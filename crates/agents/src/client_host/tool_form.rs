//! The form in which an agent takes the team's MCP server: agents differ in whether it may be an address, and
//! in whether an entry may, or must, have a `type`.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;

use crate::model::ToolsForm;

/// The MCP server with the tools of the team, in the forms of ACP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TeamTools {
    /// As a program.
    pub program: Value,
    /// Over HTTP; None: the agent's client might not reach it.
    pub http: Option<Value>,
    /// The form that is tried first; None: HTTP with agents that say they take it.
    pub first: Option<ToolsForm>,
    /// A text for agents that show their model the tools only once it searches for them: a new session gets
    /// it in front of its first prompt.
    pub hint: Option<String>,
    /// Whether the agent's program shows its model the tools that it lists; None: unknown.
    pub shown: Option<bool>,
}

impl TeamTools {
    /// Adds the team's server to those of a session.
    pub(super) fn add(&self, form: ToolsForm, servers: &mut Vec<Value>) {
        let mut entry = self.program.clone();
        match form {
            ToolsForm::None => return,
            ToolsForm::Http => entry.clone_from(self.http.as_ref().unwrap_or(&self.program)),
            ToolsForm::Program => {}
            ToolsForm::Typed => entry["type"] = "stdio".into(),
        }
        servers.push(entry);
    }
}

/// The form that is tried now, as its place among all.
#[derive(Debug)]
pub(super) struct ToolForm(AtomicU8);

impl ToolForm {
    pub(super) fn new(first: Option<ToolsForm>) -> Self {
        Self(AtomicU8::new(first.unwrap_or(ToolsForm::Program) as u8))
    }

    /// The agent takes MCP servers over HTTP.
    pub(super) fn prefer_http(&self) {
        self.0.store(ToolsForm::Http as u8, Ordering::Relaxed);
    }

    /// Goes on to the form after `refused`, which the agent refused; false if it was the last.
    pub(super) fn next(&self, refused: ToolsForm) -> bool {
        if refused == ToolsForm::None {
            return false;
        }
        let (from, to) = (refused as u8, refused as u8 + 1);
        // Another session may have gone on already.
        let changed = self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if changed.is_ok() && to == ToolsForm::None as u8 {
            tracing::warn!("the agent refuses the tools of the team: its sessions go without");
        }
        true
    }

    pub(super) fn current(&self) -> ToolsForm {
        let form = usize::from(self.0.load(Ordering::Relaxed));
        ToolsForm::ALL.get(form).copied().unwrap_or(ToolsForm::None)
    }
}

/// Whether a text is about MCP servers, in words or in names such as `MCPConfig`.
pub(super) fn names_mcp(text: &str) -> bool {
    text.as_bytes().windows(3).any(|word| word.eq_ignore_ascii_case(b"mcp"))
}
