//! Programs as tests start them: with an environment that is the same wherever the tests run.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

/// What a program that is tested may know of whoever runs the tests: where programs are, its
/// language, and what cgroups are asked for by. Whatever else is set there could lead it to what is
/// not the test's: a build folder, a repository, a team.
const KEPT: [&str; 9] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "HOME",
    "LANG",
    "LC_ALL",
    "LLVM_PROFILE_FILE",
    "PATH",
    "TMPDIR",
    "USER",
    "XDG_RUNTIME_DIR",
];

/// A command with a clean environment, and with SIGINT as a shell leaves it to a program in the
/// foreground.
pub(crate) fn program(program: impl AsRef<OsStr>) -> Command {
    static REVIVED: Once = Once::new();
    // A test may run in a runtime, in which no other may be dropped.
    REVIVED.call_once(|| std::thread::spawn(revive_interrupt).join().unwrap());
    let mut command = Command::new(program);
    command.env_clear().env("PYTHONDONTWRITEBYTECODE", "1");
    for name in KEPT {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Cargo, as it builds this package: by what was said to it, but not in the folder of whoever runs
/// the tests. Where it builds has to be said.
pub(crate) fn cargo() -> Command {
    let mut command = program(env!("CARGO"));
    let says = |name: &str| name.starts_with("CARGO") || name.starts_with("RUST");
    // The last one lets tests tell their times (.ci/with-times); with it, packages would be built anew.
    let others =
        ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "RUSTC_BOOTSTRAP"];
    for (name, value) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| says(name) && !others.contains(&name)) {
            command.env(name, value);
        }
    }
    command
}

/// A shell starts what runs in the background with SIGINT ignored, which children inherit. What has
/// a handler is at its default in them. Where it is not ignored it is left alone: Ctrl-C ends the
/// tests.
fn revive_interrupt() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    if ignored & (1 << (SignalKind::interrupt().as_raw_value() - 1)) != 0 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _within = runtime.enter();
        // The handler stays when this is dropped.
        drop(signal(SignalKind::interrupt()).unwrap());
    }
}
