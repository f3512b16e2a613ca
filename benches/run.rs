//! One-shot runs: how long `run` of an agent takes, compared with the same agent under `observe`, and the CPU
//! time of 200 runs that wait for a slot.
//!
//! A run makes some twenty files and syncs what it leaves, and `observe` does neither, so that the disk's noise does
//! not cancel in their ratio. So it is measured in memory, too, and what one new file and one sync take is said
//! beside it. Both are bounded. An ext4 without a journal looks at all files that were removed in the last minutes
//! before it makes one: after thousands, as this bench itself leaves them, a new file takes 20 times as long.

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::median;
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Pairs that are measured, after some that are not.
const PAIRS: usize = 31;
const WARM_UP: usize = 3;

/// `run` may take so much of the time of `observe`.
const LONGEST: f64 = 1.5;

const WAITERS: usize = 200;

/// How long waiters are left alone before they are looked at, and then looked at.
const SETTLES: Duration = Duration::from_secs(2);
const WAITS: Duration = Duration::from_secs(20);

/// The part of a core that all waiters may take, in percent.
const MOST: f64 = 1.0;

const SCRIPT: &str = r#"
[agent]
name = "ui"
[[on]]
prompt = "wait"
steps = [{ wait = "cancel" }]
[[on]]
steps = [{ say = "Done." }]
"#;

/// A filesystem in memory.
const MEMORY: &str = "/dev/shm";

/// Syncs that are measured, each of a new file.
const SYNCS: usize = 50;

const PROGRAM: &str = env!("CARGO_BIN_EXE_eisen-core");

pub(crate) fn run() {
    let on_disk = RunStage::new(&std::env::temp_dir());
    let [new_file, sync] = on_disk.new_file_and_sync();
    let times = compare(&on_disk);
    let (new_file, sync) = (new_file * 1e6, sync * 1e3);
    println!(
        "on disk: {times} (bound {LONGEST}); a new file {new_file:.0} µs, a sync {sync:.1} ms"
    );
    let longest = times.ratio;
    if Path::new(MEMORY).is_dir() {
        let times = compare(&RunStage::new(Path::new(MEMORY)));
        println!("in memory: {times} (bound {LONGEST})");
        assert!(times.ratio <= LONGEST, "run takes too long in memory");
    } else {
        println!("in memory: left out, {MEMORY} is no folder");
    }
    wait(&on_disk);
    assert!(longest <= LONGEST, "run takes too long on the disk");
}

/// Medians, in milliseconds, and the median of the ratios.
struct Times {
    run: f64,
    observe: f64,
    ratio: f64,
}

impl Display for Times {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { run, observe, ratio } = self;
        write!(out, "run {run:.1} ms, observe {observe:.1} ms: {ratio:.2}")
    }
}

fn compare(stage: &RunStage) -> Times {
    let mut both = [Vec::new(), Vec::new()];
    for pair in 0..WARM_UP + PAIRS {
        // Who is first takes turns.
        for at in [pair % 2, (pair + 1) % 2] {
            let took = if at == 0 { stage.run() } else { stage.observe() };
            if pair >= WARM_UP {
                both[at].push(took.as_secs_f64());
            }
        }
    }
    let ratios: Vec<_> = both[0].iter().zip(&both[1]).map(|(run, bare)| run / bare).collect();
    let [run, observe] = both.map(|times| median(times) * 1000.0);
    Times { run, observe, ratio: median(ratios) }
}

