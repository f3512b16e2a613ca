//! The child that a plugin runs in: `eisen-core plugin-host LIBRARY CONFIG`. Reads calls from its
//! standard input, and answers on its standard output, until the input ends. It may read its
//! library and those of the system, and nothing else.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use super::frame::{self, HEAD};
use super::reader::InProcess;
use super::{Answer, Library, frame::LONGEST};

/// The command by which this program is such a child.
pub(super) const COMMAND: &str = "plugin-host";

/// Behind its arguments: it may do whatever its user may.
pub(super) const UNCONFINED: &str = "unconfined";

/// Serves an instance and ends, if this program was started for that.
pub fn serve_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|command| command != COMMAND) {
        return;
    }
    let (library, config) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let is_confined = args.next().is_none_or(|word| word != UNCONFINED);
    let served = serve(Path::new(&library), &config.to_string_lossy(), is_confined);
    std::process::exit(i32::from(served.is_err()))
}

/// Serves one instance. The first answer says whether there is one, and whether it gates.
fn serve(library: &Path, config: &str, is_confined: bool) -> io::Result<()> {
    // What the plugin prints is no answer.
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stdout(io::stderr())?;
    let confining = if is_confined { confined(library) } else { Ok(()) };
    let opened = confining.map_err(|why| why.to_string()).and_then(|()| {
        let library = Library::load(library).map_err(|error| error.to_string())?;
        InProcess::new(&library, config)
    });
    let mut input = BufReader::new(io::stdin().lock());
    let mut plugin = match opened {
        Ok(plugin) => plugin,
        Err(why) => {
            output.write_all(&frame::answer(&Err(why)))?;
            return output.flush();
        }
    };
    let told = vec![u8::from(plugin.gates())];
    output.write_all(&frame::answer(&Ok(Answer { told, read: 0 })))?;
    output.flush()?;
    let mut body = Vec::new();
    loop {
        let mut head = [0; HEAD];
        match input.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let length = u32::from_le_bytes(head) as usize;
        if length > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        body.clear();
        (&mut input).take(length as u64).read_to_end(&mut body)?;
        let call = frame::call(&body).ok_or(io::ErrorKind::InvalidData)?;
        output.write_all(&frame::answer(&plugin.answer(call)))?;
        output.flush()?;
    }
}

/// Leaves nothing within reach but libraries, as far as the kernel can do that.
#[cfg(target_os = "linux")]
fn confined(library: &Path) -> Result<(), landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreatedAttr, Scope,
    };
    const SYSTEM: [&str; 11] = [
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/etc/ld.so.cache",
        "/nix/store",
        "/gnu/store",
        "/dev/null",
        "/dev/urandom",
        "/proc/self",
    ];
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    for place in SYSTEM.iter().map(Path::new).chain([library]) {
        // What is not there needs no rule.
        let Ok(handle) = PathFd::new(place) else { continue };
        let rights = if place.is_dir() { read } else { read & AccessFs::from_file(abi) };
        rules = rules.add_rule(PathBeneath::new(handle, rights))?;
    }
    rules.restrict_self().map(drop)
}

#[cfg(not(target_os = "linux"))]
fn confined(_: &Path) -> Result<(), std::convert::Infallible> {
    Ok(())
}
