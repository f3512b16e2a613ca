//! Calls on values of unknown type.

use super::rules::check;

#[test]
fn what_the_language_itself_has_is_of_a_class_of_the_workspace_by_name_only() {
    check(
        "
src/duration.rs
  class SignedDuration
    unsigned_abs
    checked_add
    into_raw_fd
    weigh
src/run.rs
  run
    > hours.unsigned_abs
    > ?.checked_add
    > socket.into_raw_fd
    > hours.weigh
src/named.rs
  use crate::duration SignedDuration
  run
    > signed_duration.unsigned_abs
src/lib.rs
shop/dice.py
  class LoadedDice
    shuffle
    randint
    recvfrom_into
    weigh
shop/run.py
  run
    > random.shuffle
    > seed.randint
    > ?.recvfrom_into
    > seed.weigh
",
        "
        shop/run.py::run -> shop/dice.py::LoadedDice::weigh Folder
        src/named.rs::run -> src/duration.rs::SignedDuration::unsigned_abs Import
        src/run.rs::run -> src/duration.rs::SignedDuration::weigh Folder
        ",
    );
}

#[test]
fn a_class_that_is_called_just_so_goes_before_one_that_ends_so() {
    check(
        "
src/span.rs
  class Span
    hours
  class ToSpan
    hours
src/run.rs
  use crate::span Span
  use crate::span ToSpan
  run
    > span.hours
",
        "src/run.rs::run -> src/span.rs::Span::hours Import",
    );
}

#[test]
fn what_is_wrapped_is_of_a_class_that_is_near() {
    check(
        "
src/oneshot.rs
  class Inner
    poll_recv
  class Receiver
    recv
      > inner.poll_recv
src/signal.rs
  class Signal
    poll_recv
      > inner.poll_recv
",
        "src/oneshot.rs::Receiver::recv -> src/oneshot.rs::Inner::poll_recv File",
    );
}

#[test]
fn a_class_of_a_function_is_known_there_alone() {
    check(
        "
shop/cases.py
  open
    class Till
      ring
        > ?.weigh_up
      weigh_up
    > till.ring
  close
    > till.ring
    > ?.weigh_up
shop/run.py
  run
    > till.ring
    > ?.weigh_up
src/lib.rs
  till
    class Till
      weigh_up
src/run.rs
  run
    > till.weigh_up
",
        "
        shop/cases.py::open -> shop/cases.py::open::Till::ring File
        shop/cases.py::open::Till::ring -> shop/cases.py::open::Till::weigh_up File
        src/run.rs::run -> src/lib.rs::till::Till::weigh_up Folder
        ",
    );
}

#[test]
fn what_only_declares_a_method_has_none() {
    check(
        "
shop/till.pyi
  class Till
    ring
shop/run.py
  run
    > till.ring
web/till.d.cts
  class Till
    ring
web/till.d.mts
  class Till
    weigh
web/till.ts
  class Till
    settle
web/run.ts
  run
    > till.ring
    > till.weigh
    > till.settle
",
        "web/run.ts::run -> web/till.ts::Till::settle Folder",
    );
}
