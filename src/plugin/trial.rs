//! Whether a plugin can be used, seen from outside: what it does wrong ends a child of its own.

use std::path::Path;

use super::approval::Approval;
use super::frame;
use super::frame::ChildRole;
use super::library::Description;
use super::running::{AwaitedReply, PluginProcess, StepResult};
use crate::process::Launcher;

/// What a check finds of a plugin that can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    pub description: Description,
    /// It has a self-test, and passed it.
    pub is_tested: bool,
    /// Why it makes no instance without configuration: it may need one.
    pub instance: Result<(), String>,
}

/// Loads a library in a child, and has it make an instance. Returns whether it can hold a zone by
/// what its agent asks for; the error says in a sentence what keeps it from being used. The child is
/// confined, wherever the plugin is to run then.
pub async fn try_out(
    launcher: Launcher,
    name: &str,
    library: &Path,
    config: &str,
    approval: Option<Approval>,
) -> Result<bool, String> {
    let (running, description) =
        loaded(&launcher, name, library, config, ChildRole::Serve, approval).await?;
    running.end().await;
    Ok(description.gates)
}

/// Loads a library in a confined child, and returns what it says of itself; the error says why it
/// can't be used.
pub async fn describe(
    launcher: Launcher,
    library: &Path,
    approval: Option<Approval>,
) -> Result<Description, String> {
    let name = file_name(library);
    let (running, description) =
        loaded(&launcher, &name, library, "{}", ChildRole::Describe, approval).await?;
    running.end().await;
    Ok(description)
}

/// Runs its self-test besides, and has it make an instance without configuration.
pub async fn check(
    launcher: Launcher,
    library: &Path,
    approval: Option<Approval>,
) -> Result<Checked, String> {
    let name = file_name(library);
    let (running, description) =
        loaded(&launcher, &name, library, "{}", ChildRole::Check, approval).await?;
    let (running, tested) = running.take(AwaitedReply::SelfTest, &[]).await?;
    let is_tested = match tested {
        Ok(answer) => !answer.output.is_empty(),
        // What it does after that may be worse, and says less.
        Err(why) => {
            running.end().await;
            return Err(format!("its self-test failed: {why}"));
        }
    };
    let (mut running, made) = running.take(AwaitedReply::Create, &[]).await?;
    if made.is_ok() {
        (running, _) = running.take(AwaitedReply::Destroy, &[]).await?;
    }
    running.end().await;
    Ok(Checked { description, is_tested, instance: made.map(drop) })
}

async fn loaded(
    launcher: &Launcher,
    name: &str,
    library: &Path,
    config: &str,
    role: ChildRole,
    approval: Option<Approval>,
) -> Result<(PluginProcess, Description), String> {
    let running = PluginProcess::start(launcher, name, library, config, role, approval).await?;
    let (running, loaded) = running.take(AwaitedReply::Load, &[]).await?;
    match described(loaded) {
        Ok(description) => Ok((running, description)),
        Err(why) => {
            running.end().await;
            Err(why)
        }
    }
}

/// What a plugin is called that no configuration names.
fn file_name(library: &Path) -> String {
    library.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn described(loaded: StepResult) -> Result<Description, String> {
    frame::described(&loaded?.output).ok_or_else(|| "its description is torn".to_owned())
}
