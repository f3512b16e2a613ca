//! Owns the length-prefixed frames between this program and a plugin's child, which are the same
//! build. A request is a call; an answer is its result. The first result is the description.

use serde::{Deserialize, Serialize};

use super::library::MOST;
use crate::model::named;

/// The command that runs this program as a plugin's child.
pub(super) const COMMAND: &str = "plugin-host";

named! {
    /// The purpose of a child, with the name as its third argument.
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

/// A call or an answer as bytes, head included.
#[expect(clippy::expect_used, reason = "texts, bytes and numbers always serialise")]
pub(super) fn encode(message: &impl Serialize) -> Vec<u8> {
    let mut frame = postcard::to_extend(message, vec![0; HEAD]).expect("a message serialises");
    // Lines and answers are bounded far below 4 GiB.
    let length = u32::try_from(frame.len() - HEAD).unwrap_or(u32::MAX);
    frame[..HEAD].copy_from_slice(&length.to_le_bytes());
    frame
}

/// A call or an answer from its bytes, without their head; None if malformed.
pub(super) fn decode<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    postcard::from_bytes(body).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::plugin::child_process::StepResult;
    use crate::plugin::library::Description;
    use crate::plugin::{CallOutput, InstanceCall};

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
            let frame = encode(&made);
            let (head, body) = frame.split_first_chunk::<HEAD>().unwrap();
            assert_eq!(u32::from_le_bytes(*head) as usize, body.len());
            assert_eq!(decode(body), Some(made));
        }
    }

    #[test]
    fn an_answer_is_what_it_was() {
        let output = |ungated| CallOutput { output: b"\xff".to_vec(), read: 70_000, ungated };
        for made in [Ok(output(false)), Ok(output(true)), Err::<CallOutput, _>("no".to_owned())] {
            let frame = encode(&made);
            assert_eq!(
                u32::from_le_bytes(*frame.first_chunk().unwrap()) as usize,
                frame.len() - HEAD
            );
            assert_eq!(decode(&frame[HEAD..]), Some(made));
        }
        let whole = encode(&Ok::<_, String>(output(true)));
        for end in HEAD..whole.len() {
            assert_eq!(decode::<StepResult>(&whole[HEAD..end]), None);
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
        let bytes = &encode(&made)[HEAD..];
        assert_eq!(decode(bytes), Some(made));
        assert_eq!(decode::<Description>(&bytes[..bytes.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_call_or_none(bytes in proptest::collection::vec(0..8_u8, 0..32)) {
            let _ = decode::<InstanceCall<'_>>(&bytes);
        }
    }
}
