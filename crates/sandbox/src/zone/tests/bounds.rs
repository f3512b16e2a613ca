use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use expect_test::expect;

use super::*;

pub(super) fn reach(bed: &Bed, confine: Confine) -> Reach {
    Reach {
        // The zone alone decides in the workspace.
        readable: ["needs/read", "ws/b"]
            .iter()
            .filter_map(|it| GrantedPlace::now(&bed.path(it)))
            .collect(),
        writable: GrantedPlace::now(&bed.path("needs/write")).into_iter().collect(),
        sockets: bed.globs(&["@/run/nscd.sock", "@/run/*/listed"]),
        sealed: [".gitrc", ".config/editor"].map(|name| bed.path("home").join(name)).into(),
        ..Reach::new(confine, bed.path("eisen/tmp/ui"))
    }
}

pub(super) fn bounds(bed: &Bed, spec: &ZoneSpec, confine: Confine) -> Bounds {
    Bounds::new(Arc::new(Zone::compile(spec).unwrap()), reach(bed, confine)).unwrap()
}

fn word(bounds: &Bounds, path: &Path) -> String {
    let [read, write] =
        [Action::Read, Action::Write].map(|action| match bounds.judge(path, action) {
            Ok(()) => "yes",
            Err(denied) if denied.grantable => "no",
            Err(_) => "never",
        });
    if read == write { read.to_owned() } else { format!("read {read}, write {write}") }
}

pub(super) fn judged(bed: &Bed, bounds: &Bounds, paths: &[&str]) -> String {
    let line = |path: &&str| {
        let word = word(bounds, Path::new(&bed.expand(path)));
        format!("{:<32} {word}\n", path.escape_debug().to_string())
    };
    paths.iter().map(line).collect()
}

const PATHS: &[&str] = &[
    "@/ws/src/a.rs",
    "@/ws/src/.env",
    "@/ws/other",
    "@/ws/docs/x",
    "@/eisen/run/team.json",
    "@/eisen/tmp/ui",
    "@/eisen/tmp/ui/x",
    "@/eisen/tmp/api/x",
    "@/home/.bashrc",
    "@/home/.gitrc",
    "@/home/.ssh/id",
    "@/home/.ssh2/id",
    "@/out/a",
    "@/needs/read/x",
    "@/needs/write/x",
    "/",
    "/usr/bin/env",
    "/etc/passwd",
    "/proc/1/environ",
    "/sys/kernel/x",
    "/dev/null",
    "/dev/mem",
    "/dev/new-disk",
    "/dev/pts/3",
];

fn spec(bed: &Bed) -> ZoneSpec {
    let mut spec = bed.spec(&["src/**", "@/out/**"]);
    spec.readable = bed.globs(&["docs/**"]);
    spec.denied = bed.globs(&["**/.env", "@/home/.ssh"]);
    spec
}

