//! The file of an access or a write, its diff, or the diff of an agent, as the team shows it: bounded, in rows of the
//! terminal, with nothing in it that steers a terminal or hides.

use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize as _;
use serde_json::Value;

use super::paint::bold;
use crate::cli::columns::wrap;
use crate::cli::format;
use crate::cli::output::plain;
use crate::model::Action;
use crate::view::CardKind;
use crate::wire::{Diff, DiffFile, ShownBlocked, ShownConflict, ShownContent};

/// Bytes and lines that are kept; the team bounds the bytes, too.
const LONGEST_TEXT: usize = 64 * 1024;
const MOST_LINES: usize = 2000;

/// Stands before what is left of a line that is too long for a row: it is no line of its own.
const CONTINUES: char = '↪';

pub(super) struct ShownFile {
    /// The name of the shown content, or the reason why nothing is shown.
    pub(super) title: String,
    /// Stands for what is shown, in a decision.
    pub(super) version: Option<String>,
    lines: Vec<(String, Style)>,
    rows: Vec<(String, Style)>,
    width: usize,
    /// The first row that is shown.
    first: usize,
}

/// The agent's words and acts before it asked, a line each.
fn why(shown: &ShownBlocked) -> Vec<String> {
    let said = shown.said.iter().map(|said| format!("said: {said}"));
    let call = shown.tool_call.iter().map(|call| {
        let title = call.title.as_deref().unwrap_or("without a title");
        let input = call.input.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
        format!("tool call: {title}{input}")
    });
    let program = shown.program.iter().map(|it| format!("program: {}", it.command));
    said.chain(call).chain(program).map(|line| plain(&line)).collect()
}

impl ShownFile {
    /// Takes the answer of `show_blocked`, or of `show_conflict` for the card of a conflict.
    pub(super) fn read(card: CardKind, shown: &Value) -> Self {
        let file = match card {
            CardKind::Conflict => {
                ShownConflict::deserialize(shown).map(|it| Self::of_conflict(&it))
            }
            _ => ShownBlocked::deserialize(shown).map(|it| Self::of_access(&it)),
        };
        file.unwrap_or_else(|error| Self::refused(&error.to_string()))
    }

    /// The file of an access, and why it is accessed.
    pub(super) fn of_access(shown: &ShownBlocked) -> Self {
        let writes = shown.action == Action::Write;
        let file = Self::of_content(&shown.content, writes);
        let file = Self { version: Some(shown.version.clone()), ..file };
        let why = why(shown);
        if why.is_empty() {
            return file;
        }
        let why = why.into_iter().map(|line| (line, Style::new()));
        let lines = why.chain([(file.title, bold())]).chain(file.lines).collect();
        Self { title: "Why:".to_owned(), lines, ..file }
    }

    /// The write of a conflict.
    fn of_conflict(shown: &ShownConflict) -> Self {
        let file = Self::of_content(&shown.content, true);
        Self { version: Some(shown.version.clone()), ..file }
    }

    fn of_content(shown: &ShownContent, writes: bool) -> Self {
        let (diff, content) = (shown.diff.as_deref(), shown.content.as_deref());
        let text = diff.or(content).unwrap_or_default();
        let kept = &text[..text.floor_char_boundary(LONGEST_TEXT)];
        let lines = kept.split_inclusive('\n').take(MOST_LINES);
        let lines = lines.enumerate().map(|(at, line)| {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let style = if diff.is_some() { style_of_diff(at, line) } else { Style::new() };
            // What is between the ends of an escape sequence is shown, too: a person decides by it.
            (plain(&line.replace('\t', "    ")), style)
        });
        let lines: Vec<_> = lines.collect();
        let is_cut = shown.truncated
            || kept.len() < text.len()
            || kept.split_inclusive('\n').nth(MOST_LINES).is_some();
        let beginning = if is_cut { ", only its beginning" } else { "" };
        let title = match (diff, content) {
            (Some(_), _) if shown.by_tool_call => {
                format!("What it would change, as its tool call says{beginning}:")
            }
            (Some(_), _) => format!("What it would change{beginning}:"),
            (None, Some("")) => "The file is empty.".to_owned(),
            (None, Some(_)) => format!("The file as it is{beginning}:"),
            (None, None) => match &shown.not_shown {
                Some(why) => format!("Not shown: {}", plain(why)),
                None if shown.binary => "Not shown: it is no text.".to_owned(),
                None if !shown.exists => "There is no such file.".to_owned(),
                None => "Not shown.".to_owned(),
            },
        };
        let unknown = if writes && diff.is_none() {
            " Its content is not known before the write."
        } else {
            ""
        };
        Self { lines, ..Self::empty(title + unknown) }
    }

