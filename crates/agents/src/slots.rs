//! Places that all teams and runs of a user share, in `$EISEN_DIR/slots`: the slots of a profile, the one
//! run of a session, and the memory of the machine. Knows no agents and no configuration.
//!
//! Each holder, and each who waits, has a *ticket*: a numbered JSON file that its process keeps under an
//! exclusive `flock`. The first `limit` tickets hold, the others wait, so nothing is handed over: whoever
//! has fewer than `limit` live tickets before it goes on. That keeps the order of arrival, and a ticket
//! ends with its process, however that ends.
//!
//! Beside each ticket its owner holds a named pipe open. Who waits reads the pipes of the `limit` tickets
//! before it: the kernel hangs up when one is closed. So a waiter sleeps without a timer or a thread of
//! its own, and is woken by what concerns it only.

mod holder;
mod machine;
mod memory;
mod queue;
#[cfg(test)]
mod tests;
mod ticket;
mod unused;
mod waiter;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

pub use self::holder::{SlotHolder, SlotRequest};
pub use self::machine::Machine;
pub use self::memory::{MemoryHold, MemoryNeed};
use self::queue::Queue;
use self::ticket::Ticket;
pub use self::waiter::SlotWaiter;
use self::watch::first_end;
use crate::model::{KeptFiles, KeptForm};

/// Places and tickets: names of profiles, and numbers.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new("places", KeptForm::Fixed, &["slots/**"])];

/// The place of a session of an agent with this profile, else with this command.
pub fn place_of_session(profile: Option<&str>, command: &[String], session_id: &str) -> SlotPlace {
    let program = profile.or(command.first().map(String::as_str));
    SlotPlace::Session(format!("{} {session_id}", program.unwrap_or_default()))
}

/// The place that a ticket is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SlotPlace {
    /// A slot of a profile, by the profile that it goes back to.
    Base(String),
    /// A turn in the slot that an agent of a team has: its helpers take it one after the other.
    Below { base: String, team: String, agent: String },
    /// The right to use a session, by its agent's program and the agent's id for it.
    Session(String),
    /// The right to perform a batch, by its file and its workspace.
    Batch(String),
    /// Memory that starts were promised; nobody waits for a ticket of it.
    Memory,
    /// The turn to look for memory.
    MemoryTurn,
}

/// How long to wait for a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    No,
    Until(Instant),
    Forever,
}

#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// The sentence says who holds it.
    #[error("{0}")]
    Busy(String),
    #[error("the time is up: {0}")]
    TimedOut(String),
    #[error("cannot use {}: {error}", .folder.display())]
    Io { folder: PathBuf, error: io::Error },
}

/// A place that is held until this is dropped.
#[derive(Debug)]
pub struct TakenSlot(Ticket);

impl TakenSlot {
    /// Its position in the order of arrival, of all that came to this place.
    pub fn number(&self) -> u64 {
        self.0.number()
    }
}

/// All places of one `$EISEN_DIR`; cheap to clone.
#[derive(Clone, Debug)]
pub struct Slots {
    folder: PathBuf,
}

impl Slots {
    pub fn new(eisen_dir: &Path) -> Self {
        Self { folder: eisen_dir.join("slots") }
    }

