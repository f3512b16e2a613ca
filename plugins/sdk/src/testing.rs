//! A test kit: plays a golden transcript through a plugin, by the same interface as a host.
//!
//! A transcript has a line for each thing that happens, and after it one for each record that the
//! plugin puts:
//!
//! | line | what happens |
//! | --- | --- |
//! | `< LINE` | the agent wrote it, and it was relayed |
//! | `> LINE` | the client wrote it |
//! | `? LINE` | the agent wrote it, and the gate reads it |
//! | `start SETTINGS`, `prompt TEXT`, `cancel`, `allow ID`, `deny ID WHY` | the host calls this function |
//! | `# …`, or empty | nothing |

#![allow(unsafe_code)]

mod torment;

use std::ffi::c_void;
use std::fmt::Write;
use std::path::Path;

use crate::abi::{self, Bytes, Output};
use crate::{Border, Extractor, Record, Usage, records};

pub use torment::{feed, torment};

/// Checks that a plugin with this configuration puts the records of a transcript (its text).
#[macro_export]
macro_rules! assert_transcript {
    ($extractor:ty, $config:expr, $transcript:expr) => {
        let transcript: &str = $transcript;
        let played = $crate::testing::play::<$extractor>($config, transcript);
        assert!(played == transcript, "expected:\n{transcript}\nthe plugin put:\n{played}");
    };
}

/// Checks a transcript in a file; writes it anew if `UPDATE_EXPECT` is set.
#[track_caller]
pub fn assert_file<T: Extractor>(config: &str, file: &Path) {
    let transcript = std::fs::read_to_string(file);
    let transcript = transcript.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let played = play::<T>(config, &transcript);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let written = std::fs::write(file, played);
        return written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    assert!(
        played == transcript,
        "{} says:\n{transcript}\nthe plugin put:\n{played}\n(UPDATE_EXPECT=1 writes it anew)",
        file.display()
    );
}

/// Returns whether a plugin puts the records of a transcript (its text): use it for a
/// [`self_test`](Extractor::self_test).
pub fn check<T: Extractor>(config: &str, transcript: &str) -> Result<(), String> {
    let played = play::<T>(config, transcript);
    let differs = transcript.lines().zip(played.lines().chain(std::iter::repeat("nothing")));
    match differs.into_iter().find(|(expected, put)| expected != put) {
        Some((expected, put)) => Err(format!("expected the record `{expected}`, got `{put}`")),
        None if played == transcript => Ok(()),
        None => Err(format!(
            "expected no further record, got `{}`",
            played.lines().last().unwrap_or_default()
        )),
    }
}

/// Plays a transcript, and returns it with the records that the plugin puts.
pub fn play<T: Extractor>(config: &str, transcript: &str) -> String {
    let table = Border::<T>::TABLE;
    let mut played = String::new();
    let mut instance = std::ptr::null_mut();
    let made = call(&mut played, |output| {
        // SAFETY: the table is that of this very program, and is used as the header says.
        table.create.map(|create| unsafe { create(bytes(config), &raw mut instance, output) })
    });
    if !made {
        return played;
    }
    for line in transcript.lines().filter(|line| !is_record(line)) {
        played += line;
        played += "\n";
        act(&table, instance, line, &mut played);
    }
    if let Some(destroy) = table.destroy {
        // SAFETY: `create` made it, and nothing uses it any more.
        unsafe { destroy(instance) };
    }
    played
}

