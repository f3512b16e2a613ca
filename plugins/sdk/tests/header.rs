//! The header and its Rust are the same interface.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use eisen_plugin::abi::{self, field, kind};

const HEADER: &str = include_str!("../include/eisen_plugin.h");

/// What an `EISEN_X = n` or a `#define EISEN_X nu` of the header says.
fn constants() -> BTreeMap<&'static str, u64> {
    let named = |line: &'static str| {
        let line = line.trim().trim_start_matches("enum { ");
        line.split(", ").filter_map(|part| {
            let (name, value) = part.strip_prefix("EISEN_")?.split_once(" = ")?;
            let digits = value.split(|letter: char| !letter.is_ascii_digit()).next()?;
            Some((name, digits.parse().unwrap()))
        })
    };
    let found: Vec<(&str, u64)> = HEADER.lines().flat_map(named).collect();
    let constants: BTreeMap<_, _> = found.iter().copied().collect();
    assert_eq!(found.len(), constants.len(), "a name is there twice");
    constants
}

macro_rules! pairs {
    ($($from:ident :: { $($name:ident),* $(,)? }),* $(,)?) => {
        [$($((stringify!($name), u64::from($from::$name)),)*)*]
    };
}

#[test]
fn constants_are_equal() {
    let expected = pairs! {
        abi::{GATES, DRIVES, TO_AGENT, TO_CLIENT},
        kind::{
            DESCRIPTION, ERROR, SESSION, TURN_BEGAN, TURN_ENDED, TOUCHED, USAGE, MODEL, TEXT, ASK,
            LINE, RUNS, WITHDRAWN,
        },
        field::{
            ID, NAME, VERSION, PROTOCOL, BODY, REASON, ACTION, PATH, TITLE, USED, SIZE, COST,
            CURRENCY, COMMAND,
        },
    };
    assert_eq!(constants(), expected.into_iter().collect());
    assert!(HEADER.contains(&format!("#define EISEN_ABI {}u\n", abi::ABI)));
    assert!(HEADER.contains(&format!("const eisen_plugin *{}(", abi::ENTRY)));
}

macro_rules! layout {
    ($($c:literal is $rust:ty { $($field:ident),* $(,)? })*) => {
        [$(
            (format!("sizeof({})", $c), size_of::<$rust>()),
            $((format!("offsetof({}, {})", $c, stringify!($field)), offset_of!($rust, $field)),)*
        )*]
    };
}

#[test]
fn layouts_are_equal() {
    let expected = layout! {
        "eisen_bytes" is abi::Bytes { data, length }
        "eisen_output" is abi::Output { host, put }
        "eisen_host" is abi::Host { size, abi, features }
        "eisen_plugin" is abi::Plugin {
            size, abi, features, describe, self_test, create, destroy, observe, gate, deny, start,
            prompt, cancel, allow,
        }
    };
    let mut program =
        "#include <eisen_plugin.h>\n#include <stdio.h>\nint main(void)\n{\n".to_owned();
    for (what, _) in &expected {
        let _ = writeln!(program, "    printf(\"{what} %zu\\n\", {what});");
    }
    program += "    return 0;\n}\n";

    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I", include, "-o"])
        .args([&binary, &source])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = String::from_utf8(Command::new(binary).output().unwrap().stdout).unwrap();
    let expected: Vec<_> = expected.iter().map(|(what, size)| format!("{what} {size}")).collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

/// C++ reads it as well.
#[test]
fn it_is_no_less_cpp() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join("plugin.cpp");
    std::fs::write(&source, "#include <eisen_plugin.h>\n").unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let compiled = Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include])
        .arg(&source)
        .output();
    let Ok(compiled) = compiled else {
        println!("skipped: there is no c++");
        return;
    };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}
