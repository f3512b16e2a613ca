//! All benches in one program, so that the library is optimised and linked once for them.
//!
//! `cargo bench -- NAME [ARGUMENT…]` runs one, `cargo bench` all, one after the other.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run is to say so")]

use std::process::{Command, ExitCode};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

#[cfg(target_os = "linux")]
mod confine;
mod conflicts;
mod fanout;
mod figures;
mod gateway;
mod graph;
mod hub;
mod idle;
mod journal;
mod page;
mod plugin;
mod relay;
mod run;
mod slots;
mod team;
mod tick;
mod tools;
mod top;
mod trees;
mod web;

const BENCHES: &[(&str, fn())] = &[
    #[cfg(target_os = "linux")]
    ("confine", confine::run),
    ("conflicts", conflicts::run),
    ("fanout", fanout::run),
    ("gateway", gateway::run),
    ("graph", graph::run),
    ("hub", hub::run),
    ("idle", idle::run),
    ("journal", journal::run),
    ("page", page::run),
    ("plugin", plugin::run),
    ("relay", relay::run),
    ("run", run::run),
    ("slots", slots::run),
    ("tick", tick::run),
    ("tools", tools::run),
    ("top", top::run),
    ("trees", trees::run),
    ("web", web::run),
];

fn main() -> ExitCode {
    // Cargo adds `--bench` at the end.
    let name = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let Some(name) = name else { return all() };
    let Some((_, run)) = BENCHES.iter().find(|(known, _)| *known == name) else {
        let names = BENCHES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        eprintln!("there is no bench `{name}`: {names}");
        return ExitCode::from(2);
    };
    run();
    ExitCode::SUCCESS
}

/// Runs each in a process of its own.
fn all() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (name, _) in BENCHES {
        println!("\n== {name}");
        if !part(name).arg("--bench").status().unwrap().success() {
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The arguments of the bench that runs.
fn arguments() -> Vec<String> {
    std::env::args().skip(2).collect()
}

/// A command that runs this program as a part of a bench.
fn part(bench: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(bench);
    command
}

/// Keeps this process on one core, with all that is started from now on.
fn stay_on_one_core() {
    let here = Pid::from_raw(0);
    let allowed = sched_getaffinity(here).unwrap();
    let last = (0..CpuSet::count()).rfind(|core| allowed.is_set(*core).unwrap()).unwrap();
    let mut one = CpuSet::new();
    one.set(last).unwrap();
    sched_setaffinity(here, &one).unwrap();
}
