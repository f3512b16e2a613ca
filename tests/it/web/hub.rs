//! The page of a hub in a real browser: the teams of two hosts on it, over a real server of NATS.

use super::WEB;
use super::browser::Driver;
use super::client::Site;
use crate::harness::{NatsServer, Stage, agent};

/// The key that all hosts have.
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

#[test]
fn a_person_steers_and_decides_for_two_hosts_on_one_page() {
    let Some(driver) = Driver::start() else { return };
    let Some(nats) = NatsServer::start() else { return };
    let hosts = [("a", "ui"), ("b", "api")].map(|(host, agent_id)| {
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
    browser.keys("3");
    browser.shows("Nothing waits");
    let [(_, _, mut port), _] = hosts;
    let turn = port.begin("ui", "read src/api/cart.rs");
    browser.shows("src/api/cart.rs");
    browser.picture("hub-inbox.png");
    // A card that has just come up is to be read first.
    browser.run("window.pressed = Date.now()");
    browser.comes("Date.now() - window.pressed > 600");
    browser.keys("a");
    browser.shows("llowed by you");
    assert_eq!(port.said(turn), "got api\n");
    browser.keys("2");
    browser.comes("document.querySelector('#map canvas')");
    browser.shows("app.ts");
    browser.picture("hub-map.png");
    browser.keys("4");
    browser.shows("agent");
    browser.picture("hub-time.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