#[test]
fn outside_the_workspace_is_as_usual_but_for_what_is_denied() {
    let bed = Bed::new(&[]);
    let bounds = bounds(&bed, &spec(&bed), Confine::Workspace);
    expect![[r#"
        @/ws/src/a.rs                    yes
        @/ws/src/.env                    no
        @/ws/other                       no
        @/ws/docs/x                      read yes, write no
        @/eisen/run/team.json            never
        @/eisen/tmp/ui                   yes
        @/eisen/tmp/ui/x                 yes
        @/eisen/tmp/api/x                never
        @/home/.bashrc                   yes
        @/home/.gitrc                    read yes, write no
        @/home/.ssh/id                   no
        @/home/.ssh2/id                  yes
        @/out/a                          yes
        @/needs/read/x                   yes
        @/needs/write/x                  yes
        /                                yes
        /usr/bin/env                     yes
        /etc/passwd                      yes
        /proc/1/environ                  read yes, write never
        /sys/kernel/x                    read yes, write never
        /dev/null                        yes
        /dev/mem                         never
        /dev/new-disk                    never
        /dev/pts/3                       yes
    "#]]
    .assert_eq(&judged(&bed, &bounds, PATHS));
}

#[test]
fn strict_bounds_have_what_the_zone_names_and_what_programs_need() {
    let bed = Bed::new(&[]);
    let bounds = bounds(&bed, &spec(&bed), Confine::Strict);
    expect![[r#"
        @/ws/src/a.rs                    yes
        @/ws/src/.env                    no
        @/ws/other                       no
        @/ws/docs/x                      read yes, write no
        @/eisen/run/team.json            never
        @/eisen/tmp/ui                   yes
        @/eisen/tmp/ui/x                 yes
        @/eisen/tmp/api/x                never
        @/home/.bashrc                   no
        @/home/.gitrc                    no
        @/home/.ssh/id                   no
        @/home/.ssh2/id                  no
        @/out/a                          yes
        @/needs/read/x                   read yes, write no
        @/needs/write/x                  yes
        /                                no
        /usr/bin/env                     read yes, write no
        /etc/passwd                      read yes, write no
        /proc/1/environ                  read yes, write never
        /sys/kernel/x                    read yes, write never
        /dev/null                        yes
        /dev/mem                         never
        /dev/new-disk                    never
        /dev/pts/3                       yes
    "#]]
    .assert_eq(&judged(&bed, &bounds, PATHS));
}

/// A name that is not UTF-8 is judged like any other, and can't be granted.
#[test]
fn names_need_not_be_text() {
    let bed = Bed::new(&[]);
    let mut spec = bed.spec(&["src/**", "*.rs", "a?"]);
    spec.denied = bed.globs(&["src/secret", "**/*.pem", "@/home/.ssh/*.key"]);
    let bounds = bounds(&bed, &spec, Confine::Workspace);
    let mut table = String::new();
    for path in [
        &b"ws/src/caf\xe9"[..],
        b"ws/src/caf\xe9/b",
        b"ws/src/secret/\xff",
        b"ws/src/caf\xe9.pem",
        b"ws/src/\xff/.git/config",
        b"ws/\xff.rs",
        b"ws/a\xff",
        b"ws/\xff",
        b"eisen/\xff",
        b"home/\xff",
        b"home/.ssh/\xff",
        b"home/.ssh/a/\xff",
    ] {
        let word = word(&bounds, &bed.root.join(OsStr::from_bytes(path)));
        writeln!(table, "{:<28} {word}", path.escape_ascii().to_string()).unwrap();
    }
    expect![[r#"
        ws/src/caf\xe9               yes
        ws/src/caf\xe9/b             yes
        ws/src/secret/\xff           never
        ws/src/caf\xe9.pem           never
        ws/src/\xff/.git/config      never
        ws/\xff.rs                   yes
        ws/a\xff                     never
        ws/\xff                      never
        eisen/\xff                   never
        home/\xff                    yes
        home/.ssh/\xff               yes
        home/.ssh/a/\xff             yes
    "#]]
    .assert_eq(&table);
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn the_git_folder_is_judged_by_git_wherever_it_lies() {
    let bed = Bed::new(&[
        "ws/.git = gitdir: ../main/.git/worktrees/ws\n",
        "main/.git/worktrees/ws/HEAD",
        "main/.git/worktrees/ws/commondir = ../..\n",
        "main/.git/objects/",
        "main/.git/refs/",
        "main/.git/HEAD",
        "main/.git/hooks -> @/hooks",
        "hooks/pre-commit",
        "other/.git/config",
    ]);
    let mut spec = bed.spec(&["**"]);
    let paths = [
        "@/ws/.git",
        "@/main/.git/worktrees/ws/index.lock",
        "@/main/.git/objects/pack/tmp_pack_1",
        "@/main/.git/logs/HEAD",
        "@/main/.git/config",
        "@/main/.git/config.lock",
        "@/main/.git/info/attributes",
        "@/main/.git/hooks/x",
        "@/hooks/pre-commit",
        "@/main/src/x",
        "@/other/.git/config",
    ];
    let mut table = String::new();
    for (name, git) in
        [("none", GitAccess::None), ("read", GitAccess::Read), ("commit", GitAccess::Commit)]
    {
        spec.git = git;
        let bounds = bounds(&bed, &spec, Confine::Workspace);
        writeln!(table, "{name}\n{}", judged(&bed, &bounds, &paths)).unwrap();
    }
    spec.git = GitAccess::Commit;
    let bounds = bounds(&bed, &spec, Confine::Strict);
    writeln!(table, "commit, strict\n{}", judged(&bed, &bounds, &paths)).unwrap();
    expect![[r#"
        none
        @/ws/.git                        no
        @/main/.git/worktrees/ws/index.lock no
        @/main/.git/objects/pack/tmp_pack_1 no
        @/main/.git/logs/HEAD            no
        @/main/.git/config               no
        @/main/.git/config.lock          no
        @/main/.git/info/attributes      no
        @/main/.git/hooks/x              no
        @/hooks/pre-commit               read yes, write no
        @/main/src/x                     yes
        @/other/.git/config              yes

        read
        @/ws/.git                        read yes, write no
        @/main/.git/worktrees/ws/index.lock read yes, write no
        @/main/.git/objects/pack/tmp_pack_1 read yes, write no
        @/main/.git/logs/HEAD            read yes, write no
        @/main/.git/config               read yes, write no
        @/main/.git/config.lock          read yes, write no
        @/main/.git/info/attributes      read yes, write no
        @/main/.git/hooks/x              read yes, write no
        @/hooks/pre-commit               read yes, write no
        @/main/src/x                     yes
        @/other/.git/config              yes

        commit
        @/ws/.git                        read yes, write no
        @/main/.git/worktrees/ws/index.lock yes
        @/main/.git/objects/pack/tmp_pack_1 yes
        @/main/.git/logs/HEAD            yes
        @/main/.git/config               read yes, write no
        @/main/.git/config.lock          read yes, write no
        @/main/.git/info/attributes      read yes, write no
        @/main/.git/hooks/x              read yes, write no
        @/hooks/pre-commit               read yes, write no
        @/main/src/x                     yes
        @/other/.git/config              yes

        commit, strict
        @/ws/.git                        read yes, write no
        @/main/.git/worktrees/ws/index.lock yes
        @/main/.git/objects/pack/tmp_pack_1 yes
        @/main/.git/logs/HEAD            yes
        @/main/.git/config               read yes, write no
        @/main/.git/config.lock          read yes, write no
        @/main/.git/info/attributes      read yes, write no
        @/main/.git/hooks/x              read yes, write no
        @/hooks/pre-commit               no
        @/main/src/x                     no
        @/other/.git/config              no

    "#]]
    .assert_eq(&table);
}

#[test]
fn only_listed_sockets_outside_are_connected_to() {
    let bed = Bed::new(&[]);
    let mut spec = bed.spec(&["src/**"]);
    spec.readable = bed.globs(&["docs/**"]);
    spec.denied = bed.globs(&["@/run/secret/**"]);
    for confine in [Confine::Workspace, Confine::Strict] {
        let bounds = bounds(&bed, &spec, confine);
        let paths = [
            "@/run/nscd.sock",
            "@/run/a/listed",
            "@/run/secret/listed",
            "@/run/docker.sock",
            "@/ws/src/dev.sock",
            "@/ws/docs/dev.sock",
            "@/eisen/run/x",
            "@/eisen/tmp/ui/x",
        ];
        let connects = |path: &&&str| bounds.may_connect(Path::new(&bed.expand(path)));
        let connected: Vec<_> = paths.iter().filter(connects).collect();
        assert_eq!(connected, [&"@/run/nscd.sock", &"@/run/a/listed", &"@/eisen/tmp/ui/x"]);
    }
}

/// Agents replace names in the workspace.
#[test]
fn a_place_by_a_name_in_the_workspace_grants_nothing() {
    let bed = Bed::new(&["home/x", "needs/x", "ws/lnk -> @/home", "by -> @/ws", "ok -> @/needs"]);
    let zone = Arc::new(Zone::compile(&bed.spec(&["src/**"])).unwrap());
    let places = ["ws/lnk", "by/lnk", "by", "ws/lnk/x", "ok"];
    let reach = |confine| Reach {
        readable: places.iter().filter_map(|place| GrantedPlace::now(&bed.path(place))).collect(),
        writable: vec![],
        ..reach(&bed, confine)
    };
    let bounds = Bounds::new(zone, reach(Confine::Strict)).unwrap();
    let read = ["@/home/x", "@/home", "@/ws/lnk", "@/needs/x"];
    expect![[r#"
        @/home/x                         no
        @/home                           no
        @/ws/lnk                         no
        @/needs/x                        read yes, write no
    "#]]
    .assert_eq(&judged(&bed, &bounds, &read));
    assert_eq!(bounds.moved(), None);
    fs::remove_file(bed.path("ok")).unwrap();
    bed.add(&["ok -> @/home"]);
    let moved = bounds.moved().unwrap();
    assert_eq!((moved.place.real, moved.leads_to), (bed.path("needs"), Some(bed.path("home"))));
}

#[test]
fn the_folder_of_a_place_is_made_without_following_links() {
    let bed = Bed::new(&["state/", "home/"]);
    let place = GrantedPlace::now(&bed.path("state/a/b")).unwrap();
    bed.add(&["state/a -> @/home"]);
    assert!(place.make().is_err() && !bed.path("home/b").exists());
    fs::remove_file(bed.path("state/a")).unwrap();
    place.make().unwrap();
    assert!(bed.path("state/a/b").is_dir());
}
