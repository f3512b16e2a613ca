//! What the border around a plugin costs. `claude-stream-json` reads lines of a real run: called
//! directly, as a Rust type; through the C interface, as the program calls it in its own process;
//! and in a child, the way of `isolation = "process"`. They take turns, and the results are ratios
//! of medians, so that the machine cancels out. All answer with what the plugin put, as bytes.
//!
//! A block is what is read of an agent at once: at best 64 KiB, at worst a line, whose answer is
//! awaited before the next is read. In a child that is mostly waking it, and more so where it sleeps
//! on another core (`taskset -c 0` keeps both on one). The stream is an agent that writes each line
//! by itself, as fast as it is taken, read and translated as in a team: what it wrote meanwhile is
//! the next block. A line alone comes while all is asleep, as most do of an agent that thinks: printed
//! is how long it takes from the agent's pipe to its client. Last, such a line on its way through
//! `observe` to an agent and back, which nothing reads but the extractor of ACP, and with a plugin in a
//! child that reads along.
//!
//! The library is built along with the bench, and lies beside it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::figures::{self, nanoseconds};
use claude_stream_json::ClaudeStreamJson;
use eisen_core::line::{content, lines};
use eisen_core::plugin::{
    Approval, Conversation, Hosting, InstanceCall, Library, PluginSource, RecordReader, Translator,
};
use eisen_core::process::Launcher;
use eisen_plugin::{Direction, Extractor, Records};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, duplex, sink, split,
};
use tokio::net::unix::pipe;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::sleep;

/// Turns of each way, the first of which warms up.
const TURNS: usize = 60;

/// Bytes that are read in a turn, at least.
const TURN: usize = 1024 * 1024;

const BLOCK: usize = 64 * 1024;

/// Lines that come alone, and what lies between two of them.
const ALONE: usize = 2000;
const QUIET: Duration = Duration::from_millis(1);

/// A piece of what an agent says.
const PIECE: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"is what the shop sells"}},"session_id":"8f2b","parent_tool_use_id":null,"uuid":"5d3c"}
"#;

const TRANSCRIPT: &str = include_str!("../plugins/claude-stream-json/tests/partial.transcript");

const NEW_SESSION: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":\"/shop\"}}\n";

pub(crate) fn run() {
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_eisen-core"));
    let bench = Bench { launcher, places: places(), said: said() };
    // In a task, as in a team: what wakes it then runs on the same thread.
    let runtime = Runtime::new().unwrap();
    runtime.block_on(runtime.spawn(bench.run())).unwrap();
}

struct Bench {
    launcher: Launcher,
    /// This process, and a child.
    places: [Hosting; 2],
    /// Whole lines of an agent.
    said: Vec<u8>,
}

impl Bench {
    async fn run(self) {
        let count = lines(&self.said).count();
        println!("{count} lines of {} B", self.said.len() / count);
        println!(
            "{:<22} {:>12} {:>14} {:>22}",
            "", "direct, ns", "in-process", "child / in-process"
        );
        for (name, size) in [("64 KiB at once, a line", BLOCK), ("a line at once", 0)] {
            let [direct, inside, child] = self.blocks(size).await;
            #[expect(clippy::cast_precision_loss, reason = "thousands")]
            let each = direct / count as f64;
            println!("{name:<22} {each:>12.0} {:>14.2} {:>22.2}", inside / direct, child / inside);
        }
        let [inside, child] = self.stream().await;
        println!("{:<22} {:>12} {:>14} {:>22.2}", "as a stream, a line", "", "", child / inside);
        let [inside, child] = self.alone().await;
        println!(
            "{:<22} {:>12} {:>14} {:>22}",
            "alone, a line, µs", "", "in-process", "in a child"
        );
        for (name, share) in [("  half within", 50), ("  99 of 100 within", 99)] {
            let [inside, child] = [&inside, &child].map(|times| times[times.len() * share / 100]);
            let more = child.saturating_sub(inside);
            let [inside, child, more] = [inside, child, more].map(|time| time.as_micros());
            println!("{name:<22} {:>12} {inside:>14} {:>22}", "", format!("{child} (+{more})"));
        }
        let [without, with] = self.relayed();
        println!("{:<22} {:>12} {:>14} {:>22}", "relayed, a line, µs", "", "no plugin", "a plugin");
        for (name, share) in [("  half within", 50), ("  99 of 100 within", 99)] {
            let [without, with] =
                [&without, &with].map(|times| times[times.len() * share / 100].as_micros());
            println!("{name:<22} {:>12} {without:>14} {with:>22}", "");
        }
        self.launcher.drained().await;
    }

