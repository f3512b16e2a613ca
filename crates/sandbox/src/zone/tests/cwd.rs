use expect_test::expect;

use super::*;

fn cwds(bed: &Bed, zone: &Zone, paths: &[&str]) -> String {
    let line = |path: &&str| {
        let verdict = zone.check_cwd(Path::new(&bed.expand(path)));
        format!("{path:?} {}\n", bed.verdict(&verdict))
    };
    paths.iter().map(line).collect()
}

#[test]
fn a_working_directory_is_inside_or_above() {
    let bed = Bed::new(&[
        "ws/src/ui/deep/",
        "ws/ui -> src/ui",
        "ws/.git/",
        "out/opt/",
        "ws/crates/a/src/",
    ]);
    let mut spec = bed.spec(&["src/{ui,web/main}/**", "crates/*/src/**", "@/out/opt/**"]);
    spec.denied = bed.globs(&["src/ui/legacy/**", "crates/hidden"]);
    spec.readable = bed.globs(&["docs/api/**", "**/AGENTS.md"]);
    let zone = Zone::compile(&spec).unwrap();
    let paths = [
        ".",
        "@/ws",
        "src",
        "src/ui",
        "src/ui/deep",
        "ui",
        "ui/..",
        "src/web",
        "src/core",
        "crates",
        "crates/a",
        "crates/a/src",
        "crates/a/tests",
        "crates/hidden",
        "docs",
        "docs/api",
        "docs/guide",
        "src/ui/legacy",
        ".git",
        "..",
        "/",
        "@/out",
        "@/out/opt",
        "@/eisen",
        "",
    ];
    expect![[r#"
        "." → @/ws
        "@/ws" → @/ws
        "src" → @/ws/src
        "src/ui" → @/ws/src/ui
        "src/ui/deep" → @/ws/src/ui/deep
        "ui" → @/ws/src/ui
        "ui/.." → @/ws/src
        "src/web" → @/ws/src/web
        "src/core" DENIED src/core
        "crates" → @/ws/crates
        "crates/a" → @/ws/crates/a
        "crates/a/src" → @/ws/crates/a/src
        "crates/a/tests" DENIED crates/a/tests
        "crates/hidden" DENIED crates/hidden
        "docs" → @/ws/docs
        "docs/api" → @/ws/docs/api
        "docs/guide" DENIED docs/guide
        "src/ui/legacy" DENIED src/ui/legacy
        ".git" DENIED .git
        ".." DENIED @
        "/" DENIED /
        "@/out" DENIED @/out
        "@/out/opt" → @/out/opt
        "@/eisen" DENIED @/eisen
        "" DENIED 
    "#]]
    .assert_eq(&cwds(&bed, &zone, &paths));
}

#[test]
fn a_pattern_that_begins_with_a_glob_may_match_below_any_folder() {
    let bed = Bed::new(&["ws/.git/"]);
    let mut spec = bed.spec(&["**/tests/*.rs"]);
    spec.denied = bed.globs(&["secret/**"]);
    let zone = Zone::compile(&spec).unwrap();
    expect![[r#"
        "." → @/ws
        "a/b" → @/ws/a/b
        "secret" DENIED secret
        "secret/a" DENIED secret/a
        ".git" DENIED .git
        ".." DENIED @
    "#]]
    .assert_eq(&cwds(&bed, &zone, &[".", "a/b", "secret", "secret/a", ".git", ".."]));
}

#[test]
fn an_empty_zone_has_no_working_directory() {
    let bed = Bed::new(&[]);
    assert!(bed.zone(&[]).check_cwd(Path::new(".")).is_err());
    assert!(bed.zone(&["", "@/out/**"]).check_cwd(Path::new(".")).is_err());
}
