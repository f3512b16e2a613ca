//! Runs a program in a folder, shows what it changed, and takes it back.
//!
//! `cargo run -p eisen-memory --example undo -- /tmp/work sh -c 'date >now; rm -f old'`

use std::io::Write as _;
use std::process::{Command, ExitCode};

use eisen_memory::Folder;

#[tokio::main]
async fn main() -> ExitCode {
    match undo().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn undo() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [folder, program, arguments @ ..] = &args[..] else {
        return Err("usage: undo FOLDER PROGRAM [ARGUMENT …]".into());
    };
    let before = Folder::read(folder)?;
    Command::new(program).args(arguments).current_dir(folder).status()?;
    let journal = tempfile::tempdir()?;
    let changes = before.record(&journal.path().join("journal.db"), "program").await?;
    let diff = changes.diff()?;
    std::io::stdout().write_all(&diff.patch)?;
    diff.left_out
        .iter()
        .for_each(|it| println!("not in the patch: {}: {}", it.path.display(), it.why));
    let outcome = changes.undo(false).await?;
    println!("{} paths are as they were", outcome.paths.len());
    Ok(())
}
