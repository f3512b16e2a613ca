//! The form in which an agent takes the team's MCP server: agents differ in whether an entry may,
//! or must, have a `type`.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;

/// The MCP server with the tools of the team, in the forms of ACP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TeamTools {
    /// As a program.
    pub program: Value,
    /// Over HTTP; None: the agent's client might not reach it.
    pub http: Option<Value>,
}

/// The forms in the order in which they are tried; HTTP only with agents that say they take it.
const FORMS: [Form; 4] = [Form::Http, Form::Plain, Form::Typed, Form::LeftOut];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Http,
    /// As a program, which all agents take.
    Plain,
    /// With `"type": "stdio"`.
    Typed,
    /// The agent opens no session with it.
    LeftOut,
}

impl Form {
    /// Adds the team's server to those of a session.
    pub(super) fn add(self, servers: &mut Vec<Value>, tools: Option<&TeamTools>) {
        let Some(TeamTools { program, http }) = tools else { return };
        let mut entry = program.clone();
        match self {
            Self::LeftOut => return,
            Self::Http => entry.clone_from(http.as_ref().unwrap_or(program)),
            Self::Plain => {}
            Self::Typed => entry["type"] = "stdio".into(),
        }
        servers.push(entry);
    }
}

/// The form that is tried now.
#[derive(Debug)]
pub(super) struct ToolForm(AtomicU8);

impl Default for ToolForm {
    fn default() -> Self {
        Self(AtomicU8::new(Form::Plain as u8))
    }
}

impl ToolForm {
    /// The agent takes MCP servers over HTTP.
    pub(super) fn prefer_http(&self) {
        self.0.store(Form::Http as u8, Ordering::Relaxed);
    }

    /// Goes on to the form after `refused`, which the agent refused; false if it was the last.
    pub(super) fn next(&self, refused: Form) -> bool {
        if refused == Form::LeftOut {
            return false;
        }
        let (from, to) = (refused as u8, refused as u8 + 1);
        // Another session may have gone on already.
        let changed = self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if changed.is_ok() && to == Form::LeftOut as u8 {
            tracing::warn!("the agent refuses the tools of the team: its sessions go without");
        }
        true
    }

    pub(super) fn current(&self) -> Form {
        let form = usize::from(self.0.load(Ordering::Relaxed));
        FORMS.get(form).copied().unwrap_or(Form::LeftOut)
    }
}
