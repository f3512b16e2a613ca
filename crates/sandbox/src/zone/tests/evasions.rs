//! Tests of evasions: each table has the path that was judged.

use expect_test::{Expect, expect};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "as expect! makes it")]
fn check(entries: &[&str], allowed: &[&str], denied: &[&str], paths: &[&str], expected: Expect) {
    let bed = Bed::new(entries);
    let mut spec = bed.spec(allowed);
    spec.denied = bed.globs(denied);
    expected.assert_eq(&bed.verdicts(&Zone::compile(&spec).unwrap(), paths));
}

#[test]
fn spellings_of_a_path() {
    check(
        &["ws/ui/a", "ws/core/b"],
        &["ui/**"],
        &[],
        &[
            "ui/a",
            "./ui//./a",
            "ui/a/",
            "@/ws/ui/a",
            "@//ws/./ui/a",
            "ui/new/deep/file",
            "ui",
            "ui/",
            "ui/a/below-a-file",
            "ui/../core/b",
            "ui/./../core/b",
            "core/../ui/a",
            "UI/a",
            "uix/a",
            "core/b",
            ".",
            "..",
            "../../../../../../../../etc/passwd",
            "/",
            "/etc/passwd",
            "@/ws/../ws/core/b",
            "@/ws2/ui/a",
            "ui/\n/../../core/b",
        ],
        expect![[r#"
            "ui/a" → @/ws/ui/a
            "./ui//./a" → @/ws/ui/a
            "ui/a/" → @/ws/ui/a
            "@/ws/ui/a" → @/ws/ui/a
            "@//ws/./ui/a" → @/ws/ui/a
            "ui/new/deep/file" → @/ws/ui/new/deep/file
            "ui" → @/ws/ui
            "ui/" → @/ws/ui
            "ui/a/below-a-file" → @/ws/ui/a/below-a-file
            "ui/../core/b" DENIED core/b
            "ui/./../core/b" DENIED core/b
            "core/../ui/a" → @/ws/ui/a
            "UI/a" DENIED UI/a
            "uix/a" DENIED uix/a
            "core/b" DENIED core/b
            "." DENIED .
            ".." DENIED @
            "../../../../../../../../etc/passwd" DENIED /etc/passwd
            "/" DENIED /
            "/etc/passwd" DENIED /etc/passwd
            "@/ws/../ws/core/b" DENIED core/b
            "@/ws2/ui/a" DENIED @/ws2/ui/a
            "ui/\n/../../core/b" DENIED core/b
        "#]],
    );
}

#[test]
fn what_leads_nowhere_is_denied() {
    let long = "x/".repeat(3000);
    let nest = "ui/".repeat(1400);
    let bed = Bed::new(&["ws/ui/a", "ws/ui/loop -> loop", "ws/ui/p -> q", "ws/ui/q -> p/x"]);
    let zone = bed.zone(&["/**", "**"]);
    let paths =
        ["", "ui/a\0", "\0", "ui/missing/../a", "ui/a/../a", "ui/loop", "ui/loop/a", "ui/p"];
    expect![[r#"
        "" DENIED 
        "ui/a\0" DENIED ui/a\0
        "\0" DENIED \0
        "ui/missing/../a" DENIED ui/a
        "ui/a/../a" DENIED ui/a
        "ui/loop" DENIED ui/loop
        "ui/loop/a" DENIED ui/loop/a
        "ui/p" DENIED ui/p
    "#]]
    .assert_eq(&bed.verdicts(&zone, &paths));
    for long in [long, nest] {
        let denied = zone.check(Path::new(&long), Action::Write).unwrap_err();
        assert!(denied.path.len() <= PATH_MAX + "…".len(), "{}", denied.path.len());
    }
}

#[test]
fn paths_that_are_no_text_are_denied() {
    use std::ffi::OsStr;
    let bed = Bed::new(&[]);
    let name = Path::new(OsStr::from_bytes(b"caf\xe9"));
    symlink(bed.path("ws").join(name), bed.path("ws/link")).unwrap();
    let zone = bed.zone(&["**"]);
    for path in [name, Path::new("link")] {
        assert_eq!(&*zone.check(path, Action::Read).unwrap_err().path, "caf\u{fffd}");
    }
}

#[test]
fn forty_links_are_followed_and_no_more() {
    let bed = Bed::new(&["ws/ui/0"]);
    for n in 1..=41 {
        symlink(format!("{}", n - 1), bed.path(&format!("ws/ui/{n}"))).unwrap();
    }
    let zone = bed.zone(&["ui/**"]);
    assert!(zone.check(Path::new("ui/40"), Action::Read).is_ok());
    assert!(zone.check(Path::new("ui/41"), Action::Read).is_err());
}

#[test]
fn links_are_judged_by_where_they_lead() {
    check(
        &[
            "out/secret",
            "ws/core/b",
            "ws/ui/a",
            "ws/ui/file -> ../core/b",
            "ws/ui/dir -> ../core",
            "ws/ui/out -> @/out",
            "ws/ui/root -> /",
            "ws/ui/good -> a",
            "ws/core/into -> ../ui",
            "ws/core/chain -> into/dir/into",
            "ws/ui/dangling-in -> new/file",
            "ws/ui/dangling-core -> ../core/new",
            "ws/ui/dangling-out -> @/out/new",
            "ws/ui/dangling-up -> nowhere/../a",
        ],
        &["ui/**"],
        &[],
        &[
            "ui/file",
            "ui/dir",
            "ui/dir/b",
            "ui/dir/new",
            "ui/out/secret",
            "ui/root/etc/passwd",
            "ui/root@/ws/ui/a",
            "ui/good",
            "core/into/a",
            "core/chain/a",
            "ui/dangling-in",
            "ui/dangling-core",
            "ui/dangling-out",
            "ui/dangling-up",
        ],
        expect![[r#"
            "ui/file" DENIED core/b
            "ui/dir" DENIED core
            "ui/dir/b" DENIED core/b
            "ui/dir/new" DENIED core/new
            "ui/out/secret" DENIED @/out/secret
            "ui/root/etc/passwd" DENIED /etc/passwd
            "ui/root@/ws/ui/a" → @/ws/ui/a
            "ui/good" → @/ws/ui/a
            "core/into/a" → @/ws/ui/a
            "core/chain/a" → @/ws/ui/a
            "ui/dangling-in" → @/ws/ui/new/file
            "ui/dangling-core" DENIED core/new
            "ui/dangling-out" DENIED @/out/new
            "ui/dangling-up" DENIED ui/dangling-up
        "#]],
    );
}

#[test]
fn where_two_readings_differ_both_must_be_allowed() {
    check(
        &[
            "ws/ui/a",
            "ws/ui/sub/a",
            "ws/core/a",
            "ws/core/deep/x",
            // To the kernel `ui/core/..` is `core`, by name it is `ui`; and the other way round.
            "ws/ui/core -> ../core/deep",
            "ws/core/ui -> ../ui/sub",
            "ws/ui/sub2 -> sub",
        ],
        &["ui/**"],
        &[],
        &[
            "ui/core/../a",
            "core/ui/../a",
            "ui/sub2/../a",
            "ui/sub2/../sub2/a",
            "ui/core/../../ui/a",
        ],
        expect![[r#"
            "ui/core/../a" DENIED core/a
            "core/ui/../a" DENIED core/a
            "ui/sub2/../a" → @/ws/ui/a
            "ui/sub2/../sub2/a" → @/ws/ui/sub/a
            "ui/core/../../ui/a" → @/ws/ui/a
        "#]],
    );
}

#[test]
fn a_workspace_may_be_spelled_through_links() {
    let bed = Bed::new(&["ws/ui/a", "ws/core/b", "link -> ws", "deep/er -> ../link"]);
    let mut spec = bed.spec(&["@/deep/er/ui/**"]);
    spec.workspace = bed.path("deep/er");
    let zone = Zone::compile(&spec).unwrap();
    assert_eq!(zone.workspace(), bed.path("ws"));
    let paths = ["ui/a", "@/ws/ui/a", "@/link/ui/a", "@/deep/er/ui/new", "@/deep/er/core/b"];
    expect![[r#"
        "ui/a" → @/ws/ui/a
        "@/ws/ui/a" → @/ws/ui/a
        "@/link/ui/a" → @/ws/ui/a
        "@/deep/er/ui/new" → @/ws/ui/new
        "@/deep/er/core/b" DENIED core/b
    "#]]
    .assert_eq(&bed.verdicts(&zone, &paths));
}

#[test]
fn eisen_dir_is_denied_whatever_the_patterns_say() {
    let bed = Bed::new(&[
        "ws/.eisen/run/team.json",
        "home -> ws/.eisen",
        "ws/link -> .eisen/run",
        "ws/hop -> @/home",
    ]);
    let mut spec = bed.spec(&["**", "/**", ".eisen/**"]);
    spec.eisen_dir = bed.path("home");
    spec.readable = spec.allowed.clone();
    let zone = Zone::compile(&spec).unwrap();
    let paths = [
        ".eisen",
        ".eisen/run/team.json",
        ".eisen/run/new",
        "link/team.json",
        "hop/run/team.json",
        "@/home/run/team.json",
        "@/home",
    ];
    expect![[r#"
        ".eisen" DENIED .eisen
        ".eisen/run/team.json" DENIED .eisen/run/team.json
        ".eisen/run/new" DENIED .eisen/run/new
        "link/team.json" DENIED .eisen/run/team.json
        "hop/run/team.json" DENIED .eisen/run/team.json
        "@/home/run/team.json" DENIED .eisen/run/team.json
        "@/home" DENIED .eisen
    "#]]
    .assert_eq(&bed.verdicts(&zone, &paths));
    let granted = |_: &Denied| true;
    for path in paths.map(|path| bed.expand(path)) {
        assert!(zone.check_granted(Path::new(&path), Action::Read, &granted).is_err(), "{path}");
    }
    assert!(zone.check_cwd_granted(Path::new("link"), &granted).is_err());
    assert!(zone.check(Path::new(".eisenhower"), Action::Write).is_ok());
}

#[test]
fn links_of_procfs_lead_elsewhere_for_each_process() {
    let bed = Bed::new(&["ws/ui/a"]);
    let zone = bed.zone(&["ui/**", "/proc/**", "/dev/**"]);
    let paths = [
        "/proc/self/root@/ws/ui/a",
        "/proc/self/cwd/x",
        "/proc/1/root/etc",
        "/dev/fd/0",
        "/proc/cpuinfo",
    ];
    let verdicts = bed.verdicts(&zone, &paths);
    let allowed: Vec<_> = verdicts.lines().filter(|line| !line.contains("DENIED")).collect();
    assert_eq!(allowed, [r#""/proc/cpuinfo" → /proc/cpuinfo"#]);
}

#[test]
fn denied_wins_and_reaches_below() {
    check(
        &[
            "ws/ui/legacy/a",
            "ws/vault/key",
            "ws/secret -> vault",
            "ws/ui/into -> legacy",
            "ws/ui/.env",
            "ws/certs/x.pem/inner",
            "out/private/x",
            "spool -> out/private",
        ],
        &["**", "@/out/**"],
        &["ui/legacy", "secret/**", "**/.env", "**/*.pem", "@/spool/**", "../out/climbed"],
        &[
            "ui/legacy",
            "ui/legacy/a",
            "ui/legacy/new/x",
            "ui/into/a",
            "ui/into/../b",
            "ui/legacy2",
            "vault/key",
            "secret/key",
            "ui/.env",
            ".env",
            "ui/.env/x",
            "ui/.envrc",
            "certs/x.pem/inner",
            "certs/x.pem.bak",
            "@/out/private/x",
            "@/out/climbed/x",
            "@/out/other",
        ],
        expect![[r#"
            "ui/legacy" DENIED ui/legacy
            "ui/legacy/a" DENIED ui/legacy/a
            "ui/legacy/new/x" DENIED ui/legacy/new/x
            "ui/into/a" DENIED ui/legacy/a
            "ui/into/../b" → @/ws/ui/b
            "ui/legacy2" → @/ws/ui/legacy2
            "vault/key" DENIED vault/key
            "secret/key" DENIED vault/key
            "ui/.env" DENIED ui/.env
            ".env" DENIED .env
            "ui/.env/x" DENIED ui/.env/x
            "ui/.envrc" → @/ws/ui/.envrc
            "certs/x.pem/inner" DENIED certs/x.pem/inner
            "certs/x.pem.bak" → @/ws/certs/x.pem.bak
            "@/out/private/x" DENIED @/out/private/x
            "@/out/climbed/x" DENIED @/out/climbed/x
            "@/out/other" → @/out/other
        "#]],
    );
}

#[test]
fn a_grant_covers_exactly_what_was_denied() {
    let bed = Bed::new(&["ws/core/deep/x", "ws/core/a", "ws/ui/a", "ws/ui/core -> ../core/deep"]);
    let zone = bed.zone(&["ui/**"]);
    let path = Path::new("ui/core/../a");
    let denied = zone.check(path, Action::Write).unwrap_err();
    assert_eq!(denied, Denied { path: "core/a".into(), action: Action::Write, grantable: true });
    let permit = zone.check_granted(path, Action::Write, &|wanted| *wanted == denied).unwrap();
    assert_eq!((permit.real, permit.action), (bed.path("ws/core/a"), Action::Write));
    for (path, action) in [(path, Action::Read), (Path::new("core/deep/x"), Action::Write)] {
        assert!(zone.check_granted(path, action, &|wanted| *wanted == denied).is_err());
    }
}
