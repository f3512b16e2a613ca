//! The form in which an agent takes the team's MCP server: agents differ in whether an entry may,
//! or must, have a `type`.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;

/// The forms in the order in which they are tried. The protocol's own is the first.
const FORMS: [Form; 3] = [Form::Plain, Form::Typed, Form::LeftOut];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Plain,
    /// With `"type": "stdio"`.
    Typed,
    /// The agent opens no session with it.
    LeftOut,
}

/// The form that is tried now.
#[derive(Default, Debug)]
pub(super) struct ToolForm(AtomicU8);

impl ToolForm {
    /// Adds the team's server to those of a session.
    pub(super) fn add(&self, servers: &mut Vec<Value>, tools: Option<&Value>) {
        let Some(mut tools) = tools.cloned() else { return };
        match self.current() {
            Form::LeftOut => return,
            Form::Plain => {}
            Form::Typed => tools["type"] = "stdio".into(),
        }
        servers.push(tools);
    }

    /// Goes on to the next form, since the agent refused this one; false if there is none.
    pub(super) fn next(&self) -> bool {
        if self.current() == Form::LeftOut {
            return false;
        }
        let form = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if usize::from(form) == FORMS.len() - 1 {
            tracing::warn!("the agent refuses the tools of the team: its sessions go without");
        }
        true
    }

    fn current(&self) -> Form {
        let form = usize::from(self.0.load(Ordering::Relaxed));
        FORMS.get(form).copied().unwrap_or(Form::LeftOut)
    }
}
