//! Holds the code to the architecture: imports run one way, files stay readable. Functions stay
//! readable by `clippy.toml`.

mod dependencies;
mod fields;
mod imports;
mod units;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use imports::Modules;

/// A room, and the other rooms of its crate that it may import.
type Room = (&'static str, &'static [&'static str]);

/// The crates from below, each with its rooms, and the other rooms of the same crate that a room may import. Cargo
/// refuses imports of crates above.
const CRATES: &[(&str, &[Room])] = &[
    (
        "base",
        &[
            ("ignored", &[]),
            ("kept", &[]),
            ("line", &[]),
            ("model", &[]),
            ("task", &[]),
            ("acp", &["line", "model"]),
            ("bus", &["model"]),
        ],
    ),
    (
        "sandbox",
        &[
            ("zone", &[]),
            ("confine", &["zone"]),
            ("process", &["confine"]),
            ("sandbox", &["confine", "process", "zone"]),
        ],
    ),
    ("scripts", &[("script", &[])]),
    ("graph", &[("graph", &[]), ("watch", &["graph"])]),
    (
        "memory",
        &[
            ("journal", &[]),
            ("changes", &["journal"]),
            ("session", &[]),
            ("undo", &["changes", "journal"]),
            ("folder", &["changes", "journal", "undo"]),
        ],
    ),
    (
        "trees",
        &[
            ("repository", &[]),
            ("tree", &["repository"]),
            ("recovery", &["repository", "tree"]),
            ("lifecycle", &["recovery", "repository", "tree"]),
            ("landing", &["repository", "tree"]),
            ("review", &["repository", "tree"]),
        ],
    ),
    ("config", &[("config", &[]), ("learn", &[])]),
    ("wire", &[("runs", &[]), ("tokens", &[]), ("wire", &["runs", "tokens"]), ("view", &["wire"])]),
    (
        "team",
        &[
            ("budget", &[]),
            ("preview", &[]),
            ("tasks", &[]),
            ("conflicts", &["preview", "tasks"]),
            ("tracker", &[]),
            ("capture", &["tracker"]),
            ("routing", &["preview", "tasks", "tracker"]),
        ],
    ),
    (
        "protocols",
        &[("extract", &[]), ("plugin", &["extract"]), ("remote", &[]), ("scripted", &[])],
    ),
    (
        "export",
        &[
            ("post", &[]),
            ("alert", &["post"]),
            ("metrics", &[]),
            ("otlp", &[]),
            ("streams", &["otlp", "post"]),
            ("telemetry", &["otlp", "post"]),
        ],
    ),
    (
        "providers",
        &[
            ("provider", &[]),
            ("counting", &["provider"]),
            ("endpoint", &["counting", "provider"]),
            ("model_server", &[]),
        ],
    ),
    (
        "agents",
        &[
            ("proxy", &[]),
            ("client_host", &["proxy"]),
            ("slots", &[]),
            ("agent", &["client_host", "proxy", "slots"]),
            ("supervisor", &["agent"]),
        ],
    ),
    (
        "port",
        &[
            ("gateway", &[]),
            ("mcp", &[]),
            ("replay", &[]),
            ("serve", &["gateway", "mcp", "replay"]),
        ],
    ),
    ("web", &[("hub", &[]), ("web", &[])]),
    (
        "runtime",
        &[
            ("program", &[]),
            ("home", &["program"]),
            ("console", &["home"]),
            ("tiers", &[]),
            ("failover", &["home", "tiers"]),
            ("turn", &["failover", "home", "program", "tiers"]),
            ("providers", &["program"]),
            ("team_file", &["home", "program", "tiers"]),
            ("branches", &["home", "program", "team_file"]),
            ("helpers", &["branches", "team_file"]),
            ("kernel", &["home", "team_file"]),
            ("learned_zones", &["program", "team_file"]),
            ("access", &["home", "team_file"]),
            ("team_state", &["home"]),
            ("notes", &[]),
            (
                "app",
                &[
                    "access",
                    "branches",
                    "console",
                    "failover",
                    "helpers",
                    "home",
                    "kernel",
                    "notes",
                    "program",
                    "providers",
                    "team_file",
                    "team_state",
                    "tiers",
                    "turn",
                ],
            ),
            (
                "jobs",
                &[
                    "app",
                    "branches",
                    "console",
                    "failover",
                    "home",
                    "program",
                    "providers",
                    "team_file",
                    "tiers",
                    "turn",
                ],
            ),
            ("care", &["app", "home", "jobs", "kernel", "program", "team_file", "tiers"]),
        ],
    ),
    ("eisen-core", &[("cli", &[])]),
];

/// Lines of a file, its tests counted, past which it is to be split.
const LONGEST_FILE: usize = 500;

/// Circles of files that are still there; none is added.
const CIRCLES: &[&str] = &[];

/// Names of types that still stand in more than two rooms; none is added.
const SPREAD: &[&str] = &["Event", "Team"];

#[test]
fn imports_run_one_way() {
    let modules = modules();
    let mut wrong = Vec::new();
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let room = room(&file);
        if room == "lib" || room == "main" {
            continue;
        }
        let Some((beside, allowed)) = rooms_beside(&room) else {
            wrong.push(format!("{}: the room `{room}` is not in the table", file.display()));
            continue;
        };
        for other in modules.rooms_named_by(&file) {
            if other != room && beside.contains(&&*other) && !allowed.contains(&&*other) {
                wrong.push(format!("{}: {room} must not know {other}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_room_may_import_what_it_does_not() {
    let modules = modules();
    let mut unused: Vec<_> = rooms()
        .flat_map(|(room, allowed)| allowed.iter().map(move |other| (*room, *other)))
        .collect();
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let (room, named) = (room(&file), modules.rooms_named_by(&file));
        unused.retain(|(importer, other)| *importer != room || !named.contains(*other));
    }
    assert!(unused.is_empty(), "allowed, and not needed: {unused:?}");
}

#[test]
fn files_of_a_room_form_no_circles() {
    let modules = modules();
    let circles = modules.circles();
    for circle in &circles {
        let known = CIRCLES.contains(&circle.as_str());
        assert!(known, "a circle of files: {circle}\n{}", modules.steps(circle));
    }
    let gone: Vec<_> =
        CIRCLES.iter().filter(|old| !circles.iter().any(|new| new == *old)).collect();
    assert!(gone.is_empty(), "take these off the list: {gone:?}");
}

/// Words that make a sentence be read twice: its subject comes later, or stands in a name above.
const WITHOUT_SUBJECT: [&str; 6] = ["Of", "It", "Those", "That", "What", "Who"];

#[test]
fn comments_of_items_begin_with_their_subject() {
    let mut wrong = Vec::new();
    for file in sources() {
        let text = read(&file);
        let mut is_within = false;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let first = comment.and_then(|it| it.split_whitespace().next());
            if !is_within && first.is_some_and(|word| WITHOUT_SUBJECT.contains(&word)) {
                wrong.push(format!("{}:{}: {line}", file.display(), at + 1));
            }
            is_within = comment.is_some();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_file_opens_with_what_it_owns() {
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let opens = read(&file).starts_with("//!");
        assert!(opens, "src/{} does not open with `//!`", file.display());
    }
}

#[test]
fn rooms_stand_in_an_order_without_cycles() {
    for (_, rooms) in CRATES {
        for (at, (room, allowed)) in rooms.iter().enumerate() {
            for other in *allowed {
                let before = rooms[..at].iter().any(|(name, _)| name == other);
                assert!(before, "{room} imports {other}, which stands after it");
            }
        }
    }
}

#[test]
fn the_table_has_each_crate_and_its_rooms() {
    for root in source_roots() {
        let lib = fs::read_to_string(root.join("lib.rs")).unwrap();
        let declared = lib.lines().filter_map(|line| line.strip_prefix("pub mod "));
        let declared: BTreeSet<_> = declared.map(|name| name.trim_end_matches(';')).collect();
        let folder = root.parent().unwrap().strip_prefix(project()).unwrap();
        let name = folder.file_name().map_or("eisen-core".into(), std::ffi::OsStr::to_string_lossy);
        let known = CRATES.iter().find(|(known, _)| *known == name);
        let known = known.unwrap_or_else(|| panic!("the crate `{name}` is not in the table")).1;
        assert_eq!(declared, known.iter().map(|(room, _)| *room).collect(), "{name}");
    }
}

#[test]
fn files_are_read_in_one_sitting() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|file| (read(&file).lines().count(), file))
        .filter(|(lines, _)| *lines > LONGEST_FILE)
        .collect();
    assert!(long.is_empty(), "longer than {LONGEST_FILE} lines: {long:?}");
}

#[test]
fn a_type_name_stands_in_at_most_two_rooms() {
    let glossary = fs::read_to_string(project().join("docs/glossary.md")).unwrap();
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let text = read(&file);
        let named = text.split("named! {").skip(1);
        let named =
            named.filter_map(|rest| rest.lines().map(str::trim_start).find_map(declared_type));
        for name in text.lines().filter_map(declared_type).chain(named) {
            rooms.entry(name.to_owned()).or_default().insert(room(&file));
        }
    }
    assert!(rooms["Zone"].contains("zone"));
    let known = |name: &str| SPREAD.contains(&name) || glossary.contains(&format!("| `{name}` |"));
    rooms.retain(|name, rooms| rooms.len() > 2 && !known(name));
    assert!(rooms.is_empty(), "rename these, or give a reason in docs/glossary.md: {rooms:?}");
}

/// The type that a line declares, outside of functions and implementations.
fn declared_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let (keyword, rest) = line.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    is_type.then(|| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()).flatten()
}

#[test]
fn unsafe_code_is_only_in_the_rooms_that_need_it() {
    let spread: Vec<_> = sources()
        .into_iter()
        .filter(|file| !["process", "confine", "plugin", "main"].contains(&room(file).as_str()))
        .filter(|file| read(file).contains("allow(unsafe_code"))
        .collect();
    assert!(spread.is_empty(), "{spread:?}");
}

#[test]
fn small_files_are_replaced_and_locked_in_one_room() {
    let by_hand = ["NamedTempFile::new", "tempfile_in(", ".persist(", "Flock::lock("];
    // Its packs are large, and no state.
    let large = Path::new("graph/cache.rs");
    let mut wrong = Vec::new();
    for file in sources().into_iter().filter(|file| !is_test(file) && file != large) {
        let text = read(&file);
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        if room(&file) != "kept" && by_hand.iter().any(|call| code.contains(call)) {
            wrong.push(file);
        }
    }
    assert!(wrong.is_empty(), "use `KeptFile`, `lock` or `try_lock` of the room kept: {wrong:?}");
}

#[test]
fn tasks_are_started_in_one_room() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|file| !is_test(file) && room(file) != "task")
        .filter(|file| {
            read(file).lines().any(|line| {
                let is_other = |it: &&str| line.contains(it);
                ["tokio::spawn", "tokio::task::spawn", "JoinSet"].iter().any(is_other)
                    || line.starts_with("use tokio") && line.contains("spawn")
            })
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "use `spawn`, `spawn_blocking` or `TaskSet` of the room task: {wrong:?}"
    );
}

/// The rooms of all crates, each with those beside it that it may import.
fn rooms() -> impl Iterator<Item = &'static Room> {
    CRATES.iter().flat_map(|(_, rooms)| rooms.iter())
}

