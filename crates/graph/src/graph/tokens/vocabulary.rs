//! The tokenizer `o200k`: cuts a text into pieces and counts the tokens of a piece.
//!
//! `o200k.bin` holds the length of each token, one byte each, in the order of the ranks, then the bytes
//! of all tokens. It is the list `o200k_base` of [tiktoken](https://github.com/openai/tiktoken), without
//! the special tokens (MIT licence, copyright 2022 `OpenAI`, Shantanu Jain). It is mapped with the
//! program. The tables made from it take some three megabytes, as long as a [`Tokenizer`] lives; crates
//! that do the same take 20 to 76.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

static O200K: &[u8] = include_bytes!("o200k.bin");

/// Number of tokens.
const COUNT: usize = 199_998;
/// No token has this rank.
const NONE: u32 = u32::MAX;
/// Slots of the table: a power of two, so that some two in five are taken.
const SLOTS: usize = 1 << 19;

/// Cuts texts and counts their tokens.
pub(in crate::graph) struct Tokenizer {
    pieces: Regex,
    vocabulary: Vocabulary,
}

#[expect(clippy::expect_used, reason = "the patterns are constants, and tested")]
fn pieces() -> Regex {
    let words = [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+$",
    ]
    .join("|");
    // The second is `\s+(?!\S)`: its last character is looked at, not taken.
    Regex::new_many(&[words.as_str(), r"\s+\s", r"\s+"]).expect("these patterns are sound")
}

/// The pattern whose last character belongs to the next piece.
const LOOKS_AHEAD: usize = 1;

impl Tokenizer {
    pub(in crate::graph) fn new() -> Self {
        Self { pieces: pieces(), vocabulary: Vocabulary::load() }
    }

    /// Cuts a text into pieces. No token extends over two pieces.
    pub(super) fn pieces<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let found = self.pieces.find(Input::new(rest).anchored(Anchored::Yes))?;
            let mut end = found.end();
            if found.pattern().as_usize() == LOOKS_AHEAD {
                end -= rest[..end].chars().next_back().map_or(0, char::len_utf8);
            }
            let (piece, behind) = rest.split_at(end);
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Returns how many tokens a piece is.
    pub(super) fn count(&self, piece: &[u8]) -> usize {
        // Most pieces are tokens; each byte is one.
        if piece.len() < 2 || self.vocabulary.rank(piece) != NONE {
            return piece.len().min(1);
        }
        merge(&self.vocabulary, piece)
    }
}

/// Counts the tokens of a piece: begins with a part for each byte and joins the two neighbours that form
/// the token of the lowest rank, the leftmost first, until none do.
fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> usize {
    let end = piece.len();
    // By the start of a part: the starts of the next part and of the one before.
    let mut next: Vec<usize> = (1..=end).collect();
    let mut before: Vec<usize> = (0..end).map(|at| at.saturating_sub(1)).collect();
    // The rank of a part joined with the next. A part that was joined itself has none.
    let rank = |next: &[usize], at: usize| match next[at] {
        middle if middle == end => NONE,
        middle => vocabulary.rank(&piece[at..next[middle]]),
    };
    let mut ranks: Vec<u32> = (0..end).map(|at| rank(&next, at)).collect();
    let joins = ranks.iter().zip(0..).filter(|(rank, _)| **rank != NONE);
    let mut joins: BinaryHeap<_> = joins.map(|(rank, at)| Reverse((*rank, at))).collect();
    let mut parts = end;
    while let Some(Reverse((lowest, at))) = joins.pop() {
        // The entry may be outdated.
        if ranks[at] != lowest {
            continue;
        }
        let joined = next[at];
        next[at] = next[joined];
        ranks[joined] = NONE;
        parts -= 1;
        if let Some(behind) = before.get_mut(next[at]) {
            *behind = at;
        }
        for changed in [at, before[at]] {
            ranks[changed] = rank(&next, changed);
            if ranks[changed] != NONE {
                joins.push(Reverse((ranks[changed], changed)));
            }
            if at == 0 {
                break;
            }
        }
    }
    parts
}

/// Finds the rank of a token.
struct Vocabulary {
    /// The offset of each token, and the end of the last.
    begins: Box<[u32]>,
    /// Each in the first free slot from the token's on. Each team makes this table, which a library's takes long for in
    /// builds for development.
    ranks: Box<[u32]>,
}

