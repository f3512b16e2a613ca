//! `[team]`, `[orchestrator]`, `[tracker]`, `[port]`: the settings of the whole team.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::errors::{code, quoted};
use super::fault::Fault;
use super::may_add::{RawMayAdd, may_add};
use super::read::{Table, Text};
use super::source::plain;
use super::value::{bad_name, is_name, to_name};
use super::{OnBlock, Team};

const HOUR: u64 = 60 * 60;
const WEEK: u64 = 7 * 24 * HOUR;

/// The most levels of helpers that can be allowed.
const MOST_LEVELS: u32 = 10;

/// Where the port listens unless the file says otherwise.
pub const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 17320);

#[derive(Clone, Copy, Debug)]
pub struct Tracker {
    pub context_turns: u64,
    /// Fraction of the tokens used.
    pub compaction_threshold: f64,
    pub decay_rate: f64,
    pub tick: Duration,
    pub idle_tick: Duration,
}

/// Limits of the TCP port.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    pub max_connections: usize,
    pub max_line_bytes: usize,
    /// Events that a client may lag behind before it is resynchronised.
    pub backlog: usize,
    /// Upper bound for the size of these events.
    pub backlog_bytes: usize,
    pub write_deadline: Duration,
}

pub(super) fn team(team: &Table<'_>) -> Team {
    let workspace = workspace(team);
    let name = team.text("name");
    if let Some(name) = name.as_ref().filter(|name| !is_name(&name.value)) {
        team.fault(bad_name("`name`", name));
    }
    let folder = || workspace.file_name().and_then(|name| to_name(&name.to_string_lossy()));
    Team {
        name: name.map(|name| name.value).or_else(folder).unwrap_or_else(|| "team".to_owned()),
        workspace,
        scratch: team.flag("scratch", false),
        listen: listen(team),
        any_port: team.place_of("listen").is_none(),
        stop_grace: team.seconds("stop_grace_s", 0..=HOUR, 5),
        max_running: team.count("max_running", 0..=1_000_000, 0),
        max_memory_mb: team.count("max_memory_mb", 0..=1_000_000_000, 0),
        tools: team.flag("tools", true),
        on_loop: team.choice("on_loop"),
        max_depth: team.count("max_depth", 0..=MOST_LEVELS, 2),
        max_agents: team.count("max_agents", 0..=1_000_000, 20),
        max_spawns: team.count("max_spawns", 0..=1_000_000, 50),
    }
}

/// Returns the workspace; the file's folder if the configured one is unusable.
fn workspace(team: &Table<'_>) -> PathBuf {
    let text = team.word("workspace");
    let path = team.reader.path(text.as_ref().map_or(".", |text| &text.value));
    match path.canonicalize() {
        Ok(path) if path.is_dir() => path,
        outcome => {
            let why = match outcome {
                Ok(_) => "is not a folder".to_owned(),
                Err(error) => format!("can't be opened: {}", plain(&error)),
            };
            if let Some(Text { value, span }) = text {
                let message = format!("the workspace {} {why}", quoted(&value));
                team.fault(
                    Fault::new(span, message)
                        .help("name an existing folder, relative to this file"),
                );
            }
            team.reader.path(".")
        }
    }
}

fn listen(team: &Table<'_>) -> SocketAddr {
    let help = "write one such as \"127.0.0.1:17320\" or \"[::1]:17320\"; port 0 takes a free one";
    let Some(text) = team.text_or("listen", || help.to_owned()) else { return LISTEN };
    text.value.parse().unwrap_or_else(|_| {
        let message = format!("{} is not an IP address with a port", quoted(&text.value));
        team.fault(Fault::new(text.span, message).help(help));
        LISTEN
    })
}

/// `[orchestrator]` with its agent not resolved.
pub(super) struct RawOrchestrator {
    pub(super) agent: Option<Text>,
    pub(super) on_block: OnBlock,
    /// None: the file says nothing.
    pub(super) hold_timeout: Option<Duration>,
    pub(super) may_add: Option<RawMayAdd>,
}

pub(super) fn orchestrator(orchestrator: &Table<'_>, workspace: &Path) -> RawOrchestrator {
    RawOrchestrator {
        agent: orchestrator.text("agent"),
        on_block: orchestrator.choice("on_block"),
        hold_timeout: {
            let seconds =
                orchestrator.seconds("hold_timeout_s", 1..=WEEK, super::orchestrator::HOLD_SECONDS);
            orchestrator.place_of("hold_timeout_s").map(|_| seconds)
        },
        may_add: may_add(orchestrator, workspace),
    }
}

pub(super) fn tracker(tracker: &Table<'_>) -> Tracker {
    let default = Tracker::default();
    let tick = tracker.count("tick_ms", 1..=60_000, millis(default.tick));
    // The default adapts to a slow tick; a configured value must not be smaller.
    let idle_tick =
        tracker.count("idle_tick_ms", 1..=3_600_000, tick.max(millis(default.idle_tick)));
    if idle_tick < tick
        && let Some(span) = tracker.place_of("idle_tick_ms")
    {
        let message = format!("{} is shorter than `tick_ms`, {tick}", code("idle_tick_ms"));
        tracker.fault(Fault::new(span, message).help(format!("write {tick} or more")));
    }
    Tracker {
        context_turns: tracker.count("context_turns", 0..=1_000_000, default.context_turns),
        compaction_threshold: tracker.number(
            "compaction_threshold",
            |number| number > 0.0 && number <= 1.0,
            "more than 0 and at most 1",
            default.compaction_threshold,
        ),
        decay_rate: tracker.number(
            "decay_rate",
            |number| (0.0..=1.0).contains(&number),
            "at least 0 and at most 1",
            default.decay_rate,
        ),
        tick: Duration::from_millis(tick),
        idle_tick: Duration::from_millis(idle_tick),
    }
}

pub(super) fn port(port: &Table<'_>) -> Port {
    let default = Port::default();
    Port {
        max_connections: port.count("max_connections", 1..=1_000_000, default.max_connections),
        max_line_bytes: port.count(
            "max_line_bytes",
            1024..=1024 * 1024 * 1024,
            default.max_line_bytes,
        ),
        backlog: port.count("backlog", 16..=1_000_000, default.backlog),
        backlog_bytes: port.count(
            "backlog_bytes",
            64 * 1024..=1024 * 1024 * 1024,
            default.backlog_bytes,
        ),
        write_deadline: port.seconds(
            "write_deadline_s",
            1..=HOUR,
            default.write_deadline.as_secs(),
        ),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
