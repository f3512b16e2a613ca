//! What goes between the program and a plugin in a child of its own: length-prefixed frames. A
//! request is a call; an answer a status, and the records or why it failed.

use super::Call;

/// Bytes of a frame's head: the length of what follows.
pub(super) const HEAD: usize = 4;

/// The longest answer that is taken; a call may be about many lines.
pub(super) const LONGEST: usize = 256 * 1024 * 1024;

/// Statuses of answers.
pub(super) const DONE: u8 = 0;
pub(super) const FAILED: u8 = 1;

/// A call as bytes, head included.
pub(super) fn request(call: Call<'_>) -> Vec<u8> {
    let (number, first, second) = match call {
        Call::Read { block } => (0, block, &b""[..]),
        Call::Sent { line } => (1, line, &b""[..]),
        Call::Deny { id, why } => (2, id.as_bytes(), why.as_bytes()),
        Call::Start { settings } => (3, settings.as_bytes(), &b""[..]),
        Call::Prompt { text } => (4, text.as_bytes(), &b""[..]),
        Call::Cancel => (5, &b""[..], &b""[..]),
        Call::Allow { id } => (6, id.as_bytes(), &b""[..]),
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
pub(super) fn call(body: &[u8]) -> Option<Call<'_>> {
    let (&number, rest) = body.split_first()?;
    let (length, rest) = rest.split_first_chunk::<HEAD>()?;
    let (first, second) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let text = |bytes| str::from_utf8(bytes).ok();
    Some(match number {
        0 => Call::Read { block: first },
        1 => Call::Sent { line: first },
        2 => Call::Deny { id: text(first)?, why: text(second)? },
        3 => Call::Start { settings: text(first)? },
        4 => Call::Prompt { text: text(first)? },
        5 => Call::Cancel,
        6 => Call::Allow { id: text(first)? },
        _ => return None,
    })
}

/// An answer as bytes, head included.
pub(super) fn answer(outcome: &Result<Vec<u8>, String>) -> Vec<u8> {
    let mut frame = vec![0; HEAD];
    match outcome {
        Ok(told) => {
            frame.push(DONE);
            frame.extend_from_slice(told);
        }
        Err(why) => {
            frame.push(FAILED);
            frame.extend_from_slice(why.as_bytes());
        }
    }
    finish(&mut frame);
    frame
}

fn finish(frame: &mut [u8]) {
    let length = counted(frame.len() - HEAD);
    frame[..HEAD].copy_from_slice(&length);
}

/// Lines and answers are bounded far below what 32 bits count.
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
            Call::Read { block: b"a\n\xff\n" },
            Call::Sent { line: b"" },
            Call::Deny { id: "7", why: "outside" },
            Call::Start { settings: "{}" },
            Call::Prompt { text: "do" },
            Call::Cancel,
            Call::Allow { id: "ü" },
        ] {
            let frame = request(made);
            let (head, body) = frame.split_first_chunk::<HEAD>().unwrap();
            assert_eq!(u32::from_le_bytes(*head) as usize, body.len());
            assert_eq!(call(body), Some(made));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_call_or_none(bytes in proptest::collection::vec(0..8_u8, 0..32)) {
            let _ = call(&bytes);
        }
    }
}
