use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::output;
use crate::app::{self, Failure};
use crate::config::plugin_folder;
use crate::plugin::{self, ApprovalError, Approvals, Checked};

const EXAMPLES: &str = "\
Examples:
  eisen-core plugin check target/release/libclaude_stream_json.so
  eisen-core plugin list
  eisen-core plugin trust plugins/libwords.so     lets it run with isolation = \"in-process\"
  eisen-core plugin trust --remove plugins/libwords.so

Plugins run in a process of their own, which may read libraries and do nothing else, also when they
are checked and listed.

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
    /// Approve a library, as it is now, to run unconfined
    ///
    /// With `isolation = "in-process"`, or where the system can't confine it, a plugin may do all that
    /// you may. What is approved is the hash of its content, in `$EISEN_DIR`: a file that changes has to
    /// be approved again.
    #[command(after_help = TRUST)]
    Trust {
        /// The shared library
        #[arg(required_unless_present_any = ["list", "remove"], conflicts_with_all = ["list", "remove"])]
        file: Option<PathBuf>,
        /// Show what is approved, and whether it is still the same
        #[arg(long, conflicts_with = "remove")]
        list: bool,
        /// Take an approval back: by the library, or by 8 or more digits of its hash
        #[arg(long, value_name = "FILE|HASH")]
        remove: Option<PathBuf>,
    },
}

const TRUST: &str = "\
Examples:
  eisen-core plugin trust plugins/libwords.so
  eisen-core plugin trust --list
  eisen-core plugin trust --remove plugins/libwords.so

Exit codes: 0 done, 1 it can't be approved, or nothing of that name is.";

impl PluginArgs {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<u8, Failure> {
        match self.what {
            What::Check { file } => check(&super::in_folder(folder, &file)),
            What::List { config } => list(folder, config.as_deref()),
            What::Trust { file: Some(file), .. } => trust(&super::in_folder(folder, &file)),
            What::Trust { remove: Some(named), .. } => untrust(folder, &named),
            What::Trust { .. } => trusted(),
        }
    }
}

fn check(file: &Path) -> Result<u8, Failure> {
    let failed = |why: String| {
        let why = anyhow::anyhow!("{}", output::escape_controls(&why));
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

fn trust(library: &Path) -> Result<u8, Failure> {
    let approval = approvals()?.add(library).map_err(refused)?;
    let library = output::plain(&library.display().to_string());
    output::print(format_args!(
        "{library} may run unconfined as it is now\n  blake3  {approval}\n  take it back by \
         `eisen-core plugin trust --remove {library}`"
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
            "{named} is not approved; `eisen-core plugin trust --list` shows what is"
        )));
    }
    for approved in removed {
        let file = output::plain(&approved.file.display().to_string());
        output::print(format_args!("{file} is not approved any more"))?;
    }
    Ok(0)
}

fn trusted() -> Result<u8, Failure> {
    let approvals = approvals()?;
    if approvals.list().is_empty() {
        output::print("no library is approved to run unconfined")?;
    }
    for approved in approvals.list() {
        let is_same = approvals.find(&approved.file).is_some();
        let changed = if is_same { "" } else { "  (changed or gone since: not approved as it is)" };
        let file = output::plain(&approved.file.display().to_string());
        output::print(format_args!("{}  {file}{changed}", output::plain(&approved.blake3)))?;
    }
    Ok(0)
}

fn approvals() -> Result<Approvals, Failure> {
    Approvals::load(&app::eisen_dir().map_err(Failure::Usage)?).map_err(refused)
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
