//! The tables of results.

use std::sync::Arc;
use std::time::Instant;

use eisen_core::process::{Command, Launcher};
use tokio::io::AsyncReadExt;
use tokio::runtime::Runtime;

use super::child::{self, CASES};
use super::place::{self, Place};
use crate::figures::{median, nanoseconds};

/// Files of the tree that is walked, of the repository, and of a large workspace.
const WALKED: usize = 4_000;
const TRACKED: usize = 2_000;
const MANY: usize = 20_000;
const WRITTEN: usize = 500;

const ROUNDS: usize = 7;
const STARTS: usize = 40;

/// What a supervisor of many agents has in memory.
const TOUCHED: usize = 512 * 1024 * 1024;

pub(crate) fn run() {
    let args: Vec<String> = crate::arguments();
    if let [first, rest @ ..] = &args[..]
        && first == "child"
    {
        return child::run(rest);
    }
    let all = args.iter().all(|arg| arg.starts_with('-'));
    let asked = |part: &str| all || args.iter().any(|arg| arg == part);
    Runtime::new().unwrap().block_on(async {
        if asked("opens") {
            opens().await;
        }
        if asked("writes") {
            writes().await;
        }
        if asked("programs") {
            programs().await;
        }
        if asked("starts") {
            starts().await;
        }
    });
}

async fn opens() {
    let place = Place::with_files(WALKED);
    let (bare, continued) = (launcher(), launcher().confined(place.confinement()));
    let handed = launcher().confined(place.confinement_without_rules());
    let mut times: [Vec<Vec<f64>>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for (times, (launcher, wall)) in times.iter_mut().zip([
            (&bare, "open"),
            (&bare, "wall"),
            (&continued, "open"),
            (&handed, "open"),
        ]) {
            let workspace = place.workspace().display().to_string();
            times.push(numbers(launcher, &place, &[wall, &workspace]).await);
        }
    }
    println!(
        "{:<34} {:>9} {:>10} {:>10} {:>10}",
        "open, against bare", "bare, µs", "the wall", "continued", "handed in"
    );
    for (case, name) in CASES.iter().enumerate() {
        let [bare, wall, continued, handed] =
            times.each_ref().map(|times| median(times.iter().map(|times| times[case])));
        println!(
            "{name:<34} {:>9.2} {:>10.2} {:>10.2} {:>10.2}",
            bare / 1e3,
            wall / bare,
            continued / bare,
            handed / bare
        );
    }
}

/// A write of 16 KB with the journal, against one without: the first of a turn, and a later one.
async fn writes() {
    let mut times: [Vec<Vec<f64>>; 2] = Default::default();
    for _ in 0..ROUNDS {
        // Each round has files that were never written before.
        let place = Place::with_large_files(WRITTEN);
        let workspace = place.workspace().display().to_string();
        let plain = launcher().confined(place.confinement());
        times[0].push(numbers(&plain, &place, &["write", &workspace]).await);
        let place = Place::with_large_files(WRITTEN);
        let workspace = place.workspace().display().to_string();
        let captured = place.capture();
        let capturing = launcher().confined(place.captured(&captured));
        times[1].push(numbers(&capturing, &place, &["write", &workspace]).await);
    }
    println!("\n{:<34} {:>9} {:>10}", "write of 16 KB, confined", "bare, µs", "journal");
    for (case, name) in ["the first of a turn", "a later one"].iter().enumerate() {
        let [off, on] = times.each_ref().map(|times| median(times.iter().map(|times| times[case])));
        println!("{name:<34} {:>9.2} {:>10.2}", off / 1e3, on / off);
    }
}

async fn programs() {
    println!("\n{:<34} {:>9} {:>10}", "programs, against bare", "bare, ms", "confined");
    let repository = Place::with_files(TRACKED);
    repository.commit_all();
    let status = ["repeat", "20", "-", "git", "status"];
    compare("git status, 2,000 files", &repository, &status).await;
    let krate = Place::with_crate();
    let source = krate.workspace().join("src/main.rs").display().to_string();
    let build = ["repeat", "3", &source, "cargo", "build", "--offline", "--quiet"];
    compare("cargo build, incremental", &krate, &build).await;
}

