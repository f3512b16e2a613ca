//! The page as it is seen: in each view, empty and full, on a desk, a laptop and a phone, nothing is cut, covered or out of
//! reach, and axe-core finds no fault.

use std::path::Path;

use serde_json::{Value, json};

use super::WEB;
use super::browser::{Chromium, DOWN, Driver, ENTER, ESCAPE, TAB};
use super::eyes::{VIEWS, look, open};
use super::keys::yes;
use crate::harness::{AgentTable, EISEN_CORE, Stage, agent, program, run};

fn in_shop(id: &str) -> AgentTable {
    agent(id).zone(&format!("src/{id}/**"))
}

#[test]
fn a_team_that_has_done_nothing_looks_right() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team = stage.team(WEB, vec![in_shop("ui")]);
    team.steer_when_ready(&["ui"]);
    let browser = open(&stage, &driver);
    browser.shows("Nothing was done yet");
    browser.keys("i");
    browser.shows("Nothing waits for a decision");
    look(&browser, &VIEWS, "empty");
}

#[test]
fn a_team_at_work_looks_right_and_what_waits_is_in_sight() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let long = "a-name-that-is-as-long-as-names-of-agents-may-be";
    let team = stage.team(WEB, vec![in_shop("ui"), in_shop("api"), agent(long).zone("lib/**")]);
    let mut port = team.steer_when_ready(&["ui", "api", long]);
    port.prompt("ui", &format!("write src/ui/app.ts {}", "const wide = 1; ".repeat(40)));
    port.prompt(
        "api",
        &format!(
            "**bold** `code` {} <b>no</b>\n\n| a | b |\n| - | - |\n| 1 | 2 |",
            "word".repeat(200)
        ),
    );
    port.prompt(long, &format!("write lib/{}.ts x", "deep/".repeat(12)));
    port.begin("ui", "write src/api/new.rs fn main() {}");
    port.begin("api", "read src/ui/app.ts");
    let browser = open(&stage, &driver);
    browser.shows("wants to write");
    look(&browser, &VIEWS, "at work");

    // On a phone Allow is in sight, on the right, and nothing covers it.
    browser.run("location.hash = 'inbox'");
    browser.comes("document.querySelectorAll('#inbox .card').length === 2");
    browser.comes("document.querySelector('#inbox .card.selected')?.card.preview");
    let allow = browser.run(
        r##"
        const card = document.querySelector("#inbox .card.selected");
        const all = [...card.querySelectorAll(".actions button")].map((it) => [it.innerText, it.getBoundingClientRect()]);
        const last = all.toSorted((a, b) => b[1].right - a[1].right)[0];
        const [text, { left, top, width, height, bottom }] = last;
        const seen = document.elementFromPoint(left + width / 2, top + height / 2);
        return { text, isSeen: card.contains(seen) && seen.innerText === text, isInside: bottom <= innerHeight, height };
        "##,
    );
    assert_eq!(
        (&allow["text"], &allow["isSeen"], &allow["isInside"]),
        (&json!("Allow"), &Value::Bool(true), &Value::Bool(true)),
        "{allow}"
    );
    assert!(allow["height"].as_f64().unwrap() >= 44.0, "{allow}");
    look(&browser, &["inbox"], "inbox");
}

/// The menu of a branch.
const WAYS: &str = "[aria-label='Other ways to merge']";

/// Another way to merge is chosen, left, and taken.
fn it_is_squashed(browser: &Chromium, git: &dyn Fn(&[&str]) -> String) {
    browser.press(WAYS, "");
    browser.keys(&format!("{DOWN}{ENTER}"));
    browser.shows("Rebase fix/run into main?");
    browser.keys(ESCAPE);
    browser.focus_is(WAYS);
    browser.keys(ENTER);
    browser.keys(ENTER);
    yes(browser, "Squash fix/run into main?");
    browser.shows("merged fix/run into main");
    assert_eq!(git(&["show", "main:fixed.txt"]), "fixed");
}

/// Parts are shown side by side, and a part and a file are taken back.
fn its_parts_are_turned_and_taken_back(browser: &Chromium) {
    let is_split = |is_split: bool| {
        browser.comes(&format!("!!document.querySelector('#review .split') === {is_split}"));
    };
    browser.press("#review button", "Side by side");
    is_split(true);
    browser.focus_is("#review button[aria-pressed=true]");
    browser.keys(ENTER);
    is_split(false);
    // Those behind the first.
    browser.keys("j");
    browser.keys("j");
    browser.keys("x");
    yes(browser, "Take back this part of src/ui/more.ts in the worktree of eisen/shop/ui?");
    browser.shows("src/ui/more.ts: taken back");
    browser.focus_is("#review *");
    browser.press("[aria-label='src/ui/other.ts'] [aria-label^='Take the file']", "");
    yes(browser, "Take back all changes of src/ui/other.ts in the worktree of eisen/shop/ui?");
    browser.shows("src/ui/other.ts: taken back");
    browser.comes("document.querySelectorAll('.review-branch .file-diff').length === 1");
}

