#![allow(clippy::unwrap_used)]

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::config::zone_pattern;
use crate::zone::WirePatterns;

fn used(path: &str, action: Action) -> UsedPath {
    UsedPath {
        path: path.to_owned(),
        action,
        turn: 0,
        is_meant: true,
        by_search: false,
        is_made: false,
        is_refused: false,
        tool: None,
        program: None,
    }
}

fn reads(path: &str) -> UsedPath {
    used(path, Action::Read)
}

fn writes(path: &str) -> UsedPath {
    used(path, Action::Write)
}

fn makes(path: &str) -> UsedPath {
    UsedPath { is_made: true, ..writes(path) }
}

fn known(paths: &[&str]) -> Vec<KnownFile> {
    let listed = |path: &str| path.rsplit('/').next() == Some(".env");
    paths
        .iter()
        .map(|path| KnownFile { path: (*path).to_owned(), is_listed: listed(path) })
        .collect()
}

/// A path of `closed` is denied, and `.env` is on the default list.
fn standing(path: &str, _: Action) -> Openness {
    match path {
        _ if path.starts_with('/') => Openness::Outside,
        _ if path.split('/').any(|part| part == ".git") => Openness::Git,
        _ if path.split('/').any(|part| part.starts_with("closed")) => Openness::Denied,
        _ if path.rsplit('/').next() == Some(".env") => Openness::Listed,
        _ => Openness::Open,
    }
}

/// The agent made `docs` and `b/a`; git ignores `node_modules` and `c`.
fn folder(path: &str) -> FolderKind {
    let is_in = |folder: &str| path == folder || path.starts_with(&format!("{folder}/"));
    match path {
        _ if is_in("docs") || is_in("b/a") => FolderKind::Made,
        _ if is_in("node_modules") || is_in("c") => FolderKind::Ignored,
        _ => FolderKind::Other,
    }
}

const MEASURE: Measure<'_> =
    Measure { standing: &standing, folder: &folder, allows_now: &|_, _| false, is_cut: false };

fn zone(uses: &[UsedPath], files: &[&str]) -> ProposedZone {
    propose(uses, &known(files), &MEASURE)
}

fn shown(patterns: &[ProposedPattern]) -> Vec<String> {
    patterns.iter().map(|it| format!("{} +{}", it.pattern, it.further)).collect()
}

const FILES: [&str; 9] = [
    "README.md",
    "package.json",
    "lib/app.js",
    "lib/utils.js",
    "lib/view.js",
    "lib/router/index.js",
    "lib/router/route.js",
    "test/app.js",
    "test/view.js",
];

#[test]
fn a_folder_stands_for_its_files_where_most_of_it_was_used() {
    let one = zone(&[writes("lib/app.js"), reads("README.md")], &FILES);
    assert_eq!(shown(&one.allowed), ["lib/app.js +0"]);
    assert_eq!(shown(&one.readable), ["README.md +0"]);
    // Two of three, and nothing of the folder in it.
    let most = zone(&[writes("lib/app.js"), writes("lib/view.js")], &FILES);
    assert_eq!(shown(&most.allowed), ["lib/* +1"]);
    let whole =
        zone(&[writes("lib/app.js"), writes("lib/view.js"), writes("lib/router/route.js")], &FILES);
    assert_eq!(shown(&whole.allowed), ["lib/** +2"]);
    // What is written may be read, and counts there, too.
    let both = zone(&[writes("lib/app.js"), reads("lib/view.js")], &FILES);
    assert_eq!(shown(&both.allowed), ["lib/app.js +0"]);
    assert_eq!(shown(&both.readable), ["lib/* +1"]);
}

#[test]
fn a_folder_in_which_a_file_was_made_takes_more() {
    let made = zone(&[makes("test/teapot.js"), makes("notes.txt")], &FILES);
    // But not the top of the workspace.
    assert_eq!(shown(&made.allowed), ["notes.txt +0", "test/* +2"]);
    // A folder of its own is opened whole, and one that git ignores if it was written.
    let new = zone(&[makes("docs/api/a.md"), writes("node_modules/x/index.js")], &FILES);
    assert_eq!(shown(&new.allowed), ["docs/** +0", "node_modules/** +0"]);
}