/// Does what a line of the transcript says.
fn act(table: &abi::Plugin, instance: *mut c_void, line: &str, played: &mut String) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let text = bytes(rest);
    let (id, why) = rest.split_once(' ').unwrap_or((rest, ""));
    call(played, |output| {
        // SAFETY: as above; each text lives as long as the call.
        unsafe {
            match word {
                "<" => table.observe.map(|f| f(instance, abi::TO_CLIENT, text, output)),
                ">" => table.observe.map(|f| f(instance, abi::TO_AGENT, text, output)),
                "?" => table.gate.map(|f| f(instance, text, output)),
                "start" => table.start.map(|f| f(instance, text, output)),
                "prompt" => table.prompt.map(|f| f(instance, text, output)),
                "cancel" => table.cancel.map(|f| f(instance, output)),
                "allow" => table.allow.map(|f| f(instance, text, output)),
                "deny" => table.deny.map(|f| f(instance, bytes(id), bytes(why), output)),
                _ => Some(0),
            }
        }
    });
}

/// Makes a call, and writes its records. Returns whether it succeeded.
fn call(played: &mut String, call: impl FnOnce(*const Output) -> Option<i32>) -> bool {
    let mut written: Vec<u8> = Vec::new();
    let output = Output { host: (&raw mut written).cast(), put: Some(append) };
    let status = call(&raw const output);
    for record in records(&written) {
        match record {
            Ok(record) => show(&record, played),
            Err(malformed) => drop(writeln!(played, "malformed {malformed}")),
        }
    }
    let succeeded = status == Some(0);
    if !succeeded && !played.lines().last().is_some_and(|line| line.starts_with("error ")) {
        played.push_str("error\n");
    }
    succeeded
}

unsafe extern "C" fn append(written: *mut c_void, data: *const u8, length: usize) -> i32 {
    // SAFETY: `call` passed the vector, and the plugin its bytes, for the length of the call.
    let (written, data) =
        unsafe { (&mut *written.cast::<Vec<u8>>(), std::slice::from_raw_parts(data, length)) };
    written.extend(data);
    0
}

/// The first words of a transcript's record lines.
const SHOWN: [&str; 14] = [
    "description",
    "error",
    "session",
    "turn-began",
    "turn-ended",
    "touched",
    "usage",
    "model",
    "text",
    "thought",
    "ask",
    "line",
    "runs",
    "withdrawn",
];

fn is_record(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    SHOWN.contains(&word) || word == "malformed"
}

fn show(record: &Record<'_>, to: &mut String) {
    let text = |text: &str| text.escape_debug().to_string();
    let line = match record {
        Record::Description { name, version, protocols } => {
            format!("description {name} {version} {}", protocols.join(" "))
        }
        Record::Error { body } => format!("error {}", text(body)),
        Record::Session { id } => format!("session {}", text(id)),
        Record::TurnBegan => "turn-began".to_owned(),
        Record::TurnEnded { reason, body } => {
            format!("turn-ended {} {}", text(reason), text(body))
        }
        Record::Touched { action, path, call } => {
            format!("touched {action} {} {}", text(path), text(call))
        }
        Record::Usage(Usage { used, size, cost, currency }) => {
            let number = |number: &Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
            let word = |word: &Option<_>| word.as_deref().map_or("-".to_owned(), text);
            format!("usage {} {} {} {}", number(used), number(size), word(cost), word(currency))
        }
        Record::Model { id, name } => format!("model {} {}", text(id), text(name)),
        Record::Text { body, reason } => {
            let word = if reason == "thought" { "thought" } else { "text" };
            format!("{word} {}", text(body))
        }
        Record::Ask { id, title, accesses, command } => {
            let mut line = format!("ask {} {:?}", text(id), title);
            for (action, path) in accesses {
                let _ = write!(line, " {action} {path:?}");
            }
            if !command.is_empty() {
                let _ = write!(line, " runs {command:?}");
            }
            line
        }
        Record::Line { body } => format!("line {}", String::from_utf8_lossy(body)),
        Record::Runs { command, call } => format!("runs {command:?} {}", text(call)),
        Record::Withdrawn { id } => format!("withdrawn {}", text(id)),
    };
    to.push_str(line.trim_end());
    to.push('\n');
}

fn bytes(text: &str) -> Bytes {
    Bytes { data: text.as_ptr(), length: text.len() }
}

#[cfg(test)]
mod tests;
