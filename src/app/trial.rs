//! Tries what the kernel enforces: one small command is confined, and looks from inside.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use crate::config::check::Kernel;
use crate::confine::{Attempt, Confinement, Doorkeeper, Support};
use crate::model::Action;
use crate::process::{Launcher, canary};
use crate::zone::{Bounds, Confine, GitAccess, Grant, Reach, Rule, Zone, ZoneSpec};

/// A trial that takes longer has failed: nobody answers at the doorbell.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns what the kernel enforces, as seen from inside. What that takes is made in the folder
/// `within`, and removed.
pub(super) async fn of_kernel(launcher: &Launcher, within: &Path) -> Kernel {
    let support = Support::of_this_kernel();
    let holds = if support.lacking().is_empty() { run(launcher, within).await } else { Ok(()) };
    match holds {
        Ok(()) => Kernel {
            holds: support.lacking().is_empty(),
            missing: support.missing().into_iter().map(str::to_owned).collect(),
        },
        Err(why) => Kernel { holds: false, missing: vec![format!("what a trial needs: {why:#}")] },
    }
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
    // It may lie where no agent is granted anything.
    rules.push(Rule { path: std::env::current_exe()?, grant: Grant::Read });
    let confinement = Confinement::behind(&rules, &place.join("eisen"), Arc::new(Nobody(bounds)))?;
    let outside = confinement.canary().to_owned();
    let inside = place.join("workspace/inside/canary");
    let command = canary(launcher.program(), &place.join("workspace"), &outside, &inside);

    let (process, mut stdio) = launcher.confined(Arc::new(confinement)).spawn(&command).await?;
    let mut said = String::new();
    let ended = tokio::time::timeout(PATIENCE, async {
        let _ = stdio.stderr.read_to_string(&mut said).await;
        process.wait().await
    });
    let ended = ended.await;
    process.kill().await;
    match ended {
        Ok(exit) if exit.success() => Ok(()),
        Ok(_) if !said.trim().is_empty() => anyhow::bail!("{}", said.trim().to_owned()),
        Ok(exit) => anyhow::bail!("it {exit}"),
        Err(_) => anyhow::bail!("its calls were not answered"),
    }
}

/// Stands at the doorbell of the trial: what is outside is refused.
struct Nobody(Arc<Bounds>);

impl Doorkeeper for Nobody {
    fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.0)
    }

    fn passed(&self, _: Arc<str>, _: Action) {}

    fn blocked(&self, _: Attempt, _: oneshot::Sender<bool>) {}
}
