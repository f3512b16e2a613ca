//! What a relay costs, against plain copying in the same run: `observe` between a client and an
//! agent that echoes, beside `cat | cat | cat`, where the outer two copy and the middle one is the
//! agent. Ratios, so that the machine cancels out.

#![expect(clippy::expect_used, reason = "a bench that cannot run is to say so")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUND_TRIPS: usize = 5_000;
const STREAMED: usize = 64 * 1024 * 1024;

/// A line of the size that updates have, and one of a file's.
const SIZES: [usize; 2] = [300, 16 * 1024];

fn main() {
    let line = |size: usize| {
        let text = "x".repeat(size);
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        ) + "\n"
    };
    println!("{:<34} {:>10} {:>10}", "against cat | cat | cat", "observe", "zoned");
    for size in SIZES {
        let line = line(size);
        let base = median(round_trips(copying(), &line));
        let ratio = |child| median(round_trips(child, &line)).as_secs_f64() / base.as_secs_f64();
        let (open, zoned) = (ratio(observing(&[])), ratio(observing(&["--zone", "**"])));
        println!("{:<34} {open:>10.2} {zoned:>10.2}", format!("round trip of {size} B, median"));
    }
    for size in SIZES {
        let line = line(size);
        let base = throughput(copying(), &line);
        let ratio = |child| throughput(child, &line) / base;
        let (open, zoned) = (ratio(observing(&[])), ratio(observing(&["--zone", "**"])));
        println!("{:<34} {open:>10.2} {zoned:>10.2}", format!("throughput of {size} B lines"));
    }
}

fn copying() -> Child {
    start(Command::new("sh").args(["-c", "cat | cat | cat"]))
}

fn observing(zone: &[&str]) -> Child {
    let dir = std::env::temp_dir().join(format!("eisen-bench-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_eisen-core"));
    command.env("EISEN_DIR", dir).args(["observe", "--port", "0"]).args(zone).args(["--", "cat"]);
    start(&mut command)
}

fn start(command: &mut Command) -> Child {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    piped.spawn().expect("the child starts")
}

fn round_trips(mut child: Child, line: &str) -> Vec<Duration> {
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut heard = String::new();
    let times = (0..ROUND_TRIPS + ROUND_TRIPS / 10).map(|_| {
        heard.clear();
        let start = Instant::now();
        stdin.write_all(line.as_bytes()).expect("it reads");
        stdout.read_line(&mut heard).expect("it answers");
        start.elapsed()
    });
    // The first tenth warms up.
    let times = times.skip(ROUND_TRIPS / 10).collect();
    drop(stdin);
    child.wait().expect("it ends");
    times
}

/// Bytes a second.
#[expect(clippy::cast_precision_loss, reason = "a ratio of sizes far below 2^52")]
fn throughput(mut child: Child, line: &str) -> f64 {
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = child.stdout.take().expect("it is piped");
    let block = line.repeat(64 * 1024 / line.len() + 1);
    let rounds = STREAMED / block.len();
    let start = Instant::now();
    let writer = std::thread::spawn(move || {
        for _ in 0..rounds {
            stdin.write_all(block.as_bytes()).expect("it reads");
        }
        rounds * block.len()
    });
    let mut chunk = vec![0; 64 * 1024];
    let mut heard = 0;
    loop {
        match stdout.read(&mut chunk).expect("it writes") {
            0 => break,
            read => heard += read,
        }
    }
    let written = writer.join().expect("the writer ends");
    assert_eq!(heard, written, "nothing is lost");
    child.wait().expect("it ends");
    heard as f64 / start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
