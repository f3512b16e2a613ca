//! The protocol between supervisor and warden. Both are the same build, so it has no version.
//!
//! The supervisor sends the command once: its length together with three descriptors (four for a
//! confined command), then the command. After that it sends one byte for each signal. The warden
//! reports in frames of one size. The listener of the doorbell is sent with the start report of a
//! confined command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::error::StartRefusal;
use super::{Command, Exit, SpawnError};

/// Bytes of the length before a command.
pub(super) const LENGTH: usize = 4;
/// Bytes of a report: the longest has three numbers of variants, and one of 32 bits in up to five.
pub(super) const REPORT: usize = 8;

/// A report of the warden.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(super) enum Report {
    Started(i32),
    Refused(StartRefusal),
    Ended(Exit),
}

/// A command as it is sent: the canary, the working directory, the program, its arguments and
/// environment. Paths are no text, so they go as the system's strings.
type Sent = (Option<OsString>, OsString, OsString, Vec<OsString>, BTreeMap<String, String>);

impl Report {
    #[expect(clippy::expect_used, reason = "every report fits, see `REPORT`")]
    pub(super) fn encode(self) -> [u8; REPORT] {
        let mut frame = [0; REPORT];
        postcard::to_slice(&self, &mut frame).expect("a report fits");
        frame
    }

    pub(super) fn decode(frame: [u8; REPORT]) -> Option<Self> {
        postcard::from_bytes(&frame).ok()
    }
}

/// The byte for a signal.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 31")]
pub(super) fn signal_byte(signal: Signal) -> u8 {
    signal as i32 as u8
}

/// Encodes a command, its length first. `canary` is set for a confined command.
pub(super) fn encode(command: &Command, canary: Option<&Path>) -> Result<Vec<u8>, SpawnError> {
    let Command { program, args, cwd, env } = command;
    let check = |text: &OsStr, part: &dyn Fn() -> String| {
        let is_sound = !text.as_bytes().contains(&0);
        is_sound.then_some(()).ok_or_else(|| SpawnError::unsendable(command, part()))
    };
    check(canary.unwrap_or(Path::new("")).as_os_str(), &|| "the path of its canary file".into())?;
    check(cwd.as_os_str(), &|| "its working directory".into())?;
    check(program, &|| "its name".into())?;
    for (index, arg) in args.iter().enumerate() {
        check(arg, &|| format!("argument {}", index + 1))?;
    }
    for (key, value) in env {
        if key.is_empty() || key.contains('=') {
            let part = format!("the name `{key}` of an environment variable");
            return Err(SpawnError::unsendable(command, part));
        }
        check(OsStr::new(key), &|| "the name of an environment variable".into())?;
        check(OsStr::new(value), &|| format!("the environment variable `{key}`"))?;
    }
    let sent = (canary.map(Path::as_os_str), cwd.as_os_str(), program, args, env);
    // No system takes more than four gigabytes of arguments.
    let too_long = || SpawnError::too_long(command);
    let mut out = postcard::to_extend(&sent, vec![0; LENGTH]).map_err(|_| too_long())?;
    let length = u32::try_from(out.len() - LENGTH).map_err(|_| too_long())?;
    out[..LENGTH].copy_from_slice(&length.to_le_bytes());
    Ok(out)
}

/// Decodes `body`, which follows the length: the command, and the canary of a confined one.
pub(super) fn decode(body: &[u8]) -> Option<(Command, Option<PathBuf>)> {
    let (canary, cwd, program, args, env): Sent = postcard::from_bytes(body).ok()?;
    Some((Command { program, args, cwd: cwd.into(), env }, canary.map(PathBuf::from)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::ffi::OsStringExt;

    use proptest::prelude::*;

    use super::*;
    use crate::confine::SetupStep;

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
            Report::Refused(StartRefusal::Confinement(SetupStep::Doorbell, i32::MIN)),
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
