//! Another program that had the page's address before the team, and what it left in the browser.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;

use super::browser::Driver;
use super::client::Site;
use crate::harness::{Stage, agent};

/// Its page: it leaves something in the storage, and a service worker.
const PAGE: &str = "<!doctype html><script>localStorage.setItem('left', '1');\
                    navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)\
                    .then(() => { document.title = 'left'; });</script><script src=\"/enter.js\"></script>\
                    <script src=\"/app.js\"></script>";

/// What the browser keeps for the page's own scripts.
const SCRIPT: &str =
    "self.taken = document.querySelector('meta[name=eisen-token]')?.content ?? 'nothing';";

const IDLE: &str = "self.addEventListener('install', () => self.skipWaiting());\
                    self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));";

/// It sees each request and its answer.
const PASSING: &str =
    "self.addEventListener('fetch', (event) => event.respondWith(fetch(event.request)));";

/// A server with these contents, which browsers may keep for a year.
struct Squatter {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Squatter {
    fn start(worker: String) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, ends) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&ends);
        let serving = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (stream, worker) = (stream.unwrap(), worker.clone());
                // A browser opens connections on which it asks for nothing.
                std::thread::spawn(move || answer(&stream, &worker));
            }
        });
        Self { address, ends, serving: Some(serving) }
    }

    /// Gives the port back.
    fn stop(mut self) -> SocketAddr {
        self.ends.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        self.serving.take().unwrap().join().unwrap();
        self.address
    }
}

fn answer(mut stream: &TcpStream, worker: &str) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let _ = lines.find(String::is_empty);
    let (kind, body) = match first.split(' ').nth(1) {
        Some("/") => ("text/html", PAGE),
        Some("/worker.js") => ("text/javascript", worker),
        _ => ("text/javascript", SCRIPT),
    };
    let length = body.len();
    let _ = stream.write_all(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: max-age=31536000, immutable\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .as_bytes(),
    );
}

#[test]
fn what_another_program_left_at_the_address_gets_no_token() {
    let Some(driver) = Driver::shared() else { return };
    // A browser keeps scripts for the tab that it had them in, and some of them for the next page there.
    let trials = [
        ("idle", "", false, None),
        ("between", "", false, Some("about:blank")),
        ("passing", PASSING, true, Some("about:blank")),
    ];
    for (name, worker, is_passing, between) in trials {
        let stage = Stage::new();
        let squatter = Squatter::start(format!("{IDLE}{worker}"));
        let origin = format!("http://{}", squatter.address);
        let browser = driver.open(&stage, name, (1280, 860));
        browser.goto(&origin);
        browser.comes("document.title === 'left' && navigator.serviceWorker.controller");
        if let Some(between) = between {
            browser.goto(between);
        }
        let address = squatter.stop();
        let keys = format!("[web]\nlisten = \"{address}\"");
        let _team = stage.team(&keys, vec![agent("ui").zone("src/ui/**")]);
        let (site, path) = Site::of(&stage, &[]);
        browser.goto(&format!("{origin}{path}"));
        if is_passing {
            browser.shows("a script asked for this link");
            assert_eq!(site.get(&path, &[]).status, 401, "the link is used up");
        } else {
            browser.shows("live");
            let left =
                "return [localStorage.getItem('left'), !!navigator.serviceWorker.controller]";
            assert_eq!(browser.run(left), json!([null, false]));
        }
        assert_eq!(browser.run("return self.taken ?? null"), json!(null), "{name}");
    }
}