    /// The team did not show it.
    pub(super) fn refused(why: &str) -> Self {
        Self::empty(format!("Not shown: {}", plain(why)))
    }

    /// An agent has done nothing yet.
    pub(super) fn of_no_turn() -> Self {
        Self::empty("nothing was changed".to_owned())
    }

    /// The changes of an agent: the names of files with how many lines, and below each its hunks.
    pub(super) fn of_diff(diff: &Diff) -> Self {
        let mut lines = Vec::new();
        let (mut files, mut is_head, mut worktree) = (diff.files.iter(), true, "");
        let kept = &diff.diff[..diff.diff.floor_char_boundary(LONGEST_TEXT)];
        for line in kept.lines() {
            if let Some(path) = line.strip_prefix("worktree ") {
                (worktree, is_head) = (path, true);
            } else if line.starts_with("diff --git ") {
                is_head = true;
                let file = files.next().map(|file| (heading_of(file, worktree), bold()));
                lines.extend(file);
            } else if line.starts_with("@@") || !is_head {
                is_head = false;
                lines.push((plain(&line.replace('\t', "    ")), style_of_diff(2, line)));
            }
        }
        let is_cut = kept.len() < diff.diff.len() || lines.len() > MOST_LINES;
        lines.truncate(MOST_LINES);
        Self { lines, ..Self::empty(title_of(diff, is_cut)) }
    }

    fn empty(title: String) -> Self {
        Self { title, version: None, lines: Vec::new(), rows: Vec::new(), width: 0, first: 0 }
    }

    /// Breaks the lines into rows, if the width is another one.
    pub(super) fn fit(&mut self, width: usize) {
        if std::mem::replace(&mut self.width, width) == width {
            return;
        }
        let room = width.saturating_sub(1).max(1);
        let rows = self.lines.iter().flat_map(|(line, style)| {
            wrap(line, room).into_iter().enumerate().map(|(at, row)| match at {
                0 => (row, *style),
                _ => (format!("{CONTINUES}{row}"), *style),
            })
        });
        self.rows = rows.collect();
        self.scroll(0);
    }

    pub(super) fn scroll(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        self.first = self.first.saturating_add_signed(by).min(last);
    }

    /// The number of the first row that is shown.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// The rows from the first one that is shown.
    pub(super) fn rows(&self) -> &[(String, Style)] {
        &self.rows[self.first.min(self.rows.len())..]
    }
}

/// A file of a diff in one line, by its path in this worktree.
fn heading_of(file: &DiffFile, worktree: &str) -> String {
    let inside = file.path.strip_prefix(worktree).filter(|_| !worktree.is_empty());
    let path = inside.and_then(|path| path.strip_prefix('/')).unwrap_or(&file.path);
    let from = file.from.as_deref().map(|from| format!("{} → ", plain(from))).unwrap_or_default();
    let changed = if file.binary {
        "no text".to_owned()
    } else {
        format!("+{} −{}", file.added, file.removed)
    };
    let with = match &*file.contested {
        [] => String::new(),
        others => format!(
            ", also of {}",
            others.iter().map(|it| plain(it)).collect::<Vec<_>>().join(", ")
        ),
    };
    format!("{from}{}  {changed}{with}", plain(path))
}

