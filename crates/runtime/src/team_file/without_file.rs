//! The team of a folder that has no configuration: the text that `init` would write, kept in `$EISEN_DIR`.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use crate::config::installed::{KnownAgent, known_agents};
use crate::config::{SECRETS_OUTSIDE, Starter, to_name};
use crate::home::here::{CONFIG, repository_of};
use crate::home::journals::workspace_of;
use crate::kept::{KeptFile, Whole};
use crate::program::Failure;

/// Bytes of such a configuration, as many as any may have.
const MOST_BYTES: u64 = 1 << 20;

/// A team without a file of its own.
#[derive(Debug)]
pub struct WithoutFile {
    /// Its configuration, written anew at each start.
    pub file: PathBuf,
    /// The description for whoever starts it, a sentence each.
    pub said: Vec<String>,
}

/// Writes the configuration of the team of a folder, or of the git repository around it. Without `agents`
/// it has those that are found on PATH.
pub fn without_file(
    folder: &Path,
    eisen_dir: &Path,
    agents: &[String],
) -> Result<WithoutFile, Failure> {
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |error: std::io::Error| {
        Failure::Usage(anyhow!("cannot open the folder {}: {error}", place.display()))
    };
    let place = place.canonicalize().map_err(failed)?;
    let workspace = repository_of(&place).unwrap_or(&place);
    if let Some(why) = too_wide(workspace) {
        let place = workspace.display();
        return Err(Failure::Usage(anyhow!(
            "there is no eisen.toml, and {place} is {why}: agents would have all of it. Go into the folder \
             of a project, or write a file there by `eisen-core init`"
        )));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let starter = match agents {
        [] => Starter::look(workspace, &variable),
        named => Starter::of(workspace, &variable, named)
            .map_err(|error| Failure::Usage(error.into()))?,
    };
    if starter.agents.is_empty() {
        return Err(nobody(&starter.without_adapter));
    }
    let name = name_of(workspace, eisen_dir);
    let Some(text) = workspace.to_str().map(|workspace| starter.text_for(&name, workspace)) else {
        let place = workspace.display();
        return Err(Failure::Usage(anyhow!("{place} is not UTF-8: write an eisen.toml there")));
    };
    let file = file_of(eisen_dir, &name);
    let kept = KeptFile::<Whole>::new(&file, MOST_BYTES);
    let failed = |error| Failure::Run(anyhow!("cannot write {}: {error}", file.display()));
    kept.replace(text.as_bytes()).map_err(failed)?;
    Ok(WithoutFile { said: said(&starter, workspace), file })
}

/// The configuration of a team that has no file of its own, as it was written at its start.
pub fn kept_config(eisen_dir: &Path, team: &str) -> Option<PathBuf> {
    let file = file_of(eisen_dir, team);
    file.is_file().then_some(file)
}

fn file_of(eisen_dir: &Path, team: &str) -> PathBuf {
    eisen_dir.join("teams").join(format!("{team}.toml"))
}

/// Why a team does not work by the file of its folder: it was started without one.
pub(crate) fn unread(file: &Path, eisen_dir: &Path, workspace: &Path) -> Option<String> {
    let own = workspace.join(CONFIG);
    (file.starts_with(eisen_dir.join("teams")) && own.exists()).then(|| {
        let own = own.display();
        format!("this team was started without a file, and does not read {own}: stop it and start it again")
    })
}

/// Why a folder is none to be given to agents as it is.
fn too_wide(workspace: &Path) -> Option<&'static str> {
    if workspace.parent().is_none() {
        return Some("the whole machine");
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok())?;
    home.starts_with(workspace).then_some(if workspace == home {
        "your home"
    } else {
        "a folder around your home"
    })
}

/// The name of the team: that of the folder, with a mark where another folder's team has it.
fn name_of(workspace: &Path, eisen_dir: &Path) -> String {
    let folder = workspace.file_name().unwrap_or_default().to_string_lossy();
    let name = to_name(&folder).unwrap_or_else(|| "team".to_owned());
    if workspace_of(eisen_dir, &name).is_none_or(|of_name| of_name == workspace) {
        return name;
    }
    let hash = blake3::hash(workspace.as_os_str().as_encoded_bytes()).to_hex();
    let short: String = name.chars().take(50).collect();
    format!("{short}-{}", &hash[..8])
}

fn said(starter: &Starter, workspace: &Path) -> Vec<String> {
    let ids: Vec<&str> = starter.agents.iter().map(|agent| agent.id.as_str()).collect();
    let further = match &starter.further[..] {
        [] => String::new(),
        further => format!(" (installed, too: {}; --agents names others)", further.join(", ")),
    };
    let outside = SECRETS_OUTSIDE.map(|secret| secret.trim_end_matches("/**")).join(", ");
    vec![
        format!("no eisen.toml: a team of {} on {}{further}", ids.join(", "), workspace.display()),
        "they may change all files in it and commit; git's configuration and hooks stay closed".to_owned(),
        "you are asked before anything touches .env, keys and the like".to_owned(),
        format!("Outside it they may do what you may. Closed: {outside} (an agent keeps its own login)."),
        "`eisen-core init` writes this as a file, to change it; `eisen-core undo AGENT` takes work back"
            .to_owned(),
    ]
}

/// The failure where no agent of a profile is installed: it lists those that could be.
pub fn nobody_installed(workspace: &Path) -> Failure {
    nobody(&Starter::look(workspace, &|name| std::env::var(name).ok()).without_adapter)
}

fn nobody(without_adapter: &[KnownAgent]) -> Failure {
    let adapters = without_adapter.iter().map(|known| {
        let KnownAgent { title, programs, install, .. } = known;
        format!("  {title} is here, but not its ACP adapter, {programs}: {install}")
    });
    let all = known_agents()
        .into_iter()
        .map(|known| format!("  {:<20} {:<36} {}", known.title, known.programs, known.install));
    let first = "no agent that eisen-core knows is installed; install one of these, and log in:";
    let last = "any other agent that speaks ACP can be given by its `command` in an eisen.toml, or to `run` after `--`";
    let lines = [first.to_owned()].into_iter().chain(adapters).chain(all).chain([last.to_owned()]);
    Failure::Run(anyhow!("{}", lines.collect::<Vec<_>>().join("\n")))
}
