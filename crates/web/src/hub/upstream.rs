//! The lines of one team as they arrive: chunks in their order become lines, and a missing one is noticed.
//! Pure.

use bytes::Bytes;

use super::message::{Beat, Chunk};

/// Bytes of a line; what the port sends is shorter.
const LONGEST: usize = 64 << 20;

/// How far a feed was heard.
#[derive(Default, Debug)]
pub(super) struct Upstream {
    epoch: String,
    feed: u64,
    /// The next chunk; None: the feed was not heard from its beginning, or one is missing.
    next: Option<u64>,
    /// The beginning of a line.
    partial: Vec<u8>,
    /// A feed that was announced, and not heard yet.
    awaited: u64,
}

/// The result of a chunk.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// Lines of the feed; `begins`: they are the first ones of a new feed.
    Lines { begins: bool, lines: Vec<Bytes> },
    /// Nothing: it is of an earlier feed, or of one that is not followed any more.
    Nothing,
    /// The data before the chunk is missing.
    Gap,
}

impl Upstream {
    pub(super) fn chunk(&mut self, chunk: &Chunk, bytes: &[u8]) -> Taken {
        let is_same = chunk.epoch == self.epoch && chunk.feed == self.feed;
        let is_older = chunk.epoch == self.epoch && chunk.feed < self.feed;
        if is_older {
            return Taken::Nothing;
        }
        let begins = !is_same && chunk.number == 0;
        if begins {
            *self = Self {
                epoch: chunk.epoch.clone(),
                feed: chunk.feed,
                next: Some(0),
                partial: Vec::new(),
                awaited: 0,
            };
        }
        match self.next {
            Some(next) if (is_same || begins) && next == chunk.number => self.next = Some(next + 1),
            // It was heard before.
            Some(next) if is_same && chunk.number < next => return Taken::Nothing,
            None if is_same => return Taken::Nothing,
            _ => {
                self.lose();
                (self.epoch, self.feed) = (chunk.epoch.clone(), chunk.feed);
                return Taken::Gap;
            }
        }
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.partial.len() + part.len() > LONGEST {
                self.lose();
                return Taken::Gap;
            }
            self.partial.extend_from_slice(part);
            if part.ends_with(b"\n") {
                lines.push(std::mem::take(&mut self.partial).into());
            }
        }
        Taken::Lines { begins, lines }
    }

    /// Whether the whole state is to be asked for: something is missing that was sent before a beat. A
    /// feed of which nothing was sent has the time until the next beat.
    pub(super) fn is_lost(&mut self, beat: &Beat) -> bool {
        let is_followed = self.epoch == beat.epoch && self.feed == beat.feed;
        if is_followed {
            return self.next.is_none_or(|next| next < beat.chunks);
        }
        let is_awaited = std::mem::replace(&mut self.awaited, beat.feed) == beat.feed;
        beat.chunks > 0 || is_awaited && beat.feed > 0
    }

    /// Nothing more is taken of this feed.
    pub(super) fn lose(&mut self) {
        self.next = None;
        self.partial = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(upstream: &mut Upstream, feed: u64, number: u64, bytes: &str) -> Taken {
        upstream.chunk(&Chunk { epoch: "e".to_owned(), feed, number }, bytes.as_bytes())
    }

    fn lines(begins: bool, lines: &[&'static str]) -> Taken {
        let lines = lines.iter().map(|line| Bytes::from_static(line.as_bytes())).collect();
        Taken::Lines { begins, lines }
    }

    #[test]
    fn chunks_become_lines_and_a_missing_one_is_noticed_once() {
        let mut upstream = Upstream::default();
        assert_eq!(take(&mut upstream, 1, 3, "x\n"), Taken::Gap);
        assert_eq!(take(&mut upstream, 1, 4, "x\n"), Taken::Nothing);
        assert_eq!(take(&mut upstream, 2, 0, "one\ntw"), lines(true, &["one\n"]));
        assert_eq!(take(&mut upstream, 2, 1, "o\n"), lines(false, &["two\n"]));
        assert_eq!(take(&mut upstream, 1, 4, "old\n"), Taken::Nothing);
        let beat = Beat {
            epoch: "e".to_owned(),
            number: 1,
            team: String::new(),
            feed: 2,
            chunks: 2,
            timestamp_ms: 0,
            ending: false,
        };
        assert!(!upstream.is_lost(&beat) && upstream.is_lost(&Beat { chunks: 3, ..beat.clone() }));
        // One that comes again.
        assert_eq!(take(&mut upstream, 2, 0, "one\n"), Taken::Nothing);
        assert_eq!(take(&mut upstream, 2, 3, "x\n"), Taken::Gap);
        assert_eq!(take(&mut upstream, 2, 4, "x\n"), Taken::Nothing);
        assert!(upstream.is_lost(&beat));
        assert!(upstream.is_lost(&Beat { feed: 3, chunks: 1, ..beat.clone() }));
        let next = Beat { feed: 4, chunks: 0, ..beat.clone() };
        assert!(!upstream.is_lost(&next) && upstream.is_lost(&next));
        assert_eq!(take(&mut upstream, 3, 0, "again\n"), lines(true, &["again\n"]));
    }
}
