//! The cost of the page in a browser. For a team with 10,000 files: the time from opening its link to what is seen first,
//! from a change of a file to its pixels, the main thread for each frame of the map while some 50 files change in each
//! tick, and the memory of a tab that gets the lines of an hour as fast as they come. For a team of 20 agents that say 200
//! lines a second: the script of each frame. Browser, team and agents share the machine, as they do on a laptop. Without
//! Chromium there is nothing to measure.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::team::{RunningTeam, eisen_core};
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
/// Lines that a team says in a second, its agents, and how long they are watched.
const LINES: usize = 200;
const AGENTS: usize = 20;
const WATCHED_SECONDS: usize = 20;
/// Rounds of events, and the messages and tool calls of each: together the lines of an hour.
const ROUNDS: usize = 6;
const MESSAGES: usize = LINES * 3600 / ROUNDS / 2;
/// How often the page is opened.
const OPENED: usize = 11;
/// Bounds: milliseconds until something is seen, those of script in a frame, and memory in the second half of an hour against the first.
const MOST_FIRST_MS: f64 = 1000.0;
const MOST_SCRIPT_MS: f64 = 16.0;
const MOST_GROWTH: f64 = 1.1;

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
/// drawing was shown; counts lines, and the time of scripts between two frames.
const WATCH: &str = "
const scripts = { spent: 0, frames: [] };
window.scripts = scripts;
const timed = (run) => function (...given) {
  const begun = performance.now();
  try { return run.apply(this, given); } finally { scripts.spent += performance.now() - begun; }
};
const frame = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (run) => frame(timed(run));
for (const name of ['setTimeout', 'setInterval']) {
  const later = window[name].bind(window);
  window[name] = (run, ...more) => later(timed(run), ...more);
}
const tick = () => { if (scripts.frames.length < 5000) scripts.frames.push(scripts.spent); scripts.spent = 0; frame(tick); };
frame(tick);
new MutationObserver((_, it) => {
  if (!document.querySelector('.agents > li')) return;
  it.disconnect();
  frame(() => setTimeout(() => (window.firstAgent = Date.now())));
}).observe(document, { childList: true, subtree: true });
window.seen = { wanted: '', got: 0, drawn: 0, lines: 0, lagged: 0, ticks: 0, changes: 0, frame: 0, frames: 0 };
const hear = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
Object.defineProperty(WebSocket.prototype, 'onmessage', { set(take) {
  hear.set.call(this, timed(function (event) {
    const { data } = event;
    seen.lines += 1;
    if (data.startsWith('{\"type\":\"lagged\"')) seen.lagged += JSON.parse(data).missed;
    if (data.startsWith('{\"type\":\"delta\"')) {
      if (seen.wanted && !seen.got && data.includes(seen.wanted)) seen.got = Date.now();
      const { agent_id, updates } = JSON.parse(data);
      if (agent_id === 'ui' && updates.length > 10) (seen.ticks += 1, seen.changes += updates.length);
    }
    return take.call(this, event);
  }));
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
    let team = Team::up(1, FILES, &script());
    first(&driver, &team);
    let page = Page::open(&driver, &team);
    map(&page, &team);
    hour(&page, &team);
    drop((page, team));
    frames(&driver);
}

/// Opens the page again and again, each time in a browser that has nothing of it.
fn first(driver: &Driver, team: &Team) {
    let times = |page: &Page| {
        let paint = "return performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime";
        page.waits("window.firstAgent > 0");
        [page.run(paint), page.run("return window.firstAgent")]
            .map(|at| at.as_f64().unwrap() - page.opened_at)
    };
    let all: Vec<_> = (0..OPENED).map(|_| times(&Page::open(driver, team))).collect();
    for (at, what) in ["something is seen", "the agents are seen"].into_iter().enumerate() {
        let (median, worst) = median_and_worst(all.iter().map(|times| times[at]).collect());
        println!(
            "from the link until {what}: median {median:.0} ms, worst {worst:.0} ms (at most {MOST_FIRST_MS:.0})"
        );
    }
}

fn map(page: &Page, team: &Team) {
    page.go("map");
    page.waits("document.querySelector('#map').innerText.includes('10,000 files')");

    let mut times: Vec<_> = (0..CHANGES).map(|turn| page.time_of_change(team, turn)).collect();
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    println!("a change of a file to its pixels: median {} ms, p90 {} ms", at(50), at(90));

    let (begun, before) = (page.figures(), page.seen());
    team.prompt("ui", "touch");
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
}

/// Plays the lines of an hour, and looks at the memory after each sixth. What a transcript keeps goes up and down
/// within its bounds, so that halves are compared.
fn hour(page: &Page, team: &Team) {
    page.go("team/ui");
    println!("heap of the page: {:.1} MB", page.heap());
    let begun = Instant::now();
    let mut heaps = Vec::new();
    for round in 1..=ROUNDS {
        team.prompt("ui", "talk");
        page.rests();
        let (heap, seen) = (page.heap(), page.seen());
        heaps.push(heap);
        println!(
            "{round}/{ROUNDS} of the lines of an hour, after {:>4} s, {:>9} lines, of which {} were missed: {heap:.1} MB",
            begun.elapsed().as_secs(),
            seen["lines"],
            seen["lagged"],
        );
    }
    let (early, late) = heaps.split_at(ROUNDS / 2);
    let ratio = late.iter().sum::<f64>() / early.iter().sum::<f64>();
    println!(
        "the second half of the hour has {ratio:.2} of the heap of the first (at most {MOST_GROWTH})"
    );
}

/// The script of each frame while many agents speak, in the views that show it.
fn frames(driver: &Driver) {
    let team = Team::up(AGENTS, AGENTS, &chatter());
    let page = Page::open(driver, &team);
    for (view, prompt) in [
        ("team", "chat"),
        ("team/a1", "chat"),
        ("map", "chat"),
        ("team/a1", "flood"),
        ("team", "flood"),
    ] {
        // The cards say there who works.
        page.go("team");
        let speaking: Vec<_> =
            (1..=AGENTS).map(|it| team.prompting(&format!("a{it}"), prompt)).collect();
        // Their turns begin one after the other.
        page.waits("[...document.querySelectorAll('.agents > li')].every((it) => it.innerText.includes('working'))");
        page.go(view);
        page.run("scripts.frames.length = 0");
        let before = page.seen()["lines"].as_f64().unwrap();
        let begun = Instant::now();
        for mut it in speaking {
            assert!(it.wait().unwrap().success());
        }
        let lines = page.seen()["lines"].as_f64().unwrap() - before;
        let frames: Vec<f64> = serde_json::from_value(page.run("return scripts.frames")).unwrap();
        let (number, (median, worst)) = (frames.len(), median_and_worst(frames));
        println!(
            "{AGENTS} agents, {prompt}, {:.0} lines a second, in {view}: {number} frames, each with {median:.1} ms of script \
             in the median, {worst:.1} ms at worst (at most {MOST_SCRIPT_MS})",
            lines / begun.elapsed().as_secs_f64(),
        );
    }
}

fn median_and_worst(mut all: Vec<f64>) -> (f64, f64) {
    all.sort_unstable_by(f64::total_cmp);
    (all[all.len() / 2], all[all.len() - 1])
}

/// A team of scripted agents, with many files.
struct Team {
    _program: RunningTeam,
    folder: tempfile::TempDir,
}

impl Team {
    /// A team of so many agents; a single one is `ui`.
    fn up(agents: usize, files: usize, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for number in 0..files {
            let file = file_of(folder.path(), number);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("export function f{number}() {{ return {number}; }}\n"))
                .unwrap();
        }
        fs::write(at("agent.toml"), script).unwrap();
        let command = json!([env!("CARGO_BIN_EXE_eisen-core"), "scripted-agent", at("agent.toml")]);
        let mut config =
            "[team]\nname = \"bench\"\nworkspace = \"work\"\nlisten = \"127.0.0.1:0\"\n\
             tools = false\n[web]\nlisten = \"127.0.0.1:0\"\n"
                .to_owned();
        for number in 1..=agents {
            let id = if agents == 1 { "ui".to_owned() } else { format!("a{number}") };
            let _ = write!(
                config,
                "[[agents]]\nid = \"{id}\"\ncommand = {command}\n\
                 [agents.zone]\nallowed = [\"**\"]\nenforce = \"protocol\"\n"
            );
        }
        fs::write(at("eisen.toml"), config).unwrap();
        Self { _program: RunningTeam::ready(folder.path()), folder }
    }

    /// Prompts an agent, and waits for the end of its turn.
    fn prompt(&self, agent: &str, text: &str) {
        assert!(self.prompting(agent, text).wait().unwrap().success());
    }

    fn prompting(&self, agent: &str, text: &str) -> Child {
        let mut prompt = eisen_core(self.folder.path(), &["prompt", agent, text]);
        prompt.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn link(&self) -> String {
        let answer = eisen_core(self.folder.path(), &["web"]).stderr(Stdio::null()).output();
        String::from_utf8(answer.unwrap().stdout).unwrap().trim().to_owned()
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap()
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

/// `chat` says short lines and reads a file at times; `flood` says one paragraph of 32 KB. Both take as long as is watched.
fn chatter() -> String {
    let times = WATCHED_SECONDS * LINES / AGENTS / 10;
    let pause = 1000 * AGENTS / LINES;
    let say = format!(
        "{{ say = \"some **words** of an answer, as `models` send them. \\n\\n\" }}, {{ wait_ms = {pause} }},"
    );
    let flood = format!(
        "{{ say = \"{}\" }}, {{ wait_ms = {pause} }},",
        "words `of` a *paragraph* ".repeat(8)
    );
    format!(
        "[agent]\nname = \"a\"\n[[on]]\nprompt = \"chat\"\nsteps = [{{ repeat = {times}, steps = [{{ read = \"src/m0/f1.ts\" }},\n{}\n] }}]\n\
         [[on]]\nprompt = \"flood\"\nsteps = [{{ repeat = {}, steps = [{flood}] }}]\n",
        say.repeat(10),
        times * 10,
    )
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
    /// When its link was opened, in milliseconds since 1970.
    opened_at: f64,
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
        let profile = tempfile::tempdir_in(team.folder.path()).unwrap().keep();
        wanted.add_arg(&format!("--user-data-dir={}", profile.display())).unwrap();
        let driver = runtime.block_on(WebDriver::new(&server.address, wanted)).unwrap();
        let session = format!("{}/session/{}", server.address, driver.session_id());
        let mut page = Self { runtime, driver, session, opened_at: 0.0 };
        page.tell("Performance.enable", &json!({}));
        page.tell("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        let link = team.link();
        page.opened_at = now().as_secs_f64() * 1e3;
        page.runtime.block_on(page.driver.goto(link)).unwrap();
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
        let begun = now();
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

    /// Waits until it has taken all lines: none comes for half a second.
    fn rests(&self) {
        let mut before = Value::Null;
        for _ in 0..120 {
            let lines = self.seen()["lines"].take();
            if lines == before {
                return;
            }
            before = lines;
            std::thread::sleep(Duration::from_millis(500));
        }
        panic!("lines come all the time");
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
