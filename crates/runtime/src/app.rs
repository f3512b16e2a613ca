//! Wiring: creates the actors of `up` and `observe`, connects them, and shuts them down. Contains
//! no policy.

mod agent_owners;
mod batch;
mod catching_up;
mod changes;
mod conflict_notes;
mod console;
mod detached;
mod details;
mod doctor;
mod down;
mod environment;
mod failover;
mod first_prompt;
mod garbage;
mod graph;
mod here;
mod hints;
mod hub;
mod journaling;
mod kernel;
mod learning;
mod leftovers;
mod limiting;
mod listening;
mod loading;
mod measuring;
mod members;
mod mode;
mod nested;
mod notifying;
mod observe;
mod outlet;
mod person_queue;
mod places;
mod plugins;
mod purging;
mod recorder;
mod repeating;
mod replay;
mod routes;
mod run;
mod scoped_tokens;
mod scratch;
mod spending;
mod standing;
mod streaming;
mod task_notes;
mod team;
mod team_file;
pub mod team_grants;
mod tiers_now;
mod tools_seen;
mod tracing_out;
mod trial;
mod turn;
mod undoing;
mod up;
mod web_page;
mod wiring;
mod without_file;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::bus::Backlog;
use crate::{config, serve, tracker};

pub use batch::{
    BatchEnd, BatchJob, BatchNews, BatchOptions, JobEnd, JobOutcome, PlannedJob, batch, plan,
};
pub use detached::{Detached, up_detached};
pub use doctor::{Examination, Finding, Health, doctor};
pub use down::{Down, Downed, down};
pub use environment::{DepthError, cache_folder, eisen_dir, eisen_place, own_command};
pub use failover::told::clock;
pub use garbage::{Garbage, garbage, outside_contents};
pub use here::{CONFIG, config_of, journals_of, teams_of};
pub use hints::hints;
pub use hub::{HubOptions, hub};
pub use journaling::{
    journal_hint, journal_line, journal_place, teams_with_journals, workspace_of,
};
pub use kernel::kernel;
pub use learning::{LearnedZone, Rewritten, kept_config, learn, write_zones};
pub use limiting::limit_enforcement;
pub use loading::{load, read, shared_config};
pub use mode::TeamMode;
pub use notifying::try_notices;
pub use observe::{ObserveOptions, ObservePlugin, observe};
pub use outlet::{Outlet, stderr};
pub use plugins::{check_plugin, describe_plugin};
pub use purging::{PurgedFile, purge_files, unregistered_files};
pub use replay::{ReplayOptions, replay};
pub use routes::{Route, route};
pub use run::{RunEnd, check_run, run, run_detached, run_prepared};
pub use scoped_tokens::TokensAtRest;
pub use scratch::is_copy;
pub use standing::team_above;
pub use team_file::RunOptions;
pub use tiers_now::{TierNow, tiers_now};
pub use tools_seen::tool_lines;
pub use turn::progress::RunProgress;
pub use up::{UpOptions, up};
pub use web_page::WebWish;
pub use without_file::{WithoutFile, without_file};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage or configuration; nothing was started. Exit code 2.
    Usage(anyhow::Error),
    /// Failed while running. Exit code 1.
    Run(anyhow::Error),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Run(_) => 1,
        }
    }

    pub fn error(&self) -> &anyhow::Error {
        match self {
            Self::Usage(error) | Self::Run(error) => error,
        }
    }
}

/// Returns the failure of a configuration.
pub fn config_errors(errors: crate::config::ConfigErrors) -> Failure {
    Failure::Usage(errors.into())
}

fn tracker_settings(tracker: config::Tracker) -> tracker::Settings {
    tracker::Settings {
        context_turns: tracker.context_turns,
        compaction_threshold: tracker.compaction_threshold,
        decay_rate: tracker.decay_rate,
        tick: tracker.tick,
        idle_tick: tracker.idle_tick,
    }
}

fn backlog(port: config::Port) -> Backlog {
    Backlog { events: port.backlog, bytes: port.backlog_bytes }
}

/// Descriptors that clients leave to the agents, their terminals and files.
const OWN_DESCRIPTORS: u64 = 256;

/// Raises the limit of open files, and bounds the number of clients by it. Call it before any
/// process is started.
fn limits(port: config::Port) -> serve::Limits {
    let available = match crate::process::raise_descriptor_limit() {
        Ok(limit) => usize::try_from(limit.saturating_sub(OWN_DESCRIPTORS)).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            usize::MAX
        }
    };
    let max_connections = port.max_connections.min(available.max(1));
    if max_connections < port.max_connections {
        tracing::warn!(
            max_connections,
            "the port serves fewer clients than configured, and agents may fail to start: the system's limit of \
             open files is too low (`eisen-core doctor` says how to raise it)"
        );
    }
    serve::Limits {
        max_connections,
        max_line_bytes: port.max_line_bytes,
        write_deadline: port.write_deadline,
    }
}

/// The default port of `up`, `observe` and `replay`.
const DEFAULT_PORT: u16 = 17320;

/// Binds a port of this machine: the default one if none is named, else any that is free.
async fn bind(
    port: Option<u16>,
    eisen_dir: &std::path::Path,
) -> anyhow::Result<tokio::net::TcpListener> {
    let at = |port| std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, port));
    match port {
        Some(port) => Ok(serve::bind(at(port), eisen_dir).await?),
        None => match serve::bind(at(DEFAULT_PORT), eisen_dir).await {
            Ok(listener) => Ok(listener),
            Err(_) => Ok(serve::bind(at(0), eisen_dir).await?),
        },
    }
}

/// Prints the bound port to standard error, in one write: clients parse exactly this line.
fn announce_port(port: u16) {
    use std::io::Write;
    let _ = outlet::stderr().clone().write_all(format!("eisen-core tcp port: {port}\n").as_bytes());
}

/// How long killed processes may take to end.
const DRAIN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Waits until all started processes have ended; returns whether they have.
async fn drained(launcher: &crate::process::Launcher) -> bool {
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, launcher.drained()).await.is_ok();
    if !drained {
        tracing::error!("killed processes have not ended yet");
    }
    drained
}

/// The signal that stops a team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopSignal {
    /// SIGINT: a person at the terminal.
    Interrupt,
    /// SIGTERM, or SIGHUP.
    End,
}

/// SIGINT, SIGTERM and SIGHUP. Signals that arrive before the first call of `next` are kept, so
/// that none ends the program during its start.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None if SIGHUP is ignored, as under `nohup`.
    hangup: Option<Signal>,
    /// Signals that somebody else takes.
    left_out: u8,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!ignores_hangup()).then(|| signal(SignalKind::hangup())).transpose()?,
            left_out: 0,
        })
    }

    /// Listens from the second signal on: somebody else takes the first.
    fn listen_after_one() -> std::io::Result<Self> {
        Ok(Self { left_out: 1, ..Self::listen()? })
    }

    /// Waits for the next signal. Cancel-safe.
    async fn next(&mut self) -> StopSignal {
        while self.left_out > 0 {
            self.any().await;
            self.left_out -= 1;
        }
        self.any().await
    }

    async fn any(&mut self) -> StopSignal {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.terminate.recv() => StopSignal::End,
            () = hangup => StopSignal::End,
        }
    }
}

/// Whether SIGHUP is ignored, by `/proc`; false on systems without it.
fn ignores_hangup() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & HANGUP != 0)
}
