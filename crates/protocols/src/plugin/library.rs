//! Owns plugins' shared libraries and the calls through their C interface. A library stays loaded
//! until the program ends, so no pointer into it can dangle.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eisen_plugin::abi::{self, Bytes, Output};
use eisen_plugin::{Record, records};
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use nix::libc;
use serde::{Deserialize, Serialize};

use super::approval::Approval;
use super::blame;
use super::load_error::{LoadError, owned};

/// Bytes of records that one call may put.
pub(super) const MOST: usize = 16 * 1024 * 1024;

/// A plugin whose table was checked.
#[derive(Clone, Debug)]
pub struct Library {
    table: abi::Plugin,
    description: Description,
}

/// A plugin's description of itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Description {
    pub name: String,
    pub version: String,
    pub protocols: Vec<String>,
    /// The plugin can enforce a zone.
    pub gates: bool,
    /// A team can prompt its agents.
    pub drives: bool,
}

/// An instance behind its pointer; destroyed on drop.
pub(super) struct Instance {
    table: abi::Plugin,
    pointer: *mut c_void,
}

// SAFETY: the interface allows calls of an instance from any thread, one at a time, which `&mut
// self` ensures.
unsafe impl Send for Instance {}

impl Library {
    /// Loads a plugin in a confined process, from a file that only its user or root could have
    /// written.
    pub(super) fn load(path: &Path) -> Result<Self, LoadError> {
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        owned(&file)?;
        Self::load_from(&place(file, path))
    }

    /// Loads a plugin if the file still has the approved content.
    pub fn load_approved(path: &Path, approval: Approval) -> Result<Self, LoadError> {
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        owned(&file)?;
        let file = frozen(file)?;
        if Approval::of_content(&file)? != approval {
            return Err(LoadError::Changed(path.to_owned()));
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        blame::during(&name, "load", || Self::load_from(&place(file, path)))
    }

    fn load_from(place: &Path) -> Result<Self, LoadError> {
        // SAFETY: the library's initialisers run, in a confined process or with the user's
        // approval.
        let loaded = unsafe { Loaded::open(Some(place), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| LoadError::NoLibrary(load_failure(&error)))?;
        // SAFETY: a symbol of this name has this type.
        let entry = unsafe { loaded.get::<abi::Entry>(abi::ENTRY.as_bytes()) };
        let entry = *entry.map_err(|_| LoadError::NoEntry)?;
        std::mem::forget(loaded);
        let table = table(entry)?;
        let description = describe(&table)?;
        Ok(Self { table, description })
    }

    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Runs the plugin's self-test; None if it has none.
    pub fn self_test(&self) -> Option<Result<(), String>> {
        let test = self.table.self_test?;
        // SAFETY: the function is from a checked table.
        Some(collected(&mut Vec::new(), |output| unsafe { test(output) }))
    }

    /// Makes an instance; `config` is a JSON object.
    pub(super) fn instance(&self, config: &str) -> Result<Instance, String> {
        let mut pointer = std::ptr::null_mut();
        let create = self.table.create.ok_or("it has no `create`")?;
        // SAFETY: as above; the text outlives the call.
        collected(&mut Vec::new(), |output| unsafe {
            create(bytes(config.as_bytes()), &raw mut pointer, output)
        })?;
        Ok(Instance { table: self.table, pointer })
    }
}

impl Instance {
    pub(super) fn observe(
        &mut self,
        to_client: bool,
        line: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), String> {
        let act = self.table.observe.ok_or_else(|| lacks("observe"))?;
        let direction = if to_client { abi::TO_CLIENT } else { abi::TO_AGENT };
        // SAFETY: as for each call here: the function is from a checked table, the instance from
        // its `create`, and each slice outlives the call.
        collected(output, |output| unsafe { act(self.pointer, direction, bytes(line), output) })
    }

    pub(super) fn gate(&mut self, line: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        self.take("gate", self.table.gate, line, output)
    }

    pub(super) fn deny(&mut self, id: &str, why: &str, output: &mut Vec<u8>) -> Result<(), String> {
        let act = self.table.deny.ok_or_else(|| lacks("deny"))?;
        let (id, why) = (bytes(id.as_bytes()), bytes(why.as_bytes()));
        // SAFETY: see `observe`.
        collected(output, |output| unsafe { act(self.pointer, id, why, output) })
    }

    pub(super) fn start(&mut self, settings: &str, output: &mut Vec<u8>) -> Result<(), String> {
        self.take("start", self.table.start, settings.as_bytes(), output)
    }

    pub(super) fn prompt(&mut self, text: &str, output: &mut Vec<u8>) -> Result<(), String> {
        self.take("prompt", self.table.prompt, text.as_bytes(), output)
    }

    pub(super) fn cancel(&mut self, output: &mut Vec<u8>) -> Result<(), String> {
        let act = self.table.cancel.ok_or_else(|| lacks("cancel"))?;
        // SAFETY: see `observe`.
        collected(output, |output| unsafe { act(self.pointer, output) })
    }

    pub(super) fn allow(&mut self, id: &str, output: &mut Vec<u8>) -> Result<(), String> {
        self.take("allow", self.table.allow, id.as_bytes(), output)
    }

    fn take(
        &mut self,
        name: &str,
        act: Option<abi::Take>,
        argument: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), String> {
        let act = act.ok_or_else(|| lacks(name))?;
        // SAFETY: see `observe`.
        collected(output, |output| unsafe { act(self.pointer, bytes(argument), output) })
    }
}

fn lacks(name: &str) -> String {
    format!("the plugin has no `{name}`")
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: the instance is not used again.
            unsafe { destroy(self.pointer) }
        }
    }
}

