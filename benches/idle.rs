//! The cost of idle agents for their supervisor: its CPU time, and its memory against that of a team of
//! one. The code graph is off, since the size of its tables varies from run to run.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

const AGENTS: u32 = 50;

/// How long a team is left alone before it is looked at, and then looked at.
const SETTLES: Duration = Duration::from_secs(10);
const IDLES: Duration = Duration::from_secs(20);

struct Team {
    supervisor: Child,
    folder: tempfile::TempDir,
}

/// What an idle team needs.
struct Needs {
    /// Of one core.
    percent: f64,
    kilobytes: i64,
}

pub(crate) fn run() {
    let (one, all) = (Team::of(1).idle(), Team::of(AGENTS).idle());
    let each = (all.kilobytes - one.kilobytes) / i64::from(AGENTS - 1);
    println!("{:<34} {:>10} {:>10}", "idle", "1 agent", format!("{AGENTS} agents"));
    println!("{:<34} {:>10.2} {:>10.2}", "CPU, % of a core", one.percent, all.percent);
    println!("{:<34} {:>10} {:>10}", "memory, KB", one.kilobytes, all.kilobytes);
    println!("{:<34} {:>10} {each:>10}", "memory of one more, KB", "");
}

impl Team {
    /// Returns once all agents are ready, each with a turn behind it.
    fn of(agents: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("workspace")).unwrap();
        let script = at("workspace/script.toml");
        std::fs::write(script, "[[on]]\nsteps = [{ say = \"Hello.\" }]\n").unwrap();
        let command = [env!("CARGO_BIN_EXE_eisen-core"), "scripted-agent", "script.toml"];
        let agent = |number| {
            format!("[[agents]]\nid = \"a{number}\"\nprompt = \"Hi.\"\ncommand = {command:?}\n")
        };
        let team = "[team]\nworkspace = \"workspace\"\nlisten = \"127.0.0.1:0\"\n".to_owned()
            + "[graph]\nenabled = false\n";
        let team = (0..agents).fold(team, |team, number| team + agent(number).as_str());
        std::fs::write(at("eisen.toml"), team).unwrap();
        let supervisor = program(folder.path()).args(["up", "-c", "eisen.toml"]).spawn().unwrap();
        let team = Self { supervisor, folder };
        while team.ready() < agents as usize {
            std::thread::sleep(Duration::from_millis(200));
        }
        team
    }

    fn ready(&self) -> usize {
        let ps = program(self.folder.path()).args(["ps", "--json"]).stdout(Stdio::piped()).output();
        String::from_utf8(ps.unwrap().stdout).unwrap().matches(r#""state":"ready""#).count()
    }

    fn idle(self) -> Needs {
        std::thread::sleep(SETTLES);
        let (since, before) = (Instant::now(), self.clock());
        std::thread::sleep(IDLES);
        let used = self.clock().saturating_sub(before);
        let percent = used.as_secs_f64() / since.elapsed().as_secs_f64() * 100.0;
        Needs { percent, kilobytes: self.kilobytes() }
    }

    fn clock(&self) -> Duration {
        clock_gettime(clock_getcpuclockid(self.pid()).unwrap()).unwrap().into()
    }

    fn kilobytes(&self) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.supervisor.id().try_into().unwrap())
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        kill(self.pid(), Signal::SIGINT).unwrap();
        self.supervisor.wait().unwrap();
    }
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eisen-core"));
    command.env("EISEN_DIR", folder.join("eisen")).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
