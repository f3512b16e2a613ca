//! Holds `cargo run` and `cargo test --workspace` to the same units: who does one after the other builds nothing
//! twice.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::process::Command;

use serde_json::Value;

#[test]
fn cargo_run_and_cargo_test_build_the_same_units() {
    let mut run = units(&["build", "--bin", "eisen-core"]);
    let test = units(&["test", "--workspace", "--no-run"]);
    assert!(run.len() > 100, "{run:?}");
    run.retain(|hash, _| !test.contains_key(hash));
    assert!(
        run.is_empty(),
        "tests turn on other features of one of these, or of what builds it: turn them on in [dependencies], or \
         [build-dependencies], too: {run:#?}"
    );
}

/// The units that Cargo builds with these arguments: package, target and features, by a hash of all that makes a unit
/// another one.
fn units(arguments: &[&str]) -> BTreeMap<u64, String> {
    let cargo = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked", "--unit-graph", "-Z", "unstable-options"])
        // The flag is for nightly compilers only, unless this variable is set.
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    let mut graph: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let units = graph["units"].as_array_mut().unwrap();
    let dependencies: Vec<_> = units.iter_mut().map(|unit| unit["dependencies"].take()).collect();
    for unit in units.iter_mut() {
        // `dev` and `test` are the same but for it.
        unit["profile"]["name"].take();
    }
    let mut hashes = vec![None; units.len()];
    let named = units.iter().enumerate().map(|(at, unit)| {
        let name = format!("{} {} {}", unit["pkg_id"], unit["target"]["name"], unit["features"]);
        (hash(at, units, &dependencies, &mut hashes), name)
    });
    named.collect()
}

fn hash(at: usize, units: &[Value], dependencies: &[Value], known: &mut [Option<u64>]) -> u64 {
    if let Some(known) = known[at] {
        return known;
    }
    let of_unit = dependencies[at].as_array().unwrap().iter();
    let indices = of_unit.map(|it| usize::try_from(it["index"].as_u64().unwrap()).unwrap());
    let mut below: Vec<_> = indices.map(|it| hash(it, units, dependencies, known)).collect();
    below.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (units[at].to_string(), below).hash(&mut hasher);
    *known[at].insert(hasher.finish())
}
