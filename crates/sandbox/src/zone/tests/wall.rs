use expect_test::expect;

use super::bounds::{bounds, judged};
use super::*;

/// The rules of the bed's places, and how each pattern is held.
fn wall(bed: &Bed, spec: &ZoneSpec, confine: Confine) -> String {
    let wall = bounds(bed, spec, confine).wall();
    let mut text = String::new();
    for Rule { path, grant } in &wall.rules {
        if let Ok(path) = path.strip_prefix(&bed.root) {
            writeln!(text, "@/{:<24} {grant:?}", path.display()).unwrap();
        }
    }
    for PatternCoverage { list, pattern, how } in &wall.patterns {
        let pattern = pattern.replace(bed.root.to_str().unwrap(), "@");
        writeln!(text, "{list} {pattern}: {how:?}").unwrap();
    }
    text
}

const TREE: &[&str] = &[
    "home/.bashrc",
    "home/.ssh/id",
    "ws/.git/HEAD",
    "ws/.git/config",
    "ws/.git/objects/ab/cdef",
    "ws/.git/refs/heads/main",
    "ws/.git/hooks/pre-commit",
    "ws/README.md",
    "ws/docs/a.md",
    "ws/src/main.rs",
    "ws/src/link -> ../README.md",
    "ws/src/ui/a.ts",
    "ws/src/ui/deep/b.ts",
    "ws/src/api/.env",
    "ws/src/api/x.rs",
    "ws/src/api/v1/y.rs",
];

