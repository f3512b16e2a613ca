//! How the page is looked at: in each view and window nothing is cut, covered or out of reach, and axe-core finds no fault.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::browser::{Chromium, Driver};
use super::client::Site;
use crate::harness::Stage;

/// A desk, a laptop, a phone.
const WINDOWS: [(u32, u32); 3] = [DESK, LAPTOP, (390, 844)];
pub(super) const DESK: (u32, u32) = (1440, 900);
const LAPTOP: (u32, u32) = (1024, 768);

/// All that has an address.
pub(super) const VIEWS: [&str; 9] = [
    "team",
    "team/ui",
    "team/log",
    "review",
    "review/changes/ui",
    "map",
    "history",
    "history/search",
    "history/cost",
];

/// How long a view may take until nothing moves.
const SETTLED: Duration = Duration::from_secs(5);

/// A script that lists faults: a page that scrolls sideways, what can be pressed and is out of reach or covered, what stands
/// over its neighbour in a row, what has to be in sight and is not, and names that are cut to nothing.
const FAULTS: &str = r##"
const faults = [];
const named = (el) => el.outerHTML.slice(0, 140);
if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
const isShown = (el) => el.checkVisibility({ visibilityProperty: true }) && !el.closest(".hidden");
/** What is seen of a box within all that scrolls around it; null: nothing. */
const seen = (el) => {
  let { left, top, right, bottom } = el.getClientRects()[0] ?? el.getBoundingClientRect();
  const cut = (box) => {
    [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
    [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
  };
  cut({ left: 0, top: 0, right: innerWidth, bottom: innerHeight });
  for (let up = el.parentElement; up; up = up.parentElement)
    if (getComputedStyle(up).overflow !== "visible") cut(up.getBoundingClientRect());
  return right - left > 2 && bottom - top > 2 ? { left, top, right, bottom } : null;
};
const scrolls = (el) => {
  for (let up = el.parentElement; up; up = up.parentElement)
    if (/auto|scroll/.test(getComputedStyle(up).overflowX) && up.scrollWidth > up.clientWidth) return true;
  return false;
};
for (const el of document.querySelectorAll("button, a, input, select, textarea, summary")) {
  if (!isShown(el)) continue;
  const box = el.getBoundingClientRect();
  if (!box.width || getComputedStyle(el).pointerEvents === "none") continue;
  if (!scrolls(el) && (box.left < -1 || box.right > innerWidth + 1)) faults.push(`out of sight: ${named(el)}`);
  const part = seen(el);
  if (!part) continue;
  const top = document.elementFromPoint((part.left + part.right) / 2, (part.top + part.bottom) / 2);
  // What stays while a text scrolls below it, and the inbox over a narrow view, are meant to be there.
  const isMeant = top?.closest(".fresh, .opener, .copy, .notice, .card .actions") || (top?.closest("#inbox") && !el.closest("#inbox"));
  if (!el.contains(top) && !top?.contains(el) && !isMeant) faults.push(`covered: ${named(el)} by ${top && named(top)}`);
}
for (const row of document.querySelectorAll("header, .row, .actions, .bar")) {
  if (!isShown(row)) continue;
  const parts = [...row.children].filter((it) => isShown(it) && !/absolute|fixed/.test(getComputedStyle(it).position));
  const boxes = parts.map((it) => it.getBoundingClientRect());
  for (let at = 1; at < parts.length; at++) {
    const [a, b] = [boxes[at - 1], boxes[at]];
    const over = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const under = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (over > 1 && under > 1) faults.push(`over its neighbour: ${named(parts[at])}`);
  }
}
for (const must of ["header nav a", "#link", ".agent-panel .head h2", ".composer textarea", "#inbox .card.selected .actions button"])
  for (const el of document.querySelectorAll(must)) {
    const box = el.getBoundingClientRect();
    if (isShown(el) && (box.top < -1 || box.bottom > innerHeight + 1)) faults.push(`under the fold: ${named(el)}`);
  }
// A column scrolls up and down alone; names are cut by an ellipsis, and never to nothing.
for (const el of document.querySelectorAll(".scroll, .side, .part, .map-side, .log"))
  if (isShown(el) && el.scrollWidth > el.clientWidth + 1) faults.push(`scrolls sideways: ${named(el)}`);
for (const el of document.querySelectorAll(".head .agent, .turns .agent, .agents .agent"))
  if (isShown(el) && el.getBoundingClientRect().width + 1 < Math.min(el.scrollWidth, 48)) faults.push(`no room for a name: ${named(el)}`);
// What waits at the end of a transcript is in sight there as a whole.
for (const el of document.querySelectorAll(".blocks > .waits:last-child")) {
  const [box, part] = [el.getBoundingClientRect(), isShown(el) && seen(el)];
  if (isShown(el) && (!part || part.bottom - part.top < box.height - 1)) faults.push(`half in sight: ${named(el)}`);
}
return faults;
"##;

/// The rules of axe-core: WCAG 2.2 AA, and its own.
const AXE: &str = r#"
const done = arguments[arguments.length - 1];
const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
axe.run({ runOnly: rules, resultTypes: ["violations"] }).then(({ violations }) =>
  done(violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((it) => it.html.slice(0, 160)).join(" | ")}`)));
"#;

/// The text of axe-core; None where it is not installed.
fn axe() -> Option<String> {
    let place = std::env::var_os("EISEN_TEST_AXE")?;
    Some(std::fs::read_to_string(place).unwrap())
}

/// The faults that stay: figures and lists that come a moment later may move what is there.
fn faults(browser: &Chromium) -> Value {
    let begun = Instant::now();
    loop {
        let found = browser.run(FAULTS);
        if found == json!([]) || begun.elapsed() > SETTLED {
            return found;
        }
    }
}

/// Looks at each view in each window, and at those of a desk and a phone by the rules of axe-core.
pub(super) fn look(browser: &Chromium, views: &[&str], what: &str) {
    let axe = axe();
    if axe.is_none() {
        eprintln!("left out: axe-core is not installed, and EISEN_TEST_AXE names no file");
    }
    for (width, height) in WINDOWS {
        browser.resize(width, height);
        for view in views {
            browser.run(&format!("location.hash = {view:?}"));
            // A view has been drawn after two frames, and its transition is over.
            browser.answer(
                "requestAnimationFrame(() => requestAnimationFrame(() => arguments[0](1)))",
            );
            browser.comes("!document.body.innerText.includes('Reading …')");
            let at = format!("{what}, {view}, {width} px");
            assert_eq!(faults(browser), json!([]), "{at}");
            // A laptop has the parts of a desk.
            if let Some(axe) = axe.as_ref().filter(|_| width != LAPTOP.0) {
                if browser.run("return !window.axe") == json!(true) {
                    browser.run(axe);
                }
                assert_eq!(browser.answer(AXE), json!([]), "{at}");
            }
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

pub(super) fn open(stage: &Stage, driver: &Driver) -> Chromium {
    let (site, path) = Site::of(stage, &[]);
    let browser = driver.open(stage, "eyes", WINDOWS[0]);
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser
}
