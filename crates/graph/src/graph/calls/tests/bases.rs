//! Tests of methods that classes inherit.

use super::rules::check;

#[test]
fn what_a_class_has_not_its_bases_have() {
    check(
        "
town.py
  class Base
    ring
    close
shop.py
  use . town
  use .door Door
  class Market town.Base
    haggle
  class Shop Market Door
    open
      > self.haggle
      > self.ring
      > self.lock
      > self.close
    close
      > super.close
  class Till
    haggle
    ring
door.py
  class Door
    ring
    lock
",
        "
        shop.py::Shop::close -> town.py::Base::close Import
        shop.py::Shop::open -> door.py::Door::lock Import
        shop.py::Shop::open -> shop.py::Market::haggle File
        shop.py::Shop::open -> shop.py::Shop::close Scope
        shop.py::Shop::open -> town.py::Base::ring Import
        ",
    );
}

#[test]
fn bases_of_scripts_are_brought_in_as_all_is() {
    check(
        "
shop.js
  use ./base - as Base
  class Shop Base
    open
      > this.lock
    constructor
      > super.constructor
base.js
  class Base Root
    constructor
  class Root
    lock
unknown.js
  Frame
    bargain
  class Window Frame
    open
      > this.bargain
  class Door Unknown
    constructor
      > super.constructor
",
        "
        shop.js::Shop::constructor -> base.js::Base::constructor Import
        shop.js::Shop::open -> base.js::Root::lock Import
        ",
    );
}

#[test]
fn what_two_bases_have_goes_behind_both() {
    check(
        "
shop.py
  class Base
    ring
    open
  class Market Base
  class Door Base
    ring
  class Shop Market Door
    start
      > self.ring
      > self.open
",
        "
        shop.py::Shop::start -> shop.py::Base::open File
        shop.py::Shop::start -> shop.py::Door::ring File
        ",
    );
}

#[test]
fn bases_in_a_circle_have_what_they_have() {
    check(
        "
a.py
  use .b Till
  class Shop Till Shop
    open
      > self.ring
      > super.open
      > super.close
b.py
  use .a Shop
  class Till Shop
    ring
",
        "a.py::Shop::open -> b.py::Till::ring Import",
    );
}

#[test]
fn what_may_come_from_a_base_outside_is_nothing_inside() {
    check(
        "
shop.py
  use serde Visitor
  class Shop Visitor
    open
      > self.haggle
      > super.haggle
  class Stall Unknown
    open
      > self.haggle
    bargain
      > super.bargain
  class Till Shop Market
    open
      > super.haggle
  class Market
    haggle
",
        "
        shop.py::Stall::open -> shop.py::Market::haggle File
        shop.py::Till::open -> shop.py::Market::haggle File
        ",
    );
}

#[test]
fn what_several_go_on_from_is_looked_at_once() {
    let levels = (1..=30).map(|level| {
        let (a, b) = (format!("A{}", level - 1), format!("B{}", level - 1));
        format!("  class A{level} {a} {b}\n  class B{level} {a} {b}\n")
    });
    let levels = levels.collect::<String>();
    let files = "
    haggle
  class Top A30 B30
    open
      > self.haggle
  class Till
    haggle
";
    check(
        &format!("shop.py\n  class A0\n  class B0\n{}{files}", levels.trim_end()),
        "shop.py::Top::open -> shop.py::B30::haggle File",
    );
}
