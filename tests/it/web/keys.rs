//! The page by the keyboard alone: each action, and where the focus is after it.

use serde_json::json;

use super::browser::{Chromium, DOWN, Driver, ENTER, ESCAPE, LEFT, RIGHT, TAB};
use super::eyes::open;
use super::page::team;
use super::{WEB, page};
use crate::harness::{Port, Stage, eventually};

/// Answers the question of a dialog with its second button.
pub(super) fn yes(browser: &Chromium, question: &str) {
    browser.shows(question);
    browser.focus_is("dialog button");
    browser.keys(TAB);
    browser.keys(ENTER);
}

#[test]
fn an_agent_is_steered_by_the_keyboard_and_the_focus_stays() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let browser = open(&stage, &driver);
    what_is_beside_the_activity(&browser);
    // A prompt takes two keys and its text.
    browser.keys(ENTER);
    browser.shows("Cancel turn");
    browser.keys("p");
    browser.keys(&format!("write src/ui/app.ts new{ENTER}"));
    browser.shows("written");
    changes_are_taken_back(&browser, &stage);
    browser.keys("1");
    browser.keys("j");
    browser.comes("location.hash === '#team/ui'");
    prompts_that_wait(&browser);
    the_menu_of_an_agent(&browser);
    what_was_said_is_found_and_copied(&browser);
    browser.keys("G");
    // All keys are listed, and what had the focus has it again.
    browser.keys("?");
    browser.shows("next, previous folder");
    browser.keys(ESCAPE);
    browser.focus_is(".transcript .scroll");
    the_folders_of_the_map(&browser);
    the_tools_of_the_map(&browser);
    the_history(&browser);
    for (old, new) in [
        ("time", "#history"),
        ("time/changes/ui", "#review"),
        ("time/cost", "#history"),
        ("inbox", "#inbox"),
    ] {
        browser.run(&format!("location.hash = {old:?}"));
        browser.comes(&format!("!document.querySelector({new:?}).hidden"));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Notices of the head, and the log with its switch: each is turned on and off, and led back from.
fn what_is_beside_the_activity(browser: &Chromium) {
    // The browser refuses all that are not named.
    let permissions = ["notifications", "clipboardReadWrite", "clipboardSanitizedWrite"];
    browser.tell("Browser.grantPermissions", &json!({ "permissions": permissions }));
    browser.tab_to("#bell", "");
    for is_on in [true, false] {
        browser.keys(ENTER);
        browser.comes(&format!("document.querySelector('#bell').ariaPressed === '{is_on}'"));
    }
    browser.press("#team a", "Log");
    browser.comes("document.querySelector('.log').checkVisibility()");
    browser.tab_to("#team input[type=checkbox]", "");
    for is_on in [true, false] {
        browser.keys(" ");
        browser.comes(&format!("document.activeElement.checked === {is_on}"));
    }
    browser.press("#team a", "Activity");
    browser.comes("document.querySelector('.stream').checkVisibility()");
    browser.keys("1");
}

/// Changes of the last turn take one key to see, and one more and a look to take back, or to bring again.
fn changes_are_taken_back(browser: &Chromium, stage: &Stage) {
    browser.keys(ESCAPE);
    browser.keys("l");
    browser.shows("@@ -1 +1 @@");
    browser.keys("j");
    browser.focus_is("#review .hunk");
    browser.keys("u");
    browser.shows("this is what it would change");
    browser.keys(ENTER);
    browser.comes("document.querySelector('.undo').hidden");
    browser.focus_is("#review *");
    browser.keys("u");
    browser.comes("!document.querySelector('.undo').hidden");
    browser.tab_to("button.danger", "Undo 1 file");
    browser.keys(ENTER);
    eventually("the file is as it was", || stage.read("shop/src/ui/app.ts") == "ui\n");
    browser.focus_is("#review *");
    browser.press("#review button", "Redo the last undo");
    browser.shows("Redo of ui: this is what it would change");
    browser.press("button.danger", "Redo 1 file");
    eventually("the file is as it was written", || stage.read("shop/src/ui/app.ts") == "new");
}

/// Prompts wait, are changed and taken back, and the turn before them is cancelled.
fn prompts_that_wait(browser: &Chromium) {
    browser.keys("p");
    for text in ["wait", "first words", "second words"] {
        browser.keys(&format!("{text}{ENTER}"));
    }
    browser.comes("document.querySelectorAll('.queue li').length === 2");
    // All links and buttons of the transcript stand before them.
    browser.keys(ESCAPE);
    browser.run("document.querySelector('.queue button').focus()");
    browser.keys(ENTER);
    browser.comes("document.activeElement.value === 'first words'");
    browser.keys(&format!(" and more{ENTER}"));
    browser.shows("first words and more");
    browser.focus_is(".queue button");
    for left in [1, 0] {
        browser.tab_to(".queue button", "Take this prompt back");
        browser.keys(ENTER);
        browser.comes(&format!("document.querySelectorAll('.queue li').length === {left}"));
        browser.focus_is(if left > 0 { ".queue button" } else { "textarea" });
    }
    browser.run("document.querySelector('.prompt textarea').value = ''");
    browser.keys(ESCAPE);
    browser.keys("c");
    yes(browser, "Cancel ui's turn");
    browser.shows("cancelled");
}

/// Stop, start and restart are asked about, and the menu has the focus after that.
fn the_menu_of_an_agent(browser: &Chromium) {
    browser.run("document.querySelector('.agent-panel h2').focus()");
    browser.tab_to(".agent-panel .menu > button", "More of this agent");
    browser.keys(ENTER);
    browser.focus_is(".agent-panel .list button");
    browser.keys(DOWN);
    browser.keys(ESCAPE);
    browser.focus_is(".agent-panel .menu > button");
    for (question, state) in [("Stop ui?", "stopped"), ("Start ui?", "ready")] {
        browser.keys(ENTER);
        browser.focus_is(".agent-panel .list button");
        browser.keys(ENTER);
        yes(browser, question);
        let is = format!("document.querySelector('.agent-panel .tag').innerText === '{state}'");
        browser.comes(&is);
        browser.focus_is(".agent-panel .menu > button");
    }
    for (key, question) in [("R", "Restart ui?"), ("x", "Stop ui?"), ("S", "Start ui?")] {
        browser.keys(key);
        yes(browser, question);
        browser.shows(&format!("{} was done", question[..question.len() - 4].to_lowercase()));
        browser.focus_is(".agent-panel .menu > button");
    }
}

/// A search goes from hit to hit and leaves the focus in the transcript, and a message is copied from there.
fn what_was_said_is_found_and_copied(browser: &Chromium) {
    let at = || browser.run("return document.querySelector('.find [role=status]').innerText");
    browser.keys("/");
    browser.keys(&format!("writ{ENTER}"));
    browser.comes("document.querySelector('.find [role=status]').innerText.includes(' of ')");
    let first = at();
    browser.keys(TAB);
    browser.keys("n");
    assert_ne!(at(), first);
    browser.keys("N");
    assert_eq!(at(), first);
    browser.keys(ESCAPE);
    browser.focus_is(".transcript .scroll");
    browser.press(".block button", "Copy the message");
    browser.shows("Copied.");
    browser.run("document.querySelector('.transcript .scroll').focus()");
}

/// A folder that nobody touched is opened and folded on the map, and in the table beside it.
fn the_folders_of_the_map(browser: &Chromium) {
    browser.keys("3");
    browser.comes("document.querySelector('#map [data-folder]')");
    let hint = "document.querySelector('#map .hint').innerText";
    browser.keys("j");
    browser.comes(&format!("{hint}.includes('a click or Enter opens it')"));
    browser.keys(ENTER);
    browser.comes(&format!("{hint}.includes('a click or Enter folds it')"));
    browser.keys(LEFT);
    browser.comes(&format!("{hint}.includes('a click or Enter opens it')"));
    browser.keys(RIGHT);
    browser.comes("document.querySelector('#map [data-folder][aria-expanded=true]')");
    browser.keys(ESCAPE);
    browser.comes(&format!("!{hint}.includes('Enter')"));
    for key in ["+", "-", "0", RIGHT] {
        browser.keys(key);
    }
    browser.tab_to("#map [data-folder]", "");
    let is_open = || browser.run("return document.activeElement.ariaExpanded");
    let before = is_open();
    for key in if before == json!("true") { [LEFT, RIGHT] } else { [RIGHT, LEFT] } {
        let last = is_open();
        browser.keys(key);
        browser.comes(&format!("document.activeElement.ariaExpanded !== {last}"));
    }
    assert_eq!(is_open(), before);
    browser.keys("\u{e013}");
    browser.focus_is("#map tbody button");
}

/// A file is found, zones are shown, the table is sorted, and what is known of a file leads to who wrote it.
fn the_tools_of_the_map(browser: &Chromium) {
    browser.keys("3");
    browser.tab_to("#map .map-find", "");
    browser.keys(&format!("app.t{ENTER}"));
    browser.comes("document.querySelector('#map .detail h2')?.innerText === 'src/ui/app.ts'");
    browser.press("#map .tools button", "Zones");
    browser.comes("document.activeElement.ariaPressed === 'true'");
    browser.press("#map .detail a", "Who wrote it");
    browser.comes("document.querySelector('.blame .who button')?.innerText.includes('ui')");
    browser.keys("3");
    browser.tab_to("#map th button", "File");
    for order in ["ascending", "descending"] {
        browser.keys(ENTER);
        browser.focus_is("#map th button");
        browser.comes(&format!("document.activeElement.parentElement.ariaSort === '{order}'"));
    }
}

/// Turns, and what a search finds, are walked through by `j` and `k`; a dialog gives the focus back.
fn the_history(browser: &Chromium) {
    browser.keys("4");
    browser.comes("document.querySelector('#history .turn-row')");
    browser.keys("j");
    browser.focus_is("#history .head-line > button");
    browser.keys(ENTER);
    browser.shows("Last message");
    browser.keys("/");
    browser.keys("words");
    browser.keys(ESCAPE);
    browser.run("document.querySelector('#history nav a').focus()");
    browser.tab_to("#history nav a", "Search");
    browser.keys(ENTER);
    browser.comes("location.hash === '#history/search'");
    browser.keys("/");
    browser.keys(&format!("wr*{ENTER}"));
    browser.comes("document.querySelectorAll('.found .hit').length > 1");
    browser.keys(ESCAPE);
    browser.keys("j");
    let hits = "[...document.querySelectorAll('.found .hit')]";
    let at = |place: &str| {
        browser.comes(&format!("{hits}.indexOf(document.activeElement) === {place}"));
    };
    at("0");
    for (key, place) in [("j", "1"), ("k", "0")] {
        browser.keys(key);
        at(place);
    }
    browser.keys(ENTER);
    browser.shows("As the journal has it");
    browser.keys(ESCAPE);
    at("0");
    // A file is chosen of those that are offered, and its line says why it is there.
    browser.keys("4");
    browser.press("#history nav a", "Blame");
    browser.comes("location.hash === '#history/blame'");
    browser.keys("/");
    browser.keys(&format!("app.ts{DOWN}{ENTER}"));
    browser.comes("location.hash === '#history/blame/src%2Fui%2Fapp.ts'");
    browser.press(".blame .who button", "ui");
    browser.shows("write src/ui/app.ts new");
    browser.keys("4");
    browser.press("#history nav a", "Cost");
    browser.shows("By agent");
}

/// Waits until so many cards are there, and can be decided.
fn cards(browser: &Chromium, number: usize) {
    browser.comes(&format!(
        "document.querySelectorAll('article.is-waits').length === {number} &&\
         [...document.querySelectorAll('article.is-waits')].every((it) => it.card.preview) &&\
         [...document.querySelectorAll('article.is-waits')].some((it) => it.card.shownAt)"
    ));
    browser.has_read();
}

/// Makes two accesses wait: of `ui` and of `api`.
fn two_wait(browser: &Chromium, port: &mut Port, paths: [&str; 2]) -> [u64; 2] {
    let [ui, api] = paths;
    let first = port.begin("ui", &format!("read {ui}"));
    browser.shows(&format!("ui wants to read {ui}"));
    let second = port.begin("api", &format!("read {api}"));
    browser.shows(&format!("api wants to read {api}"));
    [first, second]
}

#[test]
fn decisions_are_taken_by_the_keyboard_and_shown_as_they_were_later() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let keys = format!("{WEB}\n[zones]\ndenied = [\"**/.env\"]");
    let team = stage.team(&keys, page::agents());
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let browser = open(&stage, &driver);
    let [first, second] = two_wait(&browser, &mut port, ["src/api/cart.rs", "src/ui/app.ts"]);
    browser.keys("i");
    browser.focus_is("#inbox .card");
    cards(&browser, 2);
    browser.keys("a");
    assert_eq!(port.said(first), "got api\n");
    // The next card has the focus, and the reason is asked for in it.
    browser.focus_is("#inbox .card.is-waits");
    cards(&browser, 1);
    browser.keys("D");
    browser.focus_is("#inbox .asking textarea");
    browser.keys(&format!("not now{TAB}{TAB}{ENTER}"));
    assert!(port.said(second).starts_with("refused"));
    browser.focus_is("#inbox .card");

    let [first, second] = two_wait(&browser, &mut port, ["src/api/order.rs", "types/cart.ts"]);
    cards(&browser, 2);
    browser.keys("jk");
    browser.focus_is("#inbox .card.is-waits, #inbox .card.is-done");
    browser.comes("[...document.querySelectorAll('article.is-waits')].some((it) => it.innerText.includes('order.rs'))");
    browser.run("[...document.querySelectorAll('article.is-waits')].find((it) => it.innerText.includes('order.rs')).focus()");
    browser.later(600);
    browser.keys("r");
    browser.focus_is("#inbox .asking textarea");
    browser.keys(&format!("mine{TAB}{TAB}{ENTER}"));
    assert_eq!(port.said(first), "got mine");
    browser.focus_is("#inbox .card.is-waits");
    cards(&browser, 1);
    browser.keys("m");
    browser.focus_is("#inbox .asking input");
    browser.keys(ESCAPE);
    browser.focus_is("#inbox .card.is-waits");
    // A tick chooses it, to be decided with others.
    browser.keys("t");
    browser.comes("document.querySelector('#inbox .several .actions')");
    browser.later(600);
    browser.keys("d");
    assert!(port.said(second).starts_with("refused"));
    browser.comes("!document.querySelector('#inbox article.is-waits')");
    // For the session it is asked about once, and what is denied is allowed on a second look.
    let turn = port.begin("ui", "read types/cart.ts");
    browser.shows("ui wants to read types/cart.ts");
    cards(&browser, 1);
    browser.keys("js");
    assert_eq!([port.said(turn), port.prompt("ui", "read types/cart.ts")], ["got types\n"; 2]);
    let turn = port.begin("api", "read .env");
    browser.shows("api wants to read .env");
    cards(&browser, 1);
    browser.keys("je");
    yes(&browser, "which is denied by **/.env. Allow it once all the same?");
    assert_eq!(port.said(turn), "got SECRET=1\n");
    browser.comes("!document.querySelector('#inbox article.is-waits')");
    // What is left of the inbox has the focus, and then the view.
    browser.focus_is("#inbox, #inbox *");
    browser.keys("i");
    browser.comes("document.querySelector('#inbox').hidden");
    browser.focus_is("#team");
    as_it_was_on_the_map(&browser);
    as_it_was_in_the_replay(&browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The words of the map for a file, as its time slider goes from the begin to the end; each once.
fn said_over_time(browser: &Chromium, path: &str) -> Vec<String> {
    browser.run(&format!("location.hash = 'map/' + encodeURIComponent({path:?})"));
    browser.comes(&format!("document.querySelector('#map .detail h2')?.innerText === {path:?}"));
    browser.comes("!document.querySelector('.look-back input').disabled");
    let said = browser.run(
        "const range = document.querySelector('.look-back input');\n\
         const said = new Set();\n\
         for (let step = 0; step <= 1000; step++) {\n\
           range.value = step;\n\
           range.dispatchEvent(new Event('input'));\n\
           for (const it of document.querySelectorAll('#map .touches li > span:nth-child(2)'))\n\
             said.add(it.firstChild.data.trim());\n\
         }\n\
         return [...said]",
    );
    serde_json::from_value(said).unwrap()
}

fn as_it_was_on_the_map(browser: &Chromium) {
    browser.keys("3");
    let allowed = said_over_time(browser, "src/api/cart.rs");
    let has = |word: &str| allowed.iter().any(|it| it == word);
    assert!(has("waits") && has("read") && !has("was refused"), "{allowed:?}");
    assert_eq!(said_over_time(browser, "src/ui/app.ts"), ["waits", "was refused"]);
    browser.tab_to("#map .look-back input", "");
    browser.keys(LEFT);
    browser.comes("document.querySelector('.look-back .when').innerText !== 'now'");
}

fn as_it_was_in_the_replay(browser: &Chromium) {
    browser.run("location.hash = 'history/replay'");
    let moments = "return [...document.querySelectorAll('.moments li')]\
                   .map((it) => `${it.querySelector('.clip').innerText} ${it.querySelector('a').innerText}`)";
    browser.comes("document.querySelectorAll('.moments li').length >= 9");
    for source in ["", "api"] {
        if !source.is_empty() {
            browser.run(
                "const select = document.querySelector('.replay select[aria-label=\"What is replayed\"]');\n\
                 select.value = [...select.options].find((it) => it.innerText.startsWith('api')).value;\n\
                 select.dispatchEvent(new Event('change'));",
            );
            browser.comes("[...document.querySelectorAll('.moments .clip')].every((it) => it.innerText.startsWith('▲api'))");
        }
        let said: Vec<String> = serde_json::from_value(browser.run(moments)).unwrap();
        let all = [
            ("●ui waits src/api/cart.rs", 1),
            ("●ui was allowed src/api/cart.rs", 1),
            ("●ui was refused src/api/cart.rs", 0),
            ("●ui was answered src/api/order.rs", 1),
            ("▲api waits src/ui/app.ts", 1),
            ("▲api was refused src/ui/app.ts", 1),
        ];
        let is_of = |(text, _): &(&str, usize)| source.is_empty() || text.contains("api ");
        for (text, times) in all.into_iter().filter(is_of) {
            let found = said.iter().filter(|it| *it == text).count();
            assert_eq!(found, times, "{text}: {said:#?}");
        }
    }
    // By keys: a step back, and from there to the end.
    browser.keys("k");
    let steps = || browser.run("return document.querySelectorAll('.moments li').length");
    let back = steps();
    browser.keys("j");
    assert_ne!(steps(), back);
    browser.run(
        "const pace = document.querySelector('.replay select[aria-label=Speed]');\n\
         pace.value = 1;\n\
         pace.dispatchEvent(new Event('change'));",
    );
    browser.keys(" ");
    browser.shows("Pause");
    browser.keys(" ");
    let play = "document.querySelector('.replay .controls .main').innerText.startsWith('Play')";
    browser.comes(play);
    // It was paused, and has not come to its end.
    browser.comes("document.querySelector('.replay .scrubber input').value < 1000");
}
