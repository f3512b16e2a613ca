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