impl Vocabulary {
    fn load() -> Self {
        let mut begins = Vec::with_capacity(COUNT + 1);
        let mut at = u32::try_from(COUNT).unwrap_or(NONE);
        for length in &O200K[..COUNT] {
            begins.push(at);
            at += u32::from(*length);
        }
        begins.push(at);
        let mut ranks = vec![NONE; SLOTS];
        for (rank, _) in (0..).zip(0..COUNT) {
            let mut slot = slot(token(&begins, rank));
            while ranks[slot] != NONE {
                slot = (slot + 1) % SLOTS;
            }
            ranks[slot] = rank;
        }
        Self { begins: begins.into(), ranks: ranks.into() }
    }

    /// [`NONE`] if these bytes are no token.
    fn rank(&self, bytes: &[u8]) -> u32 {
        let mut slot = slot(bytes);
        loop {
            let rank = self.ranks[slot];
            if rank == NONE || token(&self.begins, rank) == bytes {
                return rank;
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

fn token(begins: &[u32], rank: u32) -> &'static [u8] {
    let rank = rank as usize;
    &O200K[begins[rank] as usize..begins[rank + 1] as usize]
}

/// The first slot of a token: FNV-1a, folded.
fn slot(bytes: &[u8]) -> usize {
    let mut hash = 0x811c_9dc5_u32;
    for byte in bytes {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    (hash ^ hash >> 19) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use bpe_openai::o200k_base;

    use super::*;

    fn counted(tokenizer: &Tokenizer, text: &str) -> usize {
        tokenizer.pieces(text).map(|piece| tokenizer.count(piece.as_bytes())).sum()
    }

    #[test]
    fn the_list_is_that_of_the_reference() {
        let reference = o200k_base();
        let vocabulary = Vocabulary::load();
        assert_eq!(reference.bpe.num_tokens(), COUNT);
        for (rank, _) in (0..).zip(0..COUNT) {
            let token = token(&vocabulary.begins, rank);
            assert_eq!(token, reference.bpe.decode_tokens(&[rank]));
            assert_eq!(vocabulary.rank(token), rank);
        }
        assert_eq!(vocabulary.begins[COUNT] as usize, O200K.len());
    }

    #[test]
    fn texts_are_cut_and_counted_as_the_reference_does() {
        let (reference, tokenizer) = (o200k_base(), Tokenizer::new());
        // Tokens in an order that no text has them in, with what is special between them.
        let mut random = fastrand::Rng::with_seed(20);
        let odd = [
            "  ", "\n", "\r\n", " \t ", "'LL", "é", "e\u{301}", "漢字", "\u{3000}", "🦀", "\0",
            "9", "ǅ",
        ];
        for _ in 0..2_000 {
            let mut bytes = Vec::new();
            for _ in 0..random.usize(1..60) {
                if random.u8(..) < 60 {
                    bytes.extend_from_slice(odd[random.usize(..odd.len())].as_bytes());
                } else {
                    let rank = u32::try_from(random.usize(..COUNT)).unwrap_or(NONE);
                    let token = token(&tokenizer.vocabulary.begins, rank);
                    bytes.extend_from_slice(token);
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            assert!(tokenizer.pieces(&text).eq(reference.split(&text)), "{text:?}");
            assert_eq!(counted(&tokenizer, &text), reference.count(&*text), "{text:?}");
        }
        for text in ["", "a", "\n\n\n", " ", include_str!("vocabulary.rs")] {
            assert_eq!(counted(&tokenizer, text), reference.count(text));
        }
    }

    #[test]
    fn a_piece_may_be_long() {
        let (tokenizer, mut random) = (Tokenizer::new(), fastrand::Rng::with_seed(21));
        for length in [1, 2, 100, 4096] {
            let word: Vec<u8> = (0..length).map(|_| random.u8(b'a'..=b'e')).collect();
            assert_eq!(tokenizer.count(&word), o200k_base().bpe.count(&word));
            let same = vec![b'a'; length];
            assert_eq!(tokenizer.count(&same), o200k_base().bpe.count(&same));
        }
    }
}
