//! `templates`: the tables that agents can take by `template`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::config_file::ConfigFile;
use super::output::{escape_controls, plain, print};
use super::table::{Cell, Table};
use crate::config::Template;
use crate::home;
use crate::program;
use crate::program::Failure;

/// Show the templates that tables of a configuration can take
///
/// A table takes one by `template = "NAME"`, and its own keys win. Without -c the file is the
/// `eisen.toml` of the current folder, if there is one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team templates
  eisen-core team templates reviewer  print it as TOML, with all that it takes of others
  eisen-core team templates --json | jq -r '.[] | select(.built_in) | .name'

Exit codes: 0 done, 2 wrong usage or configuration.")]
pub(super) struct TemplatesArgs {
    /// Only this one, as TOML
    name: Option<String>,
    #[command(flatten)]
    file: ConfigFile,
    /// Print them as a JSON array
    #[arg(long)]
    json: bool,
}

impl TemplatesArgs {
    pub(super) fn run(self, cwd: Option<PathBuf>) -> Result<(), Failure> {
        let file = self.file.find_if_there(cwd);
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let mut all = Template::all(file.as_deref(), &eisen_dir).map_err(program::config_errors)?;
        if let Some(name) = &self.name {
            let known: Vec<_> = all.iter().map(|it| it.name.clone()).collect();
            all.retain(|it| it.name == *name);
            if all.is_empty() {
                let why = format!("there is no template `{name}`; there are {}", known.join(", "));
                return Err(Failure::Usage(anyhow::anyhow!(why)));
            }
        }
        if self.json {
            return print(Value::from(all.iter().map(shown).collect::<Vec<_>>()));
        }
        if self.name.is_some() {
            return all.iter().try_for_each(|it| print(escape_controls(&text(it)?)));
        }
        let mut table = Table::new(&["TEMPLATE", "FROM", "ABOUT"]);
        for it in &all {
            let from = if it.is_built_in { "built in" } else { "the file" };
            table.row(vec![
                Cell::from(plain(&it.name)),
                from.to_owned().into(),
                it.about.clone().into(),
            ]);
        }
        print(table.lines(None).join("\n"))
    }
}

fn text(template: &Template) -> Result<String, Failure> {
    let text = toml::to_string(&template.table).map_err(|error| Failure::Run(error.into()))?;
    Ok(text.trim_end().to_owned())
}

fn shown(template: &Template) -> Value {
    json!({
        "name": template.name,
        "built_in": template.is_built_in,
        "about": template.about,
        "table": template.table,
    })
}
