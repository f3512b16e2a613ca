//! The pictures of `docs/pictures`: of a team at work, and of a recorded day. The page has to look like them.
//!
//! `EISEN_TEST_PICTURES=new cargo test --test it -- web::pictures` makes them anew, and with `=compare` compares them, which
//! takes a minute.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::WEB;
use super::browser::{Chromium, Driver};
use super::client::Site;
use super::states::recorded_day;
use crate::harness::{EISEN_CORE, Stage, Team, program};

const DESK: (u32, u32) = (1280, 800);
const PHONE: (u32, u32) = (390, 844);
/// The time of the page's clock: a while after the recorded day, and after what the team at work did last.
const DAY_ENDS: &str = "1796018400000";
const WORK_ENDS: &str = "Date.now() + 180000";
/// The part of a picture's pixels that may differ: an age, the edge of a letter. One button is more.
const MOST_DIFFERENT: f64 = 0.001;
/// Bytes of all pictures together.
const MOST_BYTES: u64 = 3_000_000;

/// A picture: its name, view, window, and what has to be there.
type Picture = (&'static str, &'static str, (u32, u32), &'static str);

const AT_WORK: [Picture; 5] = [
    ("team", "team", (1440, 900), ".stream .refused"),
    ("agent", "team/ui", DESK, ".blocks:has(.block-blocked) .tok-keyword"),
    ("map", "map", DESK, "#map tbody tr"),
    ("inbox-phone", "inbox", PHONE, "#inbox .card.selected .preview"),
    ("team-phone", "team", PHONE, ".agents .figures"),
];
const OF_THE_DAY: [Picture; 4] = [
    ("transcript", "team/api", DESK, ".blocks .md table"),
    ("review", "review/changes/api", DESK, "#review .file-diff .lines"),
    ("history", "history", DESK, "#history .turn-row"),
    ("history-phone", "history", PHONE, "#history .turn-row"),
];

/// Says how large a part of the pixels of `images` differs.
const COMPARE: &str = r#"
const done = arguments[arguments.length - 1];
const pixels = async (text) => {
  const bytes = Uint8Array.from(atob(text), (it) => it.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, image.width, image.height);
};
Promise.all(images.map(pixels)).then(([kept, now]) => {
  if (kept.width !== now.width || kept.height !== now.height) return done(1);
  let different = 0;
  for (let at = 0; at < kept.data.length; at += 4) {
    const by = (part) => Math.abs(kept.data[at + part] - now.data[at + part]);
    if (Math.max(by(0), by(1), by(2)) > 40) different += 1;
  }
  done(different / (kept.width * kept.height));
});
"#;

/// A team of which one waits for a person, one works, and one is done.
fn team_at_work(stage: &Stage) -> Team {
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shop/.");
    let copied = program("cp").args(["-R", shop]).arg(stage.path("shop")).status().unwrap();
    assert!(copied.success());
    stage.file("scene.toml", include_str!("scene.toml"));
    let command = json!([EISEN_CORE, "scripted-agent", stage.path("scene.toml")]);
    let mut text =
        format!("[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n{WEB}\n");
    for (id, zone) in [("ui", "src/ui/**"), ("api", "src/api/**"), ("docs", "docs/**")] {
        let _ = writeln!(text, "[[agents]]\nid = {id:?}\ncommand = {command}");
        let _ = writeln!(text, "[agents.zone]\nallowed = [{zone:?}]\nenforce = \"protocol\"");
    }
    stage.file("eisen.toml", &text);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui", "api", "docs"]);
    port.begin("ui", "Show the cart's total in the header, and run the tests.");
    port.blocked("pending");
    port.prompt("docs", "Say in the readme how the tests run.");
    port.begin("api", "Round discounts once, on the total of the cart.");
    team
}

/// A page of which nothing moves.
fn open(stage: &Stage, driver: &Driver, now: &str) -> Chromium {
    let (site, path) = Site::of(stage, &[]);
    let browser = driver.open(stage, "pictures", DESK);
    let still = format!(
        "const at = {now};\n\
         const Real = Date;\n\
         globalThis.Date = class extends Real {{\n\
           constructor(...given) {{ given.length ? super(...given) : super(at); }}\n\
           static now() {{ return at; }}\n\
         }};"
    );
    browser.tell("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": still }));
    browser.tell("Emulation.setTimezoneOverride", &json!({ "timezoneId": "UTC" }));
    browser.tell("Emulation.setLocaleOverride", &json!({ "locale": "en-US" }));
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser
}