#[test]
fn of_a_folder_whose_files_are_not_known_only_the_files_are_proposed() {
    let read = ["node_modules/x/a.js", "node_modules/x/b.js", "gone/a.js", "gone/b.js"];
    let zone = zone(&read.map(reads), &FILES);
    let alone = ["gone/a.js", "gone/b.js", "node_modules/x/a.js", "node_modules/x/b.js"];
    assert_eq!(shown(&zone.readable), alone.map(|path| format!("{path} +0")));
    let made = propose(&[makes("gone/a.js")], &known(&FILES), &MEASURE);
    assert_eq!(shown(&made.allowed), ["gone/a.js +0"]);
    // Where there are more files than were looked at.
    let cut = Measure { is_cut: true, ..MEASURE };
    let used = [writes("lib/app.js"), writes("lib/view.js"), writes("lib/utils.js")];
    let cut = propose(&used, &known(&FILES), &cut);
    assert_eq!(shown(&cut.allowed), ["lib/app.js +0", "lib/utils.js +0", "lib/view.js +0"]);
}

#[test]
fn what_is_closed_whoever_asks_is_never_proposed() {
    let files = ["src/a.js", "src/b.js", "src/.env", "src/closed.js", "src/ui/c.js"];
    let uses = [
        writes("src/a.js"),
        writes("src/b.js"),
        reads("src/.env"),
        writes("src/closed.js"),
        writes(".git"),
        reads("/etc/hosts"),
        writes("src/ui/c.js"),
    ];
    let zone = zone(&uses, &files);
    // A pattern of the folder would open `.env`.
    assert_eq!(shown(&zone.allowed), ["src/a.js +0", "src/b.js +0", "src/ui/c.js +0"]);
    let why = |standing| zone.left_out.get(&LeftOutFor::Standing(standing)).copied();
    let closed = [Openness::Denied, Openness::Listed, Openness::Git, Openness::Outside];
    assert_eq!(closed.map(why), [Some(1); 4]);
}

#[test]
fn searches_and_what_was_refused_open_nothing() {
    let by_search = |path: &str| UsedPath { by_search: true, is_meant: false, ..reads(path) };
    let named = UsedPath { by_search: true, ..reads("README.md") };
    let refused = UsedPath { is_refused: true, ..writes("package.json") };
    let uses = [by_search("lib/app.js"), by_search("lib/view.js"), named, refused];
    let zone = zone(&uses, &FILES);
    assert_eq!(
        (shown(&zone.allowed), shown(&zone.readable)),
        (vec![], vec!["README.md +0".into()])
    );
    let left_out = [(LeftOutFor::Search, 2), (LeftOutFor::Refused, 1)];
    assert_eq!(zone.left_out, BTreeMap::from(left_out));
    // The person would be asked again.
    assert_eq!(zone.then, Demand { questions: 1, passing: 2 });
}

#[test]
fn questions_are_counted_once_a_turn_and_each_pattern_says_who_needed_it() {
    let by = |used: UsedPath, turn, tool: &str, program: &str| UsedPath {
        turn,
        tool: Some(tool.to_owned()),
        program: Some(program.to_owned()),
        ..used
    };
    let passes = UsedPath { is_meant: false, ..by(reads("lib/view.js"), 1, "Run tests", "node") };
    let uses = [
        by(writes("lib/app.js"), 0, "Edit app.js", "node"),
        by(writes("lib/app.js"), 0, "Edit app.js", "sed"),
        by(writes("lib/app.js"), 1, "Edit app.js", "node"),
        by(reads("lib/.env"), 1, "Run tests", "node"),
        passes,
    ];
    let zone = zone(&uses, &FILES);
    assert_eq!(zone.now, Demand { questions: 3, passing: 1 });
    assert_eq!(zone.then, Demand { questions: 1, passing: 0 });
    let line = &zone.allowed[0];
    assert_eq!(line.tools, [("Edit app.js".to_owned(), 1)]);
    assert_eq!(line.programs, [("node".to_owned(), 1), ("sed".to_owned(), 1)]);
}

#[test]
fn names_with_special_letters_are_those_names() {
    let zone = zone(&[reads("app/[id]/page.tsx")], &["app/[id]/page.tsx", "app/x.tsx"]);
    assert_eq!(zone.readable[0].pattern.to_string(), "app/[[]id[]]/page.tsx");
}

