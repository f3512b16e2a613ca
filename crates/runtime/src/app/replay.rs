//! `replay`: a port that shows an earlier run. The room `serve` with other sources: a tracker that
//! a journal drives, and a team that refuses all requests.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use eisen_base::task::TaskSet;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::app::rooms::{backlog, tracker_settings};
use crate::bus::Bus;
use crate::config;
use crate::home::environment;
use crate::journal::{self, Journal, Store};
use crate::model::{
    AgentId, AgentStatus, BlockedAccess, BlockedId, BlockedStatus, Event, SessionId, SessionKey,
    UsageReport,
};
use crate::program::{Failure, StopSignals, announce_port, bind, limits};
use crate::replay::{Audience, Player, Recording, Speed};
use crate::routing::{Decider, Decision, ResolveError};
use crate::serve::{
    self, AgentDetails, BoxFuture, Refused, RunFile, Server, Sources, Team, Tokens,
};
use crate::session::{Answer, Registry, RegistryError, RegistryRequest};
use crate::tracker::{OrchestratorView, Snapshots, TrackerHandle};
use crate::watch::GraphState;

/// Blocked accesses that a joining client gets; beyond this the oldest are left out.
const MOST_BLOCKED: usize = 10_000;

/// Time from the first client's join to the first event, for showing its token and subscribing.
const PRELUDE: Duration = Duration::from_secs(1);

/// How long clients may take to receive their last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The first bytes of an `SQLite` file.
const SQLITE: &[u8] = b"SQLite format 3\0";

#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// A journal, or an export of one.
    pub file: PathBuf,
    /// Only this session.
    pub session: Option<String>,
    pub speed: Speed,
    pub port: Option<u16>,
}

/// Serves an earlier run until a signal stops it.
pub async fn replay(options: ReplayOptions) -> Result<(), Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    environment::prepare(&eisen_dir).map_err(Failure::Usage)?;
    run(options, &eisen_dir).await.map_err(Failure::Run)
}

async fn run(options: ReplayOptions, eisen_dir: &Path) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    let (path, _imported) = journal_in(&options.file)?;
    let store = Store::open(&path)?;
    let team = store.meta("team")?.unwrap_or_default();
    let session = options.session.as_deref().map(|name| store.session_named(name, None));
    let session = session.transpose()?;
    drop(store);

    let port_limits = config::Port::default();
    let listener = bind(options.port, eisen_dir).await?;
    let address = listener.local_addr()?;
    let tokens = Tokens::generate(None)?;
    let name = format!("replay-{}", std::process::id());
    let run_file = RunFile::create(eisen_dir, &name, address, tokens.owner())?;

    let bus = Bus::encoding(backlog(port_limits), serve::encode);
    let view = match &session {
        None => OrchestratorView::External(team_key(&team)),
        Some(_) => OrchestratorView::None(SessionKey::new(AgentId::new(""), SessionId::new(""))),
    };
    let recording = Recording { path: path.clone(), session };
    let settings = tracker_settings(config::Tracker::default());
    let (cancel, ended) = (CancellationToken::new(), CancellationToken::new());
    let (player, tracking) =
        Player::new(recording, options.speed, settings, view, bus.clone(), ended.clone());
    let shown = Arc::new(Shown::new(player.tracker().clone()));
    let (sources, replayed): (Arc<dyn Sources>, Arc<dyn Team>) = (shown.clone(), shown.clone());
    let server =
        Server::new(listener, bus.clone(), sources, replayed, tokens, limits(port_limits))?;
    let mut tasks = TaskSet::default();
    tasks.spawn(tracking);
    tasks.spawn(server.run(cancel.clone()));
    announce_port(address.port());
    let playing = async {
        shown.joined.notified().await;
        tokio::time::sleep(PRELUDE).await;
        let count = player.play(&mut Noting(&shown)).await?;
        shown.freeze().await;
        ended.cancel();
        tracing::info!(count, "the replay is over");
        // The last map stays.
        std::future::pending::<anyhow::Result<()>>().await
    };
    let result = tokio::select! {
        result = playing => result,
        _ = stop.next() => Ok(()),
    };
    cancel.cancel();
    ended.cancel();
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, tasks.join_all()).await;
    drop(run_file);
    result
}

