//! The templates as they are shown: each with all that it takes of others.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::built_in::{TEXT, built_in};
use super::{Resolver, TEMPLATE, own};
use crate::config::{Config, ConfigErrors, Source};

/// A template that tables can name.
#[derive(Clone, PartialEq, Debug)]
pub struct Template {
    pub name: String,
    pub is_built_in: bool,
    /// The purpose of the template; empty for one of a file.
    pub about: String,
    /// Its keys, and those that it takes of others.
    pub table: toml::Table,
}

impl Template {
    /// Returns the built-in templates, with those of a file over them if one is named. The whole of the
    /// file must be valid.
    pub fn all(file: Option<&Path>, eisen_dir: &Path) -> Result<Vec<Self>, ConfigErrors> {
        let mut all: Vec<Self> = built_in().iter().map(of_program).collect();
        let Some(file) = file else { return Ok(all) };
        Config::load(file, eisen_dir)?;
        let source = Source::read(file)?;
        let (document, _) = DeTable::parse_recoverable(&source.text);
        let own = own(document.get_ref());
        let mut resolver = Resolver::new(&own);
        for name in own.keys() {
            let table =
                resolver.resolve(name).as_ref().map(|table| plain(table)).unwrap_or_default();
            all.retain(|known| known.name != *name);
            all.push(Self { name: name.clone(), is_built_in: false, about: String::new(), table });
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }
}

fn of_program((name, table): (&String, &DeTable<'_>)) -> Template {
    // The comment above its header.
    let header = format!("[templates.{name}]");
    let before: Vec<&str> = TEXT.lines().take_while(|line| *line != header).collect();
    let about = before.last().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
    Template { name: name.clone(), is_built_in: true, about: about.to_owned(), table: plain(table) }
}

/// Returns a template's keys but the one by which it takes another.
fn plain(table: &DeTable<'_>) -> toml::Table {
    let mut table = values(table);
    table.remove(TEMPLATE);
    table
}

fn values(table: &DeTable<'_>) -> toml::Table {
    table.iter().map(|(key, item)| (key.get_ref().to_string(), value(item))).collect()
}

fn value(item: &Spanned<DeValue<'_>>) -> toml::Value {
    match item.get_ref() {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(time) => (*time).into(),
        DeValue::Array(array) => array.iter().map(value).collect::<Vec<_>>().into(),
        DeValue::Table(table) => values(table).into(),
        DeValue::Integer(number) => {
            let parsed = i64::from_str_radix(number.as_str(), number.radix());
            parsed.map_or_else(|_| number.to_string().into(), toml::Value::from)
        }
        DeValue::Float(number) => {
            let parsed = number.as_str().parse::<f64>();
            parsed.map_or_else(|_| number.to_string().into(), toml::Value::from)
        }
    }
}
