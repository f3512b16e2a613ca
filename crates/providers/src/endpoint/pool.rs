//! Connections that are free, kept for later calls.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::connection::ProviderConnection;

/// Connections that are kept of each provider, and for how long.
const MOST_FREE: usize = 64;
const LONGEST_FREE: Duration = Duration::from_secs(50);

/// How often connections are closed that were free for too long, or that their provider has closed.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// The scheme and the authority of an address: a connection serves no other.
type ProviderOrigin = (Option<Scheme>, Option<Authority>);

/// The connections that are free.
#[derive(Default)]
pub(super) struct ConnectionPool(Mutex<FreeConnections>);

#[derive(Default)]
struct FreeConnections {
    by_origin: HashMap<ProviderOrigin, Vec<FreeConnection>>,
    has_sweeper: bool,
}

struct FreeConnection {
    connection: ProviderConnection,
    since: Instant,
}

/// The place of a connection, to which it comes back.
pub(super) struct ConnectionPlace {
    pool: Arc<ConnectionPool>,
    origin: ProviderOrigin,
}

impl ConnectionPlace {
    pub(super) fn of(pool: &Arc<ConnectionPool>, to: &Uri) -> Self {
        let origin = (to.scheme().cloned(), to.authority().cloned());
        Self { pool: Arc::clone(pool), origin }
    }

    /// Takes the connection that became free last.
    pub(super) fn take(&self) -> Option<ProviderConnection> {
        loop {
            let mut found = self.pool.0.lock().by_origin.get_mut(&self.origin)?.pop()?;
            if found.since.elapsed() < LONGEST_FREE && found.connection.drive_if_free() {
                return Some(found.connection);
            }
        }
    }

    /// Keeps a connection, if it can take another call.
    pub(super) fn put(&self, mut connection: ProviderConnection) {
        let Ok(runtime) = Handle::try_current() else { return };
        if !connection.drive_if_free() {
            return;
        }
        let mut free = self.pool.0.lock();
        let here = free.by_origin.entry(self.origin.clone()).or_default();
        if here.len() < MOST_FREE {
            here.push(FreeConnection { connection, since: Instant::now() });
            if !std::mem::replace(&mut free.has_sweeper, true) {
                runtime.spawn(sweep(Arc::downgrade(&self.pool)));
            }
        }
    }
}

/// Closes connections that are old or dead. It ends when none is left.
async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        sleep(SWEEP_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut free = pool.0.lock();
        free.by_origin.retain(|_, all| {
            all.retain_mut(|it| it.since.elapsed() < LONGEST_FREE && it.connection.drive_if_free());
            !all.is_empty()
        });
        free.has_sweeper = !free.by_origin.is_empty();
        if !free.has_sweeper {
            return;
        }
    }
}
