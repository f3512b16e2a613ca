//! Tries plugins, those of a configuration before anything is started: each in a confined child,
//! whatever its `isolation` is, so that what it does wrong is a sentence.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use crate::config::{Isolation, Plugin, TryOut};
use crate::plugin::{self, Approval, Approvals, Checked, Description};
use crate::process::Launcher;

/// Tries each plugin once, however often it is asked for.
pub(super) fn try_out(eisen_dir: &Path) -> Box<TryOut> {
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

/// Loads a library in a child, and returns what it says of itself, or why it can't be used.
pub fn describe_plugin(library: &Path) -> Result<Description, String> {
    let approval = approval_of(library)?;
    trial(async |launcher| plugin::describe(launcher, library, approval).await)
}

/// Runs its self-test too, and has it make an instance.
pub fn check_plugin(library: &Path) -> Result<Checked, String> {
    let approval = approval_of(library)?;
    trial(async |launcher| plugin::check(launcher, library, approval).await)
}

/// Returns whether it can hold a zone.
pub(super) fn tried(plugin: &Plugin, eisen_dir: &Path) -> Result<bool, String> {
    let Plugin { name, path, config, isolation, .. } = plugin;
    let approval = approval(path, eisen_dir)?;
    let gates =
        trial(async |launcher| plugin::try_out(launcher, name, path, config, approval).await)?;
    match (isolation, approval) {
        (Isolation::InProcess, None) => Err(unapproved(path)),
        _ => Ok(gates),
    }
}

/// What the user approved of a library.
pub(super) fn approval(library: &Path, eisen_dir: &Path) -> Result<Option<Approval>, String> {
    let approvals = Approvals::load(eisen_dir).map_err(|error| error.to_string())?;
    Ok(approvals.find(library))
}

/// Why a library does not run in this process.
pub(super) fn unapproved(library: &Path) -> String {
    format!(
        "it is not approved to run in-process, unconfined: `eisen-core plugin trust {}` approves it as \
         it is now; with isolation = \"process\" it needs no approval",
        library.display()
    )
}

fn approval_of(library: &Path) -> Result<Option<Approval>, String> {
    approval(library, &super::eisen_dir().map_err(|error| error.to_string())?)
}

fn trial<T: Send>(of: impl AsyncFnOnce(Launcher) -> Result<T, String> + Send) -> Result<T, String> {
    let trial = || -> io::Result<Result<T, String>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let launcher = Launcher::this_program()?;
        Ok(runtime.block_on(of(launcher)))
    };
    // Whoever tries it may be in a runtime already.
    let outcome = std::thread::scope(|scope| scope.spawn(trial).join());
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(format!("it can't be tried: {error}")),
        Err(_) => Err("it can't be tried".to_owned()),
    }
}
