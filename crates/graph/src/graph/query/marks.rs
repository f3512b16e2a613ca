//! Positions of the words in a text without which a part of it has no match.

pub(in crate::graph) struct Marks {
    /// A bit for each byte of the text. None: a match may be anywhere.
    bits: Option<Vec<u64>>,
}

impl Marks {
    /// Without words, every part of the text may have a match.
    pub(in crate::graph) fn new(words: &[&str], text: &[u8]) -> Self {
        if words.is_empty() {
            return Self { bits: None };
        }
        let mut pairs = Pairs([0; 1024]);
        for word in words {
            pairs.add(word.as_bytes());
        }
        let words: Vec<_> = words.iter().map(|word| Beginning::of(word.as_bytes())).collect();
        let mut bits = vec![0; text.len().div_ceil(64)];
        for (at, byte) in text.iter().enumerate() {
            if pairs.has(*byte, text.get(at + 1).copied().unwrap_or(0)) {
                let here = eight(&text[at..]);
                let is_mark = words.iter().any(|word| here & word.mask == word.bytes);
                bits[at / 64] |= u64::from(is_mark) << (at % 64);
            }
        }
        Self { bits: Some(bits) }
    }

    /// The start of the first mark from `at` on; `usize::MAX`: none.
    pub(super) fn next(&self, at: usize) -> usize {
        let Some(bits) = &self.bits else { return at };
        let Some(first) = bits.get(at / 64) else { return usize::MAX };
        let mut word = first & (u64::MAX << (at % 64));
        let mut number = at / 64;
        while word == 0 {
            number += 1;
            match bits.get(number) {
                Some(next) => word = *next,
                None => return usize::MAX,
            }
        }
        number * 64 + word.trailing_zeros() as usize
    }
}

/// The first two bytes of words: a bit for each pair of bytes.
struct Pairs([u64; 1024]);

impl Pairs {
    fn add(&mut self, word: &[u8]) {
        match *word {
            [] => {}
            // With any second byte.
            [first] => self.0[usize::from(first) * 4..][..4].fill(u64::MAX),
            [first, second, ..] => {
                self.0[usize::from(first) * 4 + usize::from(second) / 64] |= 1 << (second % 64);
            }
        }
    }

    fn has(&self, first: u8, second: u8) -> bool {
        self.0[usize::from(first) * 4 + usize::from(second) / 64] & 1 << (second % 64) != 0
    }
}

/// The first eight bytes of a word, compared at once.
struct Beginning {
    bytes: u64,
    mask: u64,
}

impl Beginning {
    fn of(word: &[u8]) -> Self {
        Self { bytes: eight(word), mask: eight(&[u8::MAX; 8][..word.len().min(8)]) }
    }
}

/// The first eight bytes, padded with zeros.
fn eight(text: &[u8]) -> u64 {
    text.first_chunk().map_or_else(
        || text.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
        |bytes| u64::from_le_bytes(*bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_is_found_across_the_words_of_the_table() {
        let text = format!("a(b{}import{}", " ".repeat(130), " ".repeat(70));
        let marks = Marks::new(&["(", "import"], text.as_bytes());
        let next: Vec<_> = [0, 1, 2, 133, 134, 500].map(|at| marks.next(at)).into();
        assert_eq!(next, [1, 1, 133, 133, usize::MAX, usize::MAX]);
        assert_eq!(Marks::new(&[], b"a").next(7), 7);
    }

    #[test]
    fn words_are_found_to_the_end_of_the_text() {
        let text = b"namespaces interfac use";
        let at = |word: &str| Marks::new(&[word], text).next(0);
        assert_eq!(["namespace", "use", "s", "se", "e"].map(at), [0, 20, 4, 21, 3]);
        // Of a longer word, eight bytes count.
        assert_eq!(
            ["interface", "used", "x", ""].map(at),
            [11, usize::MAX, usize::MAX, usize::MAX]
        );
    }
}
