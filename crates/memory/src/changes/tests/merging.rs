//! Merging three versions.

use std::fs;
use std::process::Command;

use proptest::prelude::*;

use super::super::*;

fn clean(base: &str, ours: &str, theirs: &str) -> Option<String> {
    match merge3(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
        Merge::Clean(content) => Some(String::from_utf8(content).unwrap()),
        Merge::Conflict => None,
    }
}

#[test]
fn both_sides_changes_are_kept_byte_for_byte() {
    for (base, ours, theirs, merged) in [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", Some("A\nb\nC\n")),
        ("a\nb\nc\n", "A\nb\nc\n", "A\nb\nC\n", Some("A\nb\nC\n")),
        ("a\nb\nc\n", "A\nb\nc\n", "X\nb\nc\n", None),
        // Neighbouring changes are a conflict, as in git.
        ("a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n", None),
        ("a\n", "a\nx\n", "a\ny\n", None),
        // But not lines that one side added beside those that the other removed.
        ("a\nx\n", "a\nx\ny\n", "a\n", Some("a\ny\n")),
        ("a\nx\n", "a\ny\nx\n", "a\n", Some("a\ny\n")),
        ("a\nx\nz\n", "a\nx\ny\nz\n", "a\n", None),
        // Line ends, a missing one, and a byte-order mark.
        ("a\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\nb\r\nc\r\n", Some("A\nb\r\nC\r\n")),
        ("\u{feff}a\nb\nc", "\u{feff}a\nb\nC", "\u{feff}A\nb\nc", Some("\u{feff}A\nb\nC")),
        ("a\nb\nc\n", "a\nb\nc", "A\nb\nc\n", Some("A\nb\nc")),
        // Binary contents only if one side is as before.
        ("a\0\nb\nc\n", "a\0\nb\nC\n", "A\0\nb\nc\n", None),
        ("a\0", "a\0", "b\0", Some("b\0")),
        ("", "a\n", "", Some("a\n")),
        ("a\n", "", "", Some("")),
        ("a\n", "", "b\n", None),
    ] {
        assert_eq!(clean(base, ours, theirs).as_deref(), merged, "{base:?} {ours:?} {theirs:?}");
    }
}

/// Versions of a text, so that the sides share most lines.
fn edited() -> impl Strategy<Value = [String; 3]> {
    let edit = prop::collection::vec((0..12_usize, 0..4_u8, "[a-c]{1,2}"), 0..4);
    let base = prop::collection::vec("[a-f]{1,2}", 0..12);
    (base, edit.clone(), edit, any::<[bool; 3]>()).prop_map(|(base, ours, theirs, ends)| {
        let side = |edits: &[(usize, u8, String)]| {
            let mut lines = base.clone();
            for (at, what, text) in edits {
                let at = at % (lines.len() + 1);
                match what {
                    0 => lines.insert(at, text.clone()),
                    1 if at < lines.len() => drop(lines.remove(at)),
                    _ if at < lines.len() => lines[at].clone_from(text),
                    _ => lines.push(text.clone()),
                }
            }
            lines
        };
        let text = |lines: Vec<String>, end: bool| {
            let end = if end && !lines.is_empty() { "\n" } else { "" };
            lines.join("\n") + end
        };
        [text(base.clone(), ends[0]), text(side(&ours), ends[1]), text(side(&theirs), ends[2])]
    })
}

proptest! {
    #[test]
    fn sides_may_be_swapped_and_no_line_is_made_up([base, ours, theirs] in edited()) {
        let merged = clean(&base, &ours, &theirs);
        prop_assert_eq!(&merged, &clean(&base, &theirs, &ours));
        if let Some(merged) = merged {
            for line in merged.lines() {
                prop_assert!([&base, &ours, &theirs].iter().any(|it| it.lines().any(|l| l == line)));
            }
        }
        prop_assert_eq!(clean(&base, &ours, &base), Some(ours.clone()));
    }
}

/// Where git merges cleanly, so do we, with the same result.
#[test]
fn git_merges_to_the_same() {
    let folder = tempfile::TempDir::new().unwrap();
    let names = ["ours", "base", "theirs"].map(|name| folder.path().join(name));
    let text = |lines: &[&str]| lines.join("\n") + "\n";
    let numbers: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
    let base: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let (mut agreed, mut seed) = (0, 7_u64);
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    for _ in 0..60 {
        let mut side = || {
            let mut lines = base.clone();
            for _ in 0..2 {
                let at = random(lines.len());
                match random(3) {
                    0 => lines.insert(at, "new"),
                    1 => drop(lines.remove(at)),
                    _ => lines[at] = "changed",
                }
            }
            text(&lines)
        };
        let (ours, theirs, base) = (side(), side(), text(&base));
        for (name, content) in names.iter().zip([&ours, &base, &theirs]) {
            fs::write(name, content).unwrap();
        }
        let git =
            Command::new("git").args(["merge-file", "-p", "-q"]).args(&names).output().unwrap();
        if git.status.success() {
            let merged = clean(&base, &ours, &theirs);
            assert_eq!(merged.as_deref(), Some(std::str::from_utf8(&git.stdout).unwrap()));
            agreed += 1;
        }
    }
    assert!(agreed > 20, "{agreed}");
}
