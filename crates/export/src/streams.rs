//! Streams: deliver what the journal has to files and other receivers, at least once and in its order.
//! Nothing waits for them.
//!
//! ```text
//! journal ─▶ reading (from the cursor, what the scope has) ─▶ batch ─▶ sink ─▶ cursor
//!                                            a failure: the same batch again, after a pause
//! ```

mod attempt;
mod batch;
mod cursor;
mod file;
mod health;
mod nats;
mod otlp;
mod sink;
#[cfg(test)]
mod tests;
mod webhook;
mod worker;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::attempt::{Delivery, History};
use self::batch::{Reading, ScopeFilter};
use self::sink::Sink;
use self::worker::{BusOutlet, MOST_REPLAYS, Replay, Worker};
use crate::bus::Bus;
use crate::journal::{Journal, NameError, Store};
use crate::kept::make_folder;
use crate::model::{
    KeptFiles, KeptForm, StreamReplay, StreamReport, StreamSpec, StreamState, now_ms,
};

/// Events that a receiver refused, how far each stream is, and which were attached.
pub const KEPT: [KeptFiles; 2] = [
    KeptFiles::new("dead letters", KeptForm::Json, &["teams/*/streams/*.dead.ndjson*"]),
    KeptFiles::new("streams", KeptForm::Json, &["teams/*/streams/*"]),
];

/// The first pause of a stream after a failure; each further one is twice as long.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The settings that all streams of a team share.
#[derive(Debug)]
pub struct Settings {
    pub team: String,
    /// Where cursors are.
    pub folder: PathBuf,
    pub journal: Journal,
    pub bus: Bus,
    /// Ends the use of the bus.
    pub cancel: CancellationToken,
    /// The first pause of a stream after a failure: [`FIRST_PAUSE`]. Tests have a shorter one.
    pub first_pause: Duration,
}

/// Why a session is not delivered once more.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("there is no stream `{0}` that runs")]
    NoStream(String),
    #[error(transparent)]
    Session(#[from] NameError),
    #[error("too many replays wait for this stream")]
    Many,
    #[error("the stream ended before the session was delivered")]
    Ended,
}

/// The streams of a team that runs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Streams {
    team: Arc<str>,
    folder: PathBuf,
    journal: Journal,
    outlet: BusOutlet,
    first_pause: Duration,
    running: Arc<Mutex<IndexMap<String, Running>>>,
}

#[derive(Debug)]
struct Running {
    report: Arc<Mutex<StreamReport>>,
    replays: mpsc::Sender<Replay>,
    stop: CancellationToken,
    ended: Option<JoinHandle<()>>,
}

impl Streams {
    /// No streams yet.
    pub fn new(settings: Settings) -> Self {
        let Settings { team, folder, journal, bus, cancel, first_pause } = settings;
        let outlet: BusOutlet = Arc::new(Mutex::new(Some(bus)));
        let ending = Arc::clone(&outlet);
        task::spawn(async move {
            cancel.cancelled().await;
            ending.lock().take();
        });
        Self { team: team.into(), folder, journal, outlet, first_pause, running: Arc::default() }
    }

    /// Starts a stream; one of this name must not run. A new one has what is committed from now on.
    pub async fn start(&self, spec: &StreamSpec) {
        let name = spec.name.as_str();
        let reading = Reading {
            team: Arc::clone(&self.team),
            stream: name.into(),
            journal: self.journal.settings().path.as_path().into(),
        };
        let (parts, scope) = (
            (reading, Sink::new(&spec.target, &self.team, name)),
            ScopeFilter::new(spec.scope.clone()),
        );
        let mut delivery = Delivery::new(parts, scope, &self.folder, name, spec.from_start);
        // A journal that can't be opened yet begins with all that it will have.
        let _ = self.journal.opened().await;
        let folder = self.folder.clone();
        let located = task::spawn_blocking(move || {
            if let Err(error) = make_folder(&folder) {
                tracing::warn!("cannot make the folder {}: {error}", folder.display());
            }
            // An error shows again when it delivers.
            let _ = delivery.locate();
            delivery
        });
        let Ok(delivery) = located.await else { return };
        let report = Arc::new(Mutex::new(spec.report(StreamState::Ok, now_ms())));
        let stop = CancellationToken::new();
        let outlet = Arc::clone(&self.outlet);
        let health = health::Health::new(self.first_pause);
        let worker = Worker::new(delivery, Arc::clone(&report), outlet, health, spec.canary);
        let (replays, wanted) = mpsc::channel(MOST_REPLAYS);
        let ended = task::spawn(worker.run(self.journal.written(), wanted, stop.clone()));
        let running = Running { report, replays, stop, ended: Some(ended) };
        self.running.lock().insert(name.to_owned(), running);
    }

    /// Ends a stream, and forgets how far it was if it is not to go on there. False: it does not run.
    pub async fn end(&self, name: &str, forget: bool) -> bool {
        let Some(running) = self.running.lock().shift_remove(name) else { return false };
        running.stop.cancel();
        if let Some(ended) = running.ended {
            let _ = ended.await;
        }
        if forget {
            let place = attempt::place(&self.folder, name);
            let _ = task::spawn_blocking(move || fs::remove_file(place)).await;
        }
        true
    }

    /// Delivers a session to one stream once more, whatever the stream's scope is; returns once that is
    /// done. Dropping the future ends it.
    pub async fn replay(&self, stream: &str, session: &str) -> Result<StreamReplay, ReplayError> {
        let replays = self.running.lock().get(stream).map(|running| running.replays.clone());
        let replays = replays.ok_or_else(|| ReplayError::NoStream(stream.to_owned()))?;
        let (path, name) = (self.journal.settings().path.clone(), session.to_owned());
        let found = task::spawn_blocking(move || -> Result<_, NameError> {
            let store = Store::open(&path)?;
            let session = store.session_named(&name, None)?;
            Ok((session.id, store.end()?.unwrap_or_default().0))
        });
        let (session, until) = found.await.map_err(|_| ReplayError::Ended)??;
        let replay_id: Arc<str> = uuid::Uuid::now_v7().hyphenated().to_string().into();
        let (done, is_done) = oneshot::channel();
        let history = History::new(replay_id, session, until);
        replays.try_send((history, done)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ReplayError::Many,
            mpsc::error::TrySendError::Closed(_) => ReplayError::Ended,
        })?;
        let history = is_done.await.map_err(|_| ReplayError::Ended)?;
        let History { replay_id, session, events, dead, .. } = history;
        Ok(StreamReplay { replay_id, session, events, dead })
    }

    /// How each stream stands.
    pub fn reports(&self) -> Vec<StreamReport> {
        self.running.lock().values().map(|running| running.report.lock().clone()).collect()
    }

    /// Waits until all have ended: soon after the journal has.
    pub async fn ended(self) {
        let ended: Vec<_> =
            self.running.lock().values_mut().filter_map(|running| running.ended.take()).collect();
        for ended in ended {
            let _ = ended.await;
        }
    }
}
