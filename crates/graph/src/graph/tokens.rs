//! How many tokens a text is for a model, by the tokenizer `o200k`.
//!
//! The text is cut into the tokenizer's pieces once. A range of lines costs what its pieces cost.

mod vocabulary;

use std::collections::HashMap;
use std::num::NonZeroU32;

pub(super) use self::vocabulary::Tokenizer;
use super::facts::Facts;

/// A piece longer than this is counted in parts, since a piece's cost grows faster than its length.
const LONGEST_PIECE: usize = 4096;

/// Counts the tokens of a file and of the lines of each of its symbols.
pub(super) fn count(tokenizer: &Tokenizer, text: &[u8], facts: &mut Facts) {
    let text = String::from_utf8_lossy(text);
    // Tokens before each line.
    let mut before = Vec::with_capacity(facts.lines as usize + 1);
    before.push(0_u32);
    let mut tokens = 0_u32;
    // Most pieces occur many times.
    let mut costs: HashMap<&str, u32> = HashMap::new();
    for piece in tokenizer.pieces(&text) {
        // A piece belongs to the line that it begins in.
        let cost = *costs.entry(piece).or_insert_with(|| cost(tokenizer, piece));
        tokens = tokens.saturating_add(cost);
        for _ in memchr::memchr_iter(b'\n', piece.as_bytes()) {
            before.push(tokens);
        }
    }
    let at = |line: u32| before.get(line as usize).copied().unwrap_or(tokens);
    facts.tokens = Some(tokens);
    for symbol in &mut facts.symbols {
        let cost = at(symbol.lines.end).saturating_sub(at(symbol.lines.start - 1));
        symbol.tokens = NonZeroU32::new(cost);
    }
}

fn cost(tokenizer: &Tokenizer, piece: &str) -> u32 {
    let parts = piece.as_bytes().chunks(LONGEST_PIECE);
    let tokens: usize = parts.map(|part| tokenizer.count(part)).sum();
    u32::try_from(tokens).unwrap_or(u32::MAX)
}
