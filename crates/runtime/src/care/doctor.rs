//! `doctor`: looks over what a team needs on this machine, with what mends each finding, and mends
//! what is safe to mend without asking. Starts an agent only where it is told to.

mod agents;
mod configuration;
mod deep;
mod disk;
mod folder;
mod listener;
mod machine;
mod outside;
mod ports;
mod runs;
mod version;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use self::agents::Environment;
use self::version::Probe;
use crate::home::environment::own_command;
use crate::home::leftovers;
use crate::kernel;
use crate::process::Launcher;

/// How long a program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(2);
/// How long an agent may take to answer `initialize`, where it is started.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct Finding {
    /// The thing that was looked at: `git`, `agent/codex`.
    pub check: String,
    pub state: Health,
    /// May contain names from outside.
    pub message: String,
    /// The remedy: a command where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The repair that was made just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// How serious a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Ok,
    Warning,
    Error,
}

/// The order for an examination.
pub struct Examination {
    /// The folder of all state, or why there is none.
    pub eisen_dir: anyhow::Result<PathBuf>,
    /// The configuration of a team, which may be missing.
    pub configuration: PathBuf,
    /// Mend what can be mended without asking.
    pub fix: bool,
    /// Start each installed agent as far as `initialize`.
    pub deep: bool,
}

impl Health {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    fn new(check: impl Into<String>, state: Health, message: impl Into<String>) -> Self {
        Self { check: check.into(), state, message: message.into(), fix: None, fixed: None }
    }

    fn ok(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(check, Health::Ok, message)
    }

    fn warning(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(check, Health::Warning, message)
    }

    fn error(check: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(check, Health::Error, message)
    }

    fn mended_by(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Marks the finding as mended just now.
    fn mended(mut self, fixed: impl Into<String>) -> Self {
        self.state = Health::Ok;
        self.fixed = Some(fixed.into());
        self
    }
}

/// Looks at everything; `progress` learns what comes next. Must not be called from within an async
/// runtime.
pub fn doctor(
    order: &Examination,
    progress: &dyn Fn(&'static str),
) -> anyhow::Result<Vec<Finding>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let launcher = Launcher::this_program()?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    let folder = home.clone().unwrap_or_else(|| PathBuf::from("/"));
    let probe = Probe { launcher: launcher.clone(), limit: VERSION_LIMIT, folder };
    let environment = Environment::of_process();

    // Before the first process.
    let open_files = machine::open_files();
    progress("the agents and git");
    let (mut found, git) = runtime.block_on(async {
        tokio::join!(agents::agents(&environment, &probe), machine::git(&environment.path, &probe))
    });
    found.push(git);
    if order.deep {
        progress("how the agents start");
        let probe = Probe { limit: ANSWER_LIMIT, ..probe };
        found.extend(runtime.block_on(deep::starts(&environment, &probe)));
    }
    progress("the kernel");
    let kernel = kernel::kernel();
    found.push(machine::kernel(&kernel));
    found.push(machine::limits());
    found.push(open_files);

    match &order.eisen_dir {
        Ok(eisen_dir) => {
            let state = StateFolder { order, eisen_dir, home: home.as_deref() };
            found.extend(runtime.block_on(state.look(progress))?);
            progress("the configuration");
            let (config, finding) =
                configuration::configuration(&order.configuration, eisen_dir, &kernel);
            found.push(finding);
            progress("the ports and disks");
            let config = config.as_ref();
            found.extend(runtime.block_on(ports::ports(config, eisen_dir)));
            found.extend(disk::disk(eisen_dir, config));
        }
        Err(error) => found.push(Finding::error("eisen-dir", format!("{error:#}"))),
    }
    runtime.block_on(leftovers::drained(&launcher));
    Ok(found)
}

/// The contents of `$EISEN_DIR`.
struct StateFolder<'a> {
    order: &'a Examination,
    eisen_dir: &'a Path,
    home: Option<&'a Path>,
}

impl StateFolder<'_> {
    async fn look(&self, progress: &dyn Fn(&'static str)) -> anyhow::Result<Vec<Finding>> {
        let mut found = vec![folder::folder(self.eisen_dir, self.home, self.order.fix)];
        progress("the teams");
        found.extend(runs::teams(self.eisen_dir).await);
        found.extend(runs::stale(self.eisen_dir, self.order.fix));
        found.extend(runs::unfinished(self.eisen_dir, self.order.fix).await);
        found.extend(runs::cooldowns(self.eisen_dir));
        progress("what is nobody's");
        found.extend(outside::contents(self.eisen_dir));
        found.push(runs::nobodys(self.eisen_dir).await);
        Ok(found)
    }
}

/// A command of this program, as a user types it.
fn command(arguments: &str) -> String {
    format!("{} {arguments}", own_command())
}
