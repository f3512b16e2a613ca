//! The page in a real browser: what a person does with it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::WEB;
use super::browser::{Chromium, Driver, ENTER};
use super::client::Site;
use super::keys::yes;
use crate::harness::{AgentTable, Stage, Team, agent, eventually};

pub(super) const DESK: (u32, u32) = (1280, 860);
pub(super) const PHONE: (u32, u32) = (400, 800);

/// A team, and a browser that has opened its link.
pub(super) fn open(stage: &Stage, driver: &Driver, name: &str, window: (u32, u32)) -> Chromium {
    let (site, path) = Site::of(stage, &[]);
    let browser = driver.open(stage, name, window);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser
}

/// The page on a desk and on a phone, each with the inbox in sight, in which nothing waits.
pub(super) fn with_inbox(stage: &Stage, driver: &Driver) -> [Chromium; 2] {
    [("desk", DESK), ("phone", PHONE)].map(|(name, window)| {
        let browser = open(stage, driver, name, window);
        browser.keys("i");
        browser.shows("Nothing waits");
        browser
    })
}

pub(super) fn team(stage: &Stage) -> Team {
    stage.team(WEB, agents())
}

pub(super) fn agents() -> Vec<AgentTable> {
    vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")]
}

#[test]
fn a_person_prompts_an_agent_finds_what_it_changed_and_takes_it_back() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.prompt("ui", "write src/ui/zürich.ts city");
    let browser = open(&stage, &driver, "desk", DESK);
    browser.click("#team a, #team button", "ui");
    browser.shows("Cancel turn");
    browser.keys("p");
    browser.keys("write src/ui/app.ts better");
    browser.click("button", "Send");
    browser.comes("document.querySelectorAll('.blocks .block-prompt').length === 2 && document.querySelectorAll('.blocks .block-turn').length === 2");
    browser.picture("team.png");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "better");
    browser.click("a", "Changes");
    browser.shows("@@ -1 +1 @@");
    browser.picture("changes.png");
    let names =
        "[...document.querySelectorAll('#review .file-diff .path')].map((it) => it.innerText)";
    browser.comes(&format!("{names}.join() === 'src/ui/app.ts,src/ui/zürich.ts'"));
    browser.click("button", "Undo …");
    browser.click("button.danger", "Undo 2 files");
    eventually("the file is as it was", || stage.read("shop/src/ui/app.ts") == "ui\n");
    browser.keys("3");
    browser.comes("document.querySelector('#map canvas')");
    browser.shows("app.ts");
    browser.picture("map.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_first_decision_wins_and_the_others_see_who_took_it() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let [desk, phone] = with_inbox(&stage, &driver);
    desk.stop_clock();
    let turn = port.begin("ui", "read src/api/cart.rs");
    for browser in [&desk, &phone] {
        browser.shows("src/api/cart.rs");
        browser.comes("document.title.startsWith('(1)')");
    }
    desk.picture("inbox.png");
    phone.picture("inbox-phone.png");
    assert_eq!(phone.run("return document.documentElement.scrollWidth <= innerWidth"), json!(true));
    // A key that was meant for something else decides nothing: the card has just come up.
    desk.keys("a");
    desk.shows("read it first");
    desk.has_read();
    desk.keys("a");
    desk.shows("llowed by you");
    assert_eq!(port.said(turn), "got api\n");
    phone.shows("Allowed by");
    // What the agent was told stands with the decision.
    let turn = port.begin("ui", "read src/api/cart.rs");
    desk.comes("document.querySelector('article.is-waits')?.card.preview");
    desk.run("document.querySelector('article.is-waits').focus()");
    desk.comes("document.querySelector('article.is-waits').card.shownAt");
    desk.has_read();
    desk.keys("D");
    desk.keys("the totals move tomorrow");
    desk.click(".asking button", "Deny");
    assert!(port.said(turn).contains("the totals move tomorrow"));
    desk.shows("Denied by you");
    desk.keys("ii");
    desk.comes("document.querySelector('#inbox .latest li:first-child .what')?.innerText.endsWith(': the totals move tomorrow')");
    desk.picture("decided.png");
    for browser in [&desk, &phone] {
        browser.comes("!document.title.startsWith('(')");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_page_that_is_opened_in_a_turn_shows_it_once_and_to_its_end() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let turn = port.begin("ui", "read src/api/cart.rs");
    port.blocked("pending");
    let desk = open(&stage, &driver, "desk", DESK);
    desk.shows("read src/api/cart.rs");
    desk.comes("document.querySelector('article.card')?.card.preview");
    // What waited before the page was opened waits on its map.
    desk.run("location.hash = 'map/src%2Fapi%2Fcart.rs'");
    desk.comes("document.querySelector('#map .touches')?.innerText.includes('waits')");
    desk.comes("document.querySelector('#map .hot .sign.waits')");
    assert!(!desk.text().contains("was refused"), "{}", desk.text());
    desk.run("location.hash = 'team'");
    desk.keys("i");
    desk.has_read();
    desk.keys("a");
    assert_eq!(port.said(turn), "got api\n");
    desk.shows("got api");
    let turns = "[...document.querySelectorAll('.stream .turn')].filter((it) => it.innerText.includes('ui'))";
    desk.comes(&format!("{turns}.length === 1 && !{turns}[0].classList.contains('is-running')"));
    desk.comes(&format!("{turns}[0].innerText.includes('read src/api/cart.rs')"));
    assert!(!desk.text().contains("No task yet\nui"), "{}", desk.text());
    assert_eq!(desk.complaints(), Vec::<String>::new());
}

#[test]
fn a_pattern_is_allowed_and_taken_back_and_a_budget_raised_by_the_keyboard() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let ui = agent("ui").with("[agents.budget]\nturns = 2").zone("src/ui/**");
    let team = stage.team(WEB, vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let desk = open(&stage, &driver, "desk", DESK);
    desk.keys("i");
    let waits = |text: &str| {
        desk.shows(text);
        // From one that was decided to it.
        desk.keys("j");
        desk.comes("document.querySelector('article.is-waits')?.card.shownAt");
        desk.comes("document.querySelector('article.is-waits').card.previewState !== 'asked'");
        desk.later(600);
    };
    let turn = port.begin("ui", "write test/a.ts one");
    waits("ui wants to write test/a.ts");
    desk.keys("m");
    desk.comes("document.activeElement.value === 'test/**'");
    desk.keys(ENTER);
    desk.shows("llowed for the session by you");
    assert_eq!(port.said(turn), "written");
    assert_eq!(port.prompt("ui", "write test/b.ts two"), "written");
    waits("ui is over its budget");
    desk.keys("r");
    desk.tab_to("#inbox input", "new total of turns");
    desk.keys(&format!("9{ENTER}"));
    desk.shows("aised by you");
    // For the team it is allowed until somebody takes it back.
    let turn = port.begin("ui", "write lib/a.ts one");
    waits("ui wants to write lib/a.ts");
    desk.keys("m");
    desk.comes("document.activeElement.value === 'lib/**'");
    desk.press("#inbox .asking button", "For the team");
    assert_eq!(port.said(turn), "written");
    assert_eq!(port.prompt("ui", "write lib/b.ts two"), "written");
    desk.keys("ii");
    desk.shows("Allowed for the team");
    desk.press("#inbox button", "Take back");
    yes(&desk, "ui may write lib/**, until now. Take that back?");
    desk.shows("lib/**: taken back");
    desk.comes("!document.querySelector('#inbox').innerText.includes('Allowed for the team')");
    port.begin("ui", "write lib/c.ts three");
    desk.shows("ui wants to write lib/c.ts");
    assert_eq!(desk.complaints(), Vec::<String>::new());
}

#[test]
fn what_agents_say_is_text_and_nothing_else() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let browser = open(&stage, &driver, "desk", DESK);
    browser.click("#team a, #team button", "ui");
    browser.shows("Cancel turn");
    let hostile = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>\
                   <a href=javascript:alert(1)>x</a> \u{202e}gpj.exe \u{1b}[31mred \
                   c\u{ad}\u{34f}\u{115f}\u{180e}\u{200d}\u{206a}\u{3164}\u{fe0f}\u{e0041}d";
    port.prompt("ui", hostile);
    browser.shows("<img src=x onerror=");
    assert_eq!(browser.run("return document.querySelectorAll('main img, main script').length"), 0);
    assert_eq!(
        browser.run("return document.querySelectorAll('a[href^=\"javascript\"]').length"),
        0
    );
    let text = browser.text();
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text:?}");
    assert!(text.contains(&format!("c{}d", "\u{fffd}".repeat(9))), "{text:?}");
    assert_ne!(browser.run("return document.title"), "taken");
    // The same on a card.
    browser.keys("i");
    port.begin("ui", "read src/api/c\u{2062}\u{ffa0}art.rs");
    browser.shows("src/api/c\u{fffd}\u{fffd}art.rs");
    // Other sites can't frame or read it, and it asks nobody else for anything.
    let from_elsewhere = "return performance.getEntriesByType('resource').map((it) => new URL(it.name).origin)\
                          .filter((it) => it !== location.origin).length";
    assert_eq!(browser.run(from_elsewhere), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_page_that_lost_its_team_finds_it_again_and_says_so() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    team.steer_when_ready(&["ui", "api"]);
    let (site, path) = Site::of(&stage, &[]);
    let browser = driver.open(&stage, "desk", DESK);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    assert_eq!(stage.run(&["web", "revoke"]).code, 0);
    browser.shows("eisen-core web");
    let (site, path) = Site::of(&stage, &[]);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser.click("#team a, #team button", "ui");
    browser.shows("Cancel turn");
    team.stop();
    browser.shows("reconnecting");
    browser.keys("p");
    browser.keys("write src/ui/app.ts better");
    browser.click("button", "Send");
    browser.shows("not sent");
    let typed = "return document.querySelector('textarea[aria-label=\"Prompt\"]').value";
    assert_eq!(browser.run(typed), "write src/ui/app.ts better");
}

#[test]
fn a_scope_leaves_out_what_it_does_not_open() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.begin("ui", "read src/api/cart.rs");
    for (scope, decides) in [("read", false), ("decide", true)] {
        let (site, path) = Site::of(&stage, &["--scope", scope]);
        let browser = driver.open(&stage, scope, DESK);
        browser.goto(&format!("http://{}{path}", site.host));
        browser.shows("live");
        browser.click("#team a, #team button", "ui");
        browser.shows("Changes");
        assert!(!browser.text().contains("Cancel turn"), "{scope}");
        browser.keys("i");
        browser.shows("src/api/cart.rs");
        let has_button = browser.run(
            "return [...document.querySelectorAll('#inbox button')].some((it) => it.innerText.includes('Deny'))",
        );
        assert_eq!(has_button, json!(decides), "{scope}");
    }
}

