//! The options of an agent for one choice (auth method, mode, model), and the choice among them.
//! Pure, and lenient: agents announce options in several ways.

use std::fmt::Write;

use serde_json::Value;

use crate::client_host::HostError;

/// Offered ids that an error lists; the rest is counted.
const NAMED: usize = 8;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) how: ChoiceRequest,
}

/// The request that makes a choice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ChoiceRequest {
    /// `authenticate`
    Auth,
    /// `session/set_mode`
    Mode,
    /// `session/set_model`
    Model,
    /// `session/set_config_option` of this option.
    Option(String),
}

pub(super) fn auth_methods(initialized: &Value) -> Vec<Choice> {
    choices(&initialized["authMethods"], "id", &ChoiceRequest::Auth).collect()
}

/// Returns the modes of a new session, in order of preference.
pub(super) fn modes(opened: &Value) -> Vec<Choice> {
    let modes = choices(&opened["modes"]["availableModes"], "id", &ChoiceRequest::Mode);
    modes.chain(options(opened, "mode")).collect()
}

/// Returns the models of a new session, in order of preference.
pub(super) fn models(opened: &Value) -> Vec<Choice> {
    let models = choices(&opened["models"]["availableModels"], "modelId", &ChoiceRequest::Model);
    options(opened, "model").into_iter().chain(models).collect()
}

/// Returns the levels of thinking of a new session.
pub(super) fn thinking(opened: &Value) -> Vec<Choice> {
    options(opened, "thought_level")
}

/// Chooses by id, then by name, then by either without regard to case.
pub(super) fn choose<'a>(
    what: &'static str,
    wanted: &str,
    offered: &'a [Choice],
) -> Result<&'a Choice, HostError> {
    let wanted = wanted.trim();
    let by = |matches: &dyn Fn(&Choice) -> bool| offered.iter().find(|choice| matches(choice));
    let same = |text: &str| text.to_lowercase() == wanted.to_lowercase();
    by(&|choice| choice.id == wanted)
        .or_else(|| by(&|choice| choice.name == wanted))
        .or_else(|| by(&|choice| same(&choice.id) || same(&choice.name)))
        .ok_or_else(|| {
            let mut ids: Vec<_> = offered.iter().map(|choice| choice.id.as_str()).collect();
            ids.sort_unstable();
            ids.dedup();
            HostError::NotOffered { what, wanted: wanted.to_owned(), offered: list(&ids) }
        })
}

/// Lists a few ids.
pub(super) fn list<T: AsRef<str>>(ids: &[T]) -> String {
    if ids.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<_> = ids.iter().take(NAMED).map(|id| format!("`{}`", id.as_ref())).collect();
    let mut text = named.join(", ");
    if ids.len() > NAMED {
        let _ = write!(text, " and {} more", ids.len() - NAMED);
    }
    text
}

/// Returns the values of the select option of this category, or else of this id; they may be
/// grouped.
fn options(opened: &Value, kind: &str) -> Vec<Choice> {
    let all = items(&opened["configOptions"]);
    let option = all
        .iter()
        .find(|option| option["category"] == kind)
        .or_else(|| all.iter().find(|option| option["id"] == kind));
    let Some((option, id)) = option.and_then(|option| Some((option, option["id"].as_str()?)))
    else {
        return Vec::new();
    };
    let how = ChoiceRequest::Option(id.to_owned());
    let single = choices(&option["options"], "value", &how);
    let grouped = items(&option["options"]).iter();
    let grouped = grouped.flat_map(|group| choices(&group["options"], "value", &how));
    single.chain(grouped).collect()
}

fn choices<'a>(
    list: &'a Value,
    id: &'a str,
    how: &'a ChoiceRequest,
) -> impl Iterator<Item = Choice> + 'a {
    items(list).iter().filter_map(move |item| {
        let id = item[id].as_str()?.to_owned();
        let name = item["name"].as_str().unwrap_or_default().to_owned();
        Some(Choice { id, name, how: how.clone() })
    })
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
