//! `docs/plugins.md` works as it stands: what it shows is built, tested and checked.

use std::path::Path;

use crate::harness::{EISEN_CORE, Stage, program, run};

const GUIDE: &str = include_str!("../../../docs/plugins.md");

/// The text of the `number`th block of a language.
fn block(language: &str, number: usize) -> &'static str {
    let fence = format!("\n```{language}\n");
    let block = GUIDE.split(&fence).nth(number + 1).unwrap();
    block.split_once("```").unwrap().0
}

#[test]
fn the_plugin_in_rust_is_built_as_shown() {
    let stage = Stage::new();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/sdk");
    let manifest = block("toml", 0).replace("../eisen-core/plugins/sdk", &sdk.to_string_lossy());
    stage.file("words/Cargo.toml", &manifest);
    stage.file("words/src/lib.rs", block("rust", 0));
    let cargo = |command: &str| {
        let mut cargo = crate::harness::cargo();
        cargo.args([command, "--offline", "--quiet"]).current_dir(stage.path("words"));
        let done = run(cargo.env("CARGO_TARGET_DIR", stage.path("words/target")));
        assert_eq!(done.code, 0, "{}", done.stderr);
        done
    };
    assert!(cargo("test").stdout.contains("1 passed"));
    cargo("build");
    let library = format!("libwords{}", std::env::consts::DLL_SUFFIX);
    let library = stage.path("words/target/debug").join(library);
    let mut check = program(EISEN_CORE);
    let done = run(check.args(["plugin", "check"]).arg(library));
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.starts_with("words 0.1.0\n"), "{}", done.stdout);
}

#[test]
fn the_plugin_in_c_is_built_as_shown() {
    let stage = Stage::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/plugin-c");
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/sdk/include");
    for name in ["Makefile", "plain.c"] {
        std::fs::copy(examples.join(name), stage.path(name)).unwrap();
    }
    let mut make = program("make");
    let done = run(make
        .current_dir(stage.path(""))
        .arg(format!("HEADER={}", header.display()))
        .env("CFLAGS", "-Wall -Wextra -Werror -pedantic"));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let mut check = program(EISEN_CORE);
    let done = run(check.args(["plugin", "check"]).arg(stage.path("libplain.so")));
    assert_eq!(done.stdout.trim_end(), block("text", 1).trim_end());
}

#[test]
fn the_function_in_c_is_one() {
    let stage = Stage::new();
    let source = format!("#include <eisen_plugin.h>\n{}", block("c", 0));
    stage.file("words.c", &format!("{source}\nvoid *use(void) {{ return (void *)observe; }}\n"));
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/sdk/include");
    let compiled = run(program("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-I"])
        .arg(header)
        .args(["-o", "libwords.so", "words.c"])
        .current_dir(stage.path("")));
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
}
