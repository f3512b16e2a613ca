//! Takes the keys of providers out of the environment. What a process was started with can be read by every other one
//! of its user, and goes on to all that it starts, so this program starts itself anew without them, and hands them to
//! itself in memory. It keeps its process id, its terminal and its files.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};

use zeroize::Zeroizing;

use crate::config::{self, SharedConfig};
use crate::model::SecretText;
use crate::program::Failure;

/// Says where the keys are: `PID:FD`, a file of the process with this id, or `stdin:PID`, the standard input of a
/// child of it. It is in the environment of what this process starts, too, to which it says nothing.
const VARIABLE: &str = "EISEN_KEYS";

/// Bytes of all keys: 32 providers have fewer.
const MOST_BYTES: u64 = 1 << 20;

/// Keys by their variables, as they are handed on.
type Keys = BTreeMap<String, String>;

/// Starts this program anew if its environment has a key of a provider: all that it starts comes after that. Returns
/// if there is none.
pub fn withdraw_keys(shared: &SharedConfig) -> Result<(), Failure> {
    let names = shared.key_variables();
    let keys: BTreeMap<_, _> =
        names.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect();
    if keys.is_empty() {
        return Ok(());
    }
    // What is no text is no key, and nothing else either.
    let mut texts: Keys = kept();
    for (name, value) in &keys {
        texts.extend(value.to_str().map(|value| ((*name).to_owned(), value.to_owned())));
    }
    linux::begin_anew(keys.keys().copied(), &texts)
        .map_err(|error| {
            anyhow::anyhow!("cannot take the keys of providers out of the environment: {error}")
        })
        .map_err(Failure::Run)
}

/// Takes the keys that this program handed to itself. To be called before anything is started.
pub fn receive_keys() {
    let Some(said) = std::env::var(VARIABLE).ok() else { return };
    let Some((from, number)) = said.split_once(':') else { return };
    let read = if from == "stdin" {
        let is_ours = number.parse() == Ok(nix::unistd::getppid().as_raw());
        is_ours.then(|| read(std::io::stdin().lock()))
    } else if from.parse() == Ok(std::process::id()) {
        number.parse().ok().map(linux::read_and_close)
    } else {
        None
    };
    let Some(read) = read else { return };
    guard_memory();
    let keys = read.ok().and_then(|bytes| serde_json::from_slice::<Keys>(&bytes).ok());
    let keys = keys.unwrap_or_default().into_iter();
    config::keep_keys(keys.map(|(name, key)| (name, SecretText::new(key))).collect());
}

/// Starts a process of this program that needs the keys as well. It gets them by its standard input.
pub(crate) fn hand_keys_on(command: &mut Command) -> std::io::Result<Child> {
    let keys = kept();
    if keys.is_empty() {
        return command.stdin(Stdio::null()).spawn();
    }
    command.env(VARIABLE, format!("stdin:{}", std::process::id())).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let bytes = Zeroizing::new(serde_json::to_vec(&keys)?);
        // One that ends at once reads nothing; how it ended says more.
        let _ = std::io::Write::write_all(&mut stdin, &bytes);
    }
    Ok(child)
}

/// Keeps the memory of this process from core dumps, and from other processes of its user.
pub(super) fn guard_memory() {
    linux::guard_memory();
}

fn kept() -> Keys {
    let keys = config::kept_keys().iter();
    keys.map(|(name, key)| (name.clone(), key.reveal().to_owned())).collect()
}

fn read(from: impl std::io::Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    use std::io::Read as _;
    let mut bytes = Zeroizing::new(Vec::with_capacity(64 << 10));
    from.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::os::fd::{AsRawFd as _, RawFd};
    use std::os::unix::process::CommandExt as _;
    use std::path::PathBuf;
    use std::process::Command;

    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::io::{FdFlags, fcntl_setfd};
    use zeroize::Zeroizing;

    use super::{Keys, VARIABLE};

    /// Returns only if that fails.
    pub(super) fn begin_anew<'a>(
        names: impl Iterator<Item = &'a str>,
        keys: &Keys,
    ) -> io::Result<()> {
        let mut memory = File::from(memfd_create("eisen-keys", MemfdFlags::CLOEXEC)?);
        memory.write_all(&Zeroizing::new(serde_json::to_vec(keys)?))?;
        // What is replaced while it runs has no path.
        let program = std::env::current_exe().ok().filter(|program| program.exists());
        let program = program.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        let mut args = std::env::args_os();
        let name = args.next().unwrap_or_else(|| OsString::from("eisen-core"));
        let mut command = Command::new(program);
        command.arg0(name).args(args);
        for name in names {
            command.env_remove(name);
        }
        command.env(VARIABLE, format!("{}:{}", std::process::id(), memory.as_raw_fd()));
        fcntl_setfd(&memory, FdFlags::empty())?;
        Err(command.exec())
    }

    pub(super) fn read_and_close(fd: RawFd) -> io::Result<Zeroizing<Vec<u8>>> {
        // A name of its own for the same memory: this begins at its beginning, and closes what was inherited.
        let memory = File::open(format!("/proc/self/fd/{fd}"));
        let bytes = memory.and_then(super::read);
        let _ = nix::unistd::close(fd);
        bytes
    }

    pub(super) fn guard_memory() {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "the memory with keys of providers can be read by other processes of this user");
        }
    }
}

/// Other systems have neither the means nor zones that the kernel holds: agents get an empty variable.
#[cfg(not(target_os = "linux"))]
mod linux {
    use std::io;

    use zeroize::Zeroizing;

    use super::Keys;

    pub(super) fn begin_anew<'a>(_: impl Iterator<Item = &'a str>, _: &Keys) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn read_and_close(_: i32) -> io::Result<Zeroizing<Vec<u8>>> {
        Ok(Zeroizing::default())
    }

    pub(super) fn guard_memory() {}
}
