//! Owns the trial of a plugin in a child, which finds out whether it can be used.

use std::path::Path;

use super::approval::Approval;
use super::child_process::{AwaitedReply, ChildSpec, PluginProcess, StepResult};
use super::frame::{self, ChildRole};
use super::library::Description;
use crate::process::Launcher;

/// The result of checking a usable plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    pub description: Description,
    /// The plugin has a self-test, and passed it.
    pub is_tested: bool,
    /// Why it makes no instance without configuration, which it may need.
    pub instance: Result<(), String>,
}

/// Loads a library in a child, and makes an instance. Returns whether it can gate; the error says
/// why it can't be used. The child is confined, even if the plugin will run elsewhere.
pub async fn try_out(
    launcher: Launcher,
    name: &str,
    library: &Path,
    config: &str,
    approval: Option<Approval>,
) -> Result<bool, String> {
    let (name, library, config) = (name.to_owned(), library.to_owned(), config.to_owned());
    let spec = ChildSpec { name, library, config, approval };
    let (running, description) = loaded(&launcher, &spec, ChildRole::Serve).await?;
    running.end().await;
    Ok(description.gates)
}

/// Loads a library in a confined child, and returns its description. The error says why it can't be
/// used.
pub async fn describe(
    launcher: Launcher,
    library: &Path,
    approval: Option<Approval>,
) -> Result<Description, String> {
    let spec = ChildSpec::of_library(library, approval);
    let (running, description) = loaded(&launcher, &spec, ChildRole::Describe).await?;
    running.end().await;
    Ok(description)
}

/// Also runs its self-test, and makes an instance without configuration.
pub async fn check(
    launcher: Launcher,
    library: &Path,
    approval: Option<Approval>,
) -> Result<Checked, String> {
    let spec = ChildSpec::of_library(library, approval);
    let (running, description) = loaded(&launcher, &spec, ChildRole::Check).await?;
    let (running, tested) = running.take(AwaitedReply::SelfTest, &[]).await?;
    let is_tested = match tested {
        Ok(answer) => !answer.output.is_empty(),
        // Later failures may only follow from this one.
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
    spec: &ChildSpec,
    role: ChildRole,
) -> Result<(PluginProcess, Description), String> {
    let running = PluginProcess::start(launcher, spec, role).await?;
    let (running, loaded) = running.take(AwaitedReply::Load, &[]).await?;
    match described(loaded) {
        Ok(description) => Ok((running, description)),
        Err(why) => {
            running.end().await;
            Err(why)
        }
    }
}

fn described(loaded: StepResult) -> Result<Description, String> {
    frame::decode(&loaded?.output).ok_or_else(|| "its description is torn".to_owned())
}
