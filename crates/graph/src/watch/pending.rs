//! Collects disk changes until a burst of them is over. Pure: times are passed in.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The pause that ends a burst.
const QUIET: Duration = Duration::from_millis(50);

/// The longest burst.
const LONGEST: Duration = Duration::from_secs(1);

/// The longest burst while git is busy: a checkout is one change.
const LONGEST_OF_GIT: Duration = Duration::from_secs(10);

/// Paths of a burst; over it everything is read again, which costs no more.
const MOST: usize = 10_000;

/// The part of the workspace to read again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Changed {
    /// These paths; for folders everything below.
    Paths(BTreeSet<PathBuf>),
    Everything,
}

#[derive(Debug, Default)]
pub(super) struct PendingChanges(Option<Burst>);

#[derive(Debug)]
struct Burst {
    changed: Changed,
    first: Instant,
    last: Instant,
}

impl PendingChanges {
    pub(super) fn add(&mut self, path: PathBuf, now: Instant) {
        let burst = self.burst(now);
        if let Changed::Paths(paths) = &mut burst.changed {
            paths.insert(path);
            if paths.len() > MOST {
                burst.changed = Changed::Everything;
            }
        }
    }

    /// Starts or extends a burst without a path.
    pub(super) fn wake(&mut self, now: Instant) {
        self.burst(now);
    }

    /// Adds a change of unknown paths.
    pub(super) fn add_everything(&mut self, now: Instant) {
        self.burst(now).changed = Changed::Everything;
    }

    /// The end of the burst; None without changes.
    pub(super) fn due(&self, git_is_busy: bool) -> Option<Instant> {
        let burst = self.0.as_ref()?;
        if git_is_busy {
            return Some(burst.first + LONGEST_OF_GIT);
        }
        Some((burst.last + QUIET).min(burst.first + LONGEST))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn take(&mut self) -> Option<Changed> {
        self.0.take().map(|burst| burst.changed)
    }

    fn burst(&mut self, now: Instant) -> &mut Burst {
        let new = || Burst { changed: Changed::Paths(BTreeSet::new()), first: now, last: now };
        let burst = self.0.get_or_insert_with(new);
        burst.last = now;
        burst
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_burst_is_looked_at_once_it_is_over() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut pending = PendingChanges::default();
        assert_eq!((pending.due(false), pending.take()), (None, None));
        pending.add("a".into(), start);
        pending.add("b".into(), after(30));
        pending.add("a".into(), after(40));
        assert_eq!(pending.due(false), Some(after(90)));
        let both = BTreeSet::from(["a".into(), "b".into()]);
        assert_eq!(pending.take(), Some(Changed::Paths(both)));
        assert_eq!(pending.due(false), None);
    }

    #[test]
    fn changes_without_a_pause_are_looked_at_all_the_same() {
        let start = Instant::now();
        let mut pending = PendingChanges::default();
        for ms in (0..5_000).step_by(40) {
            pending.add("a".into(), start + Duration::from_millis(ms));
        }
        assert_eq!(pending.due(false), Some(start + LONGEST));
        assert_eq!(pending.due(true), Some(start + LONGEST_OF_GIT), "git can finish");
    }

    #[test]
    fn a_storm_is_bounded() {
        let now = Instant::now();
        let mut pending = PendingChanges::default();
        for number in 0..=MOST {
            pending.add(number.to_string().into(), now);
        }
        assert_eq!(pending.take(), Some(Changed::Everything));
    }
}
