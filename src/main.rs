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
    let_freed_memory_go();
    eisen_core::cli::main()
}

/// Returns freed memory to the system while nothing is allocated. Optional: errors are ignored.
#[allow(unsafe_code, reason = "the allocator takes options by pointers")]
fn let_freed_memory_go() {
    let mut is_on = true;
    let nothing = std::ptr::null_mut();
    // SAFETY: the name ends with a zero, its option is a `bool` of this size, and no old value is asked for.
    unsafe {
        tikv_jemalloc_sys::mallctl(
            c"background_thread".as_ptr(),
            nothing,
            nothing.cast(),
            (&raw mut is_on).cast(),
            size_of::<bool>(),
        );
    }
}
