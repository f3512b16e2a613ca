//! Owns the child's side of a plugin: `eisen-core plugin-host LIBRARY CONFIG ROLE APPROVAL`. It
//! confines itself, loads the library, answers on standard output as its role asks, and reads calls
//! from standard input.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use super::approval::Approval;
use super::confinement;
use super::frame::{self, COMMAND, ChildRole, HEAD, LONGEST};
use super::reader::InProcess;
use super::{CallOutput, Library};

/// Serves an instance and exits, if this program was started as a plugin host.
pub fn serve_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|command| command != COMMAND) {
        return;
    }
    let (library, config) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let word = args.next().unwrap_or_default();
    let role =
        ChildRole::ALL.into_iter().find(|role| word == role.as_str()).unwrap_or(ChildRole::Serve);
    let approval = args.next().and_then(|digits| Approval::parse(digits.to_str()?));
    let served = serve(Path::new(&library), &config.to_string_lossy(), role, approval);
    std::process::exit(i32::from(served.is_err()))
}

/// Runs a role. The first answer describes the plugin, or says why it can't be loaded.
fn serve(
    library: &Path,
    config: &str,
    role: ChildRole,
    approval: Option<Approval>,
) -> io::Result<()> {
    // The plugin's own prints go to standard error, not among the answers.
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    nix::unistd::dup2_stdout(io::stderr())?;
    let mut send = |outcome: Result<Vec<u8>, String>| {
        let outcome = outcome.map(|output| CallOutput { output, ..CallOutput::default() });
        output.write_all(&frame::encode(&outcome))
    };
    let loaded = load(library, approval).and_then(|library| match role {
        ChildRole::Describe | ChildRole::Check => Ok((library, None)),
        ChildRole::Serve => InProcess::new(&library, config).map(|plugin| (library, Some(plugin))),
    });
    let (library, plugin) = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return send(Err(why)),
    };
    send(postcard::to_stdvec(library.description()).map_err(|error| error.to_string()))?;
    if role == ChildRole::Describe {
        return Ok(());
    }
    let Some(mut plugin) = plugin else {
        // A non-empty answer means that the plugin has a self-test.
        send(library.self_test().map_or(Ok(Vec::new()), |outcome| outcome.map(|()| vec![1])))?;
        return match InProcess::new(&library, config) {
            Ok(plugin) => {
                send(Ok(Vec::new()))?;
                drop(plugin);
                send(Ok(Vec::new()))
            }
            Err(why) => send(Err(why)),
        };
    };
    let mut input = BufReader::new(io::stdin().lock());
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
        let call = frame::decode(&body).ok_or(io::ErrorKind::InvalidData)?;
        output.write_all(&frame::encode(&plugin.answer(call)))?;
    }
}

/// Confines this process, then loads the library. Without confinement only an approved library is
/// loaded.
fn load(library: &Path, approval: Option<Approval>) -> Result<Library, String> {
    let loaded = match (confinement::enter(library), approval) {
        (Ok(()), _) => Library::load(library),
        (Err(_), Some(approval)) => Library::load_approved(library, approval),
        (Err(why), None) => {
            let library = library.display();
            return Err(format!(
                "this system can't confine it ({why}): if you trust it with all that is yours, \
                 `eisen-core dev plugin trust {library}` lets it run unconfined"
            ));
        }
    };
    loaded.map_err(|error| error.to_string())
}
