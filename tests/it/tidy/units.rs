//! Holds `cargo run` and `cargo test --workspace` to the same units: who does one after the other builds no
//! dependency twice.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn cargo_run_and_cargo_test_build_the_same_units() {
    let run = units(&["-e", "no-dev"]);
    let test = units(&["--workspace"]);
    let other: Vec<_> = run.difference(&test).collect();
    assert!(run.len() > 100, "{run:?}");
    assert!(
        other.is_empty(),
        "tests turn on other features of these: turn them on in [dependencies] too: {other:?}"
    );
}

/// Each package with its features, as Cargo resolves them for a build with these arguments.
fn units(arguments: &[&str]) -> BTreeSet<String> {
    let cargo = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none", "-f", "{p} {f}"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let tree = String::from_utf8(cargo.stdout).unwrap();
    tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}
