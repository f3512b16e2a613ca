//! What a path of names leads to, and what it doesn't.

use super::rules::check;

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
