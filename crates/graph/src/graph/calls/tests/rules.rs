//! The rules that resolve a call.

use super::notation::edges;

#[track_caller]
pub(super) fn check(files: &str, expected: &str) {
    let expected = expected.lines().map(str::trim).filter(|line| !line.is_empty());
    assert_eq!(edges(files).lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn what_is_near_goes_before_what_is_far() {
    check(
        "
src/lib.rs
  open
    > count
    count
  count
src/till.rs
  sell
    > self::count
    > count
  count
  > sell
",
        "
        src/lib.rs::open -> src/lib.rs::open::count Scope
        src/till.rs -> src/till.rs::sell File
        src/till.rs::sell -> src/till.rs::count File
        ",
    );
}

#[test]
fn the_own_class_goes_before_others() {
    check(
        "
shop.py
  class Shop
    start
      > self.close
      > ?.close
    close
  class Till
    close
",
        "shop.py::Shop::start -> shop.py::Shop::close Scope",
    );
}

#[test]
fn rust_paths_are_walked() {
    check(
        "
app/src/lib.rs
  use self::shop Shop
  use shop *
  run
    > Shop::new
    > shop::prices::list
    > crate::till::ring
    > haggle
    > bargain::start
    > town::market::visit
app/src/shop.rs
  use prices list as haggle
  use super::till - as bargain
  class Shop
    new
      > Self::fresh
      > super::run
      > super::till::ring
    fresh
app/src/shop/prices.rs
  list
app/src/till/mod.rs
  ring
  start
crates/town/Cargo.toml
  town
crates/town/src/lib.rs
  use self::inner *
  market
    visit
crates/town-hall/src/main.rs
  use town::market visit
  main
    > visit
    > other::visit
",
        "
        app/src/lib.rs::run -> app/src/shop.rs::Shop::new Import
        app/src/lib.rs::run -> app/src/shop/prices.rs::list Import
        app/src/lib.rs::run -> app/src/till/mod.rs::ring Import
        app/src/lib.rs::run -> app/src/till/mod.rs::start Import
        app/src/lib.rs::run -> crates/town/src/lib.rs::market::visit Import
        app/src/shop.rs::Shop::new -> app/src/lib.rs::run Import
        app/src/shop.rs::Shop::new -> app/src/shop.rs::Shop::fresh Scope
        app/src/shop.rs::Shop::new -> app/src/till/mod.rs::ring Import
        crates/town-hall/src/main.rs::main -> crates/town/src/lib.rs::market::visit Import
        ",
    );
}

#[test]
fn methods_of_a_type_may_stand_in_another_file() {
    check(
        "
src/lib.rs
  class Shop
    new
      > Self::close
  run
    > Shop::close
src/close.rs
  class Shop
    close
src/vec.rs
  class Till
    close
",
        "
        src/lib.rs::Shop::new -> src/close.rs::Shop::close Folder
        src/lib.rs::run -> src/close.rs::Shop::close Import
        ",
    );
}

#[test]
fn python_modules_are_followed() {
    check(
        "
src/town/__init__.py
  use .shop Shop
  use .till *
src/town/shop.py
  use . till
  use ..town.till ring as bell
  class Shop
    start
      > till.ring
      > bell
src/town/till.py
  ring
tests/test_town.py
  use town -
  use town Shop
  use town.till -
  use json -
  test
    > Shop
    > town.ring
    > town.till.ring
    > json.ring
    > town.Shop.start
",
        "
        src/town/shop.py::Shop::start -> src/town/till.py::ring Import
        tests/test_town.py::test -> src/town/shop.py::Shop Import
        tests/test_town.py::test -> src/town/shop.py::Shop::start Import
        tests/test_town.py::test -> src/town/till.py::ring Import
        ",
    );
}

#[test]
fn a_value_has_a_method_that_only_one_type_has() {
    check(
        "
a/shop.ts
  class Shop
    bargain
    close
    haggle
  class Till
    haggle
a/run.ts
  use ./shop Shop
  named
    > new_till.haggle
    > townShop.haggle
    > other.haggle
  run
    > ?.bargain
    > shop.bargain
    > ?.haggle
    > console.bargain
    > ?.push
b/other.ts
  other
    > ?.ring
    > ?.bargain
b/bell.ts
  class Bell
    ring
    push
c/other.py
  class Other
    bargain
c/run.py
  run
    > ?.ring
",
        "
        a/run.ts::named -> a/shop.ts::Shop::haggle Import
        a/run.ts::named -> a/shop.ts::Till::haggle Import
        a/run.ts::run -> a/shop.ts::Shop::bargain Import
        b/other.ts::other -> a/shop.ts::Shop::bargain Workspace
        b/other.ts::other -> b/bell.ts::Bell::ring Folder
        ",
    );
}

#[test]
fn what_comes_from_outside_is_not_looked_for_inside() {
    check(
        "
src/a.rs
  use serde::de visit
  use std::fs -
  use tokio -
  run
    > visit
    > fs::visit
    > tokio::visit
src/b.rs
  visit
",
        "",
    );
}

#[test]
fn no_edge_to_itself_none_twice_and_none_for_short_names() {
    check(
        "
a.js
  open
    > open
    > go
    > close
    > close
  go
  close
",
        "a.js::open -> a.js::close File",
    );
}

#[test]
fn of_siblings_with_one_name_the_one_that_counts() {
    check(
        "
a.py
  load
  load
  > load
b.ts
  show
  show
  run
    > show
c.rs
  show
  show
  run
    > show
  class Shop
    from_row
    from_row
    make
      > Self::from_row
",
        "
        a.py -> a.py::load#2 File
        b.ts::run -> b.ts::show#2 File
        c.rs::run -> c.rs::show File
        ",
    );
}

#[test]
fn imports_in_circles_come_to_an_end() {
    check(
        "
a.py
  use .b *
  use .b name
  > name
b.py
  use .a *
  use .c *
  use .a name
c.py
  use .b *
  use .a *
src/lib.rs
  use a::b -
  use b::a -
  use self::x *
  use crate *
  > name
  > a::name
",
        "",
    );
}

#[test]
fn tests_beside_their_code_and_in_folders_of_their_own() {
    check(
        "
src/lib.rs
  test
src/kqueue.rs
  use crate::test test
  use crate::test *
  tests
    run
      > testdir
      > test::testdir
src/test.rs
  testdir
src/tests/mod.rs
src/tests/util.rs
  tmp
src/tests/all.rs
  use crate::tests::util tmp
  run
    > tmp
tests/common/mod.rs
  setup
tests/cli.rs
  run
    > common::setup
",
        "
        src/kqueue.rs::tests::run -> src/test.rs::testdir Import
        src/tests/all.rs::run -> src/tests/util.rs::tmp Import
        tests/cli.rs::run -> tests/common/mod.rs::setup Import
        ",
    );
}

#[test]
fn a_root_among_modules_is_walked_from() {
    let expected = "mod.rs::run -> till.rs::ring Import";
    check("\nmod.rs\n  run\n    > crate::till::ring\ntill.rs\n  ring\n", expected);
}
