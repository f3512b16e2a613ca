//! Contents that sessions knew, by their hashes: what a merge begins with. The journal has those that somebody
//! replaced; a content that a session sent and that was merged, or that somebody outside replaced, is only here.

use std::sync::Arc;

use indexmap::IndexMap;

/// Bytes of all contents, and their number; past either the oldest is forgotten. What it would be merged with is
/// then held or denied, unless the journal has it.
const MOST_BYTES: usize = 32 << 20;
const MOST: usize = 4096;

/// Bytes of the largest that is kept.
const LARGEST: usize = 4 << 20;

#[derive(Default)]
pub(super) struct Bases {
    contents: IndexMap<Arc<str>, Arc<[u8]>>,
    bytes: usize,
}

impl Bases {
    pub(super) fn keep(&mut self, hash: &Arc<str>, content: &[u8]) {
        if content.len() > LARGEST {
            return;
        }
        // The newest stands last.
        let content = if let Some(known) = self.contents.shift_remove(hash) {
            known
        } else {
            self.bytes += content.len();
            content.into()
        };
        self.contents.insert(Arc::clone(hash), content);
        while self.bytes > MOST_BYTES || self.contents.len() > MOST {
            let Some((_, oldest)) = self.contents.shift_remove_index(0) else { return };
            self.bytes -= oldest.len();
        }
    }

    pub(super) fn get(&self, hash: &str) -> Option<Arc<[u8]>> {
        self.contents.get(hash).cloned()
    }
}

impl std::fmt::Debug for Bases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (contents, bytes) = (self.contents.len(), self.bytes);
        f.debug_struct("Bases").field("contents", &contents).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_contents_are_kept_within_a_bound() {
        let mut bases = Bases::default();
        let hash = |n: usize| Arc::<str>::from(n.to_string());
        let large = vec![b'x'; LARGEST];
        for n in 0..9 {
            bases.keep(&hash(n), &large);
            bases.keep(&hash(0), &large);
        }
        bases.keep(&hash(10), &vec![b'x'; LARGEST + 1]);
        let there: Vec<usize> = (0..11).filter(|n| bases.get(&hash(*n)).is_some()).collect();
        assert_eq!((there, bases.bytes), (vec![0, 2, 3, 4, 5, 6, 7, 8], MOST_BYTES));
    }
}