    /// How long lines take that come alone through `observe`, without a plugin and with one, the
    /// quickest first.
    fn relayed(&self) -> [Vec<Duration>; 2] {
        let Hosting::Child(library, _) = &self.places[1] else { unreachable!() };
        let folder = tempfile::tempdir().unwrap();
        let observe = |plugin: &[&str]| Relayed::start(folder.path(), plugin);
        let mut relays = [observe(&[]), observe(&["--plugin", library.to_str().unwrap()])];
        let mut times = [const { Vec::new() }; 2];
        for trip in 0..2 * ALONE {
            for (relay, times) in relays.iter_mut().zip(&mut times) {
                std::thread::sleep(QUIET);
                let took = relay.trip();
                // Those before warm up.
                if trip >= ALONE {
                    times.push(took);
                }
            }
        }
        for times in &mut times {
            times.sort();
        }
        times
    }

    /// Nanoseconds in which all is read, directly and in both places.
    async fn blocks(&self, size: usize) -> [f64; 3] {
        let blocks = blocks(&self.said, size);
        let mut direct = ClaudeStreamJson::create("{}").unwrap();
        let mut readers = self.instances();
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..TURNS {
            let begun = Instant::now();
            let reported: Vec<_> = blocks.iter().map(|block| read(&mut direct, block)).collect();
            times[0].push(begun.elapsed());
            for (reader, times) in readers.iter_mut().zip(&mut times[1..]) {
                let (begun, mut same) = (Instant::now(), Vec::new());
                for block in &blocks {
                    same.push(reader.call(InstanceCall::Read { block }).await.unwrap().output);
                }
                times.push(begun.elapsed());
                assert!(reported == same, "the plugin reports something else");
            }
        }
        times.each_ref().map(|times| median(times))
    }

    /// How long lines take that come alone, in both places, the quickest first.
    async fn alone(&self) -> [Vec<Duration>; 2] {
        let [inside, child] = self.instances().map(Talk::begin);
        let mut talks = [inside.await, child.await];
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..ALONE {
            for (talk, times) in talks.iter_mut().zip(&mut times) {
                sleep(QUIET).await;
                let begun = Instant::now();
                talk.agent.write_all(PIECE.as_bytes()).unwrap();
                talk.hear("session/update").await;
                times.push(begun.elapsed());
            }
        }
        times.each_mut().map(|times| {
            times.sort();
            std::mem::take(times)
        })
    }

    /// Nanoseconds until all is translated, in both places.
    async fn stream(&self) -> [f64; 2] {
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..TURNS {
            for (mut reader, times) in self.instances().into_iter().zip(&mut times) {
                // A child starts with its first call.
                reader.call(InstanceCall::Read { block: b"" }).await.unwrap();
                let translator = translator(reader);
                let (mut client, relay) = duplex(BLOCK);
                client.write_all(NEW_SESSION.as_bytes()).await.unwrap();
                let (requests, _answers) = split(relay);
                let (from_agent, mut agent) = std::io::pipe().unwrap();
                let from_agent = pipe::Receiver::from_owned_fd(from_agent.into()).unwrap();
                let said = self.said.clone();
                let begun = Instant::now();
                let writer = std::thread::spawn(move || {
                    lines(&said).for_each(|line| agent.write_all(line).unwrap());
                });
                translator
                    .run((from_agent, sink()), (requests, sink()), |why| panic!("{why}"))
                    .await;
                times.push(begun.elapsed());
                writer.join().unwrap();
            }
        }
        times.each_ref().map(|times| median(times))
    }

    fn instances(&self) -> [Box<dyn RecordReader>; 2] {
        self.places.clone().map(|place| {
            let source = PluginSource { name: "claude".to_owned(), config: "{}".to_owned(), place };
            source.instance(self.launcher.clone()).unwrap()
        })
    }
}

/// `observe` in front of an agent that says again what it hears.
struct Relayed {
    observe: std::process::Child,
    said: Option<std::process::ChildStdin>,
    heard: std::process::ChildStdout,
}

