use expect_test::expect;

use super::*;

/// Which of the paths each pattern allows. None of them exists.
fn matched(globs: &[&str], paths: &[&str]) -> String {
    let bed = Bed::new(&[]);
    let mut table = String::new();
    for glob in globs {
        let zone = bed.zone(&[glob]);
        let allows = |path: &&&str| zone.owns(&bed.expand(path));
        let allowed: Vec<_> = paths.iter().filter(allows).copied().collect();
        writeln!(table, "{glob:?} {}", allowed.join(" ")).unwrap();
    }
    table
}

#[test]
fn what_patterns_match() {
    let globs = [
        "ui",
        "ui/",
        "./ui/",
        "ui/**",
        "ui/*",
        "ui//./a",
        "x/../ui/a",
        "*",
        "**",
        "**/",
        ".",
        "./",
        "",
        "/",
        "/**",
        "ui*",
        "ui/?",
        "ui/[ab]",
        "ui/[!a]",
        "*[!x]*",
        "*[!-]*",
        "{ui,lib}/a",
        "{ui/{a,b},lib/**}",
        "ui{,/a}",
        "{@/ws/ui,@/out}/a",
        r"\*",
        r"ui\/a",
        "**/.*",
        "@/ws/ui/**",
        "@/out/*",
        "@/*/ui/a",
        "../out/**",
        "../ws/ui/a",
        "a**",
    ];
    let paths = [
        ".",
        "ui",
        "ui/a",
        "ui/b",
        "ui/a/c",
        "ui/.x",
        "uix",
        "lib/a",
        "*",
        "a/ui/a",
        "@/out",
        "@/out/a",
        "@/out/a/b",
    ];
    expect![[r#"
        "ui" ui
        "ui/" ui ui/a ui/b ui/a/c ui/.x
        "./ui/" ui ui/a ui/b ui/a/c ui/.x
        "ui/**" ui ui/a ui/b ui/a/c ui/.x
        "ui/*" ui ui/a ui/b ui/.x
        "ui//./a" ui/a
        "x/../ui/a" ui/a
        "*" . ui uix *
        "**" . ui ui/a ui/b ui/a/c ui/.x uix lib/a * a/ui/a
        "**/" . ui ui/a ui/b ui/a/c ui/.x uix lib/a * a/ui/a
        "." .
        "./" . ui ui/a ui/b ui/a/c ui/.x uix lib/a * a/ui/a
        "" 
        "/" 
        "/**" . ui ui/a ui/b ui/a/c ui/.x uix lib/a * a/ui/a @/out @/out/a @/out/a/b
        "ui*" ui uix
        "ui/?" ui/a ui/b
        "ui/[ab]" ui/a ui/b
        "ui/[!a]" ui/b
        "*[!x]*" ui uix *
        "*[!-]*" ui uix *
        "{ui,lib}/a" ui/a lib/a
        "{ui/{a,b},lib/**}" ui/a ui/b lib/a
        "ui{,/a}" ui ui/a
        "{@/ws/ui,@/out}/a" ui/a @/out/a
        "\\*" *
        "ui\\/a" ui/a
        "**/.*" ui/.x
        "@/ws/ui/**" ui ui/a ui/b ui/a/c ui/.x
        "@/out/*" @/out @/out/a
        "@/*/ui/a" ui/a
        "../out/**" 
        "../ws/ui/a" 
        "a**" 
    "#]]
    .assert_eq(&matched(&globs, &paths));
}

#[test]
fn braces_without_end_do_not_multiply() {
    let bed = Bed::new(&[]);
    let zone = bed.zone(&[&"{a,b}".repeat(30)]);
    assert!(zone.owns(&"ab".repeat(15)));
    assert!(!zone.owns(&"ab".repeat(16)));
}

#[test]
fn an_error_has_the_pattern_as_it_was_written() {
    let bed = Bed::new(&[]);
    for glob in ["./ui/[a", "ui/{a,b", "ui/}", r"ui\", "[z-a]"] {
        let mut spec = bed.spec(&["**"]);
        spec.denied = vec![glob.to_owned()];
        assert_eq!(Zone::compile(&spec).unwrap_err().glob(), Some(glob));
    }
}

#[test]
fn reading_and_writing_are_distinguished() {
    let bed = Bed::new(&[]);
    let mut spec = bed.spec(&["ui/**"]);
    spec.shared = bed.globs(&["types/**"]);
    spec.readable = bed.globs(&["docs/**", "ui/gen/**", "@/out/docs/**"]);
    spec.denied = bed.globs(&["**/.env"]);
    let zone = Zone::compile(&spec).unwrap();
    let paths =
        ["ui/a", "ui/gen/a", "types/t", "docs/d", "docs/.env", "core/c", "@/out/docs/x", "@/out/x"];
    expect![[r#"
        "ui/a" → @/ws/ui/a
        "ui/gen/a" → @/ws/ui/gen/a
        "types/t" → @/ws/types/t
        "docs/d" read → @/ws/docs/d, write DENIED docs/d
        "docs/.env" DENIED docs/.env
        "core/c" DENIED core/c
        "@/out/docs/x" read → @/out/docs/x, write DENIED @/out/docs/x
        "@/out/x" DENIED @/out/x
    "#]]
    .assert_eq(&bed.verdicts(&zone, &paths));

    let classes: Vec<_> = paths.iter().map(|path| zone.class(&bed.expand(path))).collect();
    let [write, read, outside] = [Class::Write, Class::Read, Class::Outside];
    assert_eq!(classes, [write, write, write, read, outside, outside, read, outside]);

    let owned: Vec<_> = paths.iter().filter(|path| zone.owns(path)).collect();
    assert_eq!(owned, [&"ui/a", &"ui/gen/a"]);
}

#[test]
fn denied_takes_ownership_away() {
    let bed = Bed::new(&[]);
    let mut spec = bed.spec(&["ui/**"]);
    spec.denied = bed.globs(&["ui/legacy"]);
    let zone = Zone::compile(&spec).unwrap();
    let paths = ["ui", "ui/a", "ui/legacy", "ui/legacy/a", "ui/../core", "."];
    assert_eq!(paths.map(|path| zone.owns(path)), [true, true, false, false, false, false]);
}

#[test]
fn an_observed_zone_asks_for_secrets_that_the_written_one_does_not_allow() {
    let bed = Bed::new(&["ws/.env", "ws/src/.env", "ws/docs/.env", "ws/docs/a"]);
    let secrets = ["**/.env".to_owned(), "**/*.{key,p12}".to_owned()];
    let spec = ZoneSpec { readable: bed.globs(&["docs/**"]), ..bed.spec(&["src/**"]) };
    let observed = |spec| Zone::observed(spec, &secrets, bed.path("drafts")).unwrap();
    let zone = observed(&spec);
    let table =
        bed.verdicts(&zone, &[".env", "src/.env", "docs/.env", "docs/a", "a.key", "src/new/a.p12"]);
    expect![[r#"
        ".env" DENIED .env
        "src/.env" → @/ws/src/.env
        "docs/.env" read → @/ws/docs/.env, write DENIED docs/.env
        "docs/a" → @/ws/docs/a
        "a.key" DENIED a.key
        "src/new/a.p12" → @/ws/src/new/a.p12
    "#]]
    .assert_eq(&table);
    assert!(zone.asks(".env") && !zone.asks("docs/a"));
    assert!(zone.owns("src/.env") && !zone.owns(".env"));
    // Nothing is taken from a zone of everything.
    let whole = observed(&bed.spec(&["**"]));
    assert_eq!(bed.verdicts(&whole, &[".env"]), "\".env\" → @/ws/.env\n");
}
