//! The setup of a session, as its agent tells it: modes, models, options and commands. Kept, so that a
//! client that comes later learns of it, too. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::line;

/// Bytes of each part that are kept; a longer one is as if the agent had said nothing of it.
const MAX_PART: usize = 256 * 1024;

/// The setup of a session, as far as the agent has told it.
#[derive(Default, Debug)]
pub(super) struct AgentSetup {
    pub(super) modes: Value,
    pub(super) models: Value,
    pub(super) options: Value,
    pub(super) commands: Value,
}

/// The part that a `session/update` changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SetupChange {
    Commands,
    Other,
}

/// The part that a client sets.
#[derive(Debug)]
pub(super) enum SetupChoice {
    Mode(Value),
    Model(Value),
    /// The answer has all options.
    Option,
}

impl AgentSetup {
    /// Takes the answer to a request that opened, loaded or resumed the session.
    pub(super) fn opened(&mut self, result: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Opened<'a> {
            #[serde(borrow)]
            modes: Option<&'a RawValue>,
            #[serde(borrow)]
            models: Option<&'a RawValue>,
            #[serde(borrow)]
            config_options: Option<&'a RawValue>,
        }
        let Some(result) = result.filter(|result| result.get().starts_with('{')) else { return };
        let Ok(opened) = serde_json::from_str::<Opened<'_>>(result.get()) else { return };
        for (part, said) in [
            (&mut self.modes, opened.modes),
            (&mut self.models, opened.models),
            (&mut self.options, opened.config_options),
        ] {
            if said.is_some() {
                *part = kept(said);
            }
        }
    }

    /// Takes the params of a `session/update`, if it is about the setup.
    pub(super) fn updated(&mut self, params: Option<&RawValue>) -> Option<SetupChange> {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            update: Update<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Update<'a> {
            #[serde(rename = "sessionUpdate")]
            kind: String,
            #[serde(borrow)]
            available_commands: Option<&'a RawValue>,
            #[serde(borrow)]
            current_mode_id: Option<&'a RawValue>,
            #[serde(borrow)]
            config_options: Option<&'a RawValue>,
        }
        let Params { update } = serde_json::from_str(params?.get()).ok()?;
        match &*update.kind {
            "available_commands_update" => {
                self.commands = kept(update.available_commands);
                Some(SetupChange::Commands)
            }
            "current_mode_update" => {
                self.chose(&SetupChoice::Mode(kept(update.current_mode_id)));
                Some(SetupChange::Other)
            }
            "config_option_update" => {
                self.options = kept(update.config_options);
                Some(SetupChange::Other)
            }
            _ => None,
        }
    }

    /// Takes what a client has set.
    pub(super) fn chose(&mut self, choice: &SetupChoice) {
        let (of, name, now) = match choice {
            SetupChoice::Mode(mode) => (&mut self.modes, "currentModeId", mode),
            SetupChoice::Model(model) => (&mut self.models, "currentModelId", model),
            SetupChoice::Option => return,
        };
        if let Value::Object(of) = of {
            of.insert(name.to_owned(), now.clone());
        }
    }

    /// The setup, as the result of a request that joins the session.
    pub(super) fn answer(&self) -> Value {
        let mut answer = json!({});
        for (name, part) in
            [("modes", &self.modes), ("models", &self.models), ("configOptions", &self.options)]
        {
            if !part.is_null() {
                answer[name] = part.clone();
            }
        }
        answer
    }
}

fn kept(said: Option<&RawValue>) -> Value {
    let said = said.filter(|said| said.get().len() <= MAX_PART);
    said.and_then(|said| line::read(said.get().as_bytes()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn a_client_that_comes_later_learns_what_was_said_and_set() {
        let raw = |value: &Value| to_raw_value(value).unwrap();
        let mut setup = AgentSetup::default();
        assert_eq!(setup.answer(), json!({}));
        let modes = json!({ "currentModeId": "ask", "availableModes": [] });
        setup.opened(Some(&raw(&json!({ "sessionId": "s", "modes": modes }))));
        let update = |update: Value| raw(&json!({ "sessionId": "s", "update": update }));
        let mode = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" });
        assert_eq!(setup.updated(Some(&update(mode))), Some(SetupChange::Other));
        let options = json!([{ "id": "effort" }]);
        let update_of_options =
            json!({ "sessionUpdate": "config_option_update", "configOptions": options });
        setup.updated(Some(&update(update_of_options)));
        let said = json!({ "sessionUpdate": "agent_message_chunk", "content": {} });
        assert_eq!(setup.updated(Some(&update(said))), None);
        // A load whose answer has no modes changes none.
        setup.opened(Some(&raw(&json!({ "configOptions": options }))));
        let modes = json!({ "currentModeId": "code", "availableModes": [] });
        assert_eq!(setup.answer(), json!({ "modes": modes, "configOptions": options }));
        // Too long to be kept.
        let long = "x".repeat(MAX_PART);
        setup.opened(Some(&raw(&json!({ "configOptions": [long] }))));
        assert_eq!(setup.answer(), json!({ "modes": modes }));
    }
}