#[test]
fn a_folder_has_a_rule_if_all_in_it_is_granted() {
    let bed = Bed::new(TREE);
    let mut spec = bed.spec(&["src/**"]);
    spec.shared = bed.globs(&["README.md", "types/**"]);
    spec.readable = bed.globs(&["docs/**", "**/.gitignore"]);
    spec.denied = bed.globs(&["**/.env", "src/ui/deep", "@/home/.ssh", "@/home/**/*.key"]);
    spec.git = GitAccess::Read;
    expect![[r#"
        @/eisen/tmp/ui             Write
        @/home/.bashrc             Whole
        @/ws/.git                  Read
        @/ws/README.md             Write
        @/ws/docs                  Read
        @/ws/src/api/v1            Write
        @/ws/src/api/x.rs          Write
        @/ws/src/main.rs           Write
        @/ws/src/ui/a.ts           Write
        allowed src/**: Narrowed("what is made later, or replaced in one step, right in `src/api`, `src/ui`, `src` is opened by the doorbell, and can't be executed")
        shared README.md: Narrowed("a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed")
        shared types/**: Narrowed("there is no such folder: what is made in it later is opened by the doorbell, and can't be executed")
        denied **/.env: Doorbell("what matches it now is held by rules; a file made later that matches is held by the doorbell only")
        denied src/ui/deep: Exact
        denied @/home/.ssh: Exact
        denied @/home/**/*.key: Exact
        readable docs/**: Exact
        readable **/.gitignore: Narrowed("a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed")
    "#]].assert_eq(&wall(&bed, &spec, Confine::Workspace));
}

/// No folder has a rule that would let it be moved, and none that has a match has one at all.
#[test]
fn what_a_pattern_searches_for_outside_has_no_rule() {
    let bed = Bed::new(&[
        "home/vault/deep/secret/id",
        "home/vault/deep/secret2/id",
        "home/vault/plain/x",
        "home/other/x",
    ]);
    let mut spec = bed.spec(&["src/**"]);
    spec.denied = bed.globs(&["@/home/vault/**/secret/**"]);
    expect![[r#"
        @/eisen/tmp/ui             Write
        @/home/other               Whole
        @/home/vault/deep/secret2  Write
        @/home/vault/plain         Write
        allowed src/**: Narrowed("there is no such folder: what is made in it later is opened by the doorbell, and can't be executed")
        denied @/home/vault/**/secret/**: Doorbell("what matches it now is held by rules; a file made later that matches is held by the doorbell only")
    "#]].assert_eq(&wall(&bed, &spec, Confine::Workspace));
}

/// The kernel makes the entries of its folders anew for each process.
#[test]
fn a_pattern_in_the_folders_of_the_kernel_is_held_by_the_doorbell_alone() {
    let bed = Bed::new(&[]);
    let mut spec = bed.spec(&["src/**"]);
    let denied = ["/proc/**/environ", "/sys/*", "/proc/kcore", "/sys/**", "/**/kcore", "@/home/**"];
    spec.denied = bed.globs(&denied);
    let bounds = bounds(&bed, &spec, Confine::Workspace);
    expect!["of `denied` `/proc/**/environ`, `/sys/*`, `/proc/kcore` is held by the doorbell alone: a move of a folder above it, or a race, opens it"].assert_eq(&bounds.held_alone().unwrap_or_default());
}

/// They may be links, by a further link.
#[test]
fn settings_of_others_are_written_where_the_zone_names_them() {
    let bed = Bed::new(&[
        "home/.gitrc -> dots/link",
        "home/dots/link -> git",
        "home/dots/git",
        "home/dots/x",
        "home/.config/other/x",
    ]);
    let paths = [
        "@/home/.gitrc",
        "@/home/dots/link",
        "@/home/dots/git",
        "@/home/dots/x",
        "@/home/.config/editor/x",
        "@/home/.config/other/x",
    ];
    let mut text = wall(&bed, &bed.spec(&["src/**"]), Confine::Workspace);
    for allowed in ["src/**", "@/home/dots/**"] {
        let bounds = bounds(&bed, &bed.spec(&[allowed]), Confine::Workspace);
        writeln!(text, "{allowed}\n{}", judged(&bed, &bounds, &paths)).unwrap();
        let above = |path: &&&str| bounds.is_above_setting(Path::new(&bed.expand(path)));
        let above: Vec<_> =
            paths.iter().chain(&["@/home", "@/home/.config"]).filter(above).collect();
        writeln!(text, "above: {above:?}").unwrap();
        // As if the folder were moved there.
        let moved = bounds.judge_tree(&bed.path("home"), &bed.path("home"), Action::Write);
        writeln!(text, "moved: {:?}\n", moved.is_ok()).unwrap();
    }
    expect![[r#"
        @/eisen/tmp/ui             Write
        @/home/.config/other       Whole
        @/home/dots/git            Read
        @/home/dots/x              Whole
        allowed src/**: Narrowed("there is no such folder: what is made in it later is opened by the doorbell, and can't be executed")
        src/**
        @/home/.gitrc                    read yes, write no
        @/home/dots/link                 read yes, write no
        @/home/dots/git                  read yes, write no
        @/home/dots/x                    yes
        @/home/.config/editor/x          read yes, write no
        @/home/.config/other/x           yes

        above: ["@/home", "@/home/.config"]
        moved: false

        @/home/dots/**
        @/home/.gitrc                    read yes, write no
        @/home/dots/link                 yes
        @/home/dots/git                  yes
        @/home/dots/x                    yes
        @/home/.config/editor/x          read yes, write no
        @/home/.config/other/x           yes

        above: ["@/home", "@/home/.config"]
        moved: false

    "#]].assert_eq(&text);
}

#[test]
fn a_zone_of_everything_is_held_but_for_git() {
    let bed = Bed::new(TREE);
    let mut spec = bed.spec(&["**"]);
    spec.git = GitAccess::Commit;
    expect![[r#"
        @/eisen/tmp/ui             Write
        @/home/.bashrc             Whole
        @/home/.ssh                Whole
        @/ws                       Read
        @/ws/.git/HEAD             Write
        @/ws/.git/refs/heads/main  Write
        @/ws/README.md             Write
        @/ws/docs                  Write
        @/ws/src                   Write
        allowed **: Narrowed("what is made later, or replaced in one step, right in `.` is opened by the doorbell, and can't be executed")
    "#]].assert_eq(&wall(&bed, &spec, Confine::Workspace));
}

#[test]
fn single_files_have_rules_of_their_own() {
    let bed = Bed::new(TREE);
    let spec = bed.spec(&["src/*.rs", "src/ui/*", "*/api/**"]);
    expect![[r#"
        @/eisen/tmp/ui             Write
        @/home/.bashrc             Whole
        @/home/.ssh                Whole
        @/ws/src/api               Write
        @/ws/src/main.rs           Write
        @/ws/src/ui/a.ts           Write
        allowed src/*.rs: Narrowed("a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed")
        allowed src/ui/*: Narrowed("a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed")
        allowed */api/**: Narrowed("a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed")
    "#]].assert_eq(&wall(&bed, &spec, Confine::Workspace));
}

#[test]
fn strict_bounds_grant_nothing_beside_the_workspace() {
    let bed = Bed::new(&["out/a/x", "out/b/y", "needs/read/r", "needs/write/w", "logs/1/z"]);
    bed.add(TREE);
    let mut spec = bed.spec(&["src/**", "@/out/a/**", "@/logs/*/z", "@/logs/**/q"]);
    spec.readable = bed.globs(&["@/out/**"]);
    spec.denied = bed.globs(&["@/needs/write/w"]);
    expect![[r#"
        @/eisen/tmp/ui             Write
        @/logs/1/z                 Write
        @/needs/read               Read
        @/out                      Read
        @/out/a                    Write
        @/ws/src                   Write
        allowed src/**: Exact
        allowed @/out/a/**: Exact
        allowed @/logs/*/z: Narrowed("a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed")
        allowed @/logs/**/q: Narrowed("it names files at any depth outside the workspace, where no walk looks for them: what it matches is opened by the doorbell, and can't be executed")
        denied @/needs/write/w: Exact
        readable @/out/**: Exact
    "#]].assert_eq(&wall(&bed, &spec, Confine::Strict));
}

#[test]
fn the_folders_of_the_kernel_and_devices_have_rules_of_their_own() {
    let bed = Bed::new(&[]);
    for confine in [Confine::Workspace, Confine::Strict] {
        let wall = bounds(&bed, &bed.spec(&["**"]), confine).wall();
        let grant = |path: &str| {
            let rule = wall.rules.iter().find(|rule| rule.path == Path::new(path));
            rule.map(|rule| rule.grant)
        };
        assert_eq!(grant("/"), Some(Grant::List));
        assert_eq!(grant("/proc"), Some(Grant::Read));
        // In parts where the kernel is watched below it.
        assert_eq!(grant("/sys").or(grant("/sys/devices")), Some(Grant::Read));
        assert_eq!(grant("/dev/null"), Some(Grant::Whole));
        assert_eq!(grant("/dev"), None);
        assert_eq!(grant("/dev/mem"), None);
        assert_eq!(grant(bed.root.to_str().unwrap()), None);
        let usr = if confine == Confine::Strict { Grant::Read } else { Grant::Whole };
        assert_eq!(grant("/usr"), Some(usr));
    }
}

/// An unreadable folder can't be granted as a whole.
#[test]
fn what_cannot_be_walked_has_no_rule() {
    let bed = Bed::new(&["ws/a/b"]);
    let deep = ["d"; 300].join("/");
    bed.add(&[&format!("ws/deep/{deep}/")]);
    let wall = bounds(&bed, &bed.spec(&["**"]), Confine::Workspace).wall();
    let granted = |name: &str| wall.rules.iter().any(|rule| rule.path == bed.path(name));
    assert!(granted("ws/a"));
    assert!(!granted("ws") && !granted("ws/deep"));
}

#[test]
fn a_moved_folder_is_judged_with_all_it_holds() {
    let bed = Bed::new(&[
        "ws/src/a/x",
        "ws/src/b/.env",
        "ws/src/c/.git/config",
        "ws/src/d/hooks/pre-commit",
        "home/a/id",
    ]);
    let mut spec = bed.spec(&["src/**", "new/*"]);
    spec.denied = bed.globs(&["**/.env", "@/home/secret/**"]);
    spec.git = GitAccess::Read;
    let bounds = bounds(&bed, &spec, Confine::Workspace);
    let mut table = String::new();
    for (from, to) in [
        ("ws/src/a", "ws/src/z"),
        ("ws/src/a", "ws/new/z"),
        ("ws/src/a", "ws/src/.env"),
        ("ws/src/b", "ws/src/z"),
        ("ws/src/c", "ws/src/z"),
        ("ws/src/d", "ws/src/.git"),
        ("home/a", "home/b"),
        ("home/a", "home/secret"),
    ] {
        let moved = bounds.judge_tree(&bed.path(from), &bed.path(to), Action::Write);
        let denied = moved.err().map(|denied| bed.shorten(&denied.path));
        writeln!(table, "{from} → {to}: {denied:?}").unwrap();
    }
    expect![[r#"
        ws/src/a → ws/src/z: None
        ws/src/a → ws/new/z: Some("new/z/x")
        ws/src/a → ws/src/.env: Some("src/.env/x")
        ws/src/b → ws/src/z: Some("src/z/.env")
        ws/src/c → ws/src/z: Some("src/z/.git")
        ws/src/d → ws/src/.git: Some("src/.git/hooks")
        home/a → home/b: None
        home/a → home/secret: Some("@/home/secret/id")
    "#]]
    .assert_eq(&table);
    let held = |name: &&&str| bounds.is_held(&bed.path(name));
    let names = ["", "ws", "eisen", "eisen/tmp", "ws/src", "home"];
    assert_eq!(names.iter().filter(held).collect::<Vec<_>>(), [&"", &"ws", &"eisen", &"eisen/tmp"]);
}

#[test]
fn what_is_below_a_folder_is_reported_without_the_disk() {
    let bed = Bed::new(&[]);
    let mut spec = bed.spec(&["src/**", "lib/*", "a/**/b/**"]);
    spec.readable = bed.globs(&["docs/**"]);
    spec.denied = bed.globs(&["src/old", "docs/x/*.pem", "@/home/.ssh"]);
    spec.git = GitAccess::Read;
    let bounds = bounds(&bed, &spec, Confine::Workspace);
    let mut table = String::new();
    for name in [
        "",
        "ws",
        "ws/src",
        "ws/src/old",
        "ws/src/old/x",
        "ws/src/ui",
        "ws/lib",
        "ws/lib/x",
        "ws/a/x",
        "ws/a/x/b",
        "ws/docs",
        "ws/docs/x",
        "ws/docs/y",
        "ws/other",
        "home",
        "home/.ssh",
        "home/x",
        "eisen",
        "eisen/tmp/ui",
    ] {
        let [read, write] =
            [Action::Read, Action::Write].map(|action| bounds.subtree(&bed.path(name), action));
        writeln!(table, "{name:<14} {read:?} {write:?}").unwrap();
    }
    expect![[r#"
                       Mixed Mixed
        ws             Mixed Mixed
        ws/src         Mixed Mixed
        ws/src/old     None None
        ws/src/old/x   None None
        ws/src/ui      All Mixed
        ws/lib         Mixed Mixed
        ws/lib/x       None None
        ws/a/x         Mixed Mixed
        ws/a/x/b       All Mixed
        ws/docs        Mixed None
        ws/docs/x      Mixed None
        ws/docs/y      All None
        ws/other       None None
        home           Mixed Mixed
        home/.ssh      None None
        home/x         All All
        eisen          None None
        eisen/tmp/ui   All All
    "#]]
    .assert_eq(&table);
}
