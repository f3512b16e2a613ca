//! The page in the states that a team gets into: the demo, a recorded day, hostile contents, fifty agents.

use serde_json::{Value, json};

use super::WEB;
use super::browser::Driver;
use super::client::Site;
use super::eyes::{DESK, VIEWS, look, open};
use crate::harness::{AgentTable, Puppet, Stage, Team, agent, eventually};

/// A day of three real agents, see tests/recordings/README.md.
const DAY: &str = include_str!("../../recordings/team/day.ndjson");
/// Where the workspace of that day was.
const DAY_AT: &str = "/home/ann/shop";
/// Agents of a large team, and those of them that run.
const MANY: usize = 50;
const RUNNING: usize = 4;

/// An agent that does not start by itself.
fn at_rest(id: &str, zone: &str) -> AgentTable {
    agent(id).with("autostart = false").zone(zone)
}

/// A team that has had a day, and rests.
pub(super) fn recorded_day(stage: &Stage) -> Team {
    let here = stage.path("shop").display().to_string();
    stage.file("day.ndjson", &DAY.replace(DAY_AT, &here));
    let imported = stage.run(&["journal", "import", "day.ndjson", "--team", "shop"]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    stage.team(
        WEB,
        vec![at_rest("ui", "src/ui/**"), at_rest("api", "src/api/**"), at_rest("docs", "docs/**")],
    )
}

#[test]
fn a_recorded_day_is_shown_and_nothing_of_it_is_lost() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let _team = recorded_day(&stage);
    let browser = open(&stage, &driver);
    // The team: a turn for each prompt, the last words, what was refused in them.
    browser.comes("document.querySelectorAll('.stream .turn').length === 6");
    for text in
        ["Show the cart's total in the header.", "Money is shown in the shopper's language now"]
    {
        browser.shows(text);
    }
    // A transcript: prompts, messages as Markdown, calls with what they changed, refusals in their places.
    browser.run("location.hash = 'team/ui'");
    browser.comes("document.querySelectorAll('.blocks .block-prompt').length === 2");
    browser.comes("document.querySelector('.blocks .md pre')?.innerText.includes('money(total)')");
    browser.comes("document.querySelector('.blocks .block-blocked.bad')?.innerText.includes('src/api/cart.rs')");
    browser
        .comes("document.querySelectorAll('.blocks .block-call, .blocks .block-fold').length > 2");
    browser.shows("The journal begins here.");
    // A table of one agent's, a question that a person answered by a decision of another's.
    browser.run("location.hash = 'team/api'");
    browser.comes("document.querySelector('.blocks .md table')?.innerText.includes('5 + 5 cents')");
    browser.comes("[...document.querySelectorAll('.blocks .block-blocked')].some((it) => it.innerText.includes('src/ui/money.ts'))");
    // What a turn changed.
    browser.run("location.hash = 'review/changes/ui'");
    browser.shows("header.tsx");
    browser.run("location.hash = 'history'");
    browser.comes("document.querySelectorAll('#history .turn-row').length === 6");
    // On a phone no figure of a turn stands on another.
    browser.resize(390, 844);
    browser.comes("[...document.querySelectorAll('#history .turn-row .when')].every((it) => it.scrollWidth <= it.clientWidth)");
    browser.run("location.hash = 'history/replay'");
    browser.comes("document.querySelector('#history input[type=range]')?.checkVisibility()");
    let views = [&VIEWS[..], &["team/api", "team/docs", "history/replay"]].concat();
    look(&browser, &views, "a recorded day");
}

#[test]
fn the_demo_looks_right() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/config/demo.toml");
    let _demo = stage.start(&["up", "-c", demo, "--port", "0", "--web=127.0.0.1:0"]);
    let (site, path) = Site::of(&stage, &["--team", "demo"]);
    let browser = driver.open(&stage, "demo", DESK);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser.comes("[...document.querySelectorAll('.stream .turn')].filter((it) => !it.classList.contains('is-running')).length >= 3");
    browser.comes("[...document.querySelectorAll('.stream .refused')].some((it) => it.innerText.includes('denied'))");
    look(
        &browser,
        &["team", "team/ui", "team/api", "review/changes/ui", "map", "history"],
        "the demo",
    );
}

/// Tells the page something of a session.
fn update(puppet: &mut Puppet, session: &str, update: &Value) {
    let params = json!({ "sessionId": session, "update": update });
    puppet.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
}

