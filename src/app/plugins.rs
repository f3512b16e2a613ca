//! Tries the plugins of a configuration before anything is started: each in a child, whatever its
//! `isolation` is, so that what it does wrong is a sentence.

use std::cell::RefCell;
use std::io;

use crate::config::{Isolation, Plugin, TryOut};
use crate::plugin;
use crate::process::Launcher;

/// Tries each plugin once, however often it is asked for.
pub(super) fn try_out() -> Box<TryOut> {
    let known: RefCell<Vec<(Plugin, Result<bool, String>)>> = RefCell::default();
    Box::new(move |plugin| {
        let mut known = known.borrow_mut();
        if let Some((_, outcome)) = known.iter().find(|(other, _)| other == plugin) {
            return outcome.clone();
        }
        let outcome = tried(plugin);
        known.push((plugin.clone(), outcome.clone()));
        outcome
    })
}

fn tried(plugin: &Plugin) -> Result<bool, String> {
    let trial = || -> io::Result<Result<bool, String>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let launcher = Launcher::this_program()?;
        let Plugin { path, config, isolation, .. } = plugin;
        let confined = *isolation == Isolation::Process;
        Ok(runtime.block_on(plugin::try_out(launcher, path, config, confined)))
    };
    // Whoever reads a configuration may be in a runtime already.
    let outcome = std::thread::scope(|scope| scope.spawn(trial).join());
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Err(format!("it can't be tried: {error}")),
        Err(_) => Err("it can't be tried".to_owned()),
    }
}
