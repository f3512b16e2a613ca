//! Tests that places are whole, and that they stay.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::*;

/// A source of numbers that is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn lines(&mut self) -> u32 {
        let most = 1 << self.below(13);
        u32::try_from(1 + self.below(most)).unwrap()
    }
}

type Files = BTreeMap<String, u32>;

/// A workspace of about so many files, in folders as deep as those of real ones.
fn workspace(files: usize, dice: &mut Dice) -> Files {
    let mut folders = vec![String::new()];
    let mut made = Files::new();
    while made.len() < files {
        let above = folders[dice.below(folders.len())].clone();
        let folder = format!("{above}d{}/", folders.len());
        for n in 0..=dice.below(24) {
            made.insert(format!("{folder}f{n}.rs"), dice.lines());
        }
        folders.push(folder);
    }
    made
}

fn list(files: &Files) -> Vec<(Arc<str>, u32)> {
    files.iter().map(|(path, lines)| (path.as_str().into(), *lines)).collect()
}

fn places(layout: &Layout) -> BTreeMap<Arc<str>, Tile> {
    layout.since(None).files.into_iter().map(|it| (it.path, it.tile)).collect()
}

fn holds(outer: Tile, inner: Tile) -> bool {
    let end = |at: u16, len: u16| u32::from(at) + u32::from(len);
    inner.x >= outer.x
        && inner.y >= outer.y
        && end(inner.x, inner.w) <= end(outer.x, outer.w)
        && end(inner.y, inner.h) <= end(outer.y, outer.h)
}

