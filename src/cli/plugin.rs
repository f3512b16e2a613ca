use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::output;
use crate::app::{self, Failure};
use crate::config::plugin_folder;
use crate::plugin::{self, Checked};

const EXAMPLES: &str = "\
Examples:
  eisen-core plugin check target/release/libclaude_stream_json.so
  eisen-core plugin list

Exit codes: 0 done, 1 a plugin can't be used or fails its self-test, 2 wrong usage or
configuration.";

/// Check and list extractor plugins, by which agents that don't speak ACP join a team
///
/// docs/plugins.md tells how one is written.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct PluginArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Load a plugin, run its self-test, make an instance of it, and print what came of that
    Check {
        /// The shared library
        file: PathBuf,
    },
    /// List the plugins of a configuration and of the plugin folder
    ///
    /// The folder is `plugins` in `$EISEN_DIR`; its libraries need no `[[plugins]]`.
    List {
        /// The team's configuration [default: eisen.toml, if it is there]
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

impl PluginArgs {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<u8, Failure> {
        match self.what {
            What::Check { file } => check(&super::in_folder(folder, &file)),
            What::List { config } => list(folder, config.as_deref()),
        }
    }
}

fn check(file: &Path) -> Result<u8, Failure> {
    let failed = |why: String| {
        let why = anyhow::anyhow!("{}", output::tame(&why));
        Failure::Run(why.context(format!("{}", file.display())))
    };
    let Checked { description, is_tested, instance } = app::check_plugin(file).map_err(failed)?;
    let tests = if is_tested { "passed" } else { "it has none" };
    let instance = match instance {
        Ok(()) => "made without `config`".to_owned(),
        Err(why) => format!("not made without `config`: {}", output::plain(&why)),
    };
    output::print(format_args!(
        "{}\n  reads      {}\n  interface  {}\n  holds zones by its protocol  {}\n  \
         can be prompted              {}\n  self-test  {tests}\n  instance   {instance}",
        output::plain(&named(&description)),
        output::plain(&description.protocols.join(", ")),
        plugin::INTERFACE,
        yes(description.gates),
        yes(description.drives),
    ))
    .map(|()| 0)
}

fn list(folder: Option<PathBuf>, config: Option<&Path>) -> Result<u8, Failure> {
    let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
    let usual = Path::new("eisen.toml");
    let file = super::in_folder(folder, config.unwrap_or(usual));
    let mut found: Vec<PathBuf> = Vec::new();
    if config.is_some() || file.exists() {
        let layered = app::read(&file, &eisen_dir)?;
        found.extend(layered.config.plugins.into_iter().map(|plugin| plugin.path));
    }
    let folder = plugin_folder(&eisen_dir);
    found.extend(libraries(&folder));
    found.dedup();
    if found.is_empty() {
        let folder = folder.display();
        return output::print(format_args!(
            "no plugins: none in {folder}, and no `[[plugins]]` in {}",
            file.display()
        ))
        .map(|()| 0);
    }
    let mut code = 0;
    for path in found {
        let told = app::describe_plugin(&path).map(|description| named(&description));
        let told = told.unwrap_or_else(|why| {
            code = 1;
            format!("can't be used: {why}")
        });
        output::print(format_args!("{}  {}", path.display(), output::plain(&told)))?;
    }
    Ok(code)
}

fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_library = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == std::env::consts::DLL_EXTENSION)
    };
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_library).collect();
    found.sort();
    found
}

fn named(description: &plugin::Description) -> String {
    format!("{} {}", description.name, description.version)
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
