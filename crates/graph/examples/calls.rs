//! Prints the calls that the functions of a file make.
//!
//! `cargo run -p eisen-graph --example calls -- . crates/graph/src/graph/scan.rs`

use std::path::Path;
use std::process::ExitCode;

use eisen_graph::graph::{Settings, scan};

fn main() -> ExitCode {
    match calls() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn calls() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, file] = &args[..] else {
        return Err("usage: calls FOLDER FILE (the file's path within the folder)".into());
    };
    let settings = Settings { jobs: 2, tokens: false, cache: None };
    let (_, snapshot, work) = scan(Path::new(folder), &settings, &|_, _| true)?;
    println!("{} files read, {} calls found", work.read, snapshot.calls.len());
    for call in snapshot.calls.iter().filter(|call| call.from.starts_with(&format!("{file}::"))) {
        println!("{} calls {}", call.from, call.to);
    }
    Ok(())
}
