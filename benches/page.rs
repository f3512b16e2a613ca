//! What the page in a browser takes, for a team with 10,000 files: the time from a change of a file to
//! its pixels, the main thread for each frame of the map while some 50 files change in each tick, and the memory of
//! a tab in which hundreds of thousands of events are played as fast as they come. Browser, team and
//! agent share the machine, as they do on a laptop. Without Chromium there is nothing to measure.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use thirtyfour::prelude::*;
use tokio::runtime::Runtime;

const FILES: usize = 10_000;
/// Files of a folder.
const OF_FOLDER: usize = 100;
/// Changes of files that are waited for.
const CHANGES: usize = 40;
/// Files that an agent touches in a tick of the map.
const OF_TICK: usize = 50;
/// Rounds of events, and the messages and tool calls of each.
const ROUNDS: usize = 8;
const MESSAGES: usize = 25_000;

const ARGUMENTS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--window-size=1280,900",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

/// Runs before the page: notes when a line about a file came, and when the frame behind the next
/// drawing was shown; counts lines.
const WATCH: &str = "
window.seen = { wanted: '', got: 0, drawn: 0, lines: 0, lagged: 0, ticks: 0, changes: 0, frame: 0, frames: 0 };
const hear = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
Object.defineProperty(WebSocket.prototype, 'onmessage', { set(take) {
  hear.set.call(this, function (event) {
    const { data } = event;
    seen.lines += 1;
    if (data.startsWith('{\"type\":\"lagged\"')) seen.lagged += JSON.parse(data).missed;
    if (data.startsWith('{\"type\":\"delta\"')) {
      if (seen.wanted && !seen.got && data.includes(seen.wanted)) seen.got = Date.now();
      const { agent_id, updates } = JSON.parse(data);
      if (agent_id === 'ui' && updates.length > 10) (seen.ticks += 1, seen.changes += updates.length);
    }
    return take.call(this, event);
  });
} });
for (const name of ['fillRect', 'fill', 'stroke', 'drawImage', 'putImageData']) {
  const draw = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    const frame = document.timeline.currentTime;
    if (frame !== seen.frame) (seen.frame = frame, seen.frames += 1);
    if (seen.got && !seen.drawn) {
      seen.drawn = -1;
      requestAnimationFrame(() => setTimeout(() => (seen.drawn = Date.now())));
    }
    return draw.apply(this, given);
  };
}";

pub(crate) fn run() {
    let Some(driver) = Driver::start() else { return };
    let team = Team::up();
    let page = Page::open(&driver, &team);
    page.go("map");
    page.waits("document.querySelector('#map').innerText.includes('10,000 files')");

    let mut times: Vec<_> = (0..CHANGES).map(|turn| page.time_of_change(&team, turn)).collect();
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("a change of a file to its pixels: median {} ms, p90 {} ms", at(50), at(90));

    let (begun, before) = (page.figures(), page.seen());
    team.prompt("touch");
    let (ended, after) = (page.figures(), page.seen());
    let sum = |name: &str| after[name].as_f64().unwrap() - before[name].as_f64().unwrap();
    let (ticks, frames) = (sum("ticks").max(1.0), sum("frames").max(1.0));
    println!(
        "the map with {:.0} changes a tick, and all else that the page hears of them: {:.1} frames a tick, \
         each with {:.2} ms of script and {:.2} ms of the main thread",
        sum("changes") / ticks,
        frames / ticks,
        (ended.script - begun.script) * 1e3 / frames,
        (ended.busy - begun.busy) * 1e3 / frames,
    );

    page.go("team/ui");
    let base = page.heap();
    println!("heap of the page: {base:.1} MB");
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        team.prompt("talk");
        let (heap, seen) = (page.heap(), page.seen());
        println!(
            "after {:>4} s, {:>9} lines, of which {} were missed: {heap:.1} MB, {:.2} of the first",
            begun.elapsed().as_secs(),
            seen["lines"],
            seen["lagged"],
            heap / base,
        );
    }
}

/// A team of one scripted agent, with many files.
struct Team {
    folder: tempfile::TempDir,
    program: Child,
}

impl Team {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for number in 0..FILES {
            let file = file_of(folder.path(), number);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("export function f{number}() {{ return {number}; }}\n"))
                .unwrap();
        }
        fs::write(at("agent.toml"), script()).unwrap();
        let command = json!([env!("CARGO_BIN_EXE_eisen-core"), "scripted-agent", at("agent.toml")]);
        let config = format!(
            "[team]\nname = \"bench\"\nworkspace = \"work\"\nlisten = \"127.0.0.1:0\"\ntools = false\n\
             [web]\nlisten = \"127.0.0.1:0\"\n[[agents]]\nid = \"ui\"\ncommand = {command}\n\
             [agents.zone]\nallowed = [\"**\"]\nenforce = \"protocol\"\n"
        );
        fs::write(at("eisen.toml"), config).unwrap();
        let mut up = eisen_core(folder.path(), &["up"]);
        let mut program = up.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(program.stdout.take().unwrap()).lines();
        said.find(|line| line.as_ref().unwrap().contains("ready")).unwrap().unwrap();
        std::thread::spawn(move || said.for_each(drop));
        Self { folder, program }
    }

    /// Prompts the agent, and waits for the end of its turn.
    fn prompt(&self, text: &str) {
        let mut prompt = eisen_core(self.folder.path(), &["prompt", "ui", text]);
        assert!(prompt.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    }

    fn link(&self) -> String {
        let answer = eisen_core(self.folder.path(), &["web"]).stderr(Stdio::null()).output();
        String::from_utf8(answer.unwrap().stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.program.id().cast_signed()), Signal::SIGINT);
        let _ = self.program.wait();
    }
}

