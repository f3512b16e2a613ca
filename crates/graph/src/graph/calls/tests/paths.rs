//! Tests of the resolution of paths of names.

use super::notation::edges_in;
use super::rules::check;

#[test]
fn what_a_path_names_is_no_value() {
    check(
        "
src/lib.rs
  table
  run
    > tracing::bargain
    > shop.bargain
    > table::bargain
    > self::ring
    > std::cell::Cell::make
  inner
    ring
    run
      > self::ring
  ring
src/shop.rs
  class Dump
    bargain
  class Cell
    make
",
        "
        src/lib.rs::inner::run -> src/lib.rs::inner::ring Scope
        src/lib.rs::run -> src/lib.rs::ring File
        src/lib.rs::run -> src/shop.rs::Dump::bargain Folder
        ",
    );
}

#[test]
fn a_value_is_no_module() {
    check(
        "
src/lib.rs
  use crate::shop -
  run
    > shop.open
src/shop.rs
  open
",
        "",
    );
}

#[test]
fn tests_and_programs_call_the_library_beside_them() {
    check(
        "
Cargo.toml
  town
src/lib.rs
src/sync/mod.rs
src/sync/mpsc.rs
  channel
src/io.rs
  empty
tests/all.rs
  use town::sync mpsc
  use town::sync::mpsc channel
  use town::sync::mpsc *
  run
    > mpsc::channel
    > town::io::empty
    > serde::io::empty
    > Self::io::empty
benches/all.rs
  use town::io *
  run
    > empty
src/main.rs
  use tokio::sync::mpsc channel
  main
    > tokio::io::empty
    > channel
    > town::io::empty
src/bin/sell.rs
  main
    > town::sync::mpsc::channel
",
        "
        benches/all.rs::run -> src/io.rs::empty Import
        src/bin/sell.rs::main -> src/sync/mpsc.rs::channel Import
        src/main.rs::main -> src/io.rs::empty Import
        tests/all.rs::run -> src/io.rs::empty Import
        tests/all.rs::run -> src/sync/mpsc.rs::channel Import
        ",
    );
}

#[test]
fn a_name_of_several_packages_is_the_own_one() {
    let package = |folder: &str| {
        format!(
            "{folder}/Cargo.toml\n  town\n{folder}/src/lib.rs\n  open\n\
             {folder}/tests/all.rs\n  run\n    > town::open\n"
        )
    };
    check(
        &(package("old") + &package("new") + "other/src/lib.rs\n  run\n    > town::open\n"),
        "
        new/tests/all.rs::run -> new/src/lib.rs::open Import
        old/tests/all.rs::run -> old/src/lib.rs::open Import
        ",
    );
}

#[test]
fn modules_within_a_file_have_files() {
    check(
        "
src/lib.rs
  gen
    clone
    all
      > clone::copy
      > self::clone::copy
      > copy::copy
  run
    > gen::clone::copy
    > gen::copy
src/clone.rs
  copy
src/gen/clone.rs
  copy
    > crate::shop::ring
  > crate::run
src/shop.rs
  ring
src/bin/tool.rs
  main
    > crate::run
tests/all.rs
  support
    town
  run
    > support::town::ring
tests/support/town.rs
  ring
",
        "
        src/gen/clone.rs -> src/lib.rs::run Import
        src/gen/clone.rs::copy -> src/shop.rs::ring Import
        src/lib.rs::gen::all -> src/gen/clone.rs::copy Import
        src/lib.rs::run -> src/gen/clone.rs::copy Import
        tests/all.rs::run -> tests/support/town.rs::ring Import
        ",
    );
}

#[test]
fn a_function_may_have_the_name_of_a_module() {
    check(
        "
src/lib.rs
  open
  open
    > ring
  bar
    shut
    shut
      > ring
    > shut
  ring
  run
    > open
    > open::start
    > bar::shut
    > bar::shut::start
src/open.rs
  start
src/bar/shut.rs
  start
",
        "
        src/lib.rs::bar -> src/lib.rs::bar::shut#2 Scope
        src/lib.rs::bar::shut#2 -> src/lib.rs::ring File
        src/lib.rs::open#2 -> src/lib.rs::ring File
        src/lib.rs::run -> src/bar/shut.rs::start Import
        src/lib.rs::run -> src/lib.rs::bar::shut#2 File
        src/lib.rs::run -> src/lib.rs::open#2 File
        src/lib.rs::run -> src/open.rs::start Import
        ",
    );
}

#[test]
fn what_is_above_a_file_may_stand_in_another_file() {
    check(
        "
src/lib.rs
  gen
    fast
      ring
    ring
    clone
  ring
src/gen/clone.rs
  use super ring as bell
  run
    > super::ring
    > super::super::ring
    > bell
src/gen/fast/copy.rs
  run
    > super::ring
    > super::super::ring
    > super::clone::run
src/other/clone.rs
  run
    > super::ring
",
        "
        src/gen/clone.rs::run -> src/lib.rs::gen::ring Import
        src/gen/clone.rs::run -> src/lib.rs::ring Import
        src/gen/fast/copy.rs::run -> src/lib.rs::gen::fast::ring Import
        src/gen/fast/copy.rs::run -> src/lib.rs::gen::ring Import
        ",
    );
}

#[test]
fn what_tests_have_is_meant_by_tests_beside_them() {
    check(
        "
src/lib.rs
src/tests/mod.rs
src/tests/rt.rs
  class Rt
    block_on
    shut
    assert_same
src/rt.rs
  class Runtime
    shut
  run
    > rt.shut
    > rt.block_on
tests/all.rs
  run
    > rt.block_on
tests/same.rs
  class Same
    assert_same
src/tests/all.rs
  run
    > rt.block_on
    > testing.assert_same
src/known.rs
  use crate::tests::rt Rt
  run
    > rt.block_on
",
        "
        src/known.rs::run -> src/tests/rt.rs::Rt::block_on Import
        src/rt.rs::run -> src/rt.rs::Runtime::shut File
        src/tests/all.rs::run -> src/tests/rt.rs::Rt::block_on Folder
        ",
    );
}

#[test]
fn short_names_of_variables_match_no_class() {
    check(
        "
src/chan.rs
  class Rx
    drain_all
    close_all
  class Receiver
    drain_all
tests/all.rs
  run
    > rx.drain_all
    > rx.close_all
    > receiver.drain_all
",
        "
        tests/all.rs::run -> src/chan.rs::Receiver::drain_all Workspace
        tests/all.rs::run -> src/chan.rs::Rx::close_all Workspace
        ",
    );
}

#[test]
fn a_workspace_of_python_can_be_the_package_itself() {
    let files = "
shop.py
  use town.till.ring ring as bell
  class Shop
    open
      > bell
till/ring.py
  use town Shop
  use town.shop -
  use townhall.shop -
  ring
    > Shop
    > town.shop.Shop
  other
    > townhall.shop.Shop
";
    let package = format!("__init__.py\n  use .shop Shop\n{files}");
    let expected = "\
shop.py::Shop::open -> till/ring.py::ring Import
till/ring.py::ring -> shop.py::Shop Import
";
    assert_eq!(edges_in("town", &package), expected);
    assert_eq!(edges_in("shire", &package), "");
    assert_eq!(edges_in("town", files), "");
}
