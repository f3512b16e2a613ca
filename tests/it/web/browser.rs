//! A real Chromium, headless, driven by its `chromedriver`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thirtyfour::prelude::*;
use tokio::runtime::Runtime;

use crate::harness::Stage;

const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

/// How often a driver is started before a test fails.
const STARTS: usize = 5;

/// How long something may take that a page shows.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at a page: a look has it laid out anew, and takes its browser from the other tests.
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);

/// Elements of a page that take the focus, at most.
const MOST_TABS: usize = 120;

pub(super) const TAB: &str = "\u{e004}";
pub(super) const ENTER: &str = "\u{e007}";
pub(super) const ESCAPE: &str = "\u{e00c}";
pub(super) const DOWN: &str = "\u{e015}";
pub(super) const RIGHT: &str = "\u{e014}";
pub(super) const LEFT: &str = "\u{e012}";

/// The driver that tests share: it ends with the last of those that run at once.
static SHARED: Mutex<Weak<Driver>> = Mutex::new(Weak::new());

/// A `chromedriver`. Each test has browsers of its own: one browser for all would show a test what others'
/// pages complain of, and lend it their cookies, which belong to a host whatever its port.
pub(super) struct Driver {
    process: Child,
    address: String,
}

/// One browser with a profile of its own.
pub(super) struct Chromium {
    runtime: Runtime,
    driver: WebDriver,
    /// Its session's address.
    session: String,
}