fn wait(stage: &RunStage) {
    let start = || {
        let mut command = stage.command(&["run", "--profile", "ui", "wait"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut all = vec![start()];
    stage.until(1, "running");
    all.extend((0..WAITERS).map(|_| start()));
    stage.until(WAITERS, "waiting");
    std::thread::sleep(SETTLES);
    let used = || all[1..].iter().map(clock).sum::<Duration>();
    let (since, before) = (Instant::now(), used());
    std::thread::sleep(WAITS);
    let percent =
        used().saturating_sub(before).as_secs_f64() / since.elapsed().as_secs_f64() * 100.0;
    println!("{WAITERS} runs that wait: {percent:.3} % of a core (bound {MOST} %)");
    // The holder last, so that none of them begins.
    for child in all.iter_mut().rev() {
        kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        child.wait().unwrap();
    }
    assert!(percent < MOST, "waiting takes too much");
}

fn clock(child: &Child) -> Duration {
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    clock_gettime(clock_getcpuclockid(pid).unwrap()).unwrap().into()
}

/// A repository, the script of an agent, and a user's file in which it has one slot.
struct RunStage {
    folder: tempfile::TempDir,
}

impl RunStage {
    fn new(parent: &Path) -> Self {
        let stage = Self { folder: tempfile::tempdir_in(parent).unwrap() };
        for folder in ["work", "eisen"] {
            std::fs::create_dir(stage.at(folder)).unwrap();
        }
        let made = Command::new("git").args(["init", "-q"]).arg(stage.at("work")).status();
        assert!(made.unwrap().success());
        std::fs::write(stage.at("agent.toml"), SCRIPT).unwrap();
        let config = format!(
            "[profiles.ui]\ncommand = {:?}\n[slots]\nui = 1\n[runs]\nmin_free_mb = 0\n",
            stage.agent()
        );
        std::fs::write(stage.at("eisen/config.toml"), config).unwrap();
        stage
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn agent(&self) -> [String; 3] {
        let script = self.at("agent.toml").display().to_string();
        [PROGRAM.to_owned(), "scripted-agent".to_owned(), script]
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(args).current_dir(self.at("work")).env("EISEN_DIR", self.at("eisen"));
        command
    }

    /// How many seconds it takes to make a small file, and to bring it to the disk.
    fn new_file_and_sync(&self) -> [f64; 2] {
        let mut both = [Vec::new(), Vec::new()];
        for number in 0..SYNCS {
            let path = self.at(&format!("sync-{number}"));
            let begun = Instant::now();
            let mut file = File::create(path).unwrap();
            both[0].push(begun.elapsed().as_secs_f64());
            file.write_all(&[b'x'; 1000]).unwrap();
            let begun = Instant::now();
            file.sync_all().unwrap();
            both[1].push(begun.elapsed().as_secs_f64());
        }
        both.map(median)
    }

    /// How long a run takes, from its start to its end.
    fn run(&self) -> Duration {
        let mut command = self.command(&["run", "look", "--"]);
        command.args(self.agent()).stdin(Stdio::null());
        let begun = Instant::now();
        let ended = command.output().unwrap();
        let took = begun.elapsed();
        assert_eq!(ended.stdout, b"Done.\n", "{}", String::from_utf8_lossy(&ended.stderr));
        took
    }

    /// How long the same turn takes under `observe`, from its start to its end.
    fn observe(&self) -> Duration {
        let work = self.at("work").display().to_string();
        let lines = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"session/new","params":{{"cwd":{work:?},"mcpServers":[]}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"ui-s1","prompt":[{"type":"text","text":"look"}]}}"#
                .to_owned(),
        ];
        let mut command = self.command(&["observe", "--port", "0", "--"]);
        command.args(self.agent()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(format!("{}\n", lines.join("\n")).as_bytes()).unwrap();
        let mut heard = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = false;
        // The end of its input would end the agent.
        for line in heard.by_ref() {
            let line = line.unwrap();
            said |= line.contains("Done.");
            if line.contains("stopReason") {
                break;
            }
        }
        drop(stdin);
        heard.for_each(drop);
        child.wait().unwrap();
        let took = begun.elapsed();
        assert!(said, "the agent said nothing");
        took
    }

    /// Waits until so many runs have this status.
    fn until(&self, count: usize, status: &str) {
        let line = format!("status = \"{status}\"");
        // A run that waits says for whom.
        let is_there = |text: &str| {
            text.contains(&line) && (status != "waiting" || text.contains("waits_for"))
        };
        loop {
            let runs = std::fs::read_dir(self.at("eisen/runs")).into_iter().flatten().flatten();
            let found =
                runs.filter_map(|run| std::fs::read_to_string(run.path().join("state.toml")).ok());
            if found.filter(|text| is_there(text)).count() >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