/// The rooms of the same crate, and those of them that a room may import.
fn rooms_beside(room: &str) -> Option<(Vec<&'static str>, &'static [&'static str])> {
    CRATES.iter().find_map(|(_, rooms)| {
        let (_, allowed) = rooms.iter().find(|(name, _)| *name == room)?;
        Some((rooms.iter().map(|(name, _)| *name).collect(), *allowed))
    })
}

fn is_test(file: &Path) -> bool {
    file.file_stem().is_some_and(|name| name == "tests")
        || file.components().any(|folder| folder.as_os_str() == "tests")
}

fn modules() -> Modules {
    let files = sources().into_iter().filter(|file| !is_test(file));
    Modules::new(files.map(|file| (file.clone(), read(&file))))
}

fn room(file: &Path) -> String {
    let first = file.components().next().map(|c| c.as_os_str().to_string_lossy().into_owned());
    first.unwrap_or_default().trim_end_matches(".rs").to_owned()
}

fn read(file: &Path) -> String {
    let places = source_roots().into_iter().map(|root| root.join(file));
    fs::read_to_string(places.into_iter().find(|place| place.exists()).unwrap()).unwrap()
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of sources: that of the program, and those of the crates below it.
fn source_roots() -> Vec<PathBuf> {
    let crates = fs::read_dir(project().join("crates")).unwrap();
    let mut roots: Vec<_> = crates.map(|entry| entry.unwrap().path().join("src")).collect();
    // One has what tests share, one stands in for a public package: they have no rooms.
    roots.retain(|root| !root.ends_with("testing/src") && !root.ends_with("nkeys/src"));
    roots.sort();
    roots.insert(0, project().join("src"));
    roots
}

/// Returns every source file, relative to the folder of sources that it is in: it begins with its room.
fn sources() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for root in source_roots() {
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    files.push(path.strip_prefix(&root).unwrap().to_owned());
                }
            }
        }
    }
    assert!(files.len() > rooms().count());
    files.sort();
    // Each crate has a `lib.rs`.
    files.dedup();
    files
}