impl Driver {
    /// The one that all tests share; None if it is not installed.
    pub(super) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap();
        let driver = match shared.upgrade() {
            Some(driver) => driver,
            None => Arc::new(Self::start()?),
        };
        *shared = Arc::downgrade(&driver);
        Some(driver)
    }

    fn start() -> Option<Self> {
        // It chooses a port, and ends if another program takes that before it listens there.
        for _ in 0..STARTS {
            let mut command = Command::new("chromedriver");
            command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
            let Ok(mut process) = command.spawn() else {
                eprintln!("skipped: chromedriver is not installed");
                return None;
            };
            let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
            let port = lines.into_iter().find_map(|line| {
                let port = line.strip_prefix("ChromeDriver was started successfully on port ")?;
                Some(port.trim_end_matches('.').to_owned())
            });
            if let Some(port) = port {
                return Some(Self { process, address: format!("http://127.0.0.1:{port}") });
            }
            process.wait().unwrap();
        }
        panic!("chromedriver ended {STARTS} times");
    }

    /// Opens a browser with a window of this size.
    pub(super) fn open(&self, stage: &Stage, name: &str, (width, height): (u32, u32)) -> Chromium {
        let runtime = Runtime::new().unwrap();
        let mut wanted = DesiredCapabilities::chrome();
        for argument in ARGUMENTS {
            wanted.add_arg(argument).unwrap();
        }
        let profile = stage.path(&format!("chromium-{name}"));
        wanted.add_arg(&format!("--user-data-dir={}", profile.display())).unwrap();
        wanted.add_arg(&format!("--window-size={width},{height}")).unwrap();
        wanted.set("goog:loggingPrefs", json!({ "browser": "ALL" })).unwrap();
        let driver = runtime.block_on(WebDriver::new(&self.address, wanted)).unwrap();
        let session = format!("{}/session/{}", self.address, driver.session_id());
        Chromium { runtime, driver, session }
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

impl Chromium {
    pub(super) fn goto(&self, url: &str) {
        self.runtime.block_on(self.driver.goto(url)).unwrap();
    }

    /// The text that is seen.
    pub(super) fn text(&self) -> String {
        // Between two pages there is none.
        self.run("return document.body?.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Runs a script in the page.
    pub(super) fn run(&self, script: &str) -> Value {
        let answer = self.runtime.block_on(self.driver.execute(script, Vec::new())).unwrap();
        answer.json().clone()
    }

    /// Runs a script that calls its last argument with the answer.
    pub(super) fn answer(&self, script: &str) -> Value {
        let answer = self.runtime.block_on(self.driver.execute_async(script, Vec::new())).unwrap();
        answer.json().clone()
    }

    /// Gives the page this size, whatever the least is that windows have here.
    pub(super) fn resize(&self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.tell("Emulation.setDeviceMetricsOverride", &size);
    }

    pub(super) fn shows(&self, text: &str) {
        let mut last = String::new();
        let begun = Instant::now();
        while !last.contains(text) {
            assert!(begun.elapsed() < PATIENCE, "no {text:?} in:\n{last}");
            if !last.is_empty() {
                std::thread::park_timeout(BETWEEN_LOOKS);
            }
            last = self.text();
        }
    }

    /// Waits until a script returns true.
    pub(super) fn comes(&self, script: &str) {
        let begun = Instant::now();
        while self.run(&format!("return !!({script})")) != json!(true) {
            assert!(begun.elapsed() < PATIENCE, "not in time: {script}");
            std::thread::park_timeout(BETWEEN_LOOKS);
        }
    }

    /// Stops the clock that the page reads, until [`Self::later`].
    pub(super) fn stop_clock(&self) {
        self.run("const now = Date.now(); Date.now = () => now");
    }

    /// Sets the clock that the page reads ahead by some milliseconds.
    pub(super) fn later(&self, milliseconds: u32) {
        self.run(&format!(
            "const now = Date.now; Date.now = () => now.call(Date) + {milliseconds}"
        ));
    }

    /// Lets the time pass in which a card that came up takes no key.
    pub(super) fn has_read(&self) {
        self.comes("[...document.querySelectorAll('article.card')].some((it) => it.card?.shownAt)");
        self.later(600);
    }

    /// Types where the focus is.
    pub(super) fn keys(&self, keys: &str) {
        self.runtime.block_on(async {
            self.driver.action_chain().send_keys(keys).perform().await.unwrap();
        });
    }

    /// Goes on with Tab, until what has the focus is of a selector and has the text, or the label.
    pub(super) fn tab_to(&self, selector: &str, text: &str) {
        let is_there = format!(
            "const it = document.activeElement;\n\
             return it.matches({selector:?}) && (it.innerText + it.ariaLabel).includes({text:?})"
        );
        for _ in 0..MOST_TABS {
            if self.run(&is_there) == json!(true) {
                return;
            }
            self.keys(TAB);
        }
        panic!("Tab does not reach {selector} {text:?} in:\n{}", self.text());
    }

    /// Goes on with Tab to what is of a selector and has the text, or the label, and presses it.
    pub(super) fn press(&self, selector: &str, text: &str) {
        self.tab_to(selector, text);
        self.keys(ENTER);
    }

    /// Waits until what has the focus is of a selector.
    pub(super) fn focus_is(&self, selector: &str) {
        self.comes(&format!("document.activeElement.matches({selector:?})"));
    }

    /// Clicks the last element of a selector that has the text.
    pub(super) fn click(&self, selector: &str, text: &str) {
        let script = format!(
            "const all = [...document.querySelectorAll({selector:?})];\n\
             return all.findLast((it) => it.offsetParent && it.innerText.includes({text:?}))"
        );
        self.comes(&format!("(() => {{ {script} }})()"));
        self.runtime.block_on(async {
            let found = self.driver.execute(&script, Vec::new()).await.unwrap();
            found.element().unwrap().click().await.unwrap();
        });
    }

    /// Writes a picture of the page, for people.
    pub(super) fn picture(&self, name: &str) {
        if let Some(folder) = std::env::var_os("EISEN_TEST_PICTURES") {
            let file = std::path::Path::new(&folder).join(name);
            self.runtime.block_on(self.driver.screenshot(&file)).unwrap();
        }
    }

    /// Calls a command of Chromium's `DevTools` that takes nothing.
    pub(super) fn devtools(&self, command: &str) -> Value {
        self.tell(command, &json!({}))
    }

    /// Calls a command of Chromium's `DevTools`.
    pub(super) fn tell(&self, command: &str, params: &Value) -> Value {
        let body = json!({ "cmd": command, "params": params }).to_string();
        let call = reqwest::Client::new().post(format!("{}/goog/cdp/execute", self.session));
        let call = call.body(body);
        let answer = async { call.send().await?.error_for_status()?.json::<Value>().await };
        self.runtime.block_on(answer).unwrap()["value"].take()
    }

    /// What the browser's console has of errors and warnings.
    pub(super) fn complaints(&self) -> Vec<String> {
        let log = reqwest::Client::new().post(format!("{}/se/log", self.session));
        let log = log.body(json!({ "type": "browser" }).to_string());
        let answer: Value =
            self.runtime.block_on(async { log.send().await?.json().await }).unwrap();
        let entries = answer["value"].as_array().unwrap().iter();
        let is_bad =
            |entry: &&Value| ["SEVERE", "WARNING"].contains(&entry["level"].as_str().unwrap());
        entries.filter(is_bad).map(|entry| entry["message"].to_string()).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.driver.clone().quit());
    }
}
