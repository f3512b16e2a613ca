//! Runs a program that may use one folder, and prints what it was denied beside it.
//!
//! `cargo run -p eisen-sandbox --example confine -- /tmp/work sh -c 'echo hello >here; cat ~/.ssh/id_rsa'`

use std::process::ExitCode;

use eisen_sandbox::Sandbox;

fn main() -> ExitCode {
    eisen_sandbox::init();
    match confine() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn confine() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(folder), Some(program)) = (args.next(), args.next()) else {
        return Err("usage: confine FOLDER PROGRAM [ARGUMENT …]".into());
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut child = Sandbox::new(folder)?.spawn(program, args).await?;
        tokio::io::copy(&mut child.output, &mut tokio::io::stdout()).await?;
        println!("it ended: {}", child.process.wait().await);
        while let Ok(denial) = child.denied.try_recv() {
            println!("denied: {denial}");
        }
        println!("{} more denials", child.missed());
        Ok(child.end().await?)
    })
}
