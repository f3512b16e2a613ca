//! Plays malformed lines: whatever comes, a plugin must not panic, and must put valid records only.

use crate::{Direction, Extractor, Records, records};

/// Text inserted at random places.
const ODD: [&str; 20] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "true",
    "-1",
    "1e999",
    "{}",
    "[]",
    "[[[[[[",
    "\\ud800",
    "\u{fffd}",
    "\n",
    "\0",
    "18446744073709551616",
];

/// Plays a transcript many times, with some of it changed each time: the same changes in every run.
pub fn torment<T: Extractor>(config: &str, transcript: &str, rounds: u64) {
    for round in 0..rounds {
        feed::<T>(config, &changed(transcript, &mut Random(round)));
    }
}

/// Plays any bytes as a transcript, directly on the plugin's type: panics are not caught. A line
/// without a transcript's prefix is the agent's.
pub fn feed<T: Extractor>(config: &str, bytes: &[u8]) {
    let Ok(mut plugin) = T::create(config) else { return };
    let mut put = |record: &[u8]| {
        assert!(matches!(records(record).collect::<Vec<_>>()[..], [Ok(_)]), "it put no record");
        true
    };
    let records = &mut Records::new(&mut put);
    for line in bytes.split(|&byte| byte == b'\n') {
        let mut parts = line.splitn(2, |&byte| byte == b' ');
        let word = parts.next().unwrap_or_default();
        let rest = parts.next().unwrap_or_default();
        let text = String::from_utf8_lossy(rest);
        // It may fail: an error is a valid outcome.
        let _ = match word {
            b"<" => plugin.observe(Direction::ToClient, rest, records),
            b">" => plugin.observe(Direction::ToAgent, rest, records),
            b"?" => plugin.gate(rest, records),
            b"start" => plugin.start(&text, records),
            b"prompt" => plugin.prompt(&text, records),
            b"cancel" => plugin.cancel(records),
            b"allow" => plugin.allow(&text, records),
            b"deny" => plugin.deny(&text, "no", records),
            _ => {
                let _ = plugin.gate(line, records);
                plugin.observe(Direction::ToClient, line, records)
            }
        };
    }
}

/// Changes a transcript in a few places.
fn changed(transcript: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = transcript.as_bytes().to_vec();
    for _ in 0..=random.below(8) {
        let start = random.below(bytes.len());
        let end = (start + random.below(40)).min(bytes.len());
        let piece = bytes[start..end].to_vec();
        match random.below(5) {
            0 => drop(bytes.drain(start..end)),
            1 => drop(bytes.splice(start..start, piece)),
            2 => drop(bytes.splice(start..end, ODD[random.below(ODD.len())].bytes())),
            3 => {
                let there = random.below(bytes.len());
                bytes.splice(there..there, piece);
            }
            _ => bytes[start..end].iter_mut().for_each(|byte| *byte ^= 1 << random.below(8)),
        }
    }
    bytes
}

/// The generator splitmix64, which is good enough here.
struct Random(u64);

impl Random {
    /// A number below this one; 0 for 0.
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % most.max(1) as u64).unwrap_or_default()
    }
}
