//! The options and commands of a session, and a prompt that waits.

use super::{NOW, key};
use crate::client_host::{
    ChoiceRequest, OptionValue, PromptDraft, SessionChoices, SessionCommand, SessionOption,
    WaitingPrompt,
};
use crate::model::{ChosenOptions, DecidedBy, SessionId};

/// The chosen values in the session of `ui`.
pub(in crate::serve) fn chosen() -> ChosenOptions {
    let chosen = [("mode", "plan"), ("model", "large")];
    let chosen = chosen.map(|(option, value)| (option.to_owned(), value.to_owned())).into();
    ChosenOptions { key: key("ui", "s-ui"), chosen, timestamp_ms: NOW }
}

/// The options and the commands that are offered there.
pub(in crate::serve) fn choices() -> SessionChoices {
    let value = |id: &str, name: &str, what: Option<&str>| OptionValue {
        id: id.to_owned(),
        name: name.to_owned(),
        description: what.map(str::to_owned),
    };
    let option = |id: &str, name: &str, current: &str, values| SessionOption {
        id: id.to_owned(),
        name: name.to_owned(),
        category: Some(id.to_owned()),
        current: Some(current.to_owned()),
        values,
        how: ChoiceRequest::Option(id.to_owned()),
    };
    let ways = vec![value("code", "Code", None), value("plan", "Plan", Some("Changes no files"))];
    let sizes = vec![value("large", "Large", None), value("small", "Small", None)];
    SessionChoices {
        session: SessionId::new("s-ui"),
        options: vec![
            option("mode", "Mode", "plan", ways),
            option("model", "Model", "large", sizes),
        ],
        commands: vec![SessionCommand {
            name: "compact".to_owned(),
            description: Some("Makes room in the context".to_owned()),
        }],
    }
}

/// A prompt that waits in it.
pub(in crate::serve) fn waiting(text: &str) -> WaitingPrompt {
    let blocks = vec![serde_json::json!({ "type": "text", "text": text })];
    let by = Some(DecidedBy::Token("ada".to_owned()));
    let draft = PromptDraft::again("3f0a9c51d2e84b67".to_owned(), by, NOW, blocks);
    WaitingPrompt { session: SessionId::new("s-ui"), draft }
}
