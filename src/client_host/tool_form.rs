//! The form in which an agent takes the team's MCP server: agents differ in whether an entry may,
//! or must, have a `type`.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;

/// The forms in the order in which they are tried. The protocol's own is the first.
const FORMS: [Form; 3] = [Form::Plain, Form::Typed, Form::LeftOut];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Plain,
    /// With `"type": "stdio"`.
    Typed,
    /// The agent opens no session with it.
    LeftOut,
}

impl Form {
    /// Adds the team's server to those of a session.
    pub(super) fn add(self, servers: &mut Vec<Value>, tools: Option<&Value>) {
        let Some(mut tools) = tools.cloned() else { return };
        match self {
            Self::LeftOut => return,
            Self::Plain => {}
            Self::Typed => tools["type"] = "stdio".into(),
        }
        servers.push(tools);
    }
}

/// The form that is tried now.
#[derive(Default, Debug)]
pub(super) struct ToolForm(AtomicU8);

impl ToolForm {
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
