//! Checks whether the write-ahead log that a killed run left is damaged: `SQLite` itself ignores
//! everything behind the first damage, and overwrites it.
//!
//! The format is `SQLite`'s, section 4 of <https://sqlite.org/fileformat2.html>: a header, then frames, each
//! with a checksum over all that is before it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The last bit of the magic number says that checksums are over big-endian words.
const MAGIC: u32 = 0x377f_0682;

/// The largest page of `SQLite`.
const LARGEST_PAGE: usize = 65_536;

/// The damage of a log. None: no damage, or only in the last frame, which a kill may leave half
/// written.
pub(super) fn damage(log: &Path) -> io::Result<Option<String>> {
    let file = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut file = BufReader::with_capacity(1 << 18, file);
    let mut header = [0; HEADER];
    if !fill(&mut file, &mut header)? {
        return Ok(None);
    }
    let word = |at: usize| word(&header, at);
    let is_big = match word(0) {
        MAGIC => false,
        magic if magic == MAGIC | 1 => true,
        _ => return Ok(Some("its header".to_owned())),
    };
    let mut sum = Sum { is_big, s0: 0, s1: 0 };
    sum.add(&header[..24]);
    let page = word(8) as usize;
    if (sum.s0, sum.s1) != (word(24), word(28)) || page > LARGEST_PAGE || !page.is_power_of_two() {
        return Ok(Some("its header".to_owned()));
    }
    let mut frame = vec![0; FRAME_HEADER + page];
    let mut bad = None;
    for number in 1_u64.. {
        // Frames of an earlier round of the log have another salt.
        if !fill(&mut file, &mut frame)? || frame[8..16] != header[16..24] {
            return Ok(None);
        }
        if bad.is_some() {
            return Ok(bad);
        }
        sum.add(&frame[..8]);
        sum.add(&frame[FRAME_HEADER..]);
        if (sum.s0, sum.s1) != (self::word(&frame, 16), self::word(&frame, 20)) {
            bad = Some(format!("its frame {number}"));
        }
    }
    Ok(None)
}

/// A checksum so far.
struct Sum {
    is_big: bool,
    s0: u32,
    s1: u32,
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let word = |at: usize| {
                let word = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if self.is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
            };
            self.s0 = self.s0.wrapping_add(word(0)).wrapping_add(self.s1);
            self.s1 = self.s1.wrapping_add(word(4)).wrapping_add(self.s0);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Fills the buffer; false if the file ends before.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}
