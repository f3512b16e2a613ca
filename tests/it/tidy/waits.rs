//! Holds tests to short waits: a test waits for what it expects, with a deadline, and not for time to pass.

use std::fs;
use std::path::{Path, PathBuf};

/// In seconds.
const LONGEST_WAIT: f64 = 2.0;

/// In seconds: a program that sleeps so long is one that the test ends.
const NEVER_SLEPT_OUT: f64 = 100.0;

/// What waits in a test, with the seconds of one unit of its number.
const WAITS: [(&str, f64); 8] = [
    ("thread::sleep(Duration::from_secs(", 1.0),
    ("thread::sleep(Duration::from_millis(", 0.001),
    ("park_timeout(Duration::from_secs(", 1.0),
    ("park_timeout(Duration::from_millis(", 0.001),
    ("time.sleep(", 1.0),
    // Steps of the scripted agent.
    ("wait_ms = ", 0.001),
    ("wait_ms: ", 0.001),
    // In a shell.
    ("sleep ", 1.0),
];

#[test]
fn no_test_waits_long_for_time_to_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut long = Vec::new();
    for file in files(&root.join("tests/it")).into_iter().filter(|file| !file.ends_with("waits.rs"))
    {
        let text = fs::read_to_string(&file).unwrap();
        for (at, line) in text.lines().enumerate() {
            if longest(line).is_some_and(|wait| wait > LONGEST_WAIT) {
                long.push(format!("{}:{}: {}", file.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(long.is_empty(), "these wait longer than {LONGEST_WAIT} s:\n{}", long.join("\n"));
}

#[test]
fn waits_are_known_by_what_they_are() {
    for (line, seconds) in [
        ("std::thread::sleep(Duration::from_secs(3));", Some(3.0)),
        ("steps = [{ wait_ms = 2_500 }, { wait_ms = 10 }]", Some(2.5)),
        ("run = \"cat; sleep 3\"", Some(3.0)),
        ("held.by(\"sleep 1000\")", None),
        ("sleep(moment)", None),
    ] {
        assert_eq!(longest(line), seconds, "{line}");
    }
}

/// The longest wait of a line, in seconds, that its program waits out.
fn longest(line: &str) -> Option<f64> {
    let waits = WAITS.iter().flat_map(|(begin, unit)| {
        line.split(begin).skip(1).filter_map(move |rest| {
            let number: String = rest
                .chars()
                .filter(|c| *c != '_')
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            number.parse::<f64>().ok().map(|number| number * unit)
        })
    });
    waits.filter(|wait| *wait < NEVER_SLEPT_OUT).max_by(f64::total_cmp)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let has_text = ["rs", "toml", "py", "sh"].map(Some);
            if path.is_dir() {
                folders.push(path);
            } else if has_text.contains(&path.extension().and_then(|it| it.to_str())) {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty());
    files
}
