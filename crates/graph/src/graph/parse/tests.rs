//! Facts of small texts, and of hostile ones.

#![allow(clippy::unwrap_used)]
mod scripts;

use std::fmt::Write as _;
use std::path::Path;

use expect_test::{Expect, expect};

use super::*;
use crate::graph::facts::{Kind, Receiver};

fn facts(file: &str, text: impl AsRef<[u8]>) -> Facts {
    Parser::new().facts(Language::of(Path::new(file)), text.as_ref())
}

/// Symbols with their lines, then bases, calls with their callers, then imports.
fn check(file: &str, text: &str, expected: &Expect) {
    let facts = facts(file, text);
    let mut shown = String::new();
    let mut paths: Vec<String> = Vec::new();
    for symbol in &facts.symbols {
        let parent = symbol.parent.map(|parent| format!("{}::", paths[parent as usize]));
        paths.push(parent.unwrap_or_default() + &symbol.name);
        let kind = match symbol.kind {
            Kind::Class => "class",
            Kind::Method => "method",
            _ => "function",
        };
        let Lines { start, end } = symbol.lines;
        writeln!(shown, "{kind} {} {start}-{end}", paths.last().unwrap()).unwrap();
    }
    for base in &facts.bases {
        writeln!(shown, "{} is a {}", paths[base.class as usize], base.path).unwrap();
    }
    for call in &facts.calls {
        let on = match &call.on {
            Receiver::Nothing => String::new(),
            Receiver::Own => "own.".to_owned(),
            Receiver::Base => "base.".to_owned(),
            Receiver::Named(name) => format!("{name}."),
            Receiver::Within(name) => format!("{name}::"),
            Receiver::Value => "?.".to_owned(),
        };
        let within = call.within.map_or("-", |within| &paths[within as usize]);
        writeln!(shown, "{within} calls {on}{}", call.name).unwrap();
    }
    for import in &facts.imports {
        let name = import.name.as_deref().unwrap_or("-");
        let exported = if import.exported { " exported" } else { "" };
        writeln!(shown, "import {} {name} {}{exported}", import.module, import.alias).unwrap();
    }
    expected.assert_eq(&shown);
}

#[test]
fn rust() {
    check(
        "shop.rs",
        r#"use std::fmt::{self, Display};
pub use crate::till::Till as Box;
const LIMIT: u32 = 3;
impl Display for Shop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.name().fmt(f) }
}
impl std::fmt::Debug for Shop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}", label(3)) }
}
#[derive(Clone)]
pub struct Shop<T> {
    name: T,
}
impl<T: Open> Shop<T> {
    const DOORS: u32 = 2;
    pub fn open(&self) -> Till {
        fn inner() {}
        const LOCAL: u32 = 1;
        inner();
        Till { cash: Till::new::<u8>() }
    }
}
impl Open for Vec<u8> {
    fn open() {}
}
trait Open { fn open(); type Door; }
macro_rules! label { () => {} }
type Name = String;
mod tests {
    use super::*;
    #[test]
    fn it_works() { assert_eq!(Shop::default().open(), crate::till::make(1)); }
}
"#,
        &expect![[r#"
            function LIMIT 3-3
            class Shop 11-13
            method Shop::fmt 5-5
            method Shop::fmt 8-8
            function Shop::DOORS 15-15
            method Shop::open 16-21
            function Shop::open::inner 17-17
            class Vec 23-25
            method Vec::open 24-24
            class Open 26-26
            method Open::open 26-26
            function Open::Door 26-26
            function label 27-27
            function Name 28-28
            function tests 29-33
            function tests::it_works 32-32
            Shop::fmt calls own.name
            Shop::fmt calls ?.fmt
            Shop::fmt calls write
            Shop::fmt calls label
            Shop::open calls inner
            Shop::open calls Till
            Shop::open calls Till::new
            tests::it_works calls assert_eq
            tests::it_works calls ?.open
            tests::it_works calls crate::till::make
            import std fmt fmt
            import std::fmt Display Display
            import crate::till Till Box exported
            import self - *
        "#]],
    );
}

