use expect_test::expect;

use super::*;

fn searches(bed: &Bed, zone: &Zone, paths: &[&str]) -> String {
    let line = |path: &&str| {
        let verdict = zone.check_search(Path::new(&bed.expand(path)));
        format!("{path:?} {}\n", bed.verdict(&verdict))
    };
    paths.iter().map(line).collect()
}

#[test]
fn a_search_reads_all_that_lies_below() {
    let bed = Bed::new(&[
        "ws/src/ui/deep/a.ts",
        "ws/src/ui/old/.env",
        "ws/src/api/cart.rs",
        "ws/ui -> src/ui/deep",
        "ws/src/ui/deep/out -> @/ws/src/api",
        "ws/docs/api/a.md",
        "ws/docs/guide/",
        "out/a",
    ]);
    let mut spec = bed.spec(&["src/ui/**", "docs/*/*.md"]);
    spec.denied = bed.globs(&["**/.env"]);
    let zone = Zone::compile(&spec).unwrap();
    let paths = [
        ".",
        "src",
        "src/ui",
        "src/ui/deep",
        "src/ui/deep/a.ts",
        "src/ui/old",
        "ui",
        "ui/..",
        "src/api",
        "src/api/cart.rs",
        "src/nowhere",
        "docs",
        "docs/api",
        "@/out",
        "@/eisen",
        "",
    ];
    // Of a folder above the zone the names may be read; `docs` holds nothing but what may be.
    expect![[r#"
        "." DENIED .
        "src" DENIED src
        "src/ui" DENIED src/ui
        "src/ui/deep" → @/ws/src/ui/deep
        "src/ui/deep/a.ts" → @/ws/src/ui/deep/a.ts
        "src/ui/old" DENIED src/ui/old
        "ui" → @/ws/src/ui/deep
        "ui/.." DENIED src/ui
        "src/api" DENIED src/api
        "src/api/cart.rs" DENIED src/api/cart.rs
        "src/nowhere" DENIED src/nowhere
        "docs" → @/ws/docs
        "docs/api" → @/ws/docs/api
        "@/out" DENIED @/out
        "@/eisen" DENIED @/eisen
        "" DENIED 
    "#]]
    .assert_eq(&searches(&bed, &zone, &paths));
}

#[test]
fn what_is_never_read_is_not_searched_through_either() {
    let bed = Bed::new(&["ws/a.rs", "ws/.git/HEAD", "ws/eisen/run/team.json"]);
    let mut spec = bed.spec(&["**"]);
    spec.git = GitAccess::Read;
    let all = |spec: &ZoneSpec| searches(&bed, &Zone::compile(spec).unwrap(), &["."]);
    let open = all(&spec);
    spec.git = GitAccess::None;
    let without_git = all(&spec);
    spec.git = GitAccess::Read;
    spec.eisen_dir = bed.path("ws/eisen");
    let zone = Zone::compile(&spec).unwrap();
    assert!(!zone.check_search(Path::new(".")).unwrap_err().grantable);
    expect![[r#"
        "." → @/ws
        "." DENIED .
        "." DENIED .
    "#]]
    .assert_eq(&(open + &without_git + &all(&spec)));
}

#[test]
fn a_search_may_be_granted() {
    let bed = Bed::new(&["ws/src/ui/a", "ws/src/api/a"]);
    let zone = bed.zone(&["src/ui/**"]);
    let granted = |denied: &Denied| &*denied.path == "src";
    assert!(zone.check_search_granted(Path::new("src"), &granted).is_ok());
    assert!(zone.check_search_granted(Path::new("."), &granted).is_err());
}
