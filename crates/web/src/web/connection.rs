//! The connections of the web server: how many there may be without a credential, and of each one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::credential::Credential;
use super::known_places::{KnownPlace, KnownPlaces};
use crate::serve::{Arrival, Unauthenticated};

/// All connections.
#[derive(Default)]
pub(super) struct Connections {
    strangers: Arc<Unauthenticated>,
    places: KnownPlaces,
}

/// One connection, as its requests know it. It keeps its place as long as one of them has it.
#[derive(Clone)]
pub(super) struct WebConnection(Arc<ConnectionState>);

struct ConnectionState {
    /// Closes it.
    closed: CancellationToken,
    arrival: Arrival,
    strangers: Arc<Unauthenticated>,
    places: KnownPlaces,
    /// Its place, once a request has shown a credential.
    place: Mutex<Option<KnownPlace>>,
    is_socket: AtomicBool,
}

impl Connections {
    /// Counts a new connection, which `closed` closes.
    pub(super) fn add(&self, closed: CancellationToken) -> WebConnection {
        let arrival = self.strangers.arrived(closed.clone());
        WebConnection(Arc::new(ConnectionState {
            closed,
            arrival,
            strangers: Arc::clone(&self.strangers),
            places: self.places.clone(),
            place: Mutex::default(),
            is_socket: AtomicBool::new(false),
        }))
    }
}

impl WebConnection {
    /// Serves the connection until it ends, or is closed.
    pub(super) async fn run(&self, serving: impl Future<Output = ()>) {
        let Self(state) = self;
        let _ = state.closed.run_until_cancelled(serving).await;
        state.strangers.left(state.arrival);
    }

    /// Takes a place among those that have shown a credential; false if there is none for this one. A
    /// reverse proxy may send requests with several on one connection: it has the place of the last.
    pub(super) fn take_place(&self, credential: &Credential) -> bool {
        let Self(state) = self;
        let mut place = state.place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.as_ref().is_some_and(|place| place.is_of(credential)) {
            return true;
        }
        let Some(new) = state.places.take(credential) else { return false };
        *place = Some(new);
        state.strangers.left(state.arrival);
        true
    }

    /// The connection carries a WebSocket from now on, which has a deadline of its own for what it writes.
    pub(super) fn becomes_socket(&self) {
        self.0.is_socket.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_socket(&self) -> bool {
        self.0.is_socket.load(Ordering::Relaxed)
    }
}