    /// Takes one of `limit` places, in the order of arrival. `on_wait` is told whom it waits for, at once
    /// and when that has changed by the time that this one is woken. Cancel-safe: a future that is
    /// dropped gives its place in the order up.
    pub async fn acquire(
        &self,
        place: &SlotPlace,
        limit: u32,
        request: SlotRequest,
        wait: Wait,
        mut on_wait: impl FnMut(&SlotWaiter),
    ) -> Result<TakenSlot, SlotError> {
        let (queue, began) = (self.queue(place), Instant::now());
        let failed = |error| SlotError::Io { folder: queue.folder().to_owned(), error };
        let limit = limit.max(1);
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let taking = self.take(place, SlotHolder::waiting(request));
        let mut ticket = until(wait, taking).await.map_or_else(
            || {
                Err(SlotError::TimedOut(format!(
                    "waits for another process to take {}",
                    place.label()
                )))
            },
            |taken| taken.map_err(failed),
        )?;
        let (mut told, mut pause) = (None, SHORTEST_PAUSE);
        loop {
            let before = queue.before(ticket.number(), most).map_err(failed)?;
            if before.len() < most {
                ticket.acquired().map_err(failed)?;
                return Ok(TakenSlot(ticket));
            }
            let standing = queue.standing(ticket.number()).map_err(failed)?;
            let standing = SlotWaiter { place: place.label(), limit, ..standing };
            if wait == Wait::No {
                return Err(SlotError::Busy(standing.to_string()));
            }
            let is_moment = matches!(place, SlotPlace::MemoryTurn) && began.elapsed() < MOMENT;
            if told.as_ref() != Some(&standing) && !is_moment {
                on_wait(&standing);
            }
            let sentence = standing.to_string();
            if !is_moment {
                told = Some(standing);
            }
            let woken = until(wait, first_end(&queue, &before, pause));
            let is_woken = if is_moment {
                let Ok(is_woken) = timeout(MOMENT, woken).await else { continue };
                is_woken
            } else {
                woken.await
            };
            match is_woken {
                None => return Err(SlotError::TimedOut(sentence)),
                Some(true) => pause = SHORTEST_PAUSE,
                // A pipe has ended, and its ticket is locked: the lock follows, or somebody else has it.
                Some(false) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    /// Where an agent waits for a slot: an agent whose helper it is, near or far, may have one, and can't
    /// give it back before the helper is done. Then it has its turn in that one.
    pub fn place_of(
        &self,
        base: &str,
        team: &str,
        above: &[String],
    ) -> Result<SlotPlace, SlotError> {
        let below = |agent: &String| {
            let [base, team] = [base, team].map(str::to_owned);
            SlotPlace::Below { base, team, agent: agent.clone() }
        };
        for (at, agent) in above.iter().enumerate() {
            let own = std::iter::once(SlotPlace::Base(base.to_owned()));
            for place in own.chain(above[at + 1..].iter().map(below)) {
                let tickets = self.tickets(&place).map_err(|error| SlotError::Io {
                    folder: self.folder.join(place.folder()),
                    error,
                })?;
                let is_its = |it: &SlotHolder| {
                    let of = (it.team.as_deref(), it.agent.as_deref());
                    it.acquired_at.is_some() && of == (Some(team), Some(agent.as_str()))
                };
                if tickets.iter().any(is_its) {
                    return Ok(below(agent));
                }
            }
        }
        Ok(SlotPlace::Base(base.to_owned()))
    }

    /// The holders of a place and those who wait for it, in order.
    pub fn tickets(&self, place: &SlotPlace) -> io::Result<Vec<SlotHolder>> {
        Ok(self.queue(place).live()?.into_iter().map(|(_, holder)| holder).collect())
    }

    /// Takes a ticket. If that has to wait, it does so on a thread of its own, which a runtime that ends
    /// does not wait for.
    async fn take(&self, place: &SlotPlace, holder: SlotHolder) -> io::Result<Ticket> {
        let queue = self.queue(place);
        if let Some(ticket) = queue.try_take(&holder)? {
            return Ok(ticket);
        }
        let (sender, taken) = oneshot::channel();
        std::thread::Builder::new().name("slot".to_owned()).spawn(move || {
            // Without a receiver the ticket is dropped, and with it given back.
            let _ = sender.send(queue.take(holder));
        })?;
        taken.await.unwrap_or_else(|_| Err(io::Error::other("the thread for it has ended")))
    }

    fn queue(&self, place: &SlotPlace) -> Queue {
        Queue::new(self.folder.join(place.folder()))
    }
}

/// How long another one may look at the memory before that is told: mostly it has looked by then.
const MOMENT: Duration = Duration::from_millis(500);

/// How long a waiter sleeps where a pipe has ended before its lock did.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Waits for a future as long as is allowed; None when the time is up. What takes no long time is not
/// cut short by [`Wait::No`].
async fn until<T>(wait: Wait, future: impl Future<Output = T>) -> Option<T> {
    match wait {
        Wait::Until(deadline) => timeout_at(deadline, future).await.ok(),
        Wait::No | Wait::Forever => Some(future.await),
    }
}

/// How folders are named that are for one session, or for the helpers of one agent.
const SESSION: &str = ".session-";
const BELOW: &str = ".below-";

impl SlotPlace {
    /// Its folder's name. Names of profiles don't begin with a dot.
    fn folder(&self) -> String {
        match self {
            Self::Base(name) if is_plain(name) => name.clone(),
            Self::Base(name) => format!(".profile-{}", hash(name)),
            Self::Below { base, team, agent } => {
                format!("{BELOW}{}", hash(&format!("{base} {team} {agent}")))
            }
            Self::Session(id) => format!("{SESSION}{}", hash(id)),
            Self::Batch(id) => format!(".batch-{}", hash(id)),
            Self::Memory => ".memory".to_owned(),
            Self::MemoryTurn => ".memory-turn".to_owned(),
        }
    }

    fn label(&self) -> String {
        match self {
            Self::Base(name) => format!("a slot of `{name}`"),
            Self::Below { base, agent, .. } => format!("the slot of `{base}` that `{agent}` has"),
            Self::Session(_) => "the session".to_owned(),
            Self::Batch(_) => "the batch".to_owned(),
            Self::Memory | Self::MemoryTurn => "memory".to_owned(),
        }
    }
}

fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(is_plain)
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}
