//! Probes kernel enforcement: starts a small confined command that tests its confinement from
//! inside.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use crate::config::check::Kernel;
use crate::confine::{Attempt, Confinement, Doorkeeper, Support};
use crate::model::Action;
use crate::process::{Launcher, canary};
use crate::zone::{Bounds, Confine, GitAccess, Grant, Reach, Rule, Zone, ZoneSpec};

/// How long the command may run. It hangs if nothing answers at the doorbell.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Begins to probe the kernel's enforcement, beside what else a team starts. Uses a temporary folder
/// in `within`.
pub(super) fn begin(launcher: Launcher, within: PathBuf) -> impl Future<Output = Kernel> {
    let probe = tokio::spawn(async move { of_kernel(&launcher, &within).await });
    async { probe.await.unwrap_or_else(|error| failed(&error)) }
}

pub(super) async fn of_kernel(launcher: &Launcher, within: &Path) -> Kernel {
    let support = Support::of_this_kernel();
    let holds = if support.lacking().is_empty() { run(launcher, within).await } else { Ok(()) };
    match holds {
        Ok(()) => Kernel {
            holds: support.lacking().is_empty(),
            missing: support.missing().into_iter().map(str::to_owned).collect(),
        },
        Err(why) => failed(&format_args!("{why:#}")),
    }
}

fn failed(why: &dyn Display) -> Kernel {
    Kernel { holds: false, missing: vec![format!("a successful test: {why}")] }
}

async fn run(launcher: &Launcher, within: &Path) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix(super::leftovers::PREFIX).tempdir_in(within)?;
    let place = folder.path().canonicalize()?;
    for name in ["workspace", "private", "eisen"] {
        std::fs::create_dir(place.join(name))?;
    }
    let zone = Zone::compile(&ZoneSpec {
        workspace: place.join("workspace"),
        allowed: vec!["inside/**".to_owned()],
        shared: Vec::new(),
        denied: Vec::new(),
        readable: Vec::new(),
        git: GitAccess::None,
        terminals: true,
        eisen_dir: place.join("eisen"),
        sealed: Vec::new(),
        journals: Vec::new(),
    })?;
    std::fs::create_dir(place.join("workspace/inside"))?;
    let reach = Reach {
        confine: Confine::Workspace,
        private: place.join("private"),
        privates: None,
        readable: Vec::new(),
        writable: Vec::new(),
        sockets: Vec::new(),
    };
    let bounds = Arc::new(Bounds::new(Arc::new(zone), reach)?);
    let mut rules = bounds.rules();
    // The command itself may lie outside of all granted paths.
    rules.push(Rule { path: std::env::current_exe()?, grant: Grant::Read });
    let confinement = Confinement::behind(&rules, &place.join("eisen"), Arc::new(DenyAll(bounds)))?;
    let outside = confinement.canary().to_owned();
    let inside = place.join("workspace/inside/canary");
    let command = canary(launcher.program(), &place.join("workspace"), &outside, &inside);

    let (process, mut stdio) = launcher.confined(Arc::new(confinement)).spawn(&command).await?;
    let mut message = String::new();
    let ended = tokio::time::timeout(TIMEOUT, async {
        let _ = stdio.stderr.read_to_string(&mut message).await;
        process.wait().await
    });
    let ended = ended.await;
    process.kill().await;
    match ended {
        Ok(exit) if exit.success() => Ok(()),
        Ok(_) if !message.trim().is_empty() => anyhow::bail!("{}", message.trim().to_owned()),
        Ok(exit) => anyhow::bail!("the confined command {exit}"),
        Err(_) => anyhow::bail!("the confined command timed out"),
    }
}

/// The doorkeeper of the probe: refuses everything outside the bounds.
struct DenyAll(Arc<Bounds>);

impl Doorkeeper for DenyAll {
    fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.0)
    }

    fn passed(&self, _: Arc<str>, _: Action) {}

    fn blocked(&self, _: Attempt, _: oneshot::Sender<bool>) {}
}