/// Takes each picture, light and dark, and compares it with the one that is kept, or keeps it.
fn compare(browser: &Chromium, pictures: &[Picture]) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
    let mut faults = Vec::new();
    for (name, view, (width, height), shown) in pictures {
        browser.resize(*width, *height);
        for scheme in ["light", "dark"] {
            let features = json!([
                { "name": "prefers-color-scheme", "value": scheme },
                { "name": "prefers-reduced-motion", "value": "reduce" },
            ]);
            browser.tell("Emulation.setEmulatedMedia", &json!({ "features": features }));
            browser.run(&format!("location.hash = {view:?}"));
            browser.comes("!document.body.innerText.includes('Reading …')");
            browser.comes(&format!("document.querySelector({shown:?})?.checkVisibility()"));
            let file = folder.join(match scheme {
                "light" => format!("{name}.png"),
                _ => format!("{name}-dark.png"),
            });
            let now = steady(browser);
            if wish().is_some_and(|wish| wish == "new") {
                std::fs::write(&file, BASE64_STANDARD.decode(&now).unwrap()).unwrap();
                continue;
            }
            let different =
                difference(browser, &BASE64_STANDARD.encode(std::fs::read(&file).unwrap()), &now);
            if different > MOST_DIFFERENT {
                let look = file.with_extension("now.png");
                std::fs::write(&look, BASE64_STANDARD.decode(&now).unwrap()).unwrap();
                faults.push(format!("{}: {:.2} %", look.display(), different * 100.0));
            }
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert!(
        faults.is_empty(),
        "they look different; look at them, then EISEN_TEST_PICTURES=new: {faults:#?}"
    );
}

/// The wish of the person who runs the test: `new` or `compare`.
fn wish() -> Option<std::ffi::OsString> {
    std::env::var_os("EISEN_TEST_PICTURES")
}

/// A picture of what the page shows once two in a row are the same.
fn steady(browser: &Chromium) -> String {
    let mut last = String::new();
    crate::harness::eventually("nothing moves", || {
        browser.answer("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0](1)))");
        let taken = browser.tell("Page.captureScreenshot", &json!({ "format": "png" }));
        let taken = taken["data"].as_str().unwrap().to_owned();
        let is_same = taken == last;
        last = taken;
        is_same
    });
    last
}

fn difference(browser: &Chromium, kept: &str, now: &str) -> f64 {
    if kept == now {
        return 0.0;
    }
    let script = format!("const images = [{kept:?}, {now:?}];\n{COMPARE}");
    browser.answer(&script).as_f64().unwrap()
}

#[test]
fn the_page_looks_as_it_is_pictured() {
    if wish().is_none() {
        eprintln!("left out: EISEN_TEST_PICTURES is not set");
        return;
    }
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let _team = team_at_work(&stage);
    let browser = open(&stage, &driver, WORK_ENDS);
    // The last that is done.
    browser.shows("$0.05");
    browser.run("location.hash = 'inbox'");
    browser.comes("document.querySelector('#inbox .card.selected')?.card.preview");
    browser.run("location.hash = 'map'");
    browser.comes("document.querySelector('#map').innerText.includes('files')");
    compare(&browser, &AT_WORK);
    drop(browser);

    let stage = Stage::new();
    // Without a repository the page would name the folder, which is another one each time.
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    let _team = recorded_day(&stage);
    let browser = open(&stage, &driver, DAY_ENDS);
    browser.comes("document.querySelectorAll('.stream .turn').length === 6");
    compare(&browser, &OF_THE_DAY);

    let pictures =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/pictures")).unwrap();
    let bytes: u64 = pictures.map(|it| it.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes of pictures");
}
