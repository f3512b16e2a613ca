//! The options of an agent for one choice (auth method, mode, model), and the choice among them.
//! Pure, and lenient: agents announce options in several ways.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::Value;

use crate::acp::{self, AgentIntroduction};
use crate::client_host::HostError;
use crate::line::lenient;

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
pub enum ChoiceRequest {
    /// `authenticate`
    Auth,
    /// `session/set_mode`
    Mode,
    /// `session/set_model`
    Model,
    /// `session/set_config_option` of this option.
    Option(String),
}

/// Something to choose: an auth method, a mode, a model, an option, a value of one, or a group of values.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Offer {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) model_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) category: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) current_value: Option<String>,
    /// As the agent lists them.
    pub(super) options: Value,
}

/// The settings in the answer to a request for a session.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfferedSettings {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) modes: OfferedModes,
    #[serde(deserialize_with = "lenient")]
    pub(super) models: OfferedModels,
    pub(super) config_options: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfferedModes {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_mode_id: Option<String>,
    pub(super) available_modes: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OfferedModels {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_model_id: Option<String>,
    pub(super) available_models: Value,
}

pub(super) fn auth_methods(initialized: &Value) -> Vec<Choice> {
    let AgentIntroduction { auth_methods, .. } = acp::read(initialized);
    choices(&auth_methods, |offer| offer.id, &ChoiceRequest::Auth).collect()
}

/// Returns the modes of a new session, in order of preference.
pub(super) fn modes(opened: &Value) -> Vec<Choice> {
    let OfferedSettings { modes, config_options, .. } = acp::read(opened);
    let modes = choices(&modes.available_modes, |offer| offer.id, &ChoiceRequest::Mode);
    modes.chain(options(&config_options, "mode")).collect()
}

/// Returns the models of a new session, in order of preference.
pub(super) fn models(opened: &Value) -> Vec<Choice> {
    let OfferedSettings { models, config_options, .. } = acp::read(opened);
    let models = choices(&models.available_models, |offer| offer.model_id, &ChoiceRequest::Model);
    options(&config_options, "model").into_iter().chain(models).collect()
}

/// Returns the levels of thinking of a new session.
pub(super) fn thinking(opened: &Value) -> Vec<Choice> {
    let OfferedSettings { config_options, .. } = acp::read(opened);
    options(&config_options, "thought_level")
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
fn options(all: &Value, kind: &str) -> Vec<Choice> {
    let mut all: Vec<Offer> = acp::list(all);
    let is_it = |is: &Option<String>| is.as_deref() == Some(kind);
    let at = all.iter().position(|option| is_it(&option.category));
    let at = at.or_else(|| all.iter().position(|option| is_it(&option.id)));
    let Some(Offer { id: Some(id), options, .. }) = at.map(|at| all.swap_remove(at)) else {
        return Vec::new();
    };
    let how = ChoiceRequest::Option(id);
    let groups: Vec<Offer> = acp::list(&options);
    let grouped = groups.iter().flat_map(|group| choices(&group.options, |it| it.value, &how));
    choices(&options, |it| it.value, &how).chain(grouped).collect()
}

fn choices(
    list: &Value,
    id: fn(Offer) -> Option<String>,
    how: &ChoiceRequest,
) -> impl Iterator<Item = Choice> {
    acp::list(list).into_iter().filter_map(move |mut offer: Offer| {
        let name = std::mem::take(&mut offer.name);
        Some(Choice { id: id(offer)?, name, how: how.clone() })
    })
}

#[cfg(test)]
mod tests;