fn overlap(a: Tile, b: Tile) -> bool {
    let apart = |a: u16, a_len: u16, b: u16| u32::from(a) + u32::from(a_len) <= u32::from(b);
    !(apart(a.x, a.w, b.x) || apart(b.x, b.w, a.x) || apart(a.y, a.h, b.y) || apart(b.y, b.h, a.y))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Each file and folder is inside of its folder, and beside all others there.
fn assert_whole(layout: &Layout, files: &Files) {
    let all = layout.since(None);
    let more: usize = all.folders.iter().map(|it| it.more).sum();
    assert_eq!(all.files.len() + more, files.len());
    let folders: HashMap<_, _> = all.folders.iter().map(|it| (&*it.path, it.tile)).collect();
    let mut inside: HashMap<&str, Vec<&Placed>> = HashMap::new();
    for it in all.files.iter().chain(&all.folders).filter(|it| !it.path.is_empty()) {
        assert!(
            it.tile.w > 0 && it.tile.h > 0 && holds(folders[parent(&it.path)], it.tile),
            "{it:?}"
        );
        inside.entry(parent(&it.path)).or_default().push(it);
    }
    for mut beside in inside.into_values() {
        // Only those that overlap in one direction can overlap at all.
        beside.sort_by_key(|it| it.tile.x);
        for (n, it) in beside.iter().enumerate() {
            let end = u32::from(it.tile.x) + u32::from(it.tile.w);
            let near = beside[n + 1..].iter().take_while(|other| u32::from(other.tile.x) < end);
            for other in near {
                assert!(!overlap(it.tile, other.tile), "{it:?} {other:?}");
            }
        }
    }
}

/// Has so many of 1,000 files go, come and grow.
fn change(files: &mut Files, of_1000: usize, dice: &mut Dice) {
    let count = files.len() * of_1000 / 1000;
    let paths: Vec<_> = files.keys().cloned().collect();
    for n in 0..count {
        let path = &paths[dice.below(paths.len())];
        let _: Option<u32> = match n % 4 {
            0 => files.remove(path),
            1 => files.insert(format!("{}/new{n}.rs", parent(path)), dice.lines()),
            2 => files.insert(path.clone(), dice.lines()),
            _ if n % 64 == 3 => files.insert(format!("{}/n{n}/a.rs", parent(path)), dice.lines()),
            _ => files.insert(path.clone(), files.get(path).map_or(1, |it| it * 2)),
        };
    }
}

/// How many of the files that stay have another place.
fn moved(before: &BTreeMap<Arc<str>, Tile>, after: &BTreeMap<Arc<str>, Tile>) -> usize {
    before.iter().filter(|(path, tile)| after.get(*path).is_some_and(|it| it != *tile)).count()
}

/// The bound: of the files that stay, at most one in a hundred moves when one in a hundred changes,
/// and one in 400 over time. Those that grew or shrank by four times and more are among them.
#[test]
fn the_rest_stays_when_one_in_a_hundred_files_changes() {
    for seed in 0..3 {
        let mut dice = Dice(seed);
        let mut files = workspace(10_000, &mut dice);
        let mut layout = Layout::default();
        layout.update(1, &list(&files));
        let (mut all, mut most) = (0, 0);
        for seq in 2..=21 {
            let before = places(&layout);
            change(&mut files, 10, &mut dice);
            layout.update(seq, &list(&files));
            let moved = moved(&before, &places(&layout));
            (all, most) = (all + moved, most.max(moved));
        }
        assert_whole(&layout, &files);
        assert!(most <= files.len() / 100, "{most} moved at once, seed {seed}");
        assert!(all <= 20 * files.len() / 400, "{all} moved, seed {seed}");
    }
}

#[test]
fn what_changed_leads_from_each_state_to_the_next() {
    let mut dice = Dice(3);
    let mut files = workspace(500, &mut dice);
    let mut layout = Layout::default();
    layout.update(1, &list(&files));
    let mut known: BTreeMap<Arc<str>, Placed> = BTreeMap::new();
    let mut seq = None;
    for next in 2..60 {
        let part = layout.since(seq);
        assert_eq!((part.is_whole, part.seq), (seq.is_none(), next - 1));
        for path in &part.removed {
            known.remove(path);
        }
        for it in part.folders.into_iter().chain(part.files) {
            known.insert(Arc::clone(&it.path), it);
        }
        let whole = layout.since(None);
        let whole: BTreeMap<_, _> = whole
            .folders
            .into_iter()
            .chain(whole.files)
            .map(|it| (Arc::clone(&it.path), it))
            .collect();
        assert!(known == whole, "at {next}");
        seq = Some(part.seq);
        change(&mut files, [5, 50, 400][usize::try_from(next % 3).unwrap()], &mut dice);
        layout.update(next, &list(&files));
        assert_whole(&layout, &files);
    }
    assert!(layout.since(Some(1_000)).is_whole && layout.since(Some(0)).is_whole);
}

#[test]
fn a_name_is_a_file_then_a_folder() {
    let mut layout = Layout::default();
    let of = |paths: &[&str]| paths.iter().map(|path| ((*path).into(), 9)).collect::<Vec<_>>();
    layout.update(1, &of(&["a", "b/c"]));
    layout.update(2, &of(&["a/x", "b"]));
    let part = layout.since(Some(1));
    let paths = |placed: &[Placed]| placed.iter().map(|it| it.path.to_string()).collect::<Vec<_>>();
    assert_eq!(part.removed, ["a".into(), "b".into(), "b/c".into()]);
    assert_eq!(
        (paths(&part.folders), paths(&part.files)),
        (vec!["a".into()], vec!["a/x".into(), "b".into()])
    );
}

#[test]
fn a_renamed_file_takes_the_place_of_the_old_one() {
    let mut files: Files = (0..40).map(|n| (format!("src/{n}.rs"), 100)).collect();
    let mut layout = Layout::default();
    layout.update(1, &list(&files));
    let before = places(&layout);
    files.remove("src/7.rs");
    files.insert("src/z.rs".to_owned(), 100);
    // As many as there are empty places, with the one of the file that went.
    for n in 0..10 {
        files.insert(format!("src/new{n}.rs"), 100);
    }
    layout.update(2, &list(&files));
    let after = places(&layout);
    assert_eq!(moved(&before, &after), 0);
    let old = before["src/7.rs"];
    let heir = after.iter().find(|(_, tile)| **tile == old).map(|(path, _)| path.to_string());
    assert!(heir.is_some_and(|path| path.starts_with("src/new") || path == "src/z.rs"));
}

#[test]
fn a_flood_into_one_folder_leaves_the_others() {
    let mut dice = Dice(5);
    let mut files = workspace(5_000, &mut dice);
    let mut layout = Layout::default();
    layout.update(1, &list(&files));
    let before = places(&layout);
    for n in 0..500 {
        files.insert(format!("d7/flood{n}.rs"), 30);
    }
    layout.update(2, &list(&files));
    assert_whole(&layout, &files);
    assert!(moved(&before, &places(&layout)) <= before.len() / 100);
}

#[test]
fn the_same_history_gives_the_same_places() {
    let run = || {
        let mut dice = Dice(11);
        let mut files = workspace(2_000, &mut dice);
        let mut layout = Layout::default();
        for seq in 1..10 {
            layout.update(seq, &list(&files));
            change(&mut files, 30, &mut dice);
        }
        layout.since(None)
    };
    assert_eq!(run(), run());
}

#[test]
fn hostile_workspaces_are_bounded() {
    let deep = |n: usize| format!("{}x{n}", "d/".repeat(500));
    let long = "l".repeat(2_000);
    let mut files: Files = (0..100_010).map(|n| (format!("flat/{n}"), 1)).collect();
    files.extend((0..10).map(|n| (deep(n), u32::MAX)));
    files.insert(long, 0);
    files.extend((0..10).map(|n| (format!("{}x", format!("{n}/").repeat(60)), 7)));
    let mut layout = Layout::default();
    layout.update(1, &list(&files));
    assert_whole(&layout, &files);
    let all = layout.since(None);
    assert_eq!(all.files.len(), MOST_FILES);
    // All go, and come back.
    layout.update(2, &[]);
    assert_eq!(layout.since(None).files, []);
    assert!(layout.since(Some(1)).is_whole, "it forgot what went");
    layout.update(3, &list(&files));
    assert_whole(&layout, &files);
}

#[test]
fn a_folder_without_room_shows_how_many_files_it_has() {
    // Each folder halves the place of the next: there is none for the last.
    let mut files: Files = (0..64).map(|n| (format!("{}big", "d/".repeat(n)), u32::MAX)).collect();
    for n in 0..64 {
        files.extend((0..40).map(|k| (format!("{}f{k}", "d/".repeat(n)), u32::MAX)));
    }
    let mut layout = Layout::default();
    layout.update(1, &list(&files));
    assert_whole(&layout, &files);
}
