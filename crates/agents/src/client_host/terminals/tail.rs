//! The end of a terminal's output, as text. Pure.

use std::collections::VecDeque;

use crate::model::UsedMemory;

/// Bytes that are kept of each output, however much waits for the agent.
const LEAST: usize = 16 << 10;

/// Keeps the last bytes of an output, as many as the agent's memory has room for.
#[derive(Debug)]
pub(super) struct Tail {
    kept: VecDeque<u8>,
    limit: usize,
    dropped: bool,
    memory: UsedMemory,
}

impl Tail {
    pub(super) fn new(limit: usize, memory: UsedMemory) -> Self {
        Self { kept: VecDeque::new(), limit, dropped: false, memory }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let grown = (self.kept.len() + bytes.len()).min(self.limit) - self.kept.len();
        if grown > 0 && self.memory.grow(grown as u64).is_err() {
            // Its beginning goes, as if less had been asked for.
            self.limit = self.kept.len().max(LEAST).min(self.limit);
        }
        let fitting = &bytes[bytes.len().saturating_sub(self.limit)..];
        let excess = (self.kept.len() + fitting.len()).saturating_sub(self.limit);
        self.dropped |= excess > 0 || fitting.len() < bytes.len();
        self.kept.drain(..excess);
        self.kept.extend(fitting);
    }

    /// Returns the text, and whether its beginning was dropped: at most `limit` bytes, from a
    /// character boundary. Invalid UTF-8 becomes U+FFFD, except an incomplete character at the end
    /// whose rest may still come.
    pub(super) fn text(&mut self, complete: bool) -> (String, bool) {
        self.end(self.limit, complete)
    }

    /// Returns at most `most` bytes of the text's end, in the same way.
    pub(super) fn end(&mut self, most: usize, complete: bool) -> (String, bool) {
        let kept: &[u8] = self.kept.make_contiguous();
        let mut bytes = &kept[kept.len().saturating_sub(most)..];
        let mut dropped = self.dropped || bytes.len() < kept.len();
        if dropped {
            let rest = bytes.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
            bytes = &bytes[rest..];
        }
        if !complete {
            bytes = &bytes[..bytes.len() - unfinished(bytes)];
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if text.len() > most {
            // U+FFFD is longer than the byte that it replaces.
            text.drain(..text.ceil_char_boundary(text.len() - most));
            dropped = true;
        }
        (text, dropped)
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns the length of an incomplete character at the end.
fn unfinished(bytes: &[u8]) -> usize {
    let end = |length: &usize| &bytes[bytes.len() - length..];
    (1..=bytes.len().min(3))
        .find(|length| !is_continuation(end(length)[0]))
        .filter(|length| std::str::from_utf8(end(length)).is_err_and(|e| e.error_len().is_none()))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::model::{AgentMemory, TeamMemory};

    fn tail(limit: usize) -> Tail {
        Tail::new(limit, AgentMemory::default().take(0).unwrap())
    }

    #[test]
    fn no_more_is_kept_than_the_agents_memory_has_room_for() {
        let memory = TeamMemory::default().of_agent(Some(100_000));
        let mut one = Tail::new(1 << 20, memory.take(0).unwrap());
        let mut other = Tail::new(1 << 20, memory.take(0).unwrap());
        for _ in 0..100 {
            one.push(&[b'x'; 1000]);
        }
        for _ in 0..100 {
            other.push(&[b'y'; 1000]);
        }
        let (one, other) = (one.text(true), other.text(true));
        assert_eq!((one.0.len(), one.1), (100_000, false));
        assert_eq!((other.0.len(), other.1), (LEAST, true));
    }

    #[test]
    fn output_is_cut_at_characters() {
        let check = |limit: usize, pieces: &[&[u8]], complete: bool, reported: Expect| {
            let mut tail = tail(limit);
            for piece in pieces {
                tail.push(piece);
            }
            reported.assert_eq(&format!("{:?}", tail.text(complete)));
        };
        check(5, &[b"hello"], false, expect![[r#"("hello", false)"#]]);
        check(5, &[b"hel", b"lo!"], false, expect![[r#"("ello!", true)"#]]);
        check(3, &[b"a", b"hello"], false, expect![[r#"("llo", true)"#]]);
        check(4, &["aéé".as_bytes()], false, expect![[r#"("éé", true)"#]]);
        check(3, &["aéé".as_bytes()], false, expect![[r#"("é", true)"#]]);
        check(4, &["🦀🦀".as_bytes()], false, expect![[r#"("🦀", true)"#]]);
        check(3, &["🦀".as_bytes()], false, expect![[r#"("", true)"#]]);
        check(9, &[b"a\xffb"], false, expect![[r#"("a�b", false)"#]]);
        check(3, &[b"a\xffb"], false, expect![[r#"("b", true)"#]]);
        check(0, &[b"a"], false, expect![[r#"("", true)"#]]);
        check(0, &[], false, expect![[r#"("", false)"#]]);
        // Half a character waits for its rest, until there is none to come.
        check(9, &[b"a\xc3"], false, expect![[r#"("a", false)"#]]);
        check(9, &[b"a\xc3"], true, expect![[r#"("a�", false)"#]]);
        check(9, &[b"a\xc3", b"\xa9"], false, expect![[r#"("aé", false)"#]]);
        check(9, &["aé".as_bytes(), b"\xf0\x9f\xa6"], false, expect![[r#"("aé", false)"#]]);
        check(9, &[b"\xff\xff\xff\xe2\x82"], false, expect![[r#"("���", false)"#]]);
        check(9, &[b"\x80\x80"], false, expect![[r#"("��", false)"#]]);
    }

    #[test]
    fn the_end_alone_is_cut_in_the_same_way() {
        let mut tail = tail(100);
        tail.push("aéz".as_bytes());
        assert_eq!(tail.end(4, true), ("aéz".to_owned(), false));
        assert_eq!(tail.end(3, true), ("éz".to_owned(), true));
        assert_eq!(tail.end(2, true), ("z".to_owned(), true));
        assert_eq!(tail.text(true), ("aéz".to_owned(), false));
    }

    proptest! {
        #[test]
        fn the_end_of_any_text_is_kept(text in "\\PC{0,40}", limit in 0usize..60, step in 1usize..9) {
            let mut tail = tail(limit);
            for piece in text.as_bytes().chunks(step) {
                tail.push(piece);
                let (sofar, _) = tail.text(false);
                prop_assert!(text.contains(&sofar) && sofar.len() <= limit);
            }
            let (kept, dropped) = tail.text(true);
            let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
            prop_assert_eq!(&kept, &text[start..]);
            prop_assert_eq!(dropped, text.len() > limit);
        }

        #[test]
        fn any_bytes_stay_within_the_limit(bytes: Vec<u8>, limit in 0usize..60, complete: bool) {
            let mut tail = tail(limit);
            tail.push(&bytes);
            prop_assert!(tail.text(complete).0.len() <= limit);
        }
    }
}
