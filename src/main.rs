//! The program: installs the allocator, and dispatches to the warden, the plugin host or the
//! command line.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Also used by the parsers, which are C and allocate for each leaf of a tree.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// The allocator reads its options by this name. Pages that a scan or a large line leaves unused go
/// back to the system within a second rather than ten.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no other symbol has this name")]
#[unsafe(export_name = "malloc_conf")]
pub static MALLOC_CONF: &u8 = &b"dirty_decay_ms:1000\0"[0];

fn main() -> ExitCode {
    // First: a warden must stay small and single-threaded.
    if std::env::args_os().nth(1).is_some_and(|command| command == "warden") {
        eisen_core::process::warden_main();
    }
    eisen_core::plugin::serve_if_asked();
    // Returns freed memory to the system while nothing is allocated. Optional: errors are ignored.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    eisen_core::cli::main()
}
