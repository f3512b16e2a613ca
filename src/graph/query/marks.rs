//! Words of a text without which a part of it holds no match.

/// Where they are.
pub(in crate::graph) struct Marks {
    /// A bit for each byte of the text. None: they may be anywhere.
    bits: Option<Vec<u64>>,
}

impl Marks {
    /// Without any words, every part of the text may hold a match.
    pub(in crate::graph) fn new(words: &[&str], text: &[u8]) -> Self {
        if words.is_empty() {
            return Self { bits: None };
        }
        let mut by_first = [const { Vec::new() }; 256];
        for word in words.iter().map(|word| word.as_bytes()) {
            if let Some(first) = word.first() {
                by_first[usize::from(*first)].push(Beginning::of(word));
            }
        }
        let mut bits = vec![0; text.len().div_ceil(64)];
        for (at, byte) in text.iter().enumerate() {
            let words = &by_first[usize::from(*byte)];
            if !words.is_empty() {
                let here = eight(&text[at..]);
                let is_mark = words.iter().any(|word| here & word.mask == word.bytes);
                bits[at / 64] |= u64::from(is_mark) << (at % 64);
            }
        }
        Self { bits: Some(bits) }
    }

    /// Where the first one begins that is not before `at`; past the text where there is none.
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

/// Up to eight bytes that a word begins with: compared at once, and none has more that would tell.
struct Beginning {
    bytes: u64,
    mask: u64,
}

impl Beginning {
    fn of(word: &[u8]) -> Self {
        Self { bytes: eight(word), mask: eight(&[u8::MAX; 8][..word.len().min(8)]) }
    }
}

/// The first eight bytes; zeros for what there is not.
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
}
