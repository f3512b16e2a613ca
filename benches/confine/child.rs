//! What is measured from inside: this very program, started as `confine child …`. It prints
//! nanoseconds.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eisen_core::zone::Grant;
use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
};

use super::place;
use crate::figures::{median, nanoseconds};

/// What `open` and `wall` print a number for each.
pub(crate) const CASES: [&str; 6] = [
    "one file, its path: open",
    "one file, its path: and read",
    "one file, its name: open",
    "one file, its name: and read",
    "4,000 files of a tree: open",
    "4,000 files of a tree: and read",
];

const PASSES: usize = 7;
const PASS: usize = 2_000;

pub(crate) fn run(args: &[String]) {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match &words[..] {
        ["open", workspace] => opens(Path::new(workspace)),
        ["wall", workspace] => {
            enter_wall(Path::new(workspace));
            opens(Path::new(workspace));
        }
        ["write", workspace] => writes(Path::new(workspace)),
        ["repeat", times, touched, command @ ..] => {
            repeat(times.parse().unwrap(), touched, command);
        }
        _ => panic!("no such child: {words:?}"),
    }
}

/// The wall alone, of the same rules.
fn enter_wall(workspace: &Path) {
    let abi = ABI::V5;
    let mut ruleset =
        Ruleset::default().handle_access(AccessFs::from_all(abi)).unwrap().create().unwrap();
    for rule in place::bounds(workspace).rules() {
        let rights = match rule.grant {
            Grant::List => AccessFs::ReadDir.into(),
            Grant::Read => AccessFs::from_read(abi),
            Grant::Write => AccessFs::from_read(abi) | AccessFs::WriteFile | AccessFs::Truncate,
            Grant::Whole => AccessFs::from_all(abi),
        };
        let rights = if rule.path.is_dir() { rights } else { rights & AccessFs::from_file(abi) };
        ruleset =
            ruleset.add_rule(PathBeneath::new(PathFd::new(&rule.path).unwrap(), rights)).unwrap();
    }
    ruleset.restrict_self().unwrap();
}

fn opens(workspace: &Path) {
    let files = place::files(workspace);
    let one = files[files.len() / 2].clone();
    std::env::set_current_dir(one.parent().unwrap()).unwrap();
    let name = PathBuf::from(one.file_name().unwrap());
    for files in [vec![one; PASS], vec![name; PASS], files] {
        let passes: Vec<_> = (0..=PASSES).map(|_| pass(&files)).skip(1).collect();
        println!("{}", median(passes.iter().map(|(open, _)| *open)));
        println!("{}", median(passes.iter().map(|(_, all)| *all)));
    }
}

/// The time of each open alone, and with a little read and the file closed.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn pass(files: &[PathBuf]) -> (f64, f64) {
    let (mut opening, mut buffer) = (Duration::ZERO, [0; 64]);
    let begun = Instant::now();
    for file in files {
        let before = Instant::now();
        let mut file = File::open(file).unwrap();
        opening += before.elapsed();
        let _ = file.read(&mut buffer).unwrap();
    }
    let all = nanoseconds(begun.elapsed());
    (nanoseconds(opening) / files.len() as f64, all / files.len() as f64)
}

/// Writes each file twice, 16 KB in place, with a rest between; the mean time of a write.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn writes(workspace: &Path) {
    let files = place::files(workspace);
    for letter in [b'a', b'b'] {
        let content = vec![letter; 16 << 10];
        let begun = Instant::now();
        for file in &files {
            fs::write(file, &content).unwrap();
        }
        println!("{}", nanoseconds(begun.elapsed()) / files.len() as f64);
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Runs a command over and over, each time after a change to a source file if there is one.
fn repeat(times: usize, touched: &str, command: &[&str]) {
    for time in 0..times {
        if touched != "-" {
            let mut text = fs::read_to_string(touched).unwrap();
            text.truncate(text.find("// change").unwrap_or(text.len()));
            let number = Instant::now();
            fs::write(touched, format!("{text}// change {time} {number:?}\n")).unwrap();
        }
        let mut child = Command::new(command[0]);
        child.args(&command[1..]).env_remove("CARGO_TARGET_DIR").stdout(Stdio::null());
        let begun = Instant::now();
        assert!(child.status().unwrap().success());
        println!("{}", nanoseconds(begun.elapsed()));
    }
}
