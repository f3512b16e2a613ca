//! `eisen-core warden canary`: a command that tests its own confinement from inside.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::Command;

const CANARY: &str = "canary";

/// A command that succeeds if it can't open `outside` for writing, and can create `inside`.
/// Otherwise it prints the reason to standard error.
pub fn canary(program: &Path, cwd: &Path, outside: &Path, inside: &Path) -> Command {
    let [outside, inside] = [outside, inside].map(|path| path.as_os_str().to_owned());
    Command {
        program: program.into(),
        args: vec!["warden".into(), CANARY.into(), outside, inside],
        cwd: cwd.to_owned(),
        env: std::collections::BTreeMap::new(),
    }
}

/// Runs as the canary if this process was started as one; returns its exit code.
pub(super) fn run_if_asked() -> Option<i32> {
    let args: Vec<OsString> = std::env::args_os().skip(2).collect();
    let [name, outside, inside] = &args[..] else { return None };
    if name != CANARY {
        return None;
    }
    match probe(Path::new(outside), Path::new(inside)) {
        Ok(()) => Some(0),
        Err(why) => {
            eprintln!("{why}");
            Some(1)
        }
    }
}

fn probe(outside: &Path, inside: &Path) -> Result<(), String> {
    match File::options().append(true).open(outside) {
        Ok(_) => return Err("a file outside the bounds could be opened for writing".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => {
            return Err(format!("a file outside the bounds gave an unexpected error: {error}"));
        }
    }
    File::create_new(inside)
        .and_then(|mut file| file.write_all(b"canary"))
        .map_err(|error| format!("no file could be created inside the bounds: {error}"))
}
