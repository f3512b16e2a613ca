//! `fs/read_text_file`: reads the file that a permit names, and no other.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{Error, ReadTextFileRequest, ReadTextFileResponse};
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::rpc;
use crate::capture::RunFiles;
use crate::model::code;
use crate::model::{Action, SessionId};
use crate::zone::Permit;

/// Bytes of a file in one answer: with the JSON around it, still a line of 64 MiB.
const MAX_CONTENT: usize = 60 << 20;

/// Bytes read of one file to reach the requested lines: a sparse file may be larger than all disks.
const MAX_READ: u64 = 1 << 30;
const MAX_TIME: Duration = Duration::from_secs(30);

/// Answers `fs/read_text_file`. Dropping the future stops the read.
pub(super) async fn read(
    request: ReadTextFileRequest,
    permit: Permit,
    files: Option<RunFiles>,
) -> FileResult {
    let dropped = CancellationToken::new();
    let budget = ReadBudget { bytes: MAX_READ, until: Instant::now() + MAX_TIME, dropped };
    let _guard = budget.dropped.clone().drop_guard();
    blocking(move || {
        let failure = |error| explain("read", &request.path, &error);
        let file = permit.open_read().map_err(failure)?;
        let first = request.line.unwrap_or(1).max(1);
        let content = lines_of(BufReader::new(file), first, request.limit, MAX_CONTENT, budget);
        let content = content.map_err(failure)?;
        if let Some(files) = files {
            files.was_read(&SessionId::new(&*request.session_id.0), &permit.real);
        }
        rpc::encode(&ReadTextFileResponse::new(content))
    })
    .await
}

/// Returns the permit of a request for one file. A request without one never passed a gate.
pub(super) fn only(permits: Option<Vec<Permit>>, action: Action) -> Result<Permit, Error> {
    let mut permits = permits.unwrap_or_default().into_iter();
    match (permits.next(), permits.next()) {
        (Some(permit), None) if permit.action == action => Ok(permit),
        _ => Err(rpc::failure(
            code::INTERNAL_ERROR,
            "Refused: this access was not judged by the agent's zone",
        )),
    }
}

pub(super) type FileResult = Result<Box<RawValue>, Error>;

pub(super) async fn blocking(work: impl FnOnce() -> FileResult + Send + 'static) -> FileResult {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(rpc::failure(code::INTERNAL_ERROR, "Internal error: the file access failed"))
    })
}

/// Limits on the read of one file.
struct ReadBudget {
    bytes: u64,
    until: Instant,
    /// Cancelled when the caller drops the request.
    dropped: CancellationToken,
}

impl ReadBudget {
    /// Accounts for `bytes` more; fails past a limit.
    fn spend(&mut self, bytes: usize) -> io::Result<()> {
        let too_large = |what: String| Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        if self.dropped.is_cancelled() {
            return Err(io::Error::other("nobody waits for it any more"));
        }
        if Instant::now() > self.until {
            let seconds = MAX_TIME.as_secs();
            return too_large(format!("the lines were not reached within {seconds} s"));
        }
        match self.bytes.checked_sub(bytes as u64) {
            Some(left) => self.bytes = left,
            None => return too_large("the lines lie too far into it".to_owned()),
        }
        Ok(())
    }
}

