//! The log of requests: one line of JSON for each, without keys.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::api::ModelApi;
use super::keys::ShownKey;

/// Bytes of a log: each request brings its whole conversation.
const LONGEST_LOG: u64 = 1 << 30;

/// A request, as its line has it.
#[derive(Serialize)]
pub(super) struct LoggedRequest<'a> {
    /// The number of the call, for calls of a model.
    pub(super) n: Option<u64>,
    /// The time, in milliseconds since 1970.
    pub(super) time_ms: u64,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) api: Option<ModelApi>,
    pub(super) model: Option<&'a str>,
    pub(super) stream: Option<bool>,
    pub(super) user_agent: Option<&'a str>,
    pub(super) key: Option<&'a ShownKey>,
    pub(super) rule: Option<usize>,
    /// How often tools were called since the prompt.
    pub(super) round: Option<usize>,
    pub(super) tools: Vec<&'a str>,
    pub(super) messages: Option<&'a Value>,
    /// Why the request was not answered.
    pub(super) error: Option<String>,
}

/// A log in a file, or none.
pub(super) struct RequestLog(Option<Mutex<LogFile>>);

struct LogFile {
    file: File,
    length: u64,
}

impl RequestLog {
    pub(super) fn open(file: Option<&Path>) -> io::Result<Self> {
        let Some(path) = file else { return Ok(Self(None)) };
        let named = |error: io::Error| {
            let message = format!("cannot write the log {}: {error}", path.display());
            io::Error::new(error.kind(), message)
        };
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(named)?;
        let length = file.metadata().map_err(named)?.len();
        Ok(Self(Some(Mutex::new(LogFile { file, length }))))
    }

    pub(super) fn write(&self, request: &LoggedRequest<'_>) {
        let Some(log) = &self.0 else { return };
        let mut line = match serde_json::to_vec(request) {
            Ok(line) => line,
            Err(error) => return tracing::warn!(%error, "a request is not in the log"),
        };
        line.push(b'\n');
        let mut log = log.lock();
        log.length += line.len() as u64;
        if log.length > LONGEST_LOG {
            return tracing::warn!("the log of requests is full: 1 GiB");
        }
        if let Err(error) = log.file.write_all(&line) {
            tracing::warn!(%error, "a request is not in the log");
        }
    }
}
