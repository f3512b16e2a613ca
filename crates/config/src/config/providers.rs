//! `[providers.NAME]`: where model calls of agents go, and where the key for them comes from. No key is
//! fetched here: a variable is looked up, a command is only read.

mod address;
mod key;

use std::collections::BTreeMap;

use toml::de::DeValue;

pub use self::key::ProviderKey;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::{Table, Text, unknown_value};
use super::value::{bad_name, is_name};
use crate::model::ProviderKind;

/// Providers of one file.
const MOST_PROVIDERS: usize = 32;

/// Models of one provider that have another name there.
const MOST_MODELS: usize = 64;

/// Bytes of a model's name.
const LONGEST_MODEL: usize = 200;

/// The word for no provider, which is no provider's name.
pub(super) const NO_PROVIDER: &str = "none";

/// A provider of models. `Debug` shows no key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provider {
    pub name: String,
    pub kind: ProviderKind,
    /// In the form that the vendor's libraries take, without a slash at its end. It has no secrets.
    pub url: String,
    /// None: requests are sent without one; only for an address on loopback.
    pub key: Option<ProviderKey>,
    /// Models that have another name there: the name that agents use, and the provider's.
    pub models: BTreeMap<String, String>,
    /// Its calls are kept in the journal, with their contents.
    pub record: bool,
    /// The user's file has it, not the team's.
    pub of_user: bool,
}

impl Provider {
    /// Describes it in one line, without its key.
    pub fn describe(&self) -> String {
        let Self { name, kind, url, key, models, record, of_user } = self;
        let key = match key {
            None => "without a key".to_owned(),
            Some(key) => format!("key {key}"),
        };
        let from = if *of_user { ", of $EISEN_DIR/config.toml" } else { "" };
        let mut text = format!("{name}: {} at {url}, {key}{from}", kind.as_str());
        if !models.is_empty() {
            let models: Vec<_> =
                models.iter().map(|(own, there)| format!("{own} is {there}")).collect();
            text = format!("{text}; {}", models.join(", "));
        }
        if *record {
            text += "; its calls are recorded";
        }
        text
    }

    /// The table that says it, for the configuration of a run: the key stays a reference.
    pub(super) fn table(&self) -> toml::Table {
        let literal = |text: &str| toml::Value::from(text.replace('$', "$$"));
        let mut table = toml::Table::new();
        table.insert("kind".to_owned(), self.kind.as_str().into());
        table.insert("url".to_owned(), literal(&self.url));
        table.insert("unencrypted".to_owned(), self.url.starts_with("http://").into());
        match &self.key {
            None => {}
            Some(ProviderKey::Variable { name, .. }) => {
                table.insert("key".to_owned(), format!("${{{name}}}").into());
            }
            Some(ProviderKey::Command(words)) => {
                let words: Vec<_> = words.iter().map(|word| literal(word)).collect();
                table.insert("key_command".to_owned(), words.into());
            }
        }
        let models = self.models.iter().map(|(own, there)| (own.clone(), literal(there)));
        table.insert("models".to_owned(), models.collect::<toml::Table>().into());
        table.insert("record".to_owned(), self.record.into());
        table
    }
}

/// The ground over which the providers of a team's file are laid.
#[derive(Clone, Copy)]
pub(super) struct Under<'a> {
    /// The providers of the user's file.
    pub(super) user: &'a BTreeMap<String, Provider>,
    /// The team's journal keeps contents.
    pub(super) keeps: bool,
}

