//! The form in which an agent takes the address and the token of an endpoint that stands in for a provider.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::command::environment;
use crate::config::errors::{code, quoted};
use crate::config::fault::Fault;
use crate::config::read::{Table, Text, unknown_value};
use crate::model::ProviderKind;

/// Names in braces for the address of the endpoint, the agent's token there, its model, and the folder of `files`.
pub(in crate::config) const URL: &str = "{url}";
pub(in crate::config) const TOKEN: &str = "{token}";
pub(in crate::config) const FOLDER: &str = "{dir}";

/// Files of one form, and bytes of each.
const MOST_FILES: usize = 8;
const LONGEST_FILE: usize = 64 * 1024;

/// The form in which an agent takes an endpoint for its model calls. `profiles.toml` documents each key.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderForm {
    pub env: BTreeMap<String, String>,
    pub args: Vec<String>,
    pub unset: Vec<String>,
    pub files: BTreeMap<String, String>,
    pub only_named: bool,
}

impl ProviderForm {
    /// Whether it has a place for something.
    pub(in crate::config) fn has(&self, place: &str) -> bool {
        self.texts().any(|text| text.contains(place))
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        self.env.values().chain(&self.args).chain(self.files.values())
    }

    /// Whether a variable that the agent has otherwise has no effect with it.
    pub(in crate::config) fn replaces(&self, variable: &str) -> bool {
        self.env.contains_key(variable) || self.unset.iter().any(|name| name == variable)
    }
}

/// Reads `[profiles.NAME.providers.KIND]`.
pub(super) fn forms(profile: &Table<'_>) -> BTreeMap<ProviderKind, ProviderForm> {
    profile.section("providers", "profiles.NAME.providers", |table| {
        let mut forms = BTreeMap::new();
        for (name, item) in table.entries() {
            let read = table.entry(item, "profiles.NAME.providers.KIND", form);
            let kind = ProviderKind::ALL.into_iter().find(|kind| kind.as_str() == name.value);
            let Some(kind) = kind else {
                let names = ProviderKind::ALL.map(ProviderKind::as_str);
                table.fault(unknown_value("providers", &name, &names));
                continue;
            };
            forms.extend(read.flatten().map(|form| (kind, form)));
        }
        forms
    })
}

fn form(table: &Table<'_>) -> Option<ProviderForm> {
    let values = |texts: Option<Vec<Text>>| {
        texts.unwrap_or_default().into_iter().map(|text| text.value).collect::<Vec<_>>()
    };
    let form = ProviderForm {
        env: environment(table, "env"),
        args: values(table.texts("args")),
        unset: values(table.texts("unset")),
        files: files(table),
        only_named: table.flag("only_named", false),
    };
    let lacking = [URL, TOKEN].into_iter().find(|place| !form.has(place));
    if let Some(lacking) = lacking {
        let message = format!("nothing here has {}", code(lacking));
        let help = "write `env = { BASE_URL = \"{url}\", API_KEY = \"{token}\" }`, with the agent's own names";
        table.lacks(message, help);
        return None;
    }
    if let Some(place) =
        table.place_of("files").filter(|_| !form.files.is_empty() && !form.has(FOLDER))
    {
        let message = "nothing leads the agent to these files";
        let help = "write `{dir}`, their folder, in a variable or an argument";
        table.fault(Fault::new(place, message).help(help));
    }
    Some(form)
}

/// Reads `files`: names to contents.
fn files(table: &Table<'_>) -> BTreeMap<String, String> {
    let files = environment(table, "files");
    let Some(place) = table.place_of("files") else { return files };
    if files.len() > MOST_FILES {
        let message = format!("there are more than {MOST_FILES} files");
        table.fault(Fault::new(place.clone(), message).help("leave some out"));
    }
    for (name, content) in &files {
        if name.contains('/') || name.starts_with('.') {
            let message = format!("{} is not the name of a file", quoted(name));
            let help =
                "write one such as \"settings.json\": it lies in a folder of the agent's own";
            table.fault(Fault::new(place.clone(), message).help(help));
        }
        if content.len() > LONGEST_FILE {
            let message = format!("{} is larger than {} KiB", quoted(name), LONGEST_FILE / 1024);
            table.fault(Fault::new(place.clone(), message).help("make it smaller"));
        }
    }
    files
}
