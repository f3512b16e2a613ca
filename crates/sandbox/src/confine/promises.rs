//! The promises of each tier as `docs/confinement.md` lists them. Each row is held by a test of
//! `tests/it/confine`, or says that nothing holds it.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use expect_test::expect_file;

use super::Support;
use super::support::{self, DEVICES, KILLABLE, SCOPES};

/// A promise, and where it holds.
struct Promise {
    what: &'static str,
    /// At the tier `protocol`.
    protocol: &'static str,
    /// At the tier `kernel`.
    wall: &'static str,
    doorbell: &'static str,
    /// The gain, at the tier `kernel`, from a move of a folder above, or from a path that is swapped after
    /// the look.
    swaps: &'static str,
    from: Since,
}

/// The kernel that it takes.
enum Since {
    /// Any with a kernel tier.
    Tier,
    /// One that has this, too.
    Feature(&'static str),
    /// Each that this program runs on.
    Any,
    /// There is none.
    Never,
}

const YES: &str = "yes";
const NO: &str = "–";
/// Only accesses over the protocol.
const ASKED: &str = "requests to its client";
const AT_START: &str = "files that exist at its start";
/// No rule lets a name be moved where something below may be denied.
const LATER: &str =
    "a move is judged with all in the folder; a race gets only what appeared after the start";
const BY_HAND: &str = "nothing: it is done on what was judged";
const HELD: &str = "nothing: no folder above it is moved, and no rule reaches it";

#[rustfmt::skip]
const PROMISES: &[Promise] = &[
    Promise {
        what: "No program of the agent reads the contents of a file outside its zone",
        protocol: ASKED, wall: AT_START, doorbell: YES, swaps: LATER, from: Since::Tier,
    },
    Promise {
        what: "… or writes, empties or replaces one",
        protocol: ASKED, wall: AT_START, doorbell: YES, swaps: LATER, from: Since::Tier,
    },
    Promise {
        what: "… or executes one",
        protocol: NO, wall: AT_START, doorbell: NO, swaps: "nothing by a move; what appeared after the start is executed anyway", from: Since::Tier,
    },
    Promise {
        what: "… or changes its mode, owner, times or extended attributes",
        protocol: NO, wall: NO, doorbell: YES, swaps: BY_HAND, from: Since::Tier,
    },
    Promise {
        what: "No name of the workspace outside the zone is made, moved, linked or removed",
        protocol: ASKED, wall: YES, doorbell: YES, swaps: BY_HAND, from: Since::Tier,
    },
    Promise {
        what: "A file that is made later and that a `denied` pattern matches is denied too",
        protocol: ASKED, wall: NO, doorbell: YES, swaps: "a move is judged with all in the folder; a race opens it", from: Since::Tier,
    },
    Promise {
        what: "A path that is swapped between check and use gains nothing",
        protocol: YES, wall: AT_START, doorbell: "calls that it performs", swaps: LATER, from: Since::Tier,
    },
    Promise {
        what: "`$EISEN_DIR`, with the control token, and the team's journal are neither read nor written",
        protocol: ASKED, wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "The team's `eisen.toml`, prompt files and plugins are not written, moved or removed",
        protocol: ASKED, wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "Settings that other programs and agents obey are not written, unless the zone names them",
        protocol: ASKED, wall: YES, doorbell: YES,
        swaps: "nothing: no rule reaches them, and a move is judged with all in the folder", from: Since::Tier,
    },
    Promise {
        what: "No file gets the set-uid or the set-gid bit, by `undo` and `redo` neither",
        protocol: NO, wall: NO, doorbell: YES, swaps: BY_HAND, from: Since::Tier,
    },
    Promise {
        what: "Temporary folders of other agents of the team are neither read nor written",
        protocol: ASKED, wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "A run or helper that an agent asks for has nothing that the agent does not have, whatever it names",
        protocol: "patterns of its zone, limits and environment", wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "With `confine = \"strict\"`: a place of a profile that became a link, or leads elsewhere, is not granted",
        protocol: NO, wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "Hooks, config and info of the git folder are not written, no link is made in it, and it stays a repository",
        protocol: ASKED, wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "Sockets by path: only those that the team bound in the zone, those in the private TMPDIR (none can be moved there from outside), and listed ones",
        protocol: NO, wall: NO, doorbell: YES, swaps: BY_HAND, from: Since::Tier,
    },
    Promise {
        what: "Abstract sockets of processes outside are not connected to",
        protocol: NO, wall: YES, doorbell: YES, swaps: NO, from: Since::Feature(SCOPES),
    },
    Promise {
        what: "Processes outside are not inspected (ptrace, memory, descriptors)",
        protocol: NO, wall: YES, doorbell: NO, swaps: NO, from: Since::Tier,
    },
    Promise {
        what: "… and get no signals",
        protocol: NO, wall: YES, doorbell: NO, swaps: NO, from: Since::Feature(SCOPES),
    },
    Promise {
        what: "Disks and the machine's memory are not opened",
        protocol: NO, wall: YES, doorbell: YES, swaps: HELD, from: Since::Tier,
    },
    Promise {
        what: "Devices outside are not controlled (ioctl)",
        protocol: NO, wall: YES, doorbell: NO, swaps: NO, from: Since::Feature(DEVICES),
    },
    Promise {
        what: "Nothing is mounted, no other root or namespace is made or entered, `io_uring` is absent",
        protocol: NO, wall: "mounts", doorbell: "its filter", swaps: NO, from: Since::Tier,
    },
    Promise {
        what: "A descriptor from another mount namespace is not used, even if another process passes it",
        protocol: NO, wall: AT_START, doorbell: YES, swaps: LATER, from: Since::Tier,
    },
    Promise {
        what: "As root too: no packets of others are seen or forged, no address, route or clock is changed",
        protocol: NO, wall: NO, doorbell: "its filter; rights given up", swaps: NO, from: Since::Tier,
    },
    Promise {
        what: "A blocked access is put before the orchestrator, and can be held and allowed",
        protocol: ASKED, wall: NO, doorbell: "intended accesses", swaps: "what it gets, as above", from: Since::Tier,
    },
    Promise {
        what: "A signal to a program does not interrupt its held call",
        protocol: NO, wall: NO, doorbell: YES, swaps: NO, from: Since::Feature(KILLABLE),
    },
    Promise {
        what: "No process outlives its agent or the team",
        protocol: "wardens", wall: "wardens", doorbell: "wardens", swaps: NO, from: Since::Any,
    },
    Promise {
        what: "Names in folders, sizes, times",
        protocol: NO, wall: NO, doorbell: NO, swaps: NO, from: Since::Never,
    },
    Promise {
        what: "The network (TCP, UDP), and its servers",
        protocol: NO, wall: NO, doorbell: NO, swaps: NO, from: Since::Never,
    },
    Promise {
        what: "Contents of a denied file in git's objects",
        protocol: NO, wall: "with `git = \"none\"`", doorbell: "with `git = \"none\"`", swaps: NO, from: Since::Tier,
    },
    Promise {
        what: "Side channels: timing, load, caches",
        protocol: NO, wall: NO, doorbell: NO, swaps: NO, from: Since::Never,
    },
];

/// The features that a kernel can lack: those that the tier needs, and those whose lack leaves a
/// gap.
fn features() -> (Vec<&'static str>, Vec<&'static str>) {
    let nothing = Support {
        landlock: 0,
        processor: false,
        notification: false,
        hand_in: false,
        killable: false,
    };
    let old = Support { landlock: 1, ..nothing };
    let gaps = Support {
        landlock: 3,
        processor: true,
        notification: true,
        hand_in: true,
        killable: false,
    };
    let mut needed = nothing.lacking();
    needed.extend(old.lacking().into_iter().filter(|words| !nothing.lacking().contains(words)));
    (needed, gaps.missing())
}

fn tables() -> String {
    let mut text = String::new();
    let (needed, gaps) = features();
    let tier = needed.iter().copied().filter_map(linux).max().unwrap();
    text += "| promise | `protocol` | `kernel`: wall | `kernel`: doorbell | what a `mv` of a folder above it, or a race, gets | from |\n";
    text += "| --- | --- | --- | --- | --- | --- |\n";
    for Promise { what, protocol, wall, doorbell, swaps, from } in PROMISES {
        let from = match from {
            Since::Tier => shown(tier),
            Since::Feature(words) => shown(linux(words).unwrap().max(tier)),
            Since::Any => "any".to_owned(),
            Since::Never => NO.to_owned(),
        };
        writeln!(text, "| {what} | {protocol} | {wall} | {doorbell} | {swaps} | {from} |").unwrap();
    }
    text += "\n| what a kernel may lack | without it |\n| --- | --- |\n";
    for words in needed {
        writeln!(text, "| {words} | there is no kernel tier |").unwrap();
    }
    for words in gaps {
        writeln!(text, "| {words} | a gap, which is named |").unwrap();
    }
    text
}

/// The version that a feature's words name.
fn linux(words: &str) -> Option<(u32, u32)> {
    let (_, version) = words.split_once("Linux ")?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn shown((major, minor): (u32, u32)) -> String {
    format!("Linux {major}.{minor}")
}

const BEGIN: &str =
    "<!-- Printed by crates/sandbox/src/confine/promises.rs; UPDATE_EXPECT=1 writes it anew. -->\n";
const END: &str = "<!-- Until here. -->\n";

#[test]
fn the_document_has_what_is_promised() {
    // Not as it was when this was built.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/confinement.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", tables());
    expect_file!["../../../../docs/confinement.md"].assert_eq(&wanted);
}

#[test]
fn each_feature_is_listed_once() {
    let (needed, gaps) = features();
    let mut all = [needed, gaps].concat();
    all.sort_unstable();
    let mut known = [
        support::LANDLOCK,
        support::TRUNCATION,
        support::PROCESSOR,
        support::NOTIFICATION,
        support::HAND_IN,
        DEVICES,
        SCOPES,
        KILLABLE,
    ];
    known.sort_unstable();
    assert_eq!(all, known);
}