impl Relayed {
    fn start(folder: &Path, plugin: &[&str]) -> Self {
        let mut observe = std::process::Command::new(env!("CARGO_BIN_EXE_eisen-core"))
            .env("EISEN_DIR", folder)
            .current_dir(folder)
            .args(["observe", "--port", "0", "--no-graph"])
            .args(plugin)
            .args(["--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (said, heard) = (observe.stdin.take(), observe.stdout.take().unwrap());
        Self { observe, said, heard }
    }

    fn trip(&mut self) -> Duration {
        let mut back = vec![0; PIECE.len()];
        let begun = Instant::now();
        self.said.as_ref().unwrap().write_all(PIECE.as_bytes()).unwrap();
        self.heard.read_exact(&mut back).unwrap();
        let took = begun.elapsed();
        assert_eq!(back, PIECE.as_bytes());
        took
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        drop(self.said.take());
        self.observe.wait().unwrap();
    }
}

/// An agent, and what its client hears of it.
struct Talk {
    agent: std::io::PipeWriter,
    client: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// The agent would be alone without its client.
    _requests: tokio::io::WriteHalf<DuplexStream>,
}

impl Talk {
    async fn begin(reader: Box<dyn RecordReader>) -> Self {
        let (client, relay) = duplex(BLOCK);
        let (from_agent, agent) = std::io::pipe().unwrap();
        let from_agent = pipe::Receiver::from_owned_fd(from_agent.into()).unwrap();
        let run = translator(reader);
        tokio::spawn(run.run((from_agent, sink()), split(relay), |why| panic!("{why}")));
        let (client, mut requests) = split(client);
        requests.write_all(NEW_SESSION.as_bytes()).await.unwrap();
        let client = BufReader::new(client).lines();
        let mut talk = Self { agent, client, _requests: requests };
        talk.hear("sessionId").await;
        talk
    }

    async fn hear(&mut self, what: &str) {
        let line = self.client.next_line().await.unwrap().unwrap();
        assert!(line.contains(what), "{line}");
    }
}

fn translator(reader: Box<dyn RecordReader>) -> Translator {
    let concern = watch::Sender::new(None);
    Translator::new("claude".to_owned(), None, Conversation::default(), reader, concern)
}

/// What a place does with a block, without any border.
fn read(plugin: &mut ClaudeStreamJson, block: &[u8]) -> Vec<u8> {
    let mut reported = Vec::new();
    let mut put = |bytes: &[u8]| {
        reported.extend_from_slice(bytes);
        true
    };
    let records = &mut Records::new(&mut put);
    for line in lines(block).map(content) {
        plugin.gate(line, records).unwrap();
        plugin.observe(Direction::ToClient, line, records).unwrap();
    }
    reported
}

fn places() -> [Hosting; 2] {
    let beside = std::env::current_exe().unwrap();
    let file = std::env::consts::DLL_PREFIX.to_owned() + "claude_stream_json";
    let file = beside.with_file_name(file + std::env::consts::DLL_SUFFIX);
    let library = Approval::of(&file).and_then(|approval| Library::load_approved(&file, approval));
    let library = library.unwrap_or_else(|error| {
        let mend = "`cargo build --release -p eisen-plugin-claude-stream-json` builds it";
        panic!("{}: {error}; {mend}", file.display())
    });
    [Hosting::InProcess(Box::new(library)), Hosting::Child(file, None)]
}

/// What the agent said in the transcript, over and over. It asks under another id each time, as an
/// agent does that waits for several answers.
fn said() -> Vec<u8> {
    let said = TRANSCRIPT.lines().filter_map(|line| line.strip_prefix("< "));
    let said: String = said.flat_map(|line| [line, "\n"]).collect();
    let time = |time| said.replace("\"request_id\":\"", &format!("\"request_id\":\"{time}-"));
    (0..TURN.div_ceil(said.len())).map(time).collect::<String>().into_bytes()
}

/// Whole lines, a block as long as they fit; a line at least.
fn blocks(said: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for line in lines(said) {
        match blocks.last_mut() {
            Some(block) if block.len() + line.len() <= size => block.extend(line),
            _ => blocks.push(line.to_vec()),
        }
    }
    blocks
}

/// The first one warms up.
fn median(times: &[Duration]) -> f64 {
    figures::median(times.iter().skip(1).map(|time| nanoseconds(*time)))
}
