//! Guesses from names and paths: common methods, tests, variables named like their class.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::ids::Family;

type Words = LazyLock<FxHashSet<&'static str>>;

/// Names of the languages' standard libraries: a value with such a method may be of any type.
static RUST: Words = LazyLock::new(|| words(include_str!("heuristics/rust.txt")));

static PYTHON: Words = LazyLock::new(|| words(include_str!("heuristics/python.txt")));

static SCRIPT: Words = LazyLock::new(|| words(include_str!("heuristics/script.txt")));

/// Objects that the environment of a script provides.
const SCRIPT_GLOBALS: &[&str] = &[
    "console",
    "crypto",
    "document",
    "exports",
    "fs",
    "global",
    "globalThis",
    "history",
    "jest",
    "localStorage",
    "location",
    "module",
    "navigator",
    "path",
    "performance",
    "process",
    "self",
    "sessionStorage",
    "window",
];

/// Returns whether a name is too short to resolve.
pub(super) fn is_short(name: &str) -> bool {
    name.chars().nth(2).is_none()
}

/// Returns whether values of any type have a method of the name.
pub(super) fn is_common(family: Family, name: &str) -> bool {
    match family {
        Family::Rust => RUST.contains(name),
        Family::Python => PYTHON.contains(name) || name.starts_with("__"),
        Family::Script => SCRIPT.contains(name) || name == "constructor",
        Family::Other(_) => [&RUST, &PYTHON, &SCRIPT].iter().any(|words| words.contains(name)),
    }
}

/// Returns whether the path is that of a test.
pub(super) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| {
        matches!(part, "test" | "tests" | "__tests__")
            || part.starts_with("test_")
            || part.contains(".test.")
            || part.contains(".spec.")
            || part.contains(".test-d.")
    })
}

/// Returns whether a variable of the name exists without a declaration.
pub(super) fn is_global(family: Family, name: &str) -> bool {
    family == Family::Script && SCRIPT_GLOBALS.contains(&name)
}

/// Returns whether a variable is named like a class: `till` or `new_till` like `Till`, `till` like
/// `TownTill`. `exactly`: only `till` like `Till`.
pub(super) fn is_called_after(variable: &str, class: &str, exactly: bool) -> bool {
    let (variable, class) = (letters(variable), letters(class));
    if [&variable, &class].into_iter().any(|name| name.clone().nth(2).is_none()) {
        return false;
    }
    if exactly {
        return variable.eq(class);
    }
    // The shorter name ends the longer one.
    variable.rev().zip(class.rev()).all(|(one, other)| one == other)
}

/// Returns whether wrappers of any type use this name for the wrapped value.
pub(super) fn is_wrapped(variable: &str) -> bool {
    variable == "inner"
}

/// Returns the part that a variable shares with the class that it is named like.
pub(super) fn ending(name: &str) -> [Option<char>; 3] {
    let mut letters = letters(name).rev();
    std::array::from_fn(|_| letters.next())
}

/// Returns the letters and digits of a name in lower case.
fn letters(name: &str) -> impl DoubleEndedIterator<Item = char> + Clone {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

fn words(text: &'static str) -> FxHashSet<&'static str> {
    text.split_whitespace().collect()
}
