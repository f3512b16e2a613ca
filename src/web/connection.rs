//! The connections of the web server: how many there may be, with a credential and without.

use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::serve::Strangers;

/// Connections at once that have shown a credential; a request on one more is answered with 503.
const MOST_KNOWN: usize = 256;

/// All connections.
pub(super) struct Connections {
    strangers: Arc<Strangers>,
    places: Arc<Semaphore>,
}

/// One connection, as its requests know it.
#[derive(Clone)]
pub(super) struct WebConnection(Arc<ConnectionState>);

struct ConnectionState {
    /// Closes it.
    closed: CancellationToken,
    strangers: Arc<Strangers>,
    places: Arc<Semaphore>,
    /// Its place, once a request has shown a credential.
    place: OnceLock<OwnedSemaphorePermit>,
}

impl WebConnection {
    /// Serves the connection until it ends, or is closed.
    pub(super) async fn run(&self, serving: impl Future<Output = ()>) {
        let Self(state) = self;
        let _ = state.closed.run_until_cancelled(serving).await;
        state.strangers.is_none(&state.closed);
    }

    /// Counts it among those that have shown a credential; false if there are too many.
    pub(super) fn is_known(&self) -> bool {
        let Self(state) = self;
        if state.place.get().is_some() {
            return true;
        }
        let Ok(place) = Arc::clone(&state.places).try_acquire_owned() else { return false };
        let _ = state.place.set(place);
        state.strangers.is_none(&state.closed);
        true
    }
}

impl Default for Connections {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(MOST_KNOWN));
        Self { strangers: Arc::default(), places }
    }
}

impl Connections {
    /// Counts a new connection, which `closed` closes.
    pub(super) fn add(&self, closed: CancellationToken) -> WebConnection {
        self.strangers.came(closed.clone());
        let (strangers, places) = (Arc::clone(&self.strangers), Arc::clone(&self.places));
        WebConnection(Arc::new(ConnectionState {
            closed,
            strangers,
            places,
            place: OnceLock::new(),
        }))
    }
}
