//! Owns the length-prefixed frames between this program and a plugin's child. A request is a call;
//! an answer is a status, then the bytes read and the records, or the error.

use eisen_plugin::{Record, records};

use super::library::{Description, MOST};
use super::{CallOutput, InstanceCall};
use crate::model::named;

/// The command that runs this program as a plugin's child.
pub(super) const COMMAND: &str = "plugin-host";

named! {
    /// What a child is started for, and the name as its third argument.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum ChildRole {
        /// Serve an instance.
        Serve = "serve",
        /// Describe the plugin, and end.
        Describe = "describe",
        /// Report each step that the plugin takes.
        Check = "check",
    }
}

/// Bytes of a frame's head, which holds the length of the body.
pub(super) const HEAD: usize = 4;

/// Longest accepted request, four times the longest line.
pub(super) const LONGEST: usize = 256 * 1024 * 1024;

/// Longest accepted answer: a full block, then one more line that is gated and observed.
pub(super) const LONGEST_ANSWER: usize = 3 * MOST;

/// Statuses of answers.
const DONE: u8 = 0;
const FAILED: u8 = 1;
/// Done, but a line could not be gated.
const UNGATED: u8 = 2;

/// A call as bytes, head included.
pub(super) fn request(call: InstanceCall<'_>) -> Vec<u8> {
    let (number, first, second) = match call {
        InstanceCall::Read { block } => (0, block, &b""[..]),
        InstanceCall::Sent { line } => (1, line, &b""[..]),
        InstanceCall::Deny { id, why } => (2, id.as_bytes(), why.as_bytes()),
        InstanceCall::Start { settings } => (3, settings.as_bytes(), &b""[..]),
        InstanceCall::Prompt { text } => (4, text.as_bytes(), &b""[..]),
        InstanceCall::Cancel => (5, &b""[..], &b""[..]),
        InstanceCall::Allow { id } => (6, id.as_bytes(), &b""[..]),
    };
    let mut frame = vec![0; HEAD];
    frame.push(number);
    frame.extend(counted(first.len()));
    frame.extend_from_slice(first);
    frame.extend_from_slice(second);
    finish(&mut frame);
    frame
}

/// A call from its bytes, without their head.
pub(super) fn call(body: &[u8]) -> Option<InstanceCall<'_>> {
    let (&number, rest) = body.split_first()?;
    let (length, rest) = rest.split_first_chunk::<HEAD>()?;
    let (first, second) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let text = |bytes| str::from_utf8(bytes).ok();
    Some(match number {
        0 => InstanceCall::Read { block: first },
        1 => InstanceCall::Sent { line: first },
        2 => InstanceCall::Deny { id: text(first)?, why: text(second)? },
        3 => InstanceCall::Start { settings: text(first)? },
        4 => InstanceCall::Prompt { text: text(first)? },
        5 => InstanceCall::Cancel,
        6 => InstanceCall::Allow { id: text(first)? },
        _ => return None,
    })
}

/// An answer as bytes, head included.
pub(super) fn answer(outcome: &Result<CallOutput, String>) -> Vec<u8> {
    let mut frame = vec![0; HEAD];
    match outcome {
        Ok(CallOutput { output, read, ungated }) => {
            frame.push(if *ungated { UNGATED } else { DONE });
            frame.extend(counted(*read));
            frame.extend_from_slice(output);
        }
        Err(why) => {
            frame.push(FAILED);
            frame.extend_from_slice(why.as_bytes());
        }
    }
    finish(&mut frame);
    frame
}

/// An answer from its bytes, without their head; None if malformed.
pub(super) fn answered(mut body: Vec<u8>) -> Option<Result<CallOutput, String>> {
    let (&status, rest) = body.split_first()?;
    if ![DONE, UNGATED].contains(&status) {
        return Some(Err(String::from_utf8_lossy(rest).into_owned()));
    }
    let read = u32::from_le_bytes(*rest.first_chunk()?) as usize;
    body.drain(..=HEAD);
    Some(Ok(CallOutput { output: body, read, ungated: status == UNGATED }))
}

/// Encodes a description as the first answer.
pub(super) fn description(of: &Description) -> Vec<u8> {
    let mut bytes = vec![u8::from(of.gates), u8::from(of.drives)];
    let record = Record::Description {
        name: of.name.as_str().into(),
        version: of.version.as_str().into(),
        protocols: of.protocols.iter().map(Into::into).collect(),
    };
    record.write(&mut bytes);
    bytes
}

/// Decodes a description.
pub(super) fn described(bytes: &[u8]) -> Option<Description> {
    let (&[gates, drives], record) = bytes.split_first_chunk()?;
    match records(record).next()?.ok()? {
        Record::Description { name, version, protocols } => Some(Description {
            name: name.into_owned(),
            version: version.into_owned(),
            protocols: protocols.into_iter().map(Into::into).collect(),
            gates: gates == 1,
            drives: drives == 1,
        }),
        _ => None,
    }
}

fn finish(frame: &mut [u8]) {
    let length = counted(frame.len() - HEAD);
    frame[..HEAD].copy_from_slice(&length);
}

/// Lines and answers are bounded far below 4 GiB.
fn counted(length: usize) -> [u8; HEAD] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_call_is_what_it_was() {
        for made in [
            InstanceCall::Read { block: b"a\n\xff\n" },
            InstanceCall::Sent { line: b"" },
            InstanceCall::Deny { id: "7", why: "outside" },
            InstanceCall::Start { settings: "{}" },
            InstanceCall::Prompt { text: "do" },
            InstanceCall::Cancel,
            InstanceCall::Allow { id: "ü" },
        ] {
            let frame = request(made);
            let (head, body) = frame.split_first_chunk::<HEAD>().unwrap();
            assert_eq!(u32::from_le_bytes(*head) as usize, body.len());
            assert_eq!(call(body), Some(made));
        }
    }

    #[test]
    fn an_answer_is_what_it_was() {
        let output = |ungated| CallOutput { output: b"\xff".to_vec(), read: 70_000, ungated };
        for made in [Ok(output(false)), Ok(output(true)), Err("no".to_owned())] {
            let frame = answer(&made);
            assert_eq!(
                u32::from_le_bytes(*frame.first_chunk().unwrap()) as usize,
                frame.len() - HEAD
            );
            assert_eq!(answered(frame[HEAD..].to_vec()), Some(made));
        }
        for torn in [&[][..], &[DONE], &[DONE, 0, 0, 0]] {
            assert_eq!(answered(torn.to_vec()), None);
        }
    }

    #[test]
    fn a_description_is_what_it_was() {
        let made = Description {
            name: "words".to_owned(),
            version: String::new(),
            protocols: vec!["one".to_owned(), "two".to_owned()],
            gates: false,
            drives: true,
        };
        let bytes = description(&made);
        assert_eq!(described(&bytes), Some(made));
        assert_eq!(described(&bytes[..bytes.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_call_or_none(bytes in proptest::collection::vec(0..8_u8, 0..32)) {
            let _ = call(&bytes);
        }
    }
}
