//! The protocol between supervisor and warden. Both are the same build, so it has no version.
//!
//! The supervisor sends the command once: its length together with three descriptors (four for a
//! confined command), then strings that end in NUL. After that it sends one byte for each signal.
//! The warden reports in frames of five bytes. The listener of the doorbell is sent with the start
//! report of a confined command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use super::error::StartRefusal;
use super::{Command, Exit, SpawnError};
use crate::confine::SetupStep;

/// Bytes of the length before a command.
pub(super) const LENGTH: usize = 4;
/// Bytes of a report.
pub(super) const REPORT: usize = 5;

/// A report of the warden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Report {
    Started(i32),
    Refused(StartRefusal),
    Ended(Exit),
}

impl Report {
    pub(super) fn encode(self) -> [u8; REPORT] {
        let (tag, value) = match self {
            Self::Started(pid) => (b'S', pid),
            Self::Refused(StartRefusal::Guard(errno)) => (b'G', errno),
            Self::Refused(StartRefusal::Folder(errno)) => (b'F', errno),
            Self::Refused(StartRefusal::Program(errno)) => (b'P', errno),
            // Steps have lowercase codes.
            Self::Refused(StartRefusal::Confinement(step, errno)) => (step.code(), errno),
            Self::Ended(Exit::Code(code)) => (b'C', code),
            Self::Ended(Exit::Signal(number)) => (b'K', number),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn decode([tag, a, b, c, d]: [u8; REPORT]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b'S' => Self::Started(value),
            b'G' => Self::Refused(StartRefusal::Guard(value)),
            b'F' => Self::Refused(StartRefusal::Folder(value)),
            b'P' => Self::Refused(StartRefusal::Program(value)),
            b'C' => Self::Ended(Exit::Code(value)),
            b'K' => Self::Ended(Exit::Signal(value)),
            step => Self::Refused(StartRefusal::Confinement(SetupStep::from_code(step)?, value)),
        })
    }
}

/// The byte for a signal.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 31")]
pub(super) fn signal_byte(signal: Signal) -> u8 {
    signal as i32 as u8
}

/// Encodes a command: the length, then its strings. `canary` is set for a confined command.
pub(super) fn encode(command: &Command, canary: Option<&Path>) -> Result<Vec<u8>, SpawnError> {
    let mut out = vec![0; LENGTH];
    let mut put = |text: &OsStr, part: &dyn Fn() -> String| {
        if text.as_bytes().contains(&0) {
            return Err(SpawnError::unsendable(command, part()));
        }
        out.extend_from_slice(text.as_bytes());
        out.push(0);
        Ok(())
    };
    put(canary.unwrap_or(Path::new("")).as_os_str(), &|| "the path of its canary file".into())?;
    put(command.cwd.as_os_str(), &|| "its working directory".into())?;
    put(&command.program, &|| "its name".into())?;
    put(OsStr::new(&command.args.len().to_string()), &String::new)?;
    for (index, arg) in command.args.iter().enumerate() {
        put(arg, &|| format!("argument {}", index + 1))?;
    }
    for (key, value) in &command.env {
        if key.is_empty() || key.contains('=') {
            let part = format!("the name `{key}` of an environment variable");
            return Err(SpawnError::unsendable(command, part));
        }
        put(OsStr::new(key), &|| "the name of an environment variable".into())?;
        put(OsStr::new(value), &|| format!("the environment variable `{key}`"))?;
    }
    // No system takes more than four gigabytes of arguments.
    let Ok(length) = u32::try_from(out.len() - LENGTH) else {
        return Err(SpawnError::too_long(command));
    };
    out[..LENGTH].copy_from_slice(&length.to_le_bytes());
    Ok(out)
}

/// Decodes `body`, the strings after the length: the command, and the canary of a confined one.
pub(super) fn decode(body: &[u8]) -> Option<(Command, Option<PathBuf>)> {
    let mut strings = body.strip_suffix(&[0])?.split(|&byte| byte == 0);
    let mut next = || strings.next().map(<[u8]>::to_vec);
    let canary = PathBuf::from(OsString::from_vec(next()?));
    let canary = Some(canary).filter(|canary| !canary.as_os_str().is_empty());
    let cwd = OsString::from_vec(next()?).into();
    let program = OsString::from_vec(next()?);
    let count: usize = String::from_utf8(next()?).ok()?.parse().ok()?;
    let args = (0..count).map(|_| next().map(OsString::from_vec)).collect::<Option<_>>()?;
    let mut env = std::collections::BTreeMap::new();
    while let Some(key) = next() {
        env.insert(String::from_utf8(key).ok()?, String::from_utf8(next()?).ok()?);
    }
    Some((Command { program, args, cwd, env }, canary))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_command_arrives_as_it_was_sent(
            program in "[^\0]+",
            args in prop::collection::vec(prop::collection::vec(1u8.., 0..9), 0..9),
            env in prop::collection::btree_map("[^\0=]+", "[^\0]*", 0..9),
            canary in prop::option::of("/[^\0]*"),
        ) {
            let args: Vec<_> = args.into_iter().map(OsString::from_vec).collect();
            let sent = Command { program: program.into(), args, cwd: "/a b".into(), env };
            let canary = canary.map(PathBuf::from);
            let bytes = encode(&sent, canary.as_deref()).unwrap();
            prop_assert_eq!(&bytes[..LENGTH], &u32::try_from(bytes.len() - LENGTH).unwrap().to_le_bytes());
            let (got, its_canary) = decode(&bytes[LENGTH..]).unwrap();
            prop_assert_eq!(its_canary, canary);
            prop_assert_eq!(
                (got.program, got.args, got.cwd, got.env),
                (sent.program, sent.args, sent.cwd, sent.env)
            );
        }

        #[test]
        fn nothing_in_a_command_makes_decoding_panic(body: Vec<u8>) {
            let _ = decode(&body);
        }
    }

    #[test]
    fn a_report_arrives_as_it_was_sent() {
        for report in [
            Report::Started(7),
            Report::Refused(StartRefusal::Guard(1)),
            Report::Refused(StartRefusal::Folder(2)),
            Report::Refused(StartRefusal::Program(i32::MAX)),
            Report::Refused(StartRefusal::Confinement(SetupStep::Bait, 3)),
            Report::Refused(StartRefusal::Confinement(SetupStep::Rights, 4)),
            Report::Refused(StartRefusal::Confinement(SetupStep::Wall, 5)),
            Report::Refused(StartRefusal::Confinement(SetupStep::Canary, 0)),
            Report::Refused(StartRefusal::Confinement(SetupStep::Doorbell, 6)),
            Report::Ended(Exit::Code(-1)),
            Report::Ended(Exit::Signal(9)),
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
    }

    #[test]
    fn an_invalid_string_is_named() {
        let command = |arg: &str, key: &str| Command {
            program: "agent".into(),
            args: vec!["acp".into(), arg.into()],
            cwd: "/".into(),
            env: [(key.to_owned(), String::new())].into(),
        };
        let check = |arg, key, expect: expect_test::Expect| {
            expect.assert_eq(&encode(&command(arg, key), None).unwrap_err().to_string());
        };
        check(
            "a\0b",
            "A",
            expect_test::expect![
                "cannot start `agent`: argument 2 contains a character not allowed in commands"
            ],
        );
        check(
            "a",
            "A=B",
            expect_test::expect![
                "cannot start `agent`: the name `A=B` of an environment variable contains a character not allowed in commands"
            ],
        );
    }
}