async fn compare(name: &str, place: &Place, args: &[&str]) {
    let (bare, confined) = (launcher(), launcher().confined(place.confinement()));
    let mut times = [Vec::new(), Vec::new()];
    // The first makes what later ones find.
    numbers(&bare, place, args).await;
    for _ in 0..ROUNDS {
        for (times, launcher) in times.iter_mut().zip([&bare, &confined]) {
            times.extend(numbers(launcher, place, args).await);
        }
    }
    let [bare, confined] = times.map(median);
    println!("{name:<34} {:>9.1} {:>10.2}", bare / 1e6, confined / bare);
}

async fn starts() {
    let (small, large) = (Place::with_files(100), Place::with_files(MANY));
    let heading = "start of `true` until it ended";
    println!("\n{heading:<34} {:>9} {:>10} {:>10}", "bare, ms", "confined", "more, ms");
    for touched in [0, TOUCHED] {
        let memory = vec![1_u8; touched];
        let of = if touched == 0 { "small" } else { "512 MB" };
        let (bare, confined) = (launcher(), launcher().confined(small.confinement()));
        let [few, many] = [&small, &large].map(|place| Arc::new(place::bounds(place.workspace())));
        let mut times: [Vec<f64>; 4] = Default::default();
        for _ in 0..STARTS {
            times[0].push(start(&small, || bare.clone()).await);
            times[1].push(start(&small, || confined.clone()).await);
            times[2].push(start(&small, || launcher().confined(small.walled(&few))).await);
            times[3].push(start(&large, || launcher().confined(large.walled(&many))).await);
        }
        drop(std::hint::black_box(memory));
        let [bare, others @ ..] = times.map(median);
        let names =
            ["a wall that is there", "with its wall, 100 files", "with its wall, 20,000 files"];
        for (name, time) in names.iter().zip(others) {
            println!(
                "{:<34} {:>9.2} {:>10.2} {:>10.2}",
                format!("{of}: {name}"),
                bare / 1e6,
                time / bare,
                (time - bare) / 1e6
            );
        }
    }
}

fn launcher() -> Launcher {
    Launcher::new(env!("CARGO_BIN_EXE_eisen-core"))
}

/// Runs this program as a child in the workspace, and returns the nanoseconds that it prints.
async fn numbers(launcher: &Launcher, place: &Place, args: &[&str]) -> Vec<f64> {
    let program = std::env::current_exe().unwrap();
    let args = ["confine", "child"].iter().chain(args).copied().map(str::to_owned).collect();
    let command = command(program.display().to_string(), args, place);
    let (process, mut stdio) = launcher.spawn(&command).await.unwrap();
    drop(stdio.stdin);
    let (mut said, mut errors) = (String::new(), String::new());
    let both = tokio::join!(
        stdio.stdout.read_to_string(&mut said),
        stdio.stderr.read_to_string(&mut errors)
    );
    let exit = process.wait().await;
    assert!(both.0.is_ok() && exit.success(), "{args:?}: {errors}", args = command.args);
    said.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

async fn start(place: &Place, launcher: impl FnOnce() -> Launcher) -> f64 {
    let command = command("true".to_owned(), Vec::new(), place);
    let begun = Instant::now();
    let launcher = launcher();
    let (process, stdio) = launcher.spawn(&command).await.unwrap();
    let exit = process.wait().await;
    let time = nanoseconds(begun.elapsed());
    assert!(exit.success());
    // Its warden is gone too before the next begins.
    drop((process, stdio));
    launcher.drained().await;
    time
}

fn command(program: String, args: Vec<String>, place: &Place) -> Command {
    let args = args.into_iter().map(Into::into).collect();
    let cwd = place.workspace().to_owned();
    Command { program: program.into(), args, env: place.environment(), cwd }
}