#[test]
fn python() {
    check(
        "shop.py",
        r#"import os
import numpy as np, os.path
from .till import Till as T, make
from . import prices
from shop.all import *
LIMIT = 3
names: list = []
type Pairs[T] = list[T]
left, right = names
@decorate
class Shop(Base):
    field = 1

    @property
    def name(self):
        local, other = 2, 3
        pick = lambda item: item
        return self.make(np.array())

    async def open(self):
        def inner():
            pass
        await inner()

def main():
    Shop().open()
    os.path.join("a")

if __name__ == "__main__":
    main()
"#,
        &expect![[r#"
            function LIMIT 6-6
            function names 7-7
            function Pairs 8-8
            function left 9-9
            function right 9-9
            class Shop 10-23
            method Shop::name 14-18
            function Shop::name::pick 17-17
            method Shop::open 20-23
            function Shop::open::inner 21-22
            function main 25-27
            Shop is a Base
            Shop calls decorate
            Shop::name calls property
            Shop::name calls own.make
            Shop::name calls np.array
            Shop::open calls inner
            main calls Shop
            main calls ?.open
            main calls os.path.join
            - calls main
            import os - os
            import numpy - np
            import os.path - os.path
            import .till make make exported
            import .till Till T exported
            import . prices prices exported
            import shop.all - * exported
        "#]],
    );
}

#[test]
fn broken_text_gives_what_can_be_had() {
    check(
        "broken.rs",
        "fn first() { second( }\n}}} struct\nfn third() {}\nimpl { fn",
        &expect![[r#"
            function first 1-2
            class third 2-3
        "#]],
    );
    check(
        "broken.py",
        "class Shop:\n  def open(self:\n\ndef main(): run(\n",
        &expect![[r#"
        class Shop 1-2
    "#]],
    );
    check(
        "broken.ts",
        "class A { m() { f( } \n function g() { h() }",
        &expect![[r#"
        - calls h
    "#]],
    );
}

#[test]
fn what_is_no_utf8_survives() {
    let facts = facts("shop.py", b"def caf\xe9(): pass\ndef open():\n  '\xff'\n");
    let names: Vec<_> = facts.symbols.iter().map(|symbol| &*symbol.name).collect();
    assert!(names.contains(&"open"), "{names:?}");
}

#[test]
fn what_is_no_text_of_the_language_is_given_up() {
    let garbage: Vec<u8> = (1..=255).cycle().step_by(7).take(200_000).collect();
    let strays = "fn first() {}\n".to_owned() + &")".repeat(1_000_000);
    let (odd, few) = ("\u{1}\n".repeat(100), "# \u{1b}\u{2}\n".repeat(8));
    for (file, text, is_read) in [
        ("a.rs", &garbage[..], false),
        ("a.py", &garbage, false),
        ("a.ts", &garbage, false),
        ("a.rs", strays.as_bytes(), false),
        ("a.rs", &strays.as_bytes()[..4_000], true),
        ("a.py", odd.as_bytes(), false),
        ("a.py", few.as_bytes(), true),
    ] {
        let facts = facts(file, text);
        let start = String::from_utf8_lossy(&text[..20]);
        assert_eq!(facts.language.is_some(), is_read, "{file} {start:?}");
        assert_eq!(facts.lines, count_lines(text));
    }
}

#[test]
fn a_text_that_takes_its_parser_too_long_is_given_up() {
    // What is allowed for its size alone is many times what the one takes, and a part of the other's.
    let mut parser = Parser { max_time: Duration::ZERO, ..Parser::new() };
    for (text, is_read) in
        [("fn f() { g(1); }\n".repeat(8_000), true), ("\"".repeat(130_000), false)]
    {
        let facts = parser.facts(Language::of(Path::new("a.rs")), text.as_bytes());
        assert_eq!(facts.language.is_some(), is_read, "{}", &text[..20]);
    }
}

#[test]
fn lines_are_counted_from_one_to_the_last() {
    for (text, lines) in [("", 1), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)] {
        assert_eq!(facts("a.txt", text).lines, lines, "{text:?}");
        assert_eq!(facts("a.rs", text).lines, lines, "{text:?}");
    }
}

#[test]
fn bases_are_plain_names() {
    let python = "\
@final
class Shop(Base, town.Market[T], make(), (a).B, metaclass=Meta):
    class Till(Base):
        def open(self):
            super().open()
            super(Shop, self).close()
";
    let expected = expect![[r#"
        class Shop 1-6
        class Shop::Till 3-6
        method Shop::Till::open 4-6
        Shop is a Base
        Shop is a town.Market
        Shop::Till is a Base
        Shop calls final
        Shop calls make
        Shop::Till::open calls super
        Shop::Till::open calls base.open
        Shop::Till::open calls super
        Shop::Till::open calls base.close
    "#]];
    check("shop.py", python, &expected);
    let script = "\
class Shop extends town.Market { constructor() { super(1); super.open(); this.super.open(); } }
const Till = class extends Shop {};
class Bell extends make(Shop) {}
export default class extends Bell {}
ring(class extends Shop {});
";
    let expected = expect![[r#"
        class Shop 1-1
        method Shop::constructor 1-1
        class Till 2-2
        class Bell 3-3
        class default 4-4
        Shop is a town.Market
        Till is a Shop
        default is a Bell
        Shop::constructor calls base.constructor
        Shop::constructor calls base.open
        Shop::constructor calls this.super.open
        Bell calls make
        - calls ring
    "#]];
    check("shop.js", script, &expected);
    let typed = "\
class Shop extends town.Market<Till> implements Open { constructor() { super(1); super.open(); } }
abstract class Till extends Shop {}
const Bell = class extends Shop implements Open {};
interface Open extends Close {}
";
    let expected = expect![[r#"
        class Shop 1-1
        method Shop::constructor 1-1
        class Till 2-2
        class Bell 3-3
        class Open 4-4
        Shop is a town.Market
        Till is a Shop
        Bell is a Shop
        Shop::constructor calls base.constructor
        Shop::constructor calls base.open
    "#]];
    check("shop.ts", typed, &expected);
}

#[test]
fn extensions_that_hold_each_others_types_come_to_an_end() {
    let text = "impl A { fn f() { struct B; } }\nimpl B { fn g() { struct A; } }\n";
    check(
        "a.rs",
        text,
        &expect![[r#"
        class A 1-1
        method A::f 1-1
        class A::f::B 1-1
        class B 2-2
        method B::g 2-2
        class B::g::A 2-2
    "#]],
    );
}

#[test]
fn nesting_is_followed_only_so_far() {
    for (file, open, close) in [
        ("a.rs", "fn f() { ", "}"),
        ("a.rs", "mod m { impl A { fn f() {", "}}}"),
        ("a.js", "function f() { ", "}"),
        ("a.js", "f(", ")"),
        ("a.py", "(", ")"),
        ("a.ts", "class A { m() { return ", "}}"),
        ("a.tsx", "<A>{", "}</A>"),
    ] {
        let text = open.repeat(20_000) + &close.repeat(20_000);
        let facts = facts(file, &text);
        let depth = |symbol: &crate::graph::facts::Symbol| {
            let parent = |at: &u32| facts.symbols[*at as usize].parent;
            std::iter::successors(symbol.parent, parent).count()
        };
        assert!(facts.symbols.iter().map(depth).max().unwrap_or(0) <= 32, "{file} {open}");
    }
}
