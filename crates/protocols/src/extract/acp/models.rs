//! The model that a session runs on: from a config option of the category `model`, or from
//! `models` and `session/set_model`.

use std::collections::HashMap;

use super::Acp;
use super::sessions::LONGEST_ID;
use crate::extract::json::{Members, elements};
use crate::model::{ActivityKind, Model, SessionId};

/// Models whose names are kept; the others are named by their id.
const MOST_NAMED: usize = 4096;

/// The models that the agent last offered, for all of its sessions.
#[derive(Default, Debug)]
pub(crate) struct Models {
    names: HashMap<String, String>,
    /// The id of the config option that selects one.
    option: Option<String>,
}

/// A client's request that may select a model.
#[derive(Debug)]
pub(crate) struct Choice {
    /// None: `session/set_model`.
    option: Option<String>,
    value: String,
}

impl Choice {
    pub(crate) fn of(params: &Members<'_>) -> Option<Self> {
        let (option, value) = match short(params, "modelId") {
            Some(model) => (None, model),
            None => (Some(short(params, "configId")?), short(params, "value")?),
        };
        Some(Self { option, value })
    }
}

impl Models {
    /// Reads the models offered in a message; returns the session's model.
    fn update(&mut self, message: &Members<'_>) -> Option<Model> {
        self.by_option(message).or_else(|| self.by_models(message))
    }

    fn by_option(&mut self, message: &Members<'_>) -> Option<Model> {
        let options: Vec<_> =
            elements(message.get("configOptions")?)?.into_iter().filter_map(Members::of).collect();
        let by = |key, value| options.iter().find(|option| option.text(key).as_deref() == value);
        let option = by("category", Some("model")).or_else(|| by("id", Some("model")))?;
        self.option = short(option, "id");
        self.names.clear();
        for item in items(option, "options") {
            self.add_name(&item, "value");
            // An item may be a group.
            for item in items(&item, "options") {
                self.add_name(&item, "value");
            }
        }
        Some(self.with_name(short(option, "currentValue")?))
    }

    fn by_models(&mut self, message: &Members<'_>) -> Option<Model> {
        let models = message.get("models").and_then(Members::of)?;
        self.names.clear();
        for item in items(&models, "availableModels") {
            self.add_name(&item, "modelId");
        }
        Some(self.with_name(short(&models, "currentModelId")?))
    }

    fn add_name(&mut self, item: &Members<'_>, id: &str) {
        if let (Some(id), Some(name)) = (short(item, id), short(item, "name"))
            && self.names.len() < MOST_NAMED
        {
            self.names.insert(id, name);
        }
    }

    fn with_name(&self, id: String) -> Model {
        let name = self.names.get(&id).filter(|name| !name.is_empty()).unwrap_or(&id);
        Model { name: name.as_str().into(), id: id.into() }
    }

    /// The model that a choice selected, according to the agent's `result`.
    fn chosen(&mut self, choice: Choice, result: Option<&Members<'_>>) -> Option<Model> {
        if choice.option.is_some() {
            // The result has the state of all options.
            if let Some(model) = result.and_then(|result| self.by_option(result)) {
                return Some(model);
            }
            if choice.option != self.option {
                return None;
            }
        }
        Some(self.with_name(choice.value))
    }
}

impl Acp {
    /// Reports the model that an agent's message names.
    pub(super) fn report_model(&mut self, session: &SessionId, message: Option<&Members<'_>>) {
        let model = message.and_then(|message| self.models.update(message));
        self.runs_on(session, model);
    }

    pub(super) fn report_choice(
        &mut self,
        session: &SessionId,
        choice: Choice,
        result: Option<&Members<'_>>,
    ) {
        let model = self.models.chosen(choice, result);
        self.runs_on(session, model);
    }

    fn runs_on(&mut self, session: &SessionId, model: Option<Model>) {
        let Some(model) = model else { return };
        if let Some(known) = self.sessions.get_mut(session) {
            known.meter.runs_on(model.id.clone());
        }
        self.reported.add(session, ActivityKind::Model(model));
    }
}

fn items<'a>(members: &Members<'a>, list: &str) -> Vec<Members<'a>> {
    let items = members.get(list).and_then(elements).unwrap_or_default();
    items.into_iter().filter_map(Members::of).collect()
}

/// A text that is short enough to keep.
fn short(members: &Members<'_>, key: &str) -> Option<String> {
    let text = members.text(key)?;
    (text.len() <= LONGEST_ID).then(|| text.into_owned())
}
