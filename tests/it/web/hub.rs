//! The page of a hub in a real browser: the teams of two hosts on it, over a real server of NATS.

use super::WEB;
use super::browser::Driver;
use super::client::Site;
use super::holders::link;
use crate::harness::{Nats, Stage, agent, eventually};

/// The key that all hosts have.
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

#[test]
fn a_person_steers_and_decides_for_two_hosts_on_one_page() {
    let Some(driver) = Driver::shared() else { return };
    let Some(nats) = Nats::shared() else { return };
    let mut hosts = [("a", "ui"), ("b", "api")].map(|(host, agent_id)| {
        let stage = Stage::new();
        stage.file("home/hub.key", KEY);
        let keys = format!("{WEB}\n[hub]\nnats = {:?}\nhost = {host:?}\n", nats.url());
        let team = stage.team(&keys, vec![agent(agent_id).zone("src/ui/**")]);
        let port = team.steer_when_ready(&[agent_id]);
        (stage, team, port)
    });
    let stage = Stage::new();
    stage.file("home/hub.key", KEY);
    let _hub = stage.start(&["hub", "--nats", &nats.url(), "--port", "0", "--web=127.0.0.1:0"]);
    let (site, path) = Site::of(&stage, &["--team", "hub"]);
    let browser = driver.open(&stage, "desk", (1280, 860));
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser.shows("a/ui");
    browser.click("#team a, #team button", "b/api");
    browser.shows("Cancel turn");
    browser.keys("p");
    browser.keys("write src/ui/app.ts better");
    browser.click("button", "Send");
    browser.shows("written");
    browser.picture("hub-team.png");
    assert_eq!(hosts[1].0.read("shop/src/ui/app.ts"), "better");
    browser.click("a", "Changes");
    browser.shows("@@ -1 +1 @@");
    // What waits on the other host is decided here.
    browser.keys("i");
    browser.shows("Nothing waits");
    let turn = hosts[0].2.begin("ui", "read src/api/cart.rs");
    browser.shows("src/api/cart.rs");
    browser.shows("What it would read");
    browser.picture("hub-inbox.png");
    // A card that has just come up is to be read first.
    browser.has_read();
    browser.keys("a");
    browser.shows("llowed by you");
    assert_eq!(hosts[0].2.said(turn), "got api\n");
    browser.keys("3");
    browser.comes("document.querySelector('#map canvas')");
    browser.shows("app.ts");
    browser.picture("hub-map.png");
    browser.keys("4");
    browser.shows("agent");
    browser.picture("hub-time.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // The holder of a token of the hub sees its agents only, and prompts them on their host.
    let args = ["token", "create", "--team", "hub", "--owner", "ada", "--may", "read,prompt"];
    let made = stage.run(&[&args[..], &["--agents", "b/api"]].concat());
    let run_file = stage.run_file("hub").unwrap();
    let (site, path) = link(&stage, &run_file, made.stdout.trim());
    let browser = driver.open(&stage, "holder", (1280, 860));
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("ada: read, prompt");
    browser.click("#team a, #team button", "b/api");
    browser.shows("Cancel turn");
    browser.keys("p");
    browser.keys("write src/ui/app.ts best");
    browser.click("button", "Send");
    // What the agent says, it has said before.
    eventually("the agent has written", || hosts[1].0.read("shop/src/ui/app.ts") == "best");
    assert!(!browser.text().contains("a/ui"), "{}", browser.text());
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