#[test]
fn a_name_that_no_pattern_can_have_is_left_out_alone() {
    let used = ["lib/two\nlines", "README.md", "no\u{fffd}text"].map(reads);
    let zone = zone(&used, &FILES);
    assert_eq!(shown(&zone.readable), ["README.md +0"]);
    assert_eq!(zone.left_out, BTreeMap::from([(LeftOutFor::Name, 2)]));
}

const NAMES: [&str; 12] =
    ["a", "b", "c", "closed", "x[y]", ".env", "!a", "~", "a\\b", "{a,b}", "*?", "$ä"];

fn paths() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(&NAMES[..]);
    proptest::collection::vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

fn histories() -> impl Strategy<Value = Vec<UsedPath>> {
    let action = prop_oneof![Just(Action::Read), Just(Action::Write)];
    let one = (paths(), action, any::<bool>(), any::<bool>(), 0..3_u64);
    let one = one.prop_map(|(path, action, is_meant, by_search, turn)| UsedPath {
        is_meant,
        by_search,
        turn,
        is_made: action == Action::Write && turn == 2,
        ..used(&path, action)
    });
    proptest::collection::vec(one, 0..12)
}

/// Paths of which none is a folder of another, as on a disk.
fn on_a_disk(paths: impl IntoIterator<Item = String>) -> Vec<KnownFile> {
    let all: BTreeSet<String> = paths.into_iter().collect();
    let is_folder = |path: &String| all.iter().any(|other| other.starts_with(&format!("{path}/")));
    let files: Vec<&str> = all.iter().filter(|path| !is_folder(path)).map(String::as_str).collect();
    known(&files)
}

/// The files, and a history with files and paths of its own.
fn worlds() -> impl Strategy<Value = (Vec<UsedPath>, Vec<KnownFile>)> {
    (histories(), proptest::collection::vec(paths(), 0..20)).prop_map(|(mut uses, more)| {
        let used = uses.iter().map(|used| used.path.clone());
        let all = on_a_disk(used.chain(more.iter().cloned()));
        uses.retain(|used| all.iter().any(|file| file.path == used.path));
        // What was used need not be there any more.
        let files = all.into_iter().filter(|file| more.contains(&file.path)).collect();
        (uses, files)
    })
}

proptest! {
    #[test]
    fn all_that_may_be_proposed_is_covered_and_no_closed_file((uses, files) in worlds()) {
        let zone = propose(&uses, &files, &MEASURE);
        for used in &uses {
            if why_left_out(used, &MEASURE).is_none() {
                prop_assert!(zone.covers(&used.path, used.action), "{used:?} in {zone:?}");
            }
        }
        for line in zone.allowed.iter().chain(&zone.readable) {
            let closed = |path: &str| standing(path, Action::Read) != Openness::Open;
            if let FoundPattern::File(path) = &line.pattern {
                prop_assert!(!closed(path), "{zone:?}");
            }
            // What `denied` has it goes on having; the list has it only if the zone says so.
            let listed = files.iter().filter(|file| file.is_listed);
            prop_assert!(listed.into_iter().all(|file| !line.pattern.has(&file.path)), "{zone:?}");
        }
        for line in zone.allowed.iter().chain(&zone.readable) {
            let text = line.pattern.to_string();
            prop_assert_eq!(zone_pattern(&text, Path::new("/w"), "-"), Ok(text.clone()));
            let matching = WirePatterns::compile(&[text], false).unwrap();
            for path in uses.iter().map(|used| &used.path).chain(files.iter().map(|it| &it.path)) {
                prop_assert_eq!(matching.matches(path), line.pattern.has(path), "{}", path);
            }
        }
        prop_assert!(zone.then.questions <= zone.now.questions);
        prop_assert_eq!(propose(&uses, &files, &MEASURE), zone);
    }

    #[test]
    fn a_smaller_history_opens_no_file_that_the_whole_one_does_not(
        (uses, files) in worlds(),
        kept in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let whole = propose(&uses, &files, &MEASURE);
        let part: Vec<_> =
            uses.iter().zip(kept).filter(|(_, kept)| *kept).map(|(used, _)| used.clone()).collect();
        let part = propose(&part, &files, &MEASURE);
        for file in &files {
            for action in [Action::Read, Action::Write] {
                prop_assert!(
                    !part.covers(&file.path, action) || whole.covers(&file.path, action),
                    "{action} {}: {part:?} and {whole:?}", file.path
                );
            }
        }
    }
}
