//! Modules and exports of JavaScript and TypeScript.

use super::rules::check;

#[test]
fn script_modules_are_followed() {
    check(
        "
web/app.tsx
  use ./shop - as Shop
  use ./shop open as start
  use ./lib - as lib
  use react useState
  use ./vote - as Ballot
  use @town/hall vote
  App
    > Shop
    > start
    > lib.ring
    > useState
    > vote
    > Shop.create
    > Ballot
web/vote.js
  count
  vote
web/shop.ts
  use = Market as default
  class Market
    create
  open
web/lib/index.js
  use ./till.js *
web/lib/till.ts
  ring
web/state.ts
  useState
packages/hall/src/index.ts
  vote
",
        "
        web/app.tsx::App -> packages/hall/src/index.ts::vote Import
        web/app.tsx::App -> web/lib/till.ts::ring Import
        web/app.tsx::App -> web/shop.ts::Market Import
        web/app.tsx::App -> web/shop.ts::Market::create Import
        web/app.tsx::App -> web/shop.ts::open Import
        web/app.tsx::App -> web/vote.js::vote Import
        ",
    );
}

#[test]
fn a_default_that_wraps_is_called_as_what_it_wraps() {
    check(
        "
web/app.jsx
  use ./door - as Entry
  use ./window - as Window
  use ./sale default as Sale
  App
    > Entry
    > Window
    > Sale
    > Sale.start
web/door.jsx
  use = - as default
  Entry
  default
web/window.jsx
  use = - as default
  use ./other *
  default
web/other.js
  default
web/index.js
  use ./sale default
web/sale.js
  use = - as default
  default
    start
  class sale
    start
web/all.js
  use . default as sales
  run
    > sales
",
        "
        web/all.js::run -> web/sale.js::sale Import
        web/app.jsx::App -> web/door.jsx::Entry Import
        web/app.jsx::App -> web/sale.js::sale Import
        web/app.jsx::App -> web/sale.js::sale::start Import
        web/app.jsx::App -> web/window.jsx::default Import
        ",
    );
}

#[test]
fn a_module_is_called_as_what_it_exports() {
    check(
        "
web/app.js
  use ./shop - as sell
  use ./till - as count
  use ./door - as open
  use ./hall - as enter
  use ./lock - as lock
  use ./tools - as tools
  run
    > sell
    > sell.later
    > count
    > open
    > open.wide
    > enter
    > lock
    > tools.sum
web/shop.js
  use = buy as exports
  use = market as exports
  buy
  market
    later
  sell
web/till.js
  exports
  count
web/door.js
  use ./entry - as exports
web/entry.js
  use = entry as exports
  class entry
  wide
web/hall.js
  use ./entry - as Entry
  use = Entry as exports
  Entry
web/lock.js
  use bolt - as lock
  use = wrapped as exports
  lock
web/tools.js
  use ./till - as sum
  sum
web/all.js
  use ./till *
  run
    > exports
",
        "
        web/app.js::run -> web/entry.js::entry Import
        web/app.js::run -> web/entry.js::wide Import
        web/app.js::run -> web/shop.js::market Import
        web/app.js::run -> web/shop.js::market::later Import
        web/app.js::run -> web/till.js::exports Import
        ",
    );
}

#[test]
fn modules_that_export_each_other_export_nothing() {
    check(
        "
web/app.js
  use ./shop - as shop
  run
    > shop
    > shop.open
web/shop.js
  use ./till - as exports
web/till.js
  use ./door - as door
  use = door as exports
web/door.js
  use ./shop - as exports
web/all.js
  use ./till *
  open
    > exports
",
        "",
    );
}

#[test]
fn of_many_files_that_are_passed_on_the_last_is_found() {
    let list = |line: fn(u8) -> String| (0..100).map(line).collect::<String>();
    let [imports, files] =
        [list(|at| format!("  use ./other{at} *\n")), list(|at| format!("src/other{at}.ts\n"))];
    check(
        &format!(
            "src/run.ts\n  use ./index haggle\n  run\n    > haggle\nsrc/index.ts\n{imports}{files}  haggle\n"
        ),
        "src/run.ts::run -> src/other99.ts::haggle Import",
    );
}