/// Reads `limit` lines from line `first` (from 1) on, with their line endings; lines past the end
/// give an empty text. Keeps at most `max` bytes, however large the file is.
fn lines_of(
    mut text: impl BufRead,
    first: u32,
    limit: Option<u32>,
    max: usize,
    mut budget: ReadBudget,
) -> io::Result<String> {
    let mut content = Vec::new();
    let mut skip = u64::from(first) - 1;
    let mut take = limit.map_or(u64::MAX, u64::from);
    while take > 0 {
        let piece = text.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', piece).map(|newline| newline + 1);
        let length = end.unwrap_or(piece.len());
        budget.spend(length)?;
        if skip == 0 {
            content.extend_from_slice(&piece[..length]);
        }
        if content.len() > max {
            let why = format!("more than {max} bytes; ask for a part with `line` and `limit`");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        if end.is_some() {
            if skip == 0 {
                take -= 1;
            } else {
                skip -= 1;
            }
        }
        text.consume(length);
    }
    String::from_utf8(content)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Describes a failed operation on the path, spelled as the agent did.
pub(super) fn explain(what: &str, path: &Path, error: &io::Error) -> Error {
    let path = path.display().to_string();
    if error.kind() == io::ErrorKind::NotFound {
        return rpc::failure(code::RESOURCE_NOT_FOUND, format!("Resource not found: {path}"))
            .data(json!({ "uri": path }));
    }
    let why = match error.raw_os_error() {
        Some(_) => error.kind().to_string(),
        None => error.to_string(),
    };
    rpc::failure(code::INTERNAL_ERROR, format!("Cannot {what} {path}: {why}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use expect_test::{Expect, expect};

    use super::*;

    fn budget(bytes: u64) -> ReadBudget {
        let until = Instant::now() + Duration::from_hours(1);
        ReadBudget { bytes, until, dropped: CancellationToken::new() }
    }

    #[test]
    fn a_file_without_an_end_is_read_no_further_than_there_is_patience() {
        let told = |budget| {
            let endless = BufReader::new(io::repeat(0));
            lines_of(endless, 2, Some(1), 8, budget).unwrap_err().to_string()
        };
        assert_eq!(told(budget(1 << 20)), "the lines lie too far into it");
        let late = ReadBudget { until: Instant::now(), ..budget(u64::MAX) };
        assert_eq!(told(late), "the lines were not reached within 30 s");
        let dropped = budget(u64::MAX);
        dropped.dropped.cancel();
        assert_eq!(told(dropped), "nobody waits for it any more");
    }

    #[test]
    fn a_part_of_a_file_is_read_by_line_and_limit() {
        let check = |first: u32, limit: Option<u32>, content: Expect| {
            // A tiny buffer, so that lines come in pieces.
            let text = BufReader::with_capacity(2, "one\r\n\nthrée\nfour".as_bytes());
            content.assert_eq(&format!(
                "{:?}",
                lines_of(text, first, limit, 1000, budget(100)).unwrap()
            ));
        };
        check(1, None, expect![[r#""one\r\n\nthrée\nfour""#]]);
        check(1, Some(1), expect![[r#""one\r\n""#]]);
        check(2, Some(1), expect![[r#""\n""#]]);
        check(2, Some(2), expect![[r#""\nthrée\n""#]]);
        check(3, None, expect![[r#""thrée\nfour""#]]);
        check(4, Some(u32::MAX), expect![[r#""four""#]]);
        check(5, None, expect![[r#""""#]]);
        check(u32::MAX, Some(3), expect![[r#""""#]]);
        check(1, Some(0), expect![[r#""""#]]);
    }

    #[test]
    fn what_cannot_be_told_in_one_answer_is_an_error() {
        let check = |text: &[u8], first: u32, limit: Option<u32>, told: Expect| {
            let read = lines_of(BufReader::with_capacity(3, text), first, limit, 8, budget(100));
            told.assert_eq(&match read {
                Ok(text) => text,
                Err(error) => explain("read", Path::new("/w/a"), &error).message,
            });
        };
        check(b"12345678", 1, None, expect!["12345678"]);
        check(
            b"123456789",
            1,
            None,
            expect!["Cannot read /w/a: more than 8 bytes; ask for a part with `line` and `limit`"],
        );
        // What is skipped is not kept.
        check(
            b"123456789\nab\ncdefghijk",
            2,
            Some(1),
            expect![[r"
            ab
        "]],
        );
        check(b"a\xff\nb\n", 1, None, expect!["Cannot read /w/a: it is not UTF-8 text"]);
        check(
            b"a\xff\nb\n",
            2,
            None,
            expect![[r"
            b
        "]],
        );
    }

    #[test]
    fn errors_name_path_and_cause() {
        let check = |error: io::Error, told: Expect| {
            let error = explain("write", Path::new("/w/a b"), &error);
            told.assert_eq(&serde_json::to_string(&error).unwrap());
        };
        check(
            io::Error::from_raw_os_error(2),
            expect![[
                r#"{"code":-32002,"message":"Resource not found: /w/a b","data":{"uri":"/w/a b"}}"#
            ]],
        );
        check(
            io::Error::from_raw_os_error(13),
            expect![[r#"{"code":-32603,"message":"Cannot write /w/a b: permission denied"}"#]],
        );
        check(
            io::Error::other("it is a pipe"),
            expect![[r#"{"code":-32603,"message":"Cannot write /w/a b: it is a pipe"}"#]],
        );
    }
}
