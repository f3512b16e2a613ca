use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Also for the parsers, which are C: they allocate for each leaf of a tree.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    // Before all else: a warden is to be small, and single-threaded.
    if std::env::args_os().nth(1).is_some_and(|command| command == "warden") {
        eisen_core::process::warden_main();
    }
    eisen_core::plugin::serve_if_asked();
    // What was freed goes back to the system also while nothing is allocated; without it all goes on.
    let _ = tikv_jemalloc_ctl::background_thread::write(true);
    eisen_core::cli::main()
}
