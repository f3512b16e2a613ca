//! The text of a configuration file: reads it within limits, and converts offsets to line and
//! column.

use std::fs::File;
use std::io::ErrorKind::NotFound;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use super::fault::Fault;

/// A larger file is refused before it is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// Reads a file as text. The error includes the text as far as it can be shown.
pub(super) fn read(file: &Path) -> Result<String, (String, Fault)> {
    let bytes = match read_bytes(file, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err((why, help)) => {
            let is_missing = file.symlink_metadata().is_err_and(|error| error.kind() == NotFound);
            let help = if is_missing {
                "`eisen-core init` writes one, with the agents that it finds; `-c FILE` names another"
                    .to_owned()
            } else {
                help
            };
            return Err((String::new(), Fault::of_file(format!("this file {why}"), help)));
        }
    };
    // TOML reports each control character, but a binary file needs only one error.
    if bytes.contains(&0) {
        let fault = Fault::of_file(
            "this is a binary file, not a configuration".to_owned(),
            "name an `eisen.toml`, or copy `config/full.toml` to start from".to_owned(),
        );
        return Err((String::new(), fault));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        // The text before this offset is valid, so the offset also holds in the lossy text.
        let at = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let fault = Fault::new(at..at + '\u{fffd}'.len_utf8(), "this byte is not UTF-8")
            .help("save the file as UTF-8");
        (text, fault)
    })?;
    match other_format(&text) {
        Some(format) => {
            let fault = Fault::of_file(
                format!("this is {format}, and a configuration is TOML"),
                "write `[team]`, `[[agents]]` and `key = value` below them; `eisen-core init --stdout` \
                 shows how, config/full.toml has every key"
                    .to_owned(),
            );
            Err((text, fault))
        }
        None => Ok(text),
    }
}

/// Recognizes the format of a text that is not TOML by its beginning.
fn other_format(text: &str) -> Option<&'static str> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let is_key = |key: &str| {
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let is_yaml = first == "---"
        || first.starts_with("- ")
        || first.split_once(':').is_some_and(|(key, rest)| {
            is_key(key) && (rest.is_empty() || rest.starts_with(' ')) && !rest.contains('=')
        });
    if first.starts_with('{') { Some("JSON") } else { is_yaml.then_some("YAML") }
}

/// Reads a regular file of at most `limit` bytes. The error has the mistake and the correction.
pub(super) fn read_bytes(file: &Path, limit: u64) -> Result<Vec<u8>, (String, String)> {
    let fails = |error: &std::io::Error| {
        let why = format!("cannot be read: {}", plain(error));
        (why, "check the path and its permissions".to_owned())
    };
    let metadata = file.metadata().map_err(|error| fails(&error))?;
    if metadata.is_dir() {
        return Err(("is a folder, not a file".to_owned(), "name the file in it".to_owned()));
    }
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(("is not a regular file".to_owned(), "name a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|error| fails(&error))?;
    if bytes.len() as u64 > limit {
        let what = format!("is larger than {} KiB", limit / 1024);
        return Err((what, "make it smaller".to_owned()));
    }
    Ok(bytes)
}

/// Returns the system's error message without its number.
pub(super) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}

/// Returns line and column of a byte offset, both from 1, the column in characters.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (line, column)
}

/// Returns the range of the line at an offset, without its line break.
pub(super) fn line_at(text: &str, offset: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let offset = offset.min(bytes.len());
    let start = bytes[..offset].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = bytes[offset..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |at| offset + at);
    start..end
}