#[test]
fn a_link_reaches_the_browser_and_is_no_argument_of_it() {
    let stage = Stage::new();
    let _team = team(&stage);
    // A browser that notes what it is started with.
    let noting = "#!/bin/sh\necho \"$@\" > opened.part && mv opened.part opened\n";
    stage.file("bin/xdg-open", noting);
    let executable = Permissions::from_mode(0o755);
    std::fs::set_permissions(stage.path("bin/xdg-open"), executable).unwrap();
    let path = format!("{}:{}", stage.path("bin").display(), std::env::var("PATH").unwrap());
    let ended = stage.eisen_core(&["web", "--open"]).env("PATH", path).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    eventually("a browser was started", || stage.has("opened"));
    let opened = stage.read("opened").trim().to_owned();
    assert!(!opened.contains("link="), "{opened}");
    let file = std::fs::metadata(&opened).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600, "others read the file");

    let Some(driver) = Driver::shared() else { return };
    let browser = driver.open(&stage, "opened", DESK);
    browser.goto(&format!("file://{opened}"));
    browser.shows("live");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_was_said_before_is_read_page_by_page_and_the_reader_stays() {
    const TURNS: usize = 150;
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    for turn in 0..TURNS {
        port.prompt("ui", &format!("question {turn} ends"));
    }
    let browser = open(&stage, &driver, "desk", DESK);
    browser.click("#team a, #team button", "ui");
    // The card of the agent has the words of the last turn at once, its transcript once it was read.
    let last = format!("question {} ends", TURNS - 1);
    browser.comes(&format!("document.querySelector('.blocks').innerText.includes('{last}')"));
    assert!(!browser.text().contains("question 0 ends"));
    let top = "document.querySelector('.transcript .scroll').scrollTop = 0;\n\
               window.first = document.querySelector('.blocks > li');\n\
               window.place = first.getBoundingClientRect().top;";
    let mut looks = 0;
    while !browser.text().contains("The journal begins here.") {
        browser.run(top);
        browser.click(".transcript button.more", "came before");
        browser.comes("document.querySelector('.blocks > li') !== first");
        browser.comes("Math.abs(first.getBoundingClientRect().top - place) < 3");
        looks += 1;
        assert!(looks < 20, "it never ends");
    }
    assert!(looks > 1, "all came at once");
    browser.shows("question 0 ends");
    let numbers = "return [...document.querySelectorAll('.block-prompt')]\
                   .map((it) => Number(it.innerText.match(/question (\\d+)/)[1]))";
    assert_eq!(browser.run(numbers), json!((0..TURNS).collect::<Vec<_>>()), "a hole, or an order");
    // What comes meanwhile is counted, and takes the reader nowhere.
    browser.run(top);
    port.prompt("ui", "one more");
    browser.shows("new");
    browser.comes("Math.abs(first.getBoundingClientRect().top - place) < 3");
    browser.click("button.fresh", "new");
    browser.comes(
        "(() => { const it = document.querySelector('.transcript .scroll');\
         return it.scrollHeight - it.scrollTop - it.clientHeight < 3 })()",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_cost_is_shown_by_task() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.prompt("api", "spend dollars");
    // All that was spent is some task's, or none's.
    let browser = open(&stage, &driver, "desk", DESK);
    browser.keys("4");
    browser.click("nav a", "Cost");
    let tasks = "[...document.querySelectorAll('#history .sums')].find((it) => it.caption.innerText === 'By task')?.tBodies[0].innerText ?? ''";
    browser.comes(&format!(
        "({tasks}).includes('no task: what was prompted') && ({tasks}).includes('$0.50')"
    ));
    browser.picture("cost.png");
    let task = json!({ "agent": "ui", "task": "Show the total in the header" });
    let id = port.call("delegate_task", &task).unwrap()["id"].clone();
    port.call("wait_for_tasks", &json!({ "ids": [id] })).unwrap();
    let origin = browser.run("return location.origin");
    browser.goto(&format!("{}/?again", origin.as_str().unwrap()));
    browser.shows("live");
    // What happened before the page was opened.
    browser.run("location.hash = 'team/log'");
    browser
        .comes("document.querySelector('.log').innerText.includes('first turn ended: end_turn')");
    // How things stood when it was opened is there once.
    let ready =
        "[...document.querySelectorAll('.log li')].filter((it) => it.innerText.endsWith('ready'))";
    assert_eq!(browser.run(&format!("return {ready}.length")), 2);
    browser.keys("4");
    browser.click("nav a", "Cost");
    browser.shows("By task");
    browser.shows("Show the total in the header");
    browser.shows("done, given by the orchestrator or a person");
    // Its turn leads to what it changed.
    browser.click("#history .sums a", "first turn");
    browser.comes("location.hash.startsWith('#review/changes/ui/')");
    browser.comes("document.querySelector('#review select[aria-label=Turn]').selectedOptions[0].innerText.startsWith('first turn')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_write_in_conflict_is_decided_on_what_is_shown() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let [mut ui, mut api] = ["ui", "api"].map(|name| stage.puppet(name));
    let keys = format!("[conflicts]\nstrategy = \"person\"\n{WEB}");
    let team = stage.team(&keys, vec![agent("ui").puppet(), agent("api").puppet()]);
    ui.connect("s-ui");
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    for (name, puppet) in [("ui", &mut ui), ("api", &mut api)] {
        port.begin(name, "go");
        puppet.prompted();
    }
    let path = stage.in_shop("src/ui/my app.ts");
    let write = |session: &str, content: &str| json!({ "sessionId": session, "path": path, "content": content });
    let written = ui.call("fs/write_text_file", &write("s-ui", "one\n"));
    assert_eq!(written["result"], json!({}));
    let held = api.ask("fs/write_text_file", &write("s-api", "two\n"));
    // What it says of a call is not what it wrote.
    let says =
        json!([{ "type": "diff", "path": path, "oldText": null, "newText": "one\nand\nmore\n" }]);
    for status in ["in_progress", "completed"] {
        let update = json!({
            "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "edit", "kind": "edit",
            "status": status, "content": says,
        });
        let params = json!({ "sessionId": "s-ui", "update": update });
        ui.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    let browser = open(&stage, &driver, "desk", DESK);
    let diff = "document.querySelector('#inbox .preview')?.innerText ?? ''";
    let press = || {
        browser.has_read();
        browser.keys("a");
    };
    let figures = "document.querySelector('.agents a[href$=\"/ui\"] .figures')?.innerText ?? ''";
    browser.comes(&format!("({figures}).includes('+1') && ({figures}).includes('1 file')"));
    browser.keys("i");
    browser.shows("api waits to write src/ui/my app.ts");
    browser
        .comes("document.querySelector('#inbox .preview .path')?.innerText === 'src/ui/my app.ts'");
    browser.comes(&format!("({diff}).includes('one') && ({diff}).includes('two')"));
    // What changed since is shown before it is decided.
    let written = ui.call("fs/write_text_file", &write("s-ui", "three\n"));
    assert_eq!(written["result"], json!({}));
    press();
    browser.comes(&format!("({diff}).includes('three')"));
    assert_eq!(stage.read("shop/src/ui/my app.ts"), "three\n");
    press();
    browser.shows("llowed by you");
    assert_eq!(api.answer(&held)["result"], json!({}));
    assert_eq!(stage.read("shop/src/ui/my app.ts"), "two\n");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
