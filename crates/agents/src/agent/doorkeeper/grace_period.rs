//! Grace period of an access that no call names. The line that names it arrives beside the access,
//! and may come slightly later.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A process older than the turn is the agent itself, which performs its own calls.
const OWN: Duration = Duration::from_millis(200);
/// A younger process was mostly started for a call whose line has already arrived.
const OTHERS: Duration = Duration::from_millis(25);

/// A search makes many accesses: after `MOST` misses there is one wait for each `AGAIN`. Concurrent
/// accesses share a wait.
const MOST: u64 = 3;
const AGAIN: Duration = Duration::from_secs(1);

/// Processes that are remembered; when full, all are forgotten.
const MOST_PROCESSES: usize = 256;

pub(super) struct GracePeriods {
    /// Returns the age of a process.
    age: fn(u32) -> Option<Duration>,
    accounts: Mutex<Accounts>,
}

#[derive(Default)]
struct Accounts {
    processes: HashMap<u32, Process>,
    /// All processes that are younger than the turn: a build starts thousands.
    others: Account,
}

struct Process {
    /// Start of the turn that the process's age was compared with.
    turn: Instant,
    /// None: the process is younger than the turn.
    own: Option<Account>,
}

#[derive(Default)]
struct Account {
    misses: u64,
    /// Start of the period after which one miss is dropped.
    since: Option<Instant>,
    until: Option<Instant>,
}

impl GracePeriods {
    pub(super) fn new(age: fn(u32) -> Option<Duration>) -> Self {
        Self { age, accounts: Mutex::default() }
    }

    /// Whether a process began before `moment`.
    pub(super) fn is_older(&self, process: u32, moment: Instant) -> bool {
        (self.age)(process).is_some_and(|age| age > moment.elapsed())
    }

    /// Returns how long an access of this process waits; `turn` is the start of the first running
    /// turn.
    pub(super) fn wait(&self, process: u32, turn: Instant) -> Option<Duration> {
        let now = Instant::now();
        let mut accounts = self.accounts.lock();
        let accounts = &mut *accounts;
        if accounts.processes.get(&process).is_none_or(|known| known.turn != turn) {
            let is_own = self.is_older(process, turn);
            accounts.register(process, turn, is_own);
        }
        let (account, wait) = accounts.of(process);
        account.begin(now, wait).then_some(wait)
    }

    /// The age of a process that was started in this turn; None: it is older, and the agent's own, or it is gone.
    pub(super) fn age_in(&self, process: u32, turn: Instant) -> Option<Duration> {
        (self.age)(process).filter(|age| *age <= turn.elapsed())
    }

    /// Restores the full grace period of a process whose access was named in time.
    pub(super) fn reset(&self, process: u32) {
        let mut accounts = self.accounts.lock();
        *accounts.of(process).0 = Account::default();
    }
}

impl Accounts {
    fn register(&mut self, process: u32, turn: Instant, is_own: bool) {
        if self.processes.len() >= MOST_PROCESSES {
            self.processes.clear();
        }
        let known = self.processes.entry(process).or_insert(Process { turn, own: None });
        known.turn = turn;
        known.own = is_own.then(|| known.own.take().unwrap_or_default());
    }

    fn of(&mut self, process: u32) -> (&mut Account, Duration) {
        match self.processes.get_mut(&process).and_then(|known| known.own.as_mut()) {
            Some(own) => (own, OWN),
            None => (&mut self.others, OTHERS),
        }
    }
}

impl Account {
    fn begin(&mut self, now: Instant, wait: Duration) -> bool {
        if self.until.is_some_and(|until| until > now) {
            return true;
        }
        let since = self.since.get_or_insert(now);
        while self.misses > 0 && now.duration_since(*since) >= AGAIN {
            self.misses -= 1;
            *since += AGAIN;
        }
        if self.misses >= MOST {
            return false;
        }
        if self.misses == 0 {
            *since = now;
        }
        self.misses += 1;
        self.until = Some(now + wait);
        true
    }
}