/// The output of a call.
struct Collected<'a> {
    output: &'a mut Vec<u8>,
    start: usize,
    wrong: Option<&'static str>,
}

/// Makes a call, and appends the records that it puts; none if it fails.
fn collected(output: &mut Vec<u8>, call: impl FnOnce(*const Output) -> i32) -> Result<(), String> {
    let start = output.len();
    let mut collected = Collected { output, start, wrong: None };
    let output = Output { host: (&raw mut collected).cast(), put: Some(put) };
    let status = call(&raw const output);
    let Collected { output, wrong, .. } = collected;
    if status == 0 && wrong.is_none() {
        return Ok(());
    }
    let why = records(&output[start..]).filter_map(Result::ok).find_map(|record| match record {
        Record::Error { body } => Some(body.into_owned()),
        _ => None,
    });
    output.truncate(start);
    let why = wrong.map(str::to_owned).or(why);
    Err(why.unwrap_or_else(|| format!("it failed ({status}), and says nothing of why")))
}

unsafe extern "C" fn put(host: *mut c_void, data: *const u8, length: usize) -> i32 {
    // SAFETY: `collected` passed the pointer and waits for the call. A plugin that invents or keeps
    // a pointer is as wrong as one that writes to any other address.
    let Some(collected) = (unsafe { host.cast::<Collected<'_>>().as_mut() }) else { return 1 };
    if length == 0 {
        return 0;
    }
    if data.is_null() {
        collected.wrong = Some("it put bytes that are nowhere (null)");
        return 1;
    }
    if length > MOST - (collected.output.len() - collected.start).min(MOST) {
        collected.wrong = Some("it put more than 16 MiB for one line");
        return 1;
    }
    // SAFETY: the interface requires `length` readable bytes.
    collected.output.extend(unsafe { std::slice::from_raw_parts(data, length) });
    0
}

/// Copies the file into sealed memory, so that the content that is hashed is the content that is
/// loaded.
#[cfg(target_os = "linux")]
fn frozen(mut file: File) -> Result<File, LoadError> {
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut copy = File::from(memfd_create(c"plugin", flags).map_err(std::io::Error::from)?);
    std::io::copy(&mut file, &mut copy)?;
    let seals = SealFlag::F_SEAL_WRITE
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_SEAL;
    fcntl(&copy, FcntlArg::F_ADD_SEALS(seals)).map_err(std::io::Error::from)?;
    std::io::Seek::rewind(&mut copy)?;
    Ok(copy)
}

/// Other systems load by path only; the user must protect the file.
#[cfg(not(target_os = "linux"))]
fn frozen(file: File) -> Result<File, LoadError> {
    Ok(file)
}

/// Returns a path that opens this very file. The descriptor stays open, since the loader identifies
/// libraries by path and a reused number would return the earlier library.
fn place(file: File, path: &Path) -> PathBuf {
    if !cfg!(target_os = "linux") {
        return path.to_owned();
    }
    let place = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let _ = file.into_raw_fd();
    place
}

/// Gets the plugin's table, and checks it.
fn table(entry: abi::Entry) -> Result<abi::Plugin, LoadError> {
    #[expect(clippy::cast_possible_truncation, reason = "a few words")]
    let host = abi::Host { size: size_of::<abi::Host>() as u32, abi: abi::ABI, features: 0 };
    // SAFETY: the library exports the symbol as an entry.
    let found = unsafe { entry(&raw const host) };
    if found.is_null() || !found.is_aligned() {
        return Err(LoadError::NoTable);
    }
    // SAFETY: each version begins with size and version.
    let (size, theirs) = unsafe { ((*found).size, (*found).abi) };
    if theirs != abi::ABI {
        return Err(LoadError::OtherVersion { theirs });
    }
    let there = usize::try_from(size).unwrap_or(usize::MAX).min(size_of::<abi::Plugin>());
    if there < offset_of!(abi::Plugin, gate) {
        return Err(LoadError::Truncated { size });
    }
    // SAFETY: zeroes are a table without functions, and `there` bytes can be read.
    let table = unsafe {
        let mut table: abi::Plugin = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(found.cast::<u8>(), (&raw mut table).cast(), there);
        table
    };
    let gates = table.features & abi::GATES != 0;
    let drives = table.features & abi::DRIVES != 0;
    for (name, lacks) in [
        ("describe", table.describe.is_none()),
        ("create", table.create.is_none()),
        ("destroy", table.destroy.is_none()),
        ("observe", table.observe.is_none()),
        ("gate", gates && table.gate.is_none()),
        ("deny", gates && table.deny.is_none()),
        ("start", drives && table.start.is_none()),
        ("prompt", drives && table.prompt.is_none()),
        ("cancel", drives && table.cancel.is_none()),
        ("allow", drives && table.allow.is_none()),
    ] {
        if lacks {
            return Err(LoadError::Lacks(name));
        }
    }
    Ok(table)
}

fn describe(table: &abi::Plugin) -> Result<Description, LoadError> {
    let describe = table.describe.ok_or(LoadError::Lacks("describe"))?;
    let mut output = Vec::new();
    // SAFETY: the function is from a checked table.
    collected(&mut output, |output| unsafe { describe(output) })
        .map_err(LoadError::NoDescription)?;
    for record in records(&output) {
        match record {
            Ok(Record::Description { name, version, protocols }) if !name.is_empty() => {
                return Ok(Description {
                    name: name.into_owned(),
                    version: version.into_owned(),
                    protocols: protocols.into_iter().map(Into::into).collect(),
                    gates: table.features & abi::GATES != 0,
                    drives: table.features & abi::DRIVES != 0,
                });
            }
            Ok(_) => {}
            Err(malformed) => return Err(LoadError::NoDescription(malformed.to_string())),
        }
    }
    Err(LoadError::NoDescription("it puts no description with a name".to_owned()))
}

fn bytes(bytes: &[u8]) -> Bytes {
    Bytes { data: bytes.as_ptr(), length: bytes.len() }
}

/// The loader's error, without the path of the descriptor.
fn load_failure(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let text = source.unwrap_or_else(|| error.to_string());
    match text.split_once(": ") {
        Some((place, rest)) if place.starts_with("/proc/self/fd/") => rest.to_owned(),
        _ => text,
    }
}
