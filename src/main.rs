use std::process::ExitCode;

fn main() -> ExitCode {
    // Before all else: a warden is to be small, and single-threaded.
    if std::env::args_os().nth(1).is_some_and(|command| command == "warden") {
        eisen_core::process::warden_main();
    }
    eisen_core::plugin::serve_if_asked();
    eisen_core::cli::main()
}
