//! Prepares the plugins of agents, and tests plugins before anything is started: each in a confined child
//! process, regardless of its `isolation`, so that a crash becomes an error message.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use anyhow::Context as _;

use crate::agent;
use crate::config::{Agent, Isolation, Plugin, TryOut};
use crate::home;
use crate::plugin::{
    self, Approval, Approvals, Checked, Description, Hosting, Library, PluginSource,
};
use crate::process::Launcher;

/// Returns a function that tests plugins, and remembers the results.
pub(crate) fn try_out(eisen_dir: &Path) -> Box<TryOut> {
    let eisen_dir = eisen_dir.to_owned();
    let known: RefCell<Vec<(Plugin, Result<bool, String>)>> = RefCell::default();
    Box::new(move |plugin| {
        let mut known = known.borrow_mut();
        if let Some((_, outcome)) = known.iter().find(|(other, _)| other == plugin) {
            return outcome.clone();
        }
        let outcome = tried(plugin, &eisen_dir);
        known.push((plugin.clone(), outcome.clone()));
        outcome
    })
}

/// Loads a library in a child process; returns its description, or the reason that it can't be
/// used.
pub fn describe_plugin(library: &Path) -> Result<Description, String> {
    let approval = approval_of(library)?;
    trial(async |launcher| plugin::describe(launcher, library, approval).await)
}

/// Like [`describe_plugin`], and runs the self-test and creates an instance.
pub fn check_plugin(library: &Path) -> Result<Checked, String> {
    let approval = approval_of(library)?;
    trial(async |launcher| plugin::check(launcher, library, approval).await)
}

/// Tests a plugin; returns whether it can enforce a zone.
pub(crate) fn tried(plugin: &Plugin, eisen_dir: &Path) -> Result<bool, String> {
    let Plugin { name, path, config, isolation, .. } = plugin;
    let approval = approval(path, eisen_dir)?;
    let gates =
        trial(async |launcher| plugin::try_out(launcher, name, path, config, approval).await)?;
    match (isolation, approval) {
        (Isolation::InProcess, None) => Err(unapproved(path)),
        _ => Ok(gates),
    }
}

/// The user's approval of a library.
pub(crate) fn approval(library: &Path, eisen_dir: &Path) -> Result<Option<Approval>, String> {
    let approvals = Approvals::load(eisen_dir).map_err(|error| error.to_string())?;
    Ok(approvals.find(library))
}

/// The error for a library that is not approved to run in this process.
pub(crate) fn unapproved(library: &Path) -> String {
    format!(
        "it is not approved to run in-process, unconfined: `eisen-core dev plugin trust {}` approves its \
         current version; with isolation = \"process\" it needs no approval",
        library.display()
    )
}

fn approval_of(library: &Path) -> Result<Option<Approval>, String> {
    approval(library, &home::eisen_dir().map_err(|error| error.to_string())?)
}

fn trial<T: Send>(of: impl AsyncFnOnce(Launcher) -> Result<T, String> + Send) -> Result<T, String> {
    let trial = || -> io::Result<Result<T, String>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let launcher = Launcher::this_program()?;
        Ok(runtime.block_on(of(launcher)))
    };
    // A thread of its own: the caller may be in an async runtime.
    let outcome = std::thread::scope(|scope| scope.spawn(trial).join());
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(format!("it can't be tested: {error}")),
        Err(_) => Err("it can't be tested".to_owned()),
    }
}

/// Loads an agent's plugin if it runs in this process, else prepares it for a child process.
pub(crate) fn prepared(
    of: &Agent,
    plugin: &Plugin,
    eisen_dir: &Path,
) -> anyhow::Result<agent::Plugin> {
    let Plugin { name, path, isolation, config, gates: _ } = plugin.clone();
    let context = || format!("plugin {name}, {}", path.display());
    let approval = self::approval(&path, eisen_dir).map_err(anyhow::Error::msg);
    let approval = approval.with_context(context)?;
    let place = match (isolation, approval) {
        (Isolation::InProcess, Some(approval)) => {
            let library = Library::load_approved(&path, approval).with_context(context)?;
            Hosting::InProcess(Box::new(library))
        }
        (Isolation::InProcess, None) => {
            return Err(anyhow::Error::msg(unapproved(&path)).context(context()));
        }
        (Isolation::Process, approval) => Hosting::Child(path, approval),
    };
    Ok(agent::Plugin { source: PluginSource { name, config, place }, model: of.model.clone() })
}