/// The sums of a diff, and what is not in it.
fn title_of(diff: &Diff, is_cut: bool) -> String {
    if diff.files.is_empty() && diff.left_out.is_empty() {
        return "nothing was changed".to_owned();
    }
    let sum = |of: fn(&DiffFile) -> usize| diff.files.iter().map(of).sum::<usize>();
    let files = format::counted(diff.files.len() as u64, "file");
    let mut title = format!("{files}, +{} −{}", sum(|it| it.added), sum(|it| it.removed));
    let left_out = (diff.left_out.len() + diff.more_left_out) as u64;
    if left_out > 0 {
        let changes = format::counted(left_out, "change");
        title = format!("{title} · {changes} not shown as a diff");
    }
    if is_cut {
        title += " · only its beginning: `eisen-core diff` has all";
    }
    title
}

fn style_of_diff(at: usize, line: &str) -> Style {
    match line.as_bytes().first() {
        // The names of the file stand in the first two lines only.
        _ if at < 2 => bold(),
        Some(b'+') => Style::new().fg(Color::Green),
        Some(b'-') => Style::new().fg(Color::Red),
        Some(b'@') => Style::new().fg(Color::Cyan),
        Some(b'\\') => Style::new().add_modifier(Modifier::DIM),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::top::tests::shown_access;

    fn read(parts: &Value) -> ShownFile {
        ShownFile::of_access(&shown_access(parts))
    }

    fn rows(file: &ShownFile) -> Vec<&str> {
        file.rows().iter().map(|(row, _)| row.as_str()).collect()
    }

    #[test]
    fn the_reason_stands_before_the_file() {
        let mut file = read(&json!({
            "action": "write", "diff": "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n", "by_tool_call": true,
            "said": "I add a test.", "tool_call": {"tool_call_id": "c", "kind": null, "title": "Write a.js", "input": "{\"a\":1}"},
            "program": {"pid": 7, "command": "sh -c \u{1b}[2Jtouch"},
        }));
        file.fit(80);
        assert_eq!(file.title, "Why:");
        assert_eq!(
            rows(&file)[..5],
            [
                "said: I add a test.",
                r#"tool call: Write a.js {"a":1}"#,
                "program: sh -c  [2Jtouch",
                "What it would change, as its tool call says:",
                "--- a",
            ]
        );
    }

    #[test]
    fn a_file_is_broken_into_rows_that_cannot_pass_for_lines() {
        let mut file = read(&json!({
            "action": "read", "content": "a\tb\u{1b}]0;rm -rf\u{7}\nlong word\n", "version": "v1",
        }));
        file.fit(40);
        assert_eq!(rows(&file), ["a    b ]0;rm -rf", "long word"]);
        file.fit(7);
        assert_eq!(rows(&file)[3..], ["long", "↪word"]);
        file.scroll(100);
        assert_eq!(rows(&file), ["↪word"]);
        file.scroll(-1);
        assert_eq!(rows(&file), ["long", "↪word"]);
        assert_eq!(
            (file.title.as_str(), file.version.as_deref()),
            ("The file as it is:", Some("v1"))
        );
    }

    #[test]
    fn the_title_says_what_is_not_shown() {
        let title = |parts: Value| read(&parts).title;
        assert_eq!(title(json!({ "content": "" })), "The file is empty.");
        assert_eq!(
            title(json!({ "diff": "x", "truncated": true })),
            "What it would change, only its beginning:"
        );
        assert_eq!(
            title(json!({ "content": "x\n".repeat(MOST_LINES + 1) })),
            "The file as it is, only its beginning:"
        );
        assert_eq!(title(json!({ "content": "x\n".repeat(MOST_LINES) })), "The file as it is:");
        let unknown = json!({ "action": "write", "exists": false });
        assert_eq!(
            title(unknown),
            "There is no such file. Its content is not known before the write."
        );
        assert_eq!(title(json!({ "binary": true })), "Not shown: it is no text.");
        assert_eq!(title(json!({ "not_shown": "a\u{1b}folder" })), "Not shown: a folder");
        assert_eq!(title(json!({})), "Not shown.");
        assert_eq!(ShownFile::refused("no\nway").title, "Not shown: no way");
        let huge = read(&json!({ "content": "ü".repeat(LONGEST_TEXT) }));
        assert!(huge.lines[0].0.len() <= LONGEST_TEXT && huge.title.contains("beginning"));
    }
}