/// Reads `[providers]`; None: this is the user's file.
pub(super) fn providers(table: &Table<'_>, under: Option<Under<'_>>) -> BTreeMap<String, Provider> {
    let mut all = under.map(|under| under.user.clone()).unwrap_or_default();
    for provider in all.values_mut() {
        // The team's file can only take it back.
        provider.record &= under.is_some_and(|under| under.keeps);
    }
    for (count, (name, item)) in table.entries().into_iter().enumerate() {
        let read = table.entry(item, "providers.NAME", |table| provider(table, &name, under));
        if count == MOST_PROVIDERS {
            let message = format!("there are more than {MOST_PROVIDERS} providers");
            table.fault(Fault::new(name.span.clone(), message).help("leave some out"));
        }
        if !is_name(&name.value) {
            table.fault(bad_name("a provider's name", &name));
        } else if name.value == NO_PROVIDER {
            let message = "no provider can be called `none`: an agent says so that it has none";
            table.fault(Fault::new(name.span, message).help("give it another name"));
        } else if under.is_some_and(|under| under.user.contains_key(&name.value)) {
            let message =
                format!("$EISEN_DIR/config.toml has the provider {}, too", quoted(&name.value));
            let help =
                "give this one another name: no `eisen.toml` changes where a key of that file goes";
            table.fault(Fault::new(name.span, message).help(help));
        } else if let Some(provider) = read.flatten() {
            all.insert(name.value, provider);
            continue;
        }
        table.reader.note_faulty_provider(&name.value);
    }
    all
}

fn provider(table: &Table<'_>, name: &Text, under: Option<Under<'_>>) -> Option<Provider> {
    let kind = kind(table);
    let (models, record) = (models(table), table.flag("record", false));
    if let Some(place) = table.place_of("record").filter(|_| record)
        && under.is_some_and(|under| !under.keeps)
    {
        let message = "calls are recorded in the journal, and it keeps no contents";
        let help = "leave out `record`; or `content` and `enabled` in `[journal]`";
        table.fault(Fault::new(place, message).help(help));
    }
    let url = address::url(table, kind);
    let key = key::key(table, kind, &name.value, url.as_deref(), under.is_none());
    let (kind, url, key, of_user) = (kind?, url?, key?, under.is_none());
    Some(Provider { name: name.value.clone(), kind, url, key, models, record, of_user })
}

fn kind(table: &Table<'_>) -> Option<ProviderKind> {
    let names = ProviderKind::ALL.map(ProviderKind::as_str);
    if table.place_of("kind").is_none() {
        let [first @ .., last] = names.map(quoted);
        let help = format!("write `kind = ` with {} or {last}", first.join(", "));
        table.lacks("this provider has no `kind`", help);
    }
    let given = table.text("kind")?;
    let kind = ProviderKind::ALL.into_iter().find(|kind| kind.as_str() == given.value);
    if kind.is_none() {
        table.fault(unknown_value("kind", &given, &names));
    }
    kind
}

/// Reads the names that models have there.
fn models(table: &Table<'_>) -> BTreeMap<String, String> {
    let Some(item) = table.get("models") else { return BTreeMap::new() };
    let DeValue::Table(entries) = item.get_ref() else {
        let help = "write `models = { \"fast\" = \"gpt-5-mini\" }`";
        table.wrong("`models`", item, "a table", help);
        return BTreeMap::new();
    };
    if entries.len() > MOST_MODELS {
        let message = format!("there are more than {MOST_MODELS} models");
        table.fault(Fault::new(item.span(), message).help("leave some out"));
    }
    let mut models = BTreeMap::new();
    for (name, value) in entries {
        let Some(there) = table.text_of(&code(name.get_ref()), value) else { continue };
        let own = Text { value: name.get_ref().to_string(), span: name.span() };
        let wrong = [&own, &there].into_iter().find(|text| !is_model(&text.value));
        if let Some(wrong) = wrong {
            let message = format!("no model can be called {}", quoted(&wrong.value));
            let help =
                format!("write 1 to {LONGEST_MODEL} visible characters, without spaces and quotes");
            table.fault(Fault::new(wrong.span.clone(), message).help(help));
            continue;
        }
        models.insert(own.value, there.value);
    }
    models
}

/// Whether a text can stand for a model in texts of others, JSON too.
pub(super) fn is_model(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\' | b'`');
    (1..=LONGEST_MODEL).contains(&text.len()) && text.bytes().all(is_plain)
}
