//! `plugin`: checks, lists and approves extractor plugins.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::config_file::ConfigFile;
use super::output;
use crate::config::plugin_folder;
use crate::home;
use crate::plugin::{self, ApprovalError, Approvals, Checked};
use crate::program::Failure;
use crate::team_file;

const EXAMPLES: &str = "\
Examples:
  eisen-core dev plugin check target/release/libclaude_stream_json.so
  eisen-core dev plugin list
  eisen-core dev plugin trust plugins/libwords.so  allow isolation = \"in-process\" for it
  eisen-core dev plugin trust --remove plugins/libwords.so

A plugin runs in a process of its own, which can only read libraries. This holds for check and list,
too.

Exit codes: 0 done, 1 a plugin can't be used or fails its self-test, 2 wrong usage or
configuration.";

/// Check, list and approve extractor plugins, which let agents without ACP join a team
///
/// docs/plugins.md explains how to write one.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct PluginArgs {
    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Subcommand, Debug)]
enum PluginCommand {
    /// Load a plugin, run its self-test, create an instance, and print the results
    Check {
        /// The shared library
        file: PathBuf,
    },
    /// List the plugins of a configuration and of the plugin folder
    ///
    /// The plugin folder is `$EISEN_DIR/plugins`; its libraries need no `[[plugins]]`.
    List {
        #[command(flatten)]
        file: ConfigFile,
    },
    /// Approve a library in its current version to run unconfined
    ///
    /// With `isolation = "in-process"`, or where the system can't confine it, a plugin has all your
    /// permissions. The approval stores the hash of the library in `$EISEN_DIR`: a changed file has
    /// to be approved again.
    #[command(after_help = TRUST)]
    Trust {
        /// The shared library
        #[arg(required_unless_present_any = ["list", "remove"], conflicts_with_all = ["list", "remove"])]
        file: Option<PathBuf>,
        /// List approved libraries, and mark changed ones
        #[arg(long, conflicts_with = "remove")]
        list: bool,
        /// Revoke an approval, by the library or by at least 8 digits of its hash
        #[arg(long, value_name = "FILE|HASH")]
        remove: Option<PathBuf>,
    },
}

const TRUST: &str = "\
Examples:
  eisen-core dev plugin trust plugins/libwords.so
  eisen-core dev plugin trust --list
  eisen-core dev plugin trust --remove plugins/libwords.so

Exit codes: 0 done, 1 it can't be approved, or --remove found no such approval.";

impl PluginArgs {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<u8, Failure> {
        match self.command {
            PluginCommand::Check { file } => check(&super::in_folder(folder, &file)),
            PluginCommand::List { file } => list(folder, &file),
            PluginCommand::Trust { file: Some(file), .. } => {
                trust(&super::in_folder(folder, &file))
            }
            PluginCommand::Trust { remove: Some(named), .. } => untrust(folder, &named),
            PluginCommand::Trust { .. } => list_trusted(),
        }
    }
}

fn check(file: &Path) -> Result<u8, Failure> {
    let failed = |why: String| {
        let why = anyhow::anyhow!("{}", output::escape_controls(&why));
        Failure::Run(why.context(format!("{}", file.display())))
    };
    let Checked { description, is_tested, instance } =
        team_file::check_plugin(file).map_err(failed)?;
    let tests = if is_tested { "passed" } else { "it has none" };
    let instance = match instance {
        Ok(()) => "created without `config`".to_owned(),
        Err(why) => format!("failed without `config`: {}", output::plain(&why)),
    };
    output::print(format_args!(
        "{}\n  reads      {}\n  interface  {}\n  enforces zones   {}\n  accepts prompts  {}\n  \
         self-test  {tests}\n  instance   {instance}",
        output::plain(&named(&description)),
        output::plain(&description.protocols.join(", ")),
        plugin::INTERFACE,
        yes(description.gates),
        yes(description.drives),
    ))
    .map(|()| 0)
}

fn list(folder: Option<PathBuf>, file: &ConfigFile) -> Result<u8, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let mut found: Vec<PathBuf> = Vec::new();
    let file = file.find_if_there(folder);
    if let Some(file) = &file {
        let layered = team_file::read(file, &eisen_dir)?;
        found.extend(layered.config.plugins.into_iter().map(|plugin| plugin.path));
    }
    let folder = plugin_folder(&eisen_dir);
    found.extend(libraries(&folder));
    found.dedup();
    if found.is_empty() {
        let folder = folder.display();
        let file = file.map_or_else(|| home::CONFIG.to_owned(), |file| file.display().to_string());
        return output::print(format_args!(
            "no plugins: none in {folder}, and no `[[plugins]]` in {file}"
        ))
        .map(|()| 0);
    }
    let mut code = 0;
    for path in found {
        let described = team_file::describe_plugin(&path).map(|description| named(&description));
        let described = described.unwrap_or_else(|why| {
            code = 1;
            format!("can't be used: {why}")
        });
        output::print(format_args!("{}  {}", path.display(), output::plain(&described)))?;
    }
    Ok(code)
}

fn trust(library: &Path) -> Result<u8, Failure> {
    let approval = approvals()?.add(library).map_err(refused)?;
    let library = output::plain(&library.display().to_string());
    output::print(format_args!(
        "{library} may run unconfined in its current version\n  blake3  {approval}\n  revoke: \
         `eisen-core dev plugin trust --remove {library}`"
    ))
    .map(|()| 0)
}

fn untrust(folder: Option<PathBuf>, named: &Path) -> Result<u8, Failure> {
    let mut approvals = approvals()?;
    let mut removed = approvals.remove(&super::in_folder(folder, named)).map_err(refused)?;
    if removed.is_empty() {
        removed = approvals.remove(named).map_err(refused)?;
    }
    if removed.is_empty() {
        let named = named.display();
        return Err(Failure::Run(anyhow::anyhow!(
            "{named} is not approved; `eisen-core dev plugin trust --list` lists approved libraries"
        )));
    }
    for approved in removed {
        let file = output::plain(&approved.file.display().to_string());
        output::print(format_args!("{file} is no longer approved"))?;
    }
    Ok(0)
}

fn list_trusted() -> Result<u8, Failure> {
    let approvals = approvals()?;
    if approvals.list().is_empty() {
        output::print("no library is approved to run unconfined")?;
    }
    for approved in approvals.list() {
        let is_same = approvals.find(&approved.file).is_some();
        let changed = if is_same { "" } else { "  (changed or removed since: no longer approved)" };
        let file = output::plain(&approved.file.display().to_string());
        output::print(format_args!("{}  {file}{changed}", output::plain(&approved.blake3)))?;
    }
    Ok(0)
}

fn approvals() -> Result<Approvals, Failure> {
    Approvals::load(&home::eisen_dir().map_err(Failure::Usage)?).map_err(refused)
}

fn refused(error: ApprovalError) -> Failure {
    Failure::Run(error.into())
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
