//! `fs/read_text_file`: reads the file that a permit names, and no other.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::Path;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{Error, ReadTextFileRequest};
use eisen_base::task;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::answer_line::{AnswerLine, ContentWriter};
use super::rpc;
use crate::capture::RunFiles;
use crate::conflicts::{AgentConflicts, KnownContent};
use crate::model::code;
use crate::model::{Action, AgentMemory, FileStamp, SessionId};
use crate::zone::Permit;

/// Bytes of a file in one answer: with the JSON around it, still a line of 64 MiB.
const MAX_CONTENT: usize = 60 << 20;

/// Bytes read of one file to reach the requested lines: a sparse file may be larger than all disks.
const MAX_READ: u64 = 1 << 30;
const MAX_TIME: Duration = Duration::from_secs(30);

/// Bytes of a file whose content a session knows after a read; a larger one is known by its stamp.
const MOST_KNOWN: u64 = 4 << 20;

/// Answers `fs/read_text_file`: the line of the answer to the request with this id, which counts to the agent's
/// memory. Dropping the future stops the read.
pub(super) async fn read(
    request: ReadTextFileRequest,
    permit: Permit,
    files: Option<RunFiles>,
    conflicts: Option<AgentConflicts>,
    id: Box<RawValue>,
    memory: AgentMemory,
) -> Result<AnswerLine, Error> {
    let dropped = CancellationToken::new();
    let budget = ReadBudget { bytes: MAX_READ, until: Instant::now() + MAX_TIME, dropped };
    let _guard = budget.dropped.clone().drop_guard();
    blocking(move || {
        let failure = |error| explain("read", &request.path, &error);
        let session = SessionId::new(&*request.session_id.0);
        let known = |content: KnownContent<'_>| {
            if let (Some(files), Some(conflicts)) = (&files, &conflicts) {
                conflicts.was_read(&session, &files.name(&permit.real), content);
            }
        };
        let file = permit.open_read().inspect_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                known(KnownContent::Missing);
            }
        });
        let mut file = file.map_err(failure)?;
        let before = file.metadata().map_err(failure)?;
        let asked = AskedLines { first: request.line.unwrap_or(1).max(1), limit: request.limit };
        let expected = if asked.is_all() { before.len().min(MAX_CONTENT as u64) } else { 0 };
        let mut answer = ContentWriter::new(&id, expected, &memory).map_err(failure)?;
        let mut kept = KeptText::new(conflicts.is_some());
        let mut put = |text: &[u8]| {
            kept.add(text);
            answer.push(text)
        };
        let text = BufReader::new(&file);
        let is_end = lines_of(text, asked, MAX_CONTENT, budget, &mut put).map_err(failure)?;
        let answer = answer.end().map_err(failure)?;
        if let Some(files) = &files {
            files.was_read(&session, &permit.real);
        }
        match kept.text.filter(|_| asked.first == 1 && is_end) {
            Some(whole) => known(KnownContent::Whole(&whole)),
            None if conflicts.is_some() => known_part(&mut file, &before, known),
            None => {}
        }
        Ok(answer)
    })
    .await
}

/// The lines that are asked for.
#[derive(Clone, Copy)]
struct AskedLines {
    /// From 1.
    first: u32,
    limit: Option<u32>,
}

impl AskedLines {
    fn is_all(self) -> bool {
        self.first == 1 && self.limit.is_none()
    }
}

/// The text that was read of a file, as long as it is small.
struct KeptText {
    text: Option<Vec<u8>>,
}

impl KeptText {
    fn new(is_kept: bool) -> Self {
        Self { text: is_kept.then(Vec::new) }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.text = self.text.take().filter(|text| (text.len() + bytes.len()) as u64 <= MOST_KNOWN);
        if let Some(text) = &mut self.text {
            text.extend_from_slice(bytes);
        }
    }
}

/// Tells what a session knows of a file of which it read a part: the whole of a small one, so that a write of it
/// can be merged.
fn known_part(file: &mut File, before: &Metadata, known: impl Fn(KnownContent<'_>)) {
    let stamp = FileStamp::of(before);
    let is_same = |file: &File| file.metadata().is_ok_and(|now| FileStamp::of(&now) == stamp);
    let mut whole = Vec::new();
    let is_small = before.len() <= MOST_KNOWN
        && file.rewind().is_ok()
        && file.take(MOST_KNOWN).read_to_end(&mut whole).is_ok();
    // Otherwise it was written meanwhile, and what the session knew before stands.
    if is_same(file) {
        known(if is_small { KnownContent::Whole(&whole) } else { KnownContent::Part(stamp) });
    }
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

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    task::spawn_blocking(work).await.unwrap_or_else(|_| {
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

/// Reads the lines that are asked for, with their line endings, and puts them in order; returns whether the text
/// ends there. Lines past the end give an empty text. Puts at most `max` bytes, however large the file is.
fn lines_of(
    mut text: impl BufRead,
    asked: AskedLines,
    max: usize,
    mut budget: ReadBudget,
    put: &mut impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut length = 0;
    let mut skip = u64::from(asked.first) - 1;
    let mut take = asked.limit.map_or(u64::MAX, u64::from);
    while take > 0 {
        let piece = text.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', piece).map(|newline| newline + 1);
        let read = end.unwrap_or(piece.len());
        budget.spend(read)?;
        if skip == 0 {
            length += read;
            if length > max {
                let why = format!("more than {max} bytes; ask for a part with `line` and `limit`");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            put(&piece[..read])?;
        }
        if end.is_some() {
            if skip == 0 {
                take -= 1;
            } else {
                skip -= 1;
            }
        }
        text.consume(read);
    }
    Ok(text.fill_buf()?.is_empty())
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
            let asked = AskedLines { first: 2, limit: Some(1) };
            lines_of(endless, asked, 8, budget, &mut |_| Ok(())).unwrap_err().to_string()
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
            let mut read = Vec::new();
            let mut put = |text: &[u8]| {
                read.extend_from_slice(text);
                Ok(())
            };
            let is_end = lines_of(text, AskedLines { first, limit }, 1000, budget(100), &mut put);
            let (read, is_end) = (String::from_utf8(read).unwrap(), is_end.unwrap());
            content.assert_eq(&format!("{read:?} {is_end}"));
        };
        check(1, None, expect![[r#""one\r\n\nthrée\nfour" true"#]]);
        check(1, Some(1), expect![[r#""one\r\n" false"#]]);
        check(2, Some(1), expect![[r#""\n" false"#]]);
        check(2, Some(2), expect![[r#""\nthrée\n" false"#]]);
        check(3, None, expect![[r#""thrée\nfour" true"#]]);
        check(4, Some(u32::MAX), expect![[r#""four" true"#]]);
        check(5, None, expect![[r#""" true"#]]);
        check(u32::MAX, Some(3), expect![[r#""" true"#]]);
        check(1, Some(0), expect![[r#""" false"#]]);
    }

    #[test]
    fn what_cannot_be_told_in_one_answer_is_an_error() {
        let check = |text: &[u8], first: u32, limit: Option<u32>, told: Expect| {
            let mut all = Vec::new();
            let mut put = |text: &[u8]| {
                all.extend_from_slice(text);
                Ok(())
            };
            let (text, asked) = (BufReader::with_capacity(3, text), AskedLines { first, limit });
            let read = lines_of(text, asked, 8, budget(100), &mut put);
            told.assert_eq(&match read {
                Ok(_) => String::from_utf8(all).unwrap(),
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
