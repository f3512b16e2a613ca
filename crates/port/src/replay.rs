//! Shows an earlier run: turns events of a journal into events of a team, on a bus of its own, at
//! their own pace or a multiple of it. Knows no sockets.
//!
//! ```text
//! journal ─▶ page by page ─▶ pace ─▶ scenes (activities, statuses, accesses) ─▶ tracker ─▶ bus
//! ```

mod pace;
mod scenes;
mod updates;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eisen_base::task;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use self::scenes::{Scene, Scenes};
use crate::bus::Bus;
use crate::journal::{Filter, OpenError, Session, Store};
use crate::model::{AgentId, Event as Published, SessionId, SessionKey};
use crate::tracker::{OrchestratorView, Settings, TrackerHandle};

pub use pace::{Speed, SpeedError};

/// Events that are read at once, and the bytes of their payloads.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// The shortest tick: heat decays by the time that passes in the replay.
const SHORTEST_TICK: Duration = Duration::from_millis(10);

/// The run to show.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The journal's file.
    pub path: PathBuf,
    /// None: all of it.
    pub session: Option<Session>,
}

/// The receivers of a recording that is played.
pub trait Audience: Send {
    /// Called with an event that the tracker does not know, before it is published.
    fn before(&mut self, _event: &Published) {}

    /// Called after each published event; the play goes on once the future ends.
    fn shown(&mut self) -> BoxFuture<'_, ()>;
}

/// Plays a recording into a tracker of its own.
pub struct Player {
    recording: Recording,
    speed: Speed,
    bus: Bus,
    tracker: TrackerHandle,
    /// The time of the event that is played.
    now: Arc<AtomicU64>,
}

impl Player {
    /// A player with its tracker, whose task ends after `cancel`.
    pub fn new(
        recording: Recording,
        speed: Speed,
        settings: Settings,
        view: OrchestratorView,
        bus: Bus,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        let clock = Arc::new(move || clock.load(Ordering::Relaxed));
        let settings = Settings {
            tick: speed.scaled(settings.tick).max(SHORTEST_TICK),
            idle_tick: speed.scaled(settings.idle_tick).max(SHORTEST_TICK),
            ..settings
        };
        let (tracker, tracking) =
            TrackerHandle::spawn_with_clock(settings, view, bus.clone(), cancel, clock);
        (Self { recording, speed, bus, tracker, now }, tracking)
    }

    pub fn tracker(&self) -> &TrackerHandle {
        &self.tracker
    }

    /// Plays the whole recording; returns the number of events.
    pub async fn play(self, audience: &mut impl Audience) -> Result<u64, OpenError> {
        let Recording { path, session } = self.recording;
        let (keys, root) = read(&path, |store| {
            let sessions = store.sessions()?;
            let keys: HashMap<_, _> = sessions
                .into_iter()
                .map(|session| (session.id.clone(), key_of(&session)))
                .collect();
            Ok((keys, store.meta("workspace")?))
        })
        .await?;
        let only = session.as_ref().map(|session| session.agent_id.clone());
        let mut scenes = Scenes::new(keys, root.map(PathBuf::from), only);
        let mut filter = Filter { limit: PAGE, bytes: PAGE_BYTES, ..Filter::default() };
        filter.session_id = session.map(|session| session.id);
        let mut pauses = self.speed.pace();
        let mut count = 0;
        loop {
            let wanted = filter.clone();
            let page = read(&path, move |store| store.events(&wanted)).await?;
            for event in &page.events {
                pauses.wait(event.timestamp).await;
                self.now.store(event.timestamp, Ordering::Relaxed);
                count += 1;
                let scenes = scenes.of(event);
                if !scenes.is_empty() {
                    perform(&self.tracker, &self.bus, scenes, audience);
                    // All its events are published before the next one.
                    self.tracker.settled().await;
                    audience.shown().await;
                }
            }
            let Some(next) = page.next else { return Ok(count) };
            filter.after = Some(next);
        }
    }
}

fn perform(tracker: &TrackerHandle, bus: &Bus, scenes: Vec<Scene>, audience: &mut impl Audience) {
    for scene in scenes {
        match scene {
            Scene::Did(agent, activity) => tracker.record(&agent, activity),
            Scene::Blocked(access, is_named) => {
                if is_named {
                    tracker.blocked(&access.key, access.path.clone());
                }
                let event = Published::Blocked(*access);
                audience.before(&event);
                bus.publish(event);
            }
            Scene::Agent(status) => {
                let event = Published::Agent(status);
                audience.before(&event);
                bus.publish(event);
            }
            Scene::DiskWrote(path) => tracker.disk_wrote(path),
        }
    }
}

/// The session of the wire; for a session that was never on it, the journal's id.
fn key_of(session: &Session) -> SessionKey {
    let wire = session.wire_session_id.as_ref().unwrap_or(&session.id);
    SessionKey::new(AgentId::new(session.agent_id.as_str()), SessionId::new(wire.as_str()))
}

/// Reads the journal in a thread that may block; it is not held open.
async fn read<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Store) -> Result<T, OpenError> + Send + 'static,
) -> Result<T, OpenError> {
    let path = path.to_owned();
    let missing = OpenError::Missing(path.clone());
    let reading = task::spawn_blocking(move || work(&Store::open(&path)?));
    // Only a panic, or the end of the runtime, breaks it off.
    reading.await.unwrap_or(Err(missing))
}