#[test]
fn hostile_contents_stay_text_and_in_their_place() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team =
        stage.team(WEB, vec![agent("ui").puppet().zone("src/ui/**"), at_rest("api", "src/api/**")]);
    ui.connect("s-<b>ui</b>");
    let mut port = team.steer_when_ready(&["ui"]);
    let taken =
        "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>";
    let wide = "w".repeat(3_000);
    let turn = port.begin("ui", &format!("{taken} {wide} \u{202e}gpj.exe \u{1b}[31mred"));
    let (prompt, _) = ui.prompted();
    for text in [
        format!("# {taken}\n\n{taken}\n\n{wide}\n\n`{wide}`\n\n```html\n{taken}\n{wide}\n```\n"),
        format!("| {wide} | b |\n| - | - |\n{}", format!("| {taken} | `{wide}` |\n").repeat(30)),
        format!(
            "[link](javascript:alert(1)) [a](data:text/html,x) ![x](http://127.0.0.1:1/x.png) {}",
            "> ".repeat(400)
        ),
        format!(
            "{}\u{202e}\u{2066}{}\u{0301}\u{200b}\n",
            "- ".repeat(300),
            "a\u{0301}\u{0489}".repeat(500)
        ),
    ] {
        ui.say("s-<b>ui</b>", &text);
    }
    for (number, kind) in ["edit", "execute", "__proto__", "read"].into_iter().enumerate() {
        let diff = json!({ "type": "diff", "path": format!("/{taken}/{wide}"), "oldText": wide, "newText": taken });
        let said = json!({ "type": "content", "content": { "type": "text", "text": format!("\u{1b}]0;taken\u{7}\u{1b}[2J{taken}{wide}") } });
        update(
            &mut ui,
            "s-<b>ui</b>",
            &json!({
                "sessionUpdate": "tool_call", "toolCallId": format!("__proto__{number}"), "title": format!("{taken}{wide}"),
                "kind": kind, "status": if number == 3 { "failed" } else { "completed" }, "content": [diff, said],
                "locations": [{ "path": format!("/{wide}/../../{taken}") }],
            }),
        );
    }
    let entries = json!([{ "content": format!("{taken}{wide}"), "priority": "high", "status": "in_progress" }]);
    update(&mut ui, "s-<b>ui</b>", &json!({ "sessionUpdate": "plan", "entries": entries }));
    let name = format!("src/api/{}\u{202e}<b>\"'&.rs", "n".repeat(150));
    ui.ask("fs/write_text_file", &json!({ "sessionId": "s-<b>ui</b>", "path": stage.in_shop(&name), "content": format!("{taken}\n{wide}") }));

    let browser = open(&stage, &driver);
    browser.shows("wants to");
    browser.run("location.hash = 'team/ui'");
    browser.comes("document.querySelector('.blocks .md')?.innerText.includes('<img src=x')");
    look(
        &browser,
        &["team", "team/ui", "team/log", "review/changes/ui", "map", "history", "inbox"],
        "hostile",
    );
    let made = "return document.querySelectorAll('main img, main script, main b[onclick], a[href^=\"javascript\"], a[href^=\"data\"]').length";
    assert_eq!(browser.run(made), 0);
    assert!(browser.run("return document.title").as_str().unwrap().contains("shop"));
    assert!(
        !browser.text().contains(['\u{202e}', '\u{2066}', '\u{1b}', '\u{7}']),
        "{}",
        browser.text()
    );
    ui.end_turn(&prompt);
    port.said(turn);
}

#[test]
fn a_team_of_fifty_agents_looks_right() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let name = |number: usize| format!("agent-{number}");
    let zone = |number: usize| format!("part{}/**", number % 7);
    let agents = (0..MANY).map(|number| match number {
        0..RUNNING => agent(&name(number)).zone(&zone(number)),
        _ => at_rest(&name(number), &zone(number)),
    });
    let team = stage.team(WEB, agents.collect());
    let running: Vec<_> = (0..RUNNING).map(name).collect();
    let mut port = team.steer_when_ready(&running.iter().map(String::as_str).collect::<Vec<_>>());
    for agent in &running {
        port.prompt(agent, &format!("The part of {agent} is done, and its tests pass."));
        port.begin(agent, "read src/ui/app.ts");
    }
    let browser = open(&stage, &driver);
    browser.comes(&format!("document.querySelectorAll('.agents > li').length === {MANY}"));
    browser.comes(&format!("document.title.startsWith('({RUNNING})')"));
    // Those that wait for a person are in sight, before all others.
    let first = format!(
        "[...document.querySelectorAll('.agents > li')].slice(0, {RUNNING}).every((it) => it.innerText.includes('waits'))"
    );
    eventually(&first, || browser.run(&format!("return {first}")) == json!(true));
    let last = "document.querySelectorAll('.agents > li')[RUNNING - 1].getBoundingClientRect().bottom <= innerHeight";
    assert_eq!(
        browser.run(&format!("return {}", last.replace("RUNNING", &RUNNING.to_string()))),
        json!(true)
    );
    look(
        &browser,
        &["team", "team/agent-1", "map", "review", "history", "history/cost", "inbox"],
        "fifty agents",
    );
}
