//! Tests of reading standard error and of the log file.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use super::*;

/// Writes `bytes` as an agent, and returns the lines kept at its end.
async fn log(path: &Path, bytes: &[u8]) -> Vec<String> {
    let (mut agent, stderr) = pipe::pipe().unwrap();
    let log = StderrLog::spawn(stderr, path.to_owned(), AgentId::new("ui"), 7);
    agent.write_all(bytes).await.unwrap();
    // The pipe stays open, as a descendant might hold it.
    let kept = log.tail().await;
    drop(agent);
    kept
}

/// The file without stamps.
fn plain(path: &Path) -> Vec<u8> {
    let mut plain = Vec::new();
    for line in std::fs::read(path).unwrap().split_inclusive(|&byte| byte == b'\n') {
        let (stamp, text) = line.split_at(STAMP.len());
        let shape = |byte: &u8| if byte.is_ascii_digit() { b'0' } else { *byte };
        assert_eq!(stamp.iter().map(shape).collect::<Vec<_>>(), STAMP);
        plain.extend_from_slice(text);
    }
    plain
}

const STAMP: &[u8] = b"[0000-00-00T00:00:00Z 0] ";

#[tokio::test]
async fn bytes_are_kept_in_the_file_and_lines_are_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("team/ui.log");
    let kept = log(&path, b"\x1b[31mred\x1b[0m\r\n\n\xff\xfe\nno end").await;
    assert_eq!(kept, ["red", "\u{fffd}\u{fffd}", "no end"]);
    let kept = log(&path, b"again\n").await;
    assert_eq!(kept, ["again"]);
    assert_eq!(plain(&path), b"\x1b[31mred\x1b[0m\r\n\n\xff\xfe\nno end\nagain\n");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[tokio::test]
async fn only_the_last_lines_are_kept_and_each_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes: Vec<u8> = (0..100).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    bytes.extend(std::iter::repeat_n(b'x', LONGEST_LINE + 10));
    let kept = log(&folder.path().join("ui.log"), &bytes).await;
    assert_eq!(kept.len(), KEPT_LINES);
    assert_eq!(kept[0], "line 82");
    assert_eq!(kept[KEPT_LINES - 2], "x".repeat(KEPT_WIDTH));
    assert_eq!(kept[KEPT_LINES - 1], "x".repeat(10));
    assert_eq!(plain(&folder.path().join("ui.log")).len(), bytes.len() + 1);
}

#[tokio::test]
async fn the_last_line_of_a_traceback_is_kept_without_frames() {
    let folder = tempfile::tempdir().unwrap();
    let source = format!("│ {:<70} │\n", "     722     os.mkdir(self, mode)").repeat(30);
    let traceback = format!("╭{0}╮\n{source}╰{0}╯\nNo: '/w/.x'\n", "─".repeat(70));
    let kept = log(&folder.path().join("ui.log"), traceback.as_bytes()).await;
    assert_eq!(kept[KEPT_LINES - 2..], ["722 os.mkdir(self, mode)", "No: '/w/.x'"]);
    let frame =
        format!("    at run (file:///usr/lib/node_modules/{}/cli.js:1:2)\n", "agent/".repeat(15));
    let thrown = format!("{}Error: no key\n{}\nNode.js v22\n", " ".repeat(600), frame.repeat(19));
    let kept = log(&folder.path().join("ui.log"), thrown.as_bytes()).await;
    assert_eq!(kept, ["Error: no key", "Node.js v22"]);
    let long = "wide ".repeat(90) + "\n";
    let kept = log(&folder.path().join("ui.log"), long.repeat(9).as_bytes()).await;
    assert_eq!(kept, [long.trim(), long.trim()]);
}

#[tokio::test]
async fn a_large_file_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ui.log");
    let old = std::fs::File::create(&path).unwrap();
    old.set_len(LARGEST_FILE - 4 - STAMP.len() as u64).unwrap();
    log(&path, b"abc\n").await;
    assert_eq!(path.metadata().unwrap().len(), LARGEST_FILE);
    log(&path, b"d\n").await;
    assert_eq!(plain(&path), b"d\n");
    assert_eq!(folder.path().join("ui.log.1").metadata().unwrap().len(), LARGEST_FILE);
}

#[tokio::test]
async fn an_agent_outlives_its_log() {
    // Always full, and never a folder.
    for path in ["/dev/full", "/dev/null/team/ui.log"] {
        let many = "much to say\n".repeat(100_000);
        assert_eq!(log(Path::new(path), many.as_bytes()).await.len(), KEPT_LINES, "{path}");
    }
}
