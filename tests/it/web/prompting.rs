//! The prompt box of the page: mode and model, and the prompts that wait.

use serde_json::{Value, json};

use super::browser::{DOWN, Driver, ENTER, ESCAPE};
use super::client::Site;
use super::{WEB, holders};
use crate::harness::{Puppet, Stage, agent, eventually};

const DESK: (u32, u32) = (1280, 860);

#[test]
fn mode_and_model_are_chosen_below_the_prompt() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let mut api = stage.puppet("api");
    let team = stage.team(WEB, vec![agent("ui").offers(), agent("api").puppet()]);
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    // What was announced before the page is opened is there, too.
    let commands = json!([{"name": "compact", "description": "Makes room"}, {"name": "context"}, {"name": "init"}]);
    let announce = |api: &mut Puppet, commands: &Value| {
        let update =
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
        let params = json!({"sessionId": "s-api", "update": update});
        api.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    };
    announce(&mut api, &commands);
    eventually("the commands are known", || {
        let offered = port.call("list_session_options", &json!({"agent_id": "api"})).unwrap();
        offered["commands"] == commands
    });
    let (site, path) = Site::of(&stage, &[]);
    let browser = driver.open(&stage, "desk", DESK);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser.click("#team a, #team button", "ui");
    browser.comes("document.querySelectorAll('.options select').length === 2");
    browser.keys("p");
    for (menu, chosen) in [("Mode", "plan"), ("Model", "small")] {
        browser.tab_to(&format!(".options select[aria-label={menu}]"), "");
        browser.keys(DOWN);
        browser.shows(&format!("ui: {menu} is {chosen}"));
        browser.focus_is(".options select");
    }
    browser.picture("options.png");
    assert_eq!(port.prompt("ui", "what is chosen"), "plan small");
    // What others choose is seen here.
    let params = json!({"agent_id": "ui", "option": "model", "value": "large"});
    port.call("set_session_option", &params).unwrap();
    browser.comes("document.querySelectorAll('.options select')[1].value === 'large'");
    // An agent that offers nothing has no menus.
    browser.run("location.hash = 'team/api'");
    browser.comes("document.querySelector('.agent-panel h2').innerText.includes('api')");
    browser.comes("document.querySelector('.options').hidden");
    browser.tab_to("textarea", "");
    browser.keys("/co");
    browser.comes("[...document.querySelectorAll('.offers li')].map((it) => it.innerText.trim()).join('|').includes('/compact')");
    browser.picture("commands.png");
    assert_eq!(browser.run("return document.querySelectorAll('.offers li').length"), json!(2));
    // Commands that come while one is typed are offered, too.
    browser.keys(DOWN);
    let more = json!([{"name": "compact"}, {"name": "compose"}, {"name": "context"}]);
    announce(&mut api, &more);
    browser.comes("document.querySelectorAll('.offers li').length === 3");
    let chosen = "return document.querySelector('.offers [aria-selected=true]').innerText.trim()";
    assert_eq!(browser.run(chosen), "/context", "what was chosen still is");
    // Whoever closes the offers is not offered the same again.
    browser.keys(ESCAPE);
    announce(&mut api, &commands);
    api.say("s-api", "All commands are known.");
    browser.shows("All commands are known.");
    browser.comes("document.querySelector('.offers').hidden");
    announce(&mut api, &more);
    browser.keys(&format!("m{ENTER}"));
    browser
        .comes("document.querySelector('textarea[aria-label=\"Prompt\"]').value === '/compact '");
    // Files are offered once they are known, without a further letter.
    browser.keys("@");
    browser.comes("[...document.querySelectorAll('.offers li')].some((it) => it.innerText.trim() === '@src/ui/app.ts')");
    let second = browser.run("return document.querySelectorAll('.offers li')[1].innerText.trim()");
    browser.keys(&format!("{DOWN}{ENTER}"));
    let typed = browser.run("return document.activeElement.value");
    assert_eq!(typed, format!("/compact {} ", second.as_str().unwrap()));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_prompt_that_waits_is_changed_and_taken_back_in_its_list() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = stage.team(WEB, vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let (site, path) = Site::of(&stage, &[]);
    let browser = driver.open(&stage, "desk", DESK);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser.click("#team a, #team button", "ui");
    browser.shows("Cancel turn");
    let running = port.begin_waiting("ui");
    for text in ["first words", "second words"] {
        browser.keys("p");
        browser.keys(text);
        browser.click("button", "Send");
    }
    browser.comes("document.querySelectorAll('.queue li').length === 2");
    browser.picture("queue.png");
    // It is said once its turn begins.
    let said = "document.querySelector('.transcript').innerText";
    browser.comes(&format!("!{said}.includes('first words') && !{said}.includes('second words')"));
    browser
        .run("document.querySelector('.queue button[aria-label=\"Change this prompt\"]').click()");
    browser.comes("document.activeElement.value === 'first words'");
    browser.keys(" and more");
    browser.picture("queue-edit.png");
    browser.click("button", "Save");
    browser
        .comes("document.querySelector('.queue li .text')?.innerText === 'first words and more'");
    browser.run(
        "[...document.querySelectorAll('.queue button[aria-label=\"Take this prompt back\"]')].at(-1).click()",
    );
    browser.comes("document.querySelectorAll('.queue li').length === 1");
    // Whoever sent it has it back.
    browser.comes(
        "document.querySelector('textarea[aria-label=\"Prompt\"]').value === 'second words'",
    );

    // Who may only read sees what waits, and has nothing to press.
    let (token, _) = holders::make(&stage, &["--may", "read"]);
    let (site, path) = holders::link(&stage, &team.run_file, &token);
    let reader = driver.open(&stage, "reader", DESK);
    reader.goto(&format!("http://{}{path}", site.host));
    reader.shows("live");
    reader.click("#team a, #team button", "ui");
    reader.shows("first words and more");
    assert_eq!(reader.run("return document.querySelectorAll('.queue button').length"), json!(0));

    port.call("cancel", &json!({"agent_id": "ui", "queued": false})).unwrap();
    port.answer(running).unwrap();
    browser.comes("document.querySelector('.queue').hidden");
    browser.comes("[...document.querySelectorAll('.block-prompt')].at(-1)?.innerText.includes('first words and more')");
    browser.comes(&format!("!{said}.includes('second words')"));
    for browser in [&browser, &reader] {
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}