/// The journal in a file; an export is imported into a temporary folder.
fn journal_in(file: &Path) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    let open = || File::open(file).with_context(|| format!("cannot read {}", file.display()));
    let mut start = Vec::new();
    open()?.take(SQLITE.len() as u64).read_to_end(&mut start)?;
    if start == SQLITE {
        return Ok((file.to_owned(), None));
    }
    let folder = TempDir::with_prefix("eisen-replay-")?;
    let path = folder.path().join("journal.db");
    journal::import(&mut BufReader::new(open()?), &path, None)
        .with_context(|| format!("{} is no journal, and no export of one", file.display()))?;
    Ok((path, Some(folder)))
}

/// The session that shows the team's merged map.
fn team_key(team: &str) -> SessionKey {
    SessionKey::new(AgentId::new("orchestrator"), SessionId::new(format!("team-{team}")))
}

/// The state that the port shows: the tracker's during the run, then the last one.
struct Shown {
    tracker: TrackerHandle,
    /// Notified when a client joins.
    joined: Notify,
    last: OnceLock<(Snapshots, Vec<UsageReport>)>,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    agents: BTreeMap<AgentId, AgentStatus>,
    blocked: BTreeMap<u64, BlockedAccess>,
    numbers: std::collections::HashMap<BlockedId, u64>,
    next: u64,
}

impl Shown {
    fn new(tracker: TrackerHandle) -> Self {
        let (joined, last) = (Notify::new(), OnceLock::new());
        Self { tracker, joined, last, noted: Mutex::default() }
    }

    fn note(&self, event: &Event) {
        let mut noted = self.noted.lock();
        match event {
            Event::Agent(status) => drop(noted.agents.insert(status.agent.clone(), status.clone())),
            Event::Blocked(access) => noted.blocked(access),
            _ => {}
        }
    }

    /// Keeps the present state.
    async fn freeze(&self) {
        let last = (self.tracker.snapshots().await, self.tracker.usages().await);
        let _ = self.last.set(last);
    }
}

impl Noted {
    fn blocked(&mut self, access: &BlockedAccess) {
        let number = *self.numbers.entry(access.id.clone()).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.blocked.insert(number, access.clone());
        if self.blocked.len() > MOST_BLOCKED
            && let Some((_, oldest)) = self.blocked.pop_first()
        {
            self.numbers.remove(&oldest.id);
        }
    }
}

/// Notes events that the tracker does not keep, for clients that join later.
struct Noting<'a>(&'a Shown);

impl Audience for Noting<'_> {
    fn before(&mut self, event: &Event) {
        self.0.note(event);
    }

    fn shown(&mut self) -> BoxFuture<'_, ()> {
        // A slow client misses events, as with a running team.
        Box::pin(std::future::ready(()))
    }
}

impl Sources for Shown {
    fn snapshots(&self) -> BoxFuture<'_, Snapshots> {
        self.joined.notify_one();
        Box::pin(async {
            match self.last.get() {
                Some((snapshots, _)) => snapshots.clone(),
                None => self.tracker.snapshots().await,
            }
        })
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(async {
            match self.last.get() {
                Some((_, usages)) => usages.clone(),
                None => self.tracker.usages().await,
            }
        })
    }

    fn blocked(&self, status: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        let blocked = self.noted.lock().blocked.values().cloned().collect::<Vec<_>>();
        let is_wanted = move |access: &BlockedAccess| status.is_none_or(|it| access.status == it);
        Box::pin(async move { blocked.into_iter().filter(is_wanted).collect() })
    }

    fn resolve(
        &self,
        id: BlockedId,
        _: Decision,
        _: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        let noted = self.noted.lock();
        let settled = noted.blocked.values().find(|it| it.id == id);
        let settled = settled.map(|it| (it.status, it.decided_by.clone()));
        drop(noted);
        Box::pin(async move {
            Err(match settled {
                Some((status, by)) => ResolveError::Settled { id, status, by },
                None => ResolveError::Unknown(id),
            })
        })
    }

    fn graph(&self, _: bool) -> BoxFuture<'_, GraphState> {
        Box::pin(async { GraphState::Off })
    }

    fn journal(&self) -> Option<Journal> {
        None
    }

    fn is_replay(&self) -> bool {
        true
    }

    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>> {
        // It knows no session, and keeps none.
        Box::pin(async move { Registry::default().answer(request, 0) })
    }
}

impl Team for Shown {
    fn agents(&self) -> Vec<AgentStatus> {
        self.noted.lock().agents.values().cloned().collect()
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        let agents = self.agents();
        Box::pin(async { agents.into_iter().map(AgentDetails::of_status).collect() })
    }

    fn keeps(&self, _: &AgentId) -> bool {
        false
    }

    fn refusal(&self) -> Refused {
        let message = "this port shows an earlier run: nothing can be controlled here".to_owned();
        Refused::new(409, message)
    }
}
