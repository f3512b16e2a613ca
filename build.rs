//! Links the program for developers at a fixed address: 400 000 relocations take a third of each of its starts, of
//! which tests have thousands.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|it| it == value);
    let is_gnu = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    let is_static = env::var("CARGO_CFG_TARGET_FEATURE").is_ok_and(|it| it.contains("crt-static"));
    if is("PROFILE", "debug") && is_gnu && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
