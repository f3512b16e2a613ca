//! Probes kernel enforcement: starts a small confined command that tests its confinement from
//! inside. Remembers a success, which holds until the machine boots or the program changes.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use crate::config::check::Kernel;
use crate::confine::{Attempt, Confinement, Doorkeeper, Support};
use crate::home::leftovers;
use crate::kept::{KeptFile, Volatile};
use crate::model::Action;
use crate::process::{self, Launcher, canary};
use crate::zone::{Bounds, Confine, Grant, Reach, Rule, Zone, ZoneSpec};

/// How long the command may run. It hangs if nothing answers at the doorbell.
const TIMEOUT: Duration = Duration::from_secs(10);

/// In `$EISEN_DIR`: the conditions of the last probe that succeeded.
const PROBED: &str = "probed";
const MOST_BYTES: u64 = 64 << 10;

/// Begins to probe the kernel's enforcement, beside what else a team starts, unless that succeeded
/// before under the same conditions. Uses a temporary folder in `within`.
///
/// A wrong memory opens nothing: each agent's start tests its wall, and fails without a doorbell.
pub(crate) fn begin(
    launcher: Launcher,
    within: PathBuf,
    eisen_dir: &Path,
) -> impl Future<Output = Kernel> + use<> {
    let file = KeptFile::<Volatile>::new(eisen_dir.join(PROBED), MOST_BYTES);
    let probe = task::spawn(async move {
        let now = conditions();
        let known = file.read_text().ok().flatten();
        if now.is_some() && known == now {
            return supported(Support::of_this_kernel());
        }
        let kernel = of_kernel(&launcher, &within).await;
        if let Some(now) = now.filter(|_| kernel.holds)
            && let Err(error) = file.replace(now.as_bytes())
        {
            tracing::debug!(%error, "cannot remember that the kernel enforces zones");
        }
        kernel
    });
    async { probe.await.unwrap_or_else(|error| failed(&error)) }
}

/// The conditions of a probe's outcome: the boot, the container, and this program's file. None: unknown.
fn conditions() -> Option<String> {
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let (file, changed) = ((program.dev(), program.ino()), (program.mtime(), program.mtime_nsec()));
    let [mounts, users] =
        ["mnt", "user"].map(|name| std::fs::read_link(Path::new("/proc/self/ns").join(name)));
    let boot = process::boot()?;
    Some(format!(
        "{boot} {} {} {file:?} {changed:?}\n",
        mounts.ok()?.display(),
        users.ok()?.display()
    ))
}

pub(crate) async fn of_kernel(launcher: &Launcher, within: &Path) -> Kernel {
    let support = Support::of_this_kernel();
    let holds = if support.lacking().is_empty() { run(launcher, within).await } else { Ok(()) };
    match holds {
        Ok(()) => supported(support),
        Err(why) => failed(&format_args!("{why:#}")),
    }
}

fn supported(support: Support) -> Kernel {
    Kernel {
        holds: support.lacking().is_empty(),
        missing: support.missing().into_iter().map(str::to_owned).collect(),
    }
}

fn failed(why: &dyn Display) -> Kernel {
    Kernel { holds: false, missing: vec![format!("a successful test: {why}")] }
}

async fn run(launcher: &Launcher, within: &Path) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix(leftovers::PREFIX).tempdir_in(within)?;
    let place = folder.path().canonicalize()?;
    for name in ["workspace", "private", "eisen"] {
        std::fs::create_dir(place.join(name))?;
    }
    let zone = Zone::compile(&ZoneSpec::new(
        place.join("workspace"),
        vec!["inside/**".to_owned()],
        place.join("eisen"),
    ))?;
    std::fs::create_dir(place.join("workspace/inside"))?;
    let reach = Reach::new(Confine::Workspace, place.join("private"));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn only_a_success_under_the_same_conditions_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let holds = async |known: &str| {
            std::fs::write(folder.path().join(PROBED), known).unwrap();
            // It is no warden: each probe fails.
            let launcher = Launcher::new("/bin/false");
            begin(launcher, folder.path().to_owned(), folder.path()).await.holds
        };
        let now = conditions().unwrap();
        assert_eq!(holds(&now).await, Support::of_this_kernel().lacking().is_empty());
        assert!(!holds(&now.replacen('-', "+", 1)).await, "another boot");
        assert!(!holds("").await);
        // What failed is not remembered, nor is what was known forgotten for it.
        assert_eq!(std::fs::read_to_string(folder.path().join(PROBED)).unwrap(), "");
    }
}