/// A comment on a part is sent, the checks run, and the part is accepted.
fn a_part_is_asked_about_and_accepted(browser: &Chromium) {
    browser.keys("j");
    browser.keys("c");
    browser.keys(&format!("Why 42?{TAB}{TAB}{ENTER}"));
    browser.shows("Send 1 comment to ui");
    browser.focus_is("#review .hunk");
    browser.keys("s");
    browser.shows("the agent gets them as its next prompt");
    browser.comes("!document.body.innerText.includes('Send 1 comment')");
    browser.focus_is("#review .hunk");
    browser.keys("t");
    browser.shows("The checks passed.");
    browser.focus_is("#review .hunk");
    browser.keys("a");
    browser.shows("accepted");
    // Its file is folded now, and has the focus.
    browser.focus_is("#review .fold");
}

/// A pull request has what is committed, and its link is shown.
fn a_pull_request_is_opened(browser: &Chromium, git: &dyn Fn(&[&str]) -> String, tree: &Path) {
    let open_request = || {
        browser.press(WAYS, "");
        browser.keys(&format!("{DOWN}{DOWN}{ENTER}"));
        yes(browser, "open a pull request by the team's login?");
    };
    open_request();
    browser.shows("not committed: 1 file");
    git(&["-C", tree.to_str().unwrap(), "add", "-A"]);
    git(&["-C", tree.to_str().unwrap(), "commit", "-qm", "fixed"]);
    open_request();
    let link = "document.querySelector('.review-branch a[href^=http]')?.innerText";
    browser.comes(&format!("{link} === 'https://example.com/pull/1'"));
    let said = std::fs::read_to_string(tree.join("../../gh.log")).unwrap();
    assert!(said.contains("--head fix/run --title fix --body-file - --base main"), "{said}");
    assert!(said.contains("**Task:** fix"), "{said}");
    assert_eq!(git(&["-C", "../remote.git", "log", "-1", "--format=%s", "fix/run"]), "fixed");
}

#[test]
fn a_branch_is_reviewed_and_merged() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let checks = "[worktree]\nchecks = [\"test -f src/ui/app.ts\"]\n";
    stage.file("home/config.toml", &format!("{}{checks}", Stage::ANY_MEMORY));
    let git = |args: &[&str]| {
        let done = program("git").args(args).current_dir(stage.path("shop")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    };
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["config", "user.name", "Ann"],
        &["config", "user.email", "ann@example.com"],
        &["add", "-A"],
        &["commit", "-qm", "first"],
    ] {
        git(args);
    }
    stage.file(
        "bin/gh",
        "#!/bin/sh\necho \"$@\" > ../gh.log\ncat >> ../gh.log\necho https://example.com/pull/1\n",
    );
    assert!(program("chmod").arg("+x").arg(stage.path("bin/gh")).status().unwrap().success());
    git(&["init", "-q", "--bare", "../remote.git"]);
    git(&["remote", "add", "origin", "../remote.git"]);
    stage.configure(WEB, vec![in_shop("ui").with("[agents.worktree]"), in_shop("api")]);
    let team = stage.up_with_bin();
    let mut port = team.steer_when_ready(&["ui", "api"]);
    for file in ["app.ts export const answer = 42;", "more.ts more", "other.ts other"] {
        port.prompt("ui", &format!("write src/ui/{file}"));
    }
    // A branch of a run, which is over.
    stage.file(
        "one.toml",
        "[agent]\nname = \"one\"\n[[on]]\nsteps = [{ disk_write = \"fixed.txt\", content = \"fixed\" }, { say = \"Fixed.\" }]\n",
    );
    let script = stage.path("one.toml").display().to_string();
    let args =
        ["run", "--branch", "fix/run", "fix", "--", EISEN_CORE, "dev", "scripted-agent", &script];
    let ended = run(stage.eisen_core(&args).current_dir(stage.path("shop")));
    assert_eq!(ended.code, 0, "{ended:?}");
    let browser = open(&stage, &driver);
    browser.keys("2");
    // Nobody takes its comments: it says who would.
    browser.click("#review .choices a", "fix/run");
    browser.shows("fixed.txt");
    browser.keys("j");
    browser.keys("c");
    browser.keys(&format!("Why?{TAB}{TAB}{ENTER}"));
    browser.shows("1 comment not sent: no agent of this team works on the branch. `eisen-core review fix/run --send`");
    assert!(!browser.text().contains("Send 1 comment"));
    browser.picture("branch-of-run.png");
    a_pull_request_is_opened(&browser, &git, &stage.path("shop.trees/fix-run"));
    it_is_squashed(&browser, &git);
    browser.tab_to("#review .choices a", "eisen/shop/ui");
    browser.keys(ENTER);
    its_parts_are_turned_and_taken_back(&browser);
    // What is behind a part stands at it, and its code is coloured.
    browser.shows("write src/ui/app.ts export");
    browser.comes("document.querySelector('.review-branch .tok-keyword')?.innerText === 'export'");
    a_part_is_asked_about_and_accepted(&browser);
    look(&browser, &["review/branch/eisen/shop/ui"], "a branch");
    browser.tab_to("#review button", "Merge …");
    browser.keys(ENTER);
    browser.shows("What is not committed (1 file) is committed first");
    browser.keys(TAB);
    browser.keys(ENTER);
    browser.shows("merged eisen/shop/ui into main");
    assert_eq!(git(&["show", "main:src/ui/app.ts"]), "export const answer = 42;");
    // It shows that at once, and offers no second merge.
    browser.comes("document.querySelector('.review-branch .facts-line').innerText.includes('merged into main')");
    browser.shows("All that this branch had is merged.");
    browser.comes("[...document.querySelectorAll('.review-bar button')].every((it) => !it.checkVisibility() || !it.innerText.includes('Merge'))");
    browser.picture("merged.png");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