fn file_of(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("work/src/m{}/f{number}.ts", number / OF_FOLDER))
}

/// `touch` reads 50 files in each tenth of a second, for ten seconds; `talk` says and does a lot.
fn script() -> String {
    let mut script = "[agent]\nname = \"ui\"\n[[on]]\nprompt = \"touch\"\nsteps = [\n".to_owned();
    for group in 0..100 {
        for file in 0..OF_TICK {
            let number = (group * OF_TICK + file) * 131 % FILES;
            let _ = writeln!(script, "{{ read = \"src/m{}/f{number}.ts\" }},", number / OF_FOLDER);
        }
        script.push_str("{ wait_ms = 100 },\n");
    }
    let call = r#"{"sessionUpdate":"tool_call","toolCallId":"c{n}","title":"Edit a file","kind":"edit","status":"completed","content":[{"type":"diff","path":"src/a.ts","oldText":"one\ntwo\n","newText":"one\nthree\n"}]}"#;
    let _ = write!(
        script,
        "]\n[[on]]\nprompt = \"talk\"\nsteps = [{{ repeat = {MESSAGES}, steps = [\n\
         {{ say = \"some words of an answer, as models send them, number {{n}} \" }},\n\
         {{ update = '{call}' }},\n] }}]\n"
    );
    script
}

fn eisen_core(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eisen-core"));
    command.args(args).current_dir(folder).env("EISEN_DIR", folder.join("eisen"));
    command.stdin(Stdio::null());
    command
}

/// A `chromedriver`, which ends with its browsers.
struct Driver {
    process: Child,
    address: String,
}

impl Driver {
    /// Starts one; None if it is not installed.
    fn start() -> Option<Self> {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut process) = command.spawn() else {
            println!("skipped: chromedriver is not installed");
            return None;
        };
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let port = line.strip_prefix("ChromeDriver was started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        Some(Self { process, address: format!("http://127.0.0.1:{}", port.unwrap()) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let shutdown = reqwest::get(format!("{}/shutdown", self.address));
        let _ = Runtime::new().unwrap().block_on(shutdown);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The page in a browser.
struct Page {
    runtime: Runtime,
    driver: WebDriver,
    /// The address of its session.
    session: String,
}

/// Seconds of the page's main thread.
struct Figures {
    script: f64,
    busy: f64,
}

impl Page {
    fn open(server: &Driver, team: &Team) -> Self {
        let runtime = Runtime::new().unwrap();
        let mut wanted = DesiredCapabilities::chrome();
        for argument in ARGUMENTS {
            wanted.add_arg(argument).unwrap();
        }
        let profile = team.folder.path().join("chromium");
        wanted.add_arg(&format!("--user-data-dir={}", profile.display())).unwrap();
        let driver = runtime.block_on(WebDriver::new(&server.address, wanted)).unwrap();
        let session = format!("{}/session/{}", server.address, driver.session_id());
        let page = Self { runtime, driver, session };
        page.tell("Performance.enable", &json!({}));
        page.tell("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        page.runtime.block_on(page.driver.goto(team.link())).unwrap();
        page.waits("document.querySelector('#link')?.innerText === 'live'");
        page
    }

    /// Changes a file from outside of the team; the milliseconds until it is seen on the map.
    fn time_of_change(&self, team: &Team, turn: usize) -> i64 {
        let number = turn * 7_919 % FILES;
        self.run(&format!(
            "Object.assign(seen, {{ wanted: '/f{number}.ts\"', got: 0, drawn: 0 }})"
        ));
        // Not in step with the ticks of the team.
        std::thread::sleep(Duration::from_millis(150 + turn as u64 * 37 % 300));
        let file = file_of(team.folder.path(), number);
        let mut file = OpenOptions::new().append(true).open(file).unwrap();
        let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        writeln!(file, "export const changed = {turn};").unwrap();
        self.waits("seen.drawn > 0");
        let drawn = self.run("return seen.drawn").as_i64().unwrap();
        drawn - i64::try_from(begun.as_millis()).unwrap()
    }

    /// Shows a view.
    fn go(&self, view: &str) {
        self.run(&format!("location.hash = {view:?}"));
    }

    fn run(&self, script: &str) -> Value {
        let answer = self.runtime.block_on(self.driver.execute(script, Vec::new()));
        answer.unwrap().json().clone()
    }

    fn waits(&self, script: &str) {
        let begun = Instant::now();
        while self.run(&format!("return !!({script})")) != json!(true) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{script}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What was counted in the page.
    fn seen(&self) -> Value {
        self.run("return seen")
    }

    /// Sends a command of the `DevTools` protocol.
    fn tell(&self, command: &str, params: &Value) -> Value {
        let post = reqwest::Client::new().post(format!("{}/goog/cdp/execute", self.session));
        let post = post.body(json!({ "cmd": command, "params": params }).to_string());
        let answer = self.runtime.block_on(async { post.send().await?.json::<Value>().await });
        answer.unwrap()["value"].take()
    }

    fn figures(&self) -> Figures {
        Figures { script: self.metric("ScriptDuration"), busy: self.metric("TaskDuration") }
    }

    /// Megabytes of what is still in use.
    fn heap(&self) -> f64 {
        self.tell("HeapProfiler.collectGarbage", &json!({}));
        self.metric("JSHeapUsedSize") / 1e6
    }

    fn metric(&self, name: &str) -> f64 {
        let metrics = self.tell("Performance.getMetrics", &json!({}));
        let metrics = metrics["metrics"].as_array().unwrap();
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        metric["value"].as_f64().unwrap()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.driver.clone().quit());
    }
}
