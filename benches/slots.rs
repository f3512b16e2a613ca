//! Slots that processes share: 1,000 hand-overs between 50 processes, and the CPU time of 200 that wait.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use eisen_core::slots::{SlotPlace, SlotRequest, Slots, Wait};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Names the folder to a process of this bench, and what it does there.
const FOLDER: &str = "EISEN_BENCH_FOLDER";
const TURNS: &str = "EISEN_BENCH_TURNS";

const PROCESSES: usize = 50;
const HAND_OVERS: usize = 1000;
const WAITERS: usize = 200;

/// How long one of several slots is held, so that others are at the same time.
const HOLDS: Duration = Duration::from_millis(2);

/// How long waiters are left alone before they are looked at, and then looked at.
const SETTLES: Duration = Duration::from_secs(2);
const WAITS: Duration = Duration::from_secs(20);

pub(crate) fn run() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let turns = std::env::var(TURNS).unwrap().parse().unwrap();
        return take_turns(Path::new(&folder), turns);
    }
    for limit in [1, 3] {
        hand_over(limit);
    }
    wait();
}

fn place(limit: u32) -> SlotPlace {
    SlotPlace::Base(format!("bench-{limit}"))
}

/// What each process does: takes a slot, notes its number while it holds it, and gives it back.
fn take_turns(folder: &Path, turns: usize) {
    let limit = std::env::var("EISEN_BENCH_LIMIT").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (slots, place) = (Slots::new(folder), place(limit));
    // All begin together.
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    for _ in 0..turns {
        let request = SlotRequest { tool_name: "bench".to_owned(), ..SlotRequest::default() };
        let taking = slots.acquire(&place, limit, request, Wait::Forever, |_| ());
        let slot = runtime.block_on(taking).unwrap();
        let note = |what: &str| {
            let mut log = OpenOptions::new();
            let mut log = log.append(true).create(true).open(folder.join("log")).unwrap();
            log.write_all(format!("{what} {}\n", slot.number()).as_bytes()).unwrap();
        };
        note("took");
        if limit > 1 {
            std::thread::sleep(HOLDS);
        }
        note("gave");
    }
}

fn hand_over(limit: u32) {
    let folder = tempfile::tempdir().unwrap();
    let turns = HAND_OVERS / PROCESSES;
    let mut all: Vec<_> = (0..PROCESSES).map(|_| process(folder.path(), turns, limit)).collect();
    let begun = Instant::now();
    all.iter_mut().for_each(begin);
    for process in &mut all {
        assert!(process.wait().unwrap().success());
    }
    let took = begun.elapsed();
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let (mut holding, mut most, mut numbers) = (0, 0, Vec::new());
    for line in log.lines() {
        match line.split_once(' ').unwrap() {
            ("took", number) => {
                holding += 1;
                most = most.max(holding);
                numbers.push(number.parse::<u64>().unwrap());
            }
            _ => holding -= 1,
        }
    }
    let count = numbers.len();
    // Who holds one of several slots may be late to note it.
    let out_of_order = match limit {
        1 => numbers.windows(2).filter(|pair| pair[0] > pair[1]).count(),
        _ => 0,
    };
    numbers.sort_unstable();
    numbers.dedup();
    let (lost, doubled) = (HAND_OVERS.saturating_sub(numbers.len()), count - numbers.len());
    println!("{HAND_OVERS} hand-overs between {PROCESSES} processes, {limit} at once");
    let order = if limit == 1 { format!("out of order {out_of_order}, ") } else { String::new() };
    println!("  {order}lost {lost}, doubled {doubled}, most at once {most}");
    println!("  {:.2} ms each", (took / u32::try_from(HAND_OVERS).unwrap()).as_secs_f64() * 1000.0);
    assert_eq!((out_of_order, lost, doubled), (0, 0, 0));
    assert_eq!(most, limit, "held at once");
}

fn wait() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let slots = Slots::new(folder.path());
    let request = SlotRequest { tool_name: "bench".to_owned(), ..SlotRequest::default() };
    let place = place(1);
    let held = runtime.block_on(slots.acquire(&place, 1, request, Wait::No, |_| ())).unwrap();
    let mut all: Vec<_> = (0..WAITERS).map(|_| process(folder.path(), 1, 1)).collect();
    all.iter_mut().for_each(begin);
    while slots.tickets(&place).unwrap().len() <= WAITERS {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(SETTLES);
    let used = || all.iter().map(clock).sum::<Duration>();
    let (since, before) = (Instant::now(), used());
    std::thread::sleep(WAITS);
    let percent =
        used().saturating_sub(before).as_secs_f64() / since.elapsed().as_secs_f64() * 100.0;
    println!("{WAITERS} that wait: {percent:.3} % of a core");
    drop(held);
    for process in &mut all {
        assert!(process.wait().unwrap().success());
    }
}

/// Starts a process of this bench; returns once it is ready.
fn process(folder: &Path, turns: usize, limit: u32) -> Child {
    let mut command = crate::part("slots");
    command.env(FOLDER, folder).env(TURNS, turns.to_string());
    command.env("EISEN_BENCH_LIMIT", limit.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn begin(child: &mut Child) {
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
}

fn clock(child: &Child) -> Duration {
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    clock_gettime(clock_getcpuclockid(pid).unwrap()).unwrap().into()
}
