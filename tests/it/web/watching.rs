//! The page in a real browser: what it shows while agents work, and once their turns have ended.

use std::fs::OpenOptions;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;

use super::browser::Driver;
use super::page::{DESK, open, team};
use crate::harness::Stage;

/// Opens the first tool call, once it is there.
const OPENED: &str =
    "(() => { const it = document.querySelector('.call summary'); it?.click(); return it; })()";

#[test]
fn a_command_shows_what_it_prints_while_it_runs_and_when_it_is_read_again() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let desk = open(&stage, &driver, "desk", DESK);
    desk.click("#team a, #team button", "ui");
    desk.shows("Cancel turn");
    mkfifo(&stage.path("shop/src/ui/gate"), Mode::S_IRWXU).unwrap();
    let red = r"printf '\033[31mred\033[0m\n'";
    let turn = port.begin("ui", &format!("run {red}; seq 1 40; read x < src/ui/gate; exit 3"));
    // The prompt of another client, before its turn has ended.
    desk.shows("seq 1 40; read x");
    desk.comes("document.querySelector('.block-prompt')?.innerText.includes('run printf')");
    desk.comes(OPENED);
    desk.comes("document.querySelector('.screen pre.terminal')?.innerText.endsWith('40')");
    desk.click(".screen button", "earlier line");
    let ink = "document.querySelector('.screen .ink-1')?.innerText === 'red'";
    desk.comes(ink);
    drop(OpenOptions::new().write(true).open(stage.path("shop/src/ui/gate")).unwrap());
    desk.shows("Exit code 3.");
    assert!(port.said(turn).contains("exited with code 3"));
    desk.comes(ink);
    desk.picture("terminal.png");
    // From the journal it is the same, and once.
    let again = open(&stage, &driver, "again", DESK);
    again.click("#team a, #team button", "ui");
    again.comes(OPENED);
    again.shows("Exit code 3.");
    assert_eq!(again.run("return document.querySelectorAll('pre.terminal').length"), json!(1));
    for browser in [&desk, &again] {
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn what_a_reader_selected_of_a_message_stays_when_its_turn_ends() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    mkfifo(&stage.path("shop/src/ui/gate"), Mode::S_IRWXU).unwrap();
    let desk = open(&stage, &driver, "desk", DESK);
    let turn = port.begin("ui", "speak");
    desk.comes("window.part = document.querySelector('.stream .said strong')");
    desk.run("getSelection().selectAllChildren(part)");
    drop(OpenOptions::new().write(true).open(stage.path("shop/src/ui/gate")).unwrap());
    port.said(turn);
    desk.comes("document.querySelector('.stream .turn').innerText.includes('done')");
    assert_eq!(desk.run("return part.isConnected && String(getSelection())"), json!("part"));
    assert_eq!(desk.complaints(), Vec::<String>::new());
}

#[test]
fn the_end_of_a_turn_says_what_it_took_wherever_it_is_shown() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let desk = open(&stage, &driver, "desk", DESK);
    port.prompt("ui", "use gpt-5-2025-08-07");
    port.prompt("api", "hello");
    desk.comes("document.querySelector('.stream').innerText.includes('1.1M tokens · $2.25')");
    desk.comes("document.querySelector('.stream').innerText.includes('cost unknown')");
    desk.click("#team a, #team button", "ui");
    desk.shows("First turn done · ~1.1M tokens · $2.25");
    desk.keys("4");
    desk.comes("document.querySelector('.turn-row .cost')?.innerText === '–'");
    desk.shows("1.1M tokens · $2.25");
    assert_eq!(desk.complaints(), Vec::<String>::new());
}
