//! The inbox in a real browser: several cards that are decided at once.

use serde_json::json;

use super::browser::Driver;
use super::page::{team, with_inbox};
use crate::harness::Stage;

#[test]
fn several_cards_of_several_agents_are_decided_at_once() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let [desk, phone] = with_inbox(&stage, &driver);
    port.call("new_session", &json!({"agent_id": "ui"})).unwrap();
    let one = port.begin("ui", "write test/a.ts one");
    let two = port.begin("api", "write test/b.ts two");
    let other = json!({"agent_id": "ui", "session_id": "ui-s2", "text": "write other.txt three"});
    let three = port.ask("prompt", &other);
    for browser in [&desk, &phone] {
        browser.comes("document.querySelectorAll('article.card').length === 3");
    }
    desk.keys("v");
    desk.keys("test/**");
    desk.shows("2 of 3");
    desk.picture("several.png");
    assert_eq!(desk.run("return document.querySelectorAll('.tick:checked').length"), json!(2));
    desk.comes("[...document.querySelectorAll('article.card')].every((it) => it.card.preview)");
    desk.has_read();
    desk.click(".several button", "Allow");
    assert_eq!([port.said(one), port.said(two)], ["written", "written"]);
    desk.shows("2 allowed by you");
    assert_eq!(stage.read("shop/test/b.ts"), "two");
    // The third waits still, and the others see who decided.
    phone.comes("document.querySelectorAll('article.is-waits').length === 1");
    phone.keys("v");
    phone.keys("other");
    phone.shows("1 of 1");
    assert_eq!(phone.run("return document.documentElement.scrollWidth <= innerWidth"), json!(true));
    phone.picture("several-phone.png");
    phone.has_read();
    phone.click(".several button", "Deny");
    assert!(port.said(three).starts_with("refused"));
    for browser in [&desk, &phone] {
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}
