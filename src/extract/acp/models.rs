//! Which model a session runs on, as far as its agent and client say: by a config option of the
//! category `model`, or by `models` and `session/set_model`.

use std::collections::HashMap;

use super::Acp;
use super::sessions::LONGEST_ID;
use crate::extract::json::{Members, elements};
use crate::model::{Activity, ActivityKind, Model, SessionId};

/// Models whose names are remembered; of others the id stands for the name.
const MOST_NAMED: usize = 4096;

/// What the agent offers, as it last said: the same in all of its sessions.
#[derive(Default, Debug)]
pub(crate) struct Models {
    names: HashMap<String, String>,
    /// The config option that chooses among them.
    option: Option<String>,
}

/// A choice of the client's that may be one of a model.
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
    /// Reads what an agent offers where it opens a session or tells of its options; returns the
    /// session's model.
    fn announced(&mut self, said: &Members<'_>) -> Option<Model> {
        self.by_option(said).or_else(|| self.by_models(said))
    }

    fn by_option(&mut self, said: &Members<'_>) -> Option<Model> {
        let options: Vec<_> =
            elements(said.get("configOptions")?)?.into_iter().filter_map(Members::of).collect();
        let by = |key, value| options.iter().find(|option| option.text(key).as_deref() == value);
        let option = by("category", Some("model")).or_else(|| by("id", Some("model")))?;
        self.option = short(option, "id");
        self.names.clear();
        for item in items(option, "options") {
            self.name(&item, "value");
            // They may be grouped.
            for item in items(&item, "options") {
                self.name(&item, "value");
            }
        }
        Some(self.named(short(option, "currentValue")?))
    }

    fn by_models(&mut self, said: &Members<'_>) -> Option<Model> {
        let models = said.get("models").and_then(Members::of)?;
        self.names.clear();
        for item in items(&models, "availableModels") {
            self.name(&item, "modelId");
        }
        Some(self.named(short(&models, "currentModelId")?))
    }

    fn name(&mut self, item: &Members<'_>, id: &str) {
        if let (Some(id), Some(name)) = (short(item, id), short(item, "name"))
            && self.names.len() < MOST_NAMED
        {
            self.names.insert(id, name);
        }
    }

    fn named(&self, id: String) -> Model {
        let name = self.names.get(&id).filter(|name| !name.is_empty()).unwrap_or(&id);
        Model { name: name.as_str().into(), id: id.into() }
    }

    /// The model that a choice came to, which the agent granted with `result`.
    fn chosen(&mut self, choice: Choice, result: Option<&Members<'_>>) -> Option<Model> {
        if choice.option.is_some() {
            // The whole state of all options.
            if let Some(model) = result.and_then(|result| self.by_option(result)) {
                return Some(model);
            }
            if choice.option != self.option {
                return None;
            }
        }
        Some(self.named(choice.value))
    }
}

impl Acp {
    /// Tells the model that an agent names in what it says of a session.
    pub(super) fn report_model(
        &mut self,
        session: &SessionId,
        said: Option<&Members<'_>>,
        activities: &mut Vec<Activity>,
    ) {
        let model = said.and_then(|said| self.models.announced(said));
        activities.extend(model.map(|model| activity(session, model)));
    }

    pub(super) fn report_choice(
        &mut self,
        session: &SessionId,
        choice: Choice,
        result: Option<&Members<'_>>,
        activities: &mut Vec<Activity>,
    ) {
        let model = self.models.chosen(choice, result);
        activities.extend(model.map(|model| activity(session, model)));
    }
}

fn activity(session: &SessionId, model: Model) -> Activity {
    Activity { session: session.clone(), kind: ActivityKind::Model(model) }
}

fn items<'a>(members: &Members<'a>, list: &str) -> Vec<Members<'a>> {
    let items = members.get(list).and_then(elements).unwrap_or_default();
    items.into_iter().filter_map(Members::of).collect()
}

/// A text that is short enough to be remembered.
fn short(members: &Members<'_>, key: &str) -> Option<String> {
    let text = members.text(key)?;
    (text.len() <= LONGEST_ID).then(|| text.into_owned())
}
