//! What a relay costs: `observe` between a client and an agent, against a child that only copies
//! blocks between the same pipes. All processes share one core, and the three relays take turns,
//! so that the machine cancels out of the ratios.
//!
//! The agent writes each message of the stream by itself, as agents do: the runtimes that they are
//! made with put each line into the pipe when it is sent, and what was recorded of them came line
//! by line, rarely more than ten in a millisecond. Whoever reads gets what is there by then. The
//! last rows have the same stream in blocks of 64 KiB, the most that a pipe holds. That makes copying
//! cost next to nothing a line, and shows what it costs to read what lines say.
//!
//! Turns of round trips are long. The first trip of each finds the caches as the others left them, and
//! the kernel's tick falls into some four in a thousand: with few trips a turn both together are the
//! slowest hundredth, and p99 is theirs, not the relay's.
//!
//! The agent behind `observe` has a session of its own, that of the copying child has not. Where the
//! kernel schedules by sessions (`sched_autogroup_enabled`), a busy machine costs the former more, so
//! that only figures from a quiet one are the relay's.
//!
//! With `--journal` the last column is an `observe` that keeps a journal, in place of one with a zone.

pub(crate) mod child;
pub(crate) mod mix;
pub(crate) mod peer;

use std::path::Path;

use self::child::{BLOCKS, LINES, NEXT};
use self::peer::Peer;

/// Turns of each relay, the first of which warms up: of round trips, of the stream asked for line by
/// line, of the stream asked for as one.
const TRIP_TURNS: usize = 20;
const LINE_TURNS: usize = 6;
const STREAM_TURNS: usize = 60;

/// Round trips in a turn.
const TRIPS: usize = 2_000;

const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";

pub(crate) fn run() {
    let args: Vec<String> = crate::arguments();
    if let [first, rest @ ..] = &args[..]
        && first == "child"
    {
        return child::run(rest);
    }
    crate::stay_on_one_core();
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    round_trips(&workspace);
    streams(&workspace);
}

fn round_trips(workspace: &Path) {
    let peers = measure(workspace, TRIP_TURNS, ANSWER, &[ANSWER.len(); TRIPS], LINES, false);
    println!("{:<34} {:>10} {:>10} {:>10}", "against copying", "copying", "observe", third().0);
    row("round trip, median, µs", peers.each_ref().map(|peer| peer.time(0.5) / 1e3));
    row("round trip, p99, µs", peers.each_ref().map(|peer| peer.time(0.99) / 1e3));
    row("round trip, CPU time, µs", peers.each_ref().map(|peer| peer.processor() / 1e3));
}

#[expect(clippy::cast_precision_loss, reason = "millions")]
fn streams(workspace: &Path) {
    let (source, mix) = mix::mix(workspace);
    let (lines, bytes) = (mix.lines().count(), mix.len());
    let speed = |peer: &Peer| bytes as f64 * 1e3 / peer.time(0.5);
    let processor = |peer: &Peer| peer.processor() / lines as f64;
    let each: Vec<usize> = mix.split_inclusive('\n').map(str::len).collect();
    println!("\n{source}: {lines} lines of {} B, each asked for by itself", bytes / lines);
    let alone = measure(workspace, LINE_TURNS, &mix, &each, NEXT, false);
    row("round trip, median, µs", alone.each_ref().map(|peer| peer.time(0.5) / 1e3));
    row("round trip, CPU time, µs", alone.each_ref().map(|peer| peer.processor() / 1e3));
    for (writes, each) in [(LINES, "a line"), (BLOCKS, "64 KiB")] {
        println!("\n{source}: {lines} lines of {} B, written {each} at a time", bytes / lines);
        let usual = measure(workspace, STREAM_TURNS, &mix, &[bytes], writes, false);
        let wide = measure(workspace, STREAM_TURNS, &mix, &[bytes], writes, true);
        let [copying, ..] = usual.each_ref().map(speed);
        let [_, open, zoned] = wide.each_ref().map(speed);
        row("throughput, MB/s", usual.each_ref().map(speed));
        row("both with enlarged pipes", wide.each_ref().map(speed));
        row("enlarged pipes against usual ones", [copying, open, zoned]);
        row("CPU time a line, ns", usual.each_ref().map(processor));
    }
}

/// Lets one that copies, `observe`, and `observe` with a zone take turns.
fn measure(
    workspace: &Path,
    turns: usize,
    answer: &str,
    expected: &[usize],
    writes: &str,
    wide: bool,
) -> [Peer; 3] {
    let file = workspace.join("answer");
    std::fs::write(&file, answer).unwrap();
    let mut peers = [
        Peer::copying(&file, writes, wide),
        Peer::observing(&file, writes, wide, &[]),
        Peer::observing(&file, writes, wide, third().1),
    ];
    for turn in 0..turns {
        // There and back again: what one still does in the background falls to another, or to itself.
        let order = if turn % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] };
        for at in order {
            let peer = &mut peers[at];
            peer.ask(expected.iter().copied());
            if turn == 0 {
                peer.reset();
            }
        }
    }
    peers
}

/// What the last column is: with `--journal` an `observe` that keeps a journal, else one with a zone.
fn third() -> (&'static str, &'static [&'static str]) {
    if std::env::args().any(|arg| arg == "--journal") {
        return ("journal", &["--journal"]);
    }
    ("zoned", &["--zone", "**"])
}

fn row(name: &str, [copying, open, zoned]: [f64; 3]) {
    let (open, zoned) = (open / copying, zoned / copying);
    println!("{name:<34} {copying:>10.1} {open:>10.2} {zoned:>10.2}");
}
