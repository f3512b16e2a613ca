//! The line of a large answer, made in pieces: a piece is gone once it is written, so that an answer is in memory
//! once, and what waits counts to the agent's memory.

use bytes::Bytes;
use serde_json::value::RawValue;
use std::io;

use super::rpc::{self, MAX_SENT};
use crate::model::{AgentMemory, UsedMemory};

/// Bytes of a piece.
const PIECE: usize = 256 << 10;

/// An answer, with the memory that it takes.
#[derive(Debug)]
pub(super) struct AnswerLine {
    pieces: Vec<Bytes>,
    memory: UsedMemory,
}

impl AnswerLine {
    /// An answer that is made already.
    pub(super) fn of(
        id: &RawValue,
        result: &RawValue,
        memory: &AgentMemory,
    ) -> Result<Self, crate::model::NoMemory> {
        let memory = memory.take(result.get().len() as u64)?;
        Ok(Self { pieces: vec![rpc::response(id, Ok(result))], memory })
    }

    /// The pieces in their order, each with its memory.
    pub(super) fn into_pieces(mut self) -> impl Iterator<Item = (Bytes, UsedMemory)> {
        self.pieces.into_iter().map(move |piece| {
            let memory = self.memory.split(piece.len() as u64);
            (piece, memory)
        })
    }
}

/// Writes the answer to `fs/read_text_file`: the text comes in bytes, cut anywhere.
pub(super) struct ContentWriter {
    pieces: Vec<Bytes>,
    piece: Vec<u8>,
    length: usize,
    /// The beginning of a character.
    carry: Vec<u8>,
    memory: UsedMemory,
    /// Bytes that `memory` counts.
    counted: usize,
}

impl ContentWriter {
    /// `expected`: bytes of text that will come at least.
    pub(super) fn new(id: &RawValue, expected: u64, memory: &AgentMemory) -> io::Result<Self> {
        let memory = memory.take(expected).map_err(io::Error::other)?;
        let counted = usize::try_from(expected).unwrap_or(usize::MAX);
        let mut writer = Self {
            pieces: Vec::new(),
            piece: Vec::new(),
            length: 0,
            carry: Vec::new(),
            memory,
            counted,
        };
        for part in [r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","result":{"content":""#] {
            writer.put(part.as_bytes())?;
        }
        Ok(writer)
    }

    /// Adds text.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((first, rest)) = bytes.split_first().filter(|_| !self.carry.is_empty()) {
            self.carry.push(*first);
            bytes = rest;
            let carry = std::mem::take(&mut self.carry);
            match std::str::from_utf8(&carry) {
                Ok(text) => self.escape(text)?,
                Err(error) if error.error_len().is_none() => self.carry = carry,
                Err(_) => return Err(no_text()),
            }
        }
        let (text, rest) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, &[][..]),
            Err(error) if error.error_len().is_none() => {
                let (text, rest) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(text).unwrap_or_default(), rest)
            }
            Err(_) => return Err(no_text()),
        };
        self.escape(text)?;
        self.carry.extend_from_slice(rest);
        Ok(())
    }

    pub(super) fn end(mut self) -> io::Result<AnswerLine> {
        if !self.carry.is_empty() {
            return Err(no_text());
        }
        self.put(b"\"}}\n")?;
        self.pieces.push(std::mem::take(&mut self.piece).into());
        let more = self.counted.saturating_sub(self.length);
        drop(self.memory.split(more as u64));
        Ok(AnswerLine { pieces: self.pieces, memory: self.memory })
    }

    fn escape(&mut self, text: &str) -> io::Result<()> {
        let bytes = text.as_bytes();
        let mut start = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let code = [b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)];
            let escaped: &[u8] = match byte {
                b'"' | b'\\' => &[byte],
                b'\n' => b"n",
                b'\r' => b"r",
                b'\t' => b"t",
                ..0x20 => &code,
                _ => continue,
            };
            self.put(&bytes[start..at])?;
            self.put(b"\\")?;
            self.put(escaped)?;
            start = at + 1;
        }
        self.put(&bytes[start..])
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len();
        // A line has its end beside.
        if self.length > MAX_SENT {
            let why =
                format!("the answer is longer than the {MAX_SENT} bytes that a line may have");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        while !bytes.is_empty() {
            if self.piece.len() == PIECE {
                self.pieces.push(std::mem::take(&mut self.piece).into());
            }
            if self.piece.capacity() == 0 {
                self.piece.reserve_exact(PIECE.min(bytes.len().max(PIECE / 16)));
            }
            let (now, rest) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = rest;
        }
        if self.length > self.counted {
            let more = self.length - self.counted + PIECE;
            self.memory.grow(more as u64).map_err(io::Error::other)?;
            self.counted += more;
        }
        Ok(())
    }
}

fn hex(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit & 15)]
}

fn no_text() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::model::TeamMemory;

    fn line(bytes: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let id = RawValue::from_string("\"7\"".to_owned()).unwrap();
        let mut writer = ContentWriter::new(&id, 0, &AgentMemory::default())?;
        bytes.chunks(step).try_for_each(|piece| writer.push(piece))?;
        Ok(writer.end()?.into_pieces().flat_map(|(piece, _)| piece).collect())
    }

    #[test]
    fn a_large_answer_comes_in_pieces_that_count_to_the_agent() {
        let memory = TeamMemory::default().of_agent(Some(3 << 20));
        let id = RawValue::from_string("1".to_owned()).unwrap();
        assert!(ContentWriter::new(&id, 4 << 20, &memory).is_err());
        let mut writer = ContentWriter::new(&id, 1 << 20, &memory).unwrap();
        writer.push(&vec![b'\n'; 1 << 20]).unwrap();
        let answer = writer.end().unwrap();
        let mut pieces = answer.into_pieces();
        let first = pieces.next().unwrap();
        assert_eq!(first.0.len(), PIECE);
        assert!(memory.take(1 << 20).is_err(), "its escaped text is longer");
        drop((first, pieces));
        assert!(memory.take(3 << 20).is_ok());
        let mut writer = ContentWriter::new(&id, 0, &memory).unwrap();
        let why = writer.push(&vec![b'x'; 4 << 20]).unwrap_err().to_string();
        assert!(why.contains("`memory_mb` is 3"), "{why}");
        drop(writer);
        assert!(memory.take(3 << 20).is_ok());
    }

    #[test]
    fn what_is_no_text_is_no_answer() {
        for bytes in [&b"a\xff\nb"[..], b"\xc3", b"\xc3\x28", b"ab\xe2\x82"] {
            for step in [1, 2, 9] {
                assert!(line(bytes, step).is_err(), "{bytes:?} {step}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_line_of_json(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}", step in 1usize..9) {
            let line = line(text.as_bytes(), step).unwrap();
            let (end, whole) = line.split_last().unwrap();
            prop_assert!(*end == b'\n' && !whole.contains(&b'\n'));
            let answer: serde_json::Value = serde_json::from_slice(whole).unwrap();
            prop_assert_eq!(&answer["id"], "7");
            prop_assert_eq!(answer["result"]["content"].as_str().unwrap(), text);
        }
    }
}
