//! Which teams are there, by their beats. Pure.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::message::Beat;

/// How often a team says that it is there, and after which silence it is taken to be away.
pub(super) const EVERY: Duration = Duration::from_secs(1);
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// Hosts of one hub; a further one is not heard.
pub(super) const MOST: usize = 1_000;

/// The hosts that were heard.
#[derive(Default, Debug)]
pub(super) struct Presence(BTreeMap<String, HeardHost>);

#[derive(Clone, Debug)]
pub(super) struct HeardHost {
    pub(super) beat: Beat,
    heard: Instant,
    pub(super) is_away: bool,
}

/// The change that a beat makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BeatNews {
    /// Nothing.
    Known,
    /// The beat says nothing: a later one was heard.
    Late,
    /// Its team is new, was started anew, or is back.
    New,
    /// Its team stops.
    Ended,
    /// Another team wants the name of a host.
    Taken,
    /// There are too many hosts.
    TooMany,
}

impl Presence {
    pub(super) fn beat(&mut self, host: &str, beat: Beat, now: Instant) -> BeatNews {
        let Some(known) = self.0.get_mut(host) else {
            if beat.ending {
                return BeatNews::Late;
            }
            if self.0.len() >= MOST {
                self.0.retain(|_, heard| !heard.is_away);
            }
            if self.0.len() >= MOST {
                return BeatNews::TooMany;
            }
            self.0.insert(host.to_owned(), HeardHost { beat, heard: now, is_away: false });
            return BeatNews::New;
        };
        if beat.epoch != known.beat.epoch {
            if beat.ending {
                return BeatNews::Late;
            }
            // The one that is there keeps the name as long as it is heard.
            if now.duration_since(known.heard) < SILENCE {
                return BeatNews::Taken;
            }
        } else if beat.number <= known.beat.number {
            return BeatNews::Late;
        }
        if beat.ending {
            self.0.remove(host);
            return BeatNews::Ended;
        }
        let is_new = known.is_away || beat.epoch != known.beat.epoch;
        *known = HeardHost { beat, heard: now, is_away: false };
        if is_new { BeatNews::New } else { BeatNews::Known }
    }

    /// Returns the hosts that are silent for too long since now.
    pub(super) fn gone(&mut self, now: Instant) -> Vec<String> {
        let mut gone = Vec::new();
        for (host, heard) in &mut self.0 {
            if !heard.is_away && now.duration_since(heard.heard) >= SILENCE {
                heard.is_away = true;
                gone.push(host.clone());
            }
        }
        gone
    }

    pub(super) fn get(&self, host: &str) -> Option<&HeardHost> {
        self.0.get(host)
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(epoch: &str, number: u64) -> Beat {
        let (epoch, team) = (epoch.to_owned(), "shop".to_owned());
        Beat { epoch, number, team, timestamp_ms: 0, feed: 0, chunks: 0, ending: false }
    }

    #[test]
    fn a_host_is_new_known_away_back_and_ended() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        assert_eq!(presence.beat("a", beat("1", 1), start), BeatNews::New);
        assert_eq!(presence.beat("a", beat("1", 2), start), BeatNews::Known);
        assert_eq!(presence.gone(start), Vec::<String>::new());
        assert_eq!(presence.gone(start + SILENCE), ["a"]);
        assert_eq!(presence.gone(start + SILENCE), Vec::<String>::new());
        // A beat that was heard before says nothing.
        assert_eq!(presence.beat("a", beat("1", 2), start + SILENCE), BeatNews::Late);
        assert!(presence.get("a").is_some_and(|heard| heard.is_away));
        assert_eq!(presence.beat("a", beat("1", 3), start + SILENCE), BeatNews::New);
        let ending = Beat { ending: true, ..beat("1", 4) };
        assert_eq!(presence.beat("a", ending, start + SILENCE), BeatNews::Ended);
        assert_eq!(presence.hosts().count(), 0);
    }

    #[test]
    fn the_name_of_a_host_is_that_of_the_team_that_is_there() {
        let (mut presence, start) = (Presence::default(), Instant::now());
        presence.beat("a", beat("1", 1), start);
        assert_eq!(presence.beat("a", beat("2", 1), start), BeatNews::Taken);
        assert_eq!(presence.beat("a", beat("2", 9), start + SILENCE), BeatNews::New);
        // One that is recorded and sent again changes nothing.
        assert_eq!(presence.beat("a", beat("1", 9), start + SILENCE), BeatNews::Taken);
    }
}
