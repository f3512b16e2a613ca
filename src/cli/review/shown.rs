//! The text of a review: a heading, and each hunk with its id, its origin and what was said of it.

use anstyle::{AnsiColor, Style};

use crate::branches::Reviewed;
use crate::cli::format::counted;
use crate::cli::output::{plain, print};
use crate::model::turn_name;
use crate::program::Failure;
use crate::review::{FileStatus, Hunk, Review, ReviewedFile};

/// Letters of a prompt that are shown.
const LONGEST_PROMPT: usize = 100;

/// Prints all of a review.
pub(super) fn print_all(reviewed: &Reviewed) -> Result<(), Failure> {
    for line in heading(&reviewed.review) {
        print(line)?;
    }
    for file in &reviewed.review.files {
        print("")?;
        let bold = Style::new().bold();
        print(format_args!("{bold}{}{bold:#}", title(file)))?;
        for hunk in &file.hunks {
            let cyan = AnsiColor::Cyan.on_default();
            print(format_args!("{cyan}{}{cyan:#}", hunk_title(hunk)))?;
            for origin in origins(hunk) {
                print(format_args!("  {origin}"))?;
            }
            for line in &hunk.lines {
                let color = color_of(line);
                print(format_args!("{color}{}{color:#}", plain(line)))?;
            }
            for comment in &hunk.comments {
                let sent = if comment.is_sent { "" } else { " (not sent)" };
                print(format_args!("  said: {}{sent}", plain(&comment.text)))?;
            }
        }
    }
    Ok(())
}

/// The lines above the files.
pub(super) fn heading(review: &Review) -> Vec<String> {
    let into = review.into.as_deref().unwrap_or("the commit that it began at");
    let added: usize = review.files.iter().map(|file| file.added).sum();
    let removed: usize = review.files.iter().map(|file| file.removed).sum();
    let files = counted(review.files.len() as u64, "file");
    let mut lines = vec![format!(
        "{} against {}: {files}, +{added} −{removed}",
        plain(&review.branch),
        plain(into)
    )];
    if let Some(task) = review.task.as_deref().and_then(|task| task.lines().next()) {
        lines.push(format!("task: {}", plain(task)));
    }
    if !review.uncommitted.is_empty() {
        let count = counted(review.uncommitted.len() as u64, "file");
        lines.push(format!("not committed: {count}"));
    }
    if let Some(todo) = &review.rebase {
        lines.push("a rebase is under way; whoever goes on with it runs these steps:".to_owned());
        lines.extend(todo.lines().map(|line| format!("  {}", plain(line))));
    }
    lines
}

pub(super) fn title(file: &ReviewedFile) -> String {
    let status = match file.status {
        FileStatus::Added => "added",
        FileStatus::Changed => "changed",
        FileStatus::Removed => "removed",
    };
    format!("{} ({status}, +{} −{})", plain(&file.path), file.added, file.removed)
}

pub(super) fn hunk_title(hunk: &Hunk) -> String {
    let mut marks = Vec::new();
    if hunk.is_accepted {
        marks.push("accepted");
    }
    if hunk.is_new {
        marks.push("new since the last look");
    }
    let marks = if marks.is_empty() { String::new() } else { format!("  [{}]", marks.join(", ")) };
    let header = if hunk.header.is_empty() { "no lines to show" } else { &hunk.header };
    format!("{} {}{marks}", hunk.id, plain(header))
}

/// A line for each turn that wrote lines of a hunk.
pub(super) fn origins(hunk: &Hunk) -> Vec<String> {
    let each = hunk.by.iter().map(|origin| {
        let turn = origin.turn.map_or_else(String::new, |turn| format!(", {}", turn_name(turn)));
        let prompt = origin.prompt.as_deref().unwrap_or_default();
        let prompt: String = prompt.chars().take(LONGEST_PROMPT).collect();
        let call = origin.call.as_ref().map_or_else(String::new, |it| format!(" · {}", plain(it)));
        format!("by {}{turn}: {}{call}", plain(&origin.agent), plain(&prompt))
    });
    each.collect()
}

fn color_of(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => AnsiColor::Green.on_default(),
        Some(b'-') => AnsiColor::Red.on_default(),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::HunkOrigin;

    #[test]
    fn a_turn_is_named_as_everywhere() {
        let origin = |turn| HunkOrigin {
            run: "r".to_owned(),
            agent: "ui".to_owned(),
            turn,
            prompt: Some("Round totals".to_owned()),
            call: None,
        };
        let hunk = Hunk {
            id: "h".to_owned(),
            header: "@@ -1 +1 @@".to_owned(),
            lines: Vec::new(),
            is_new: false,
            is_accepted: false,
            comments: Vec::new(),
            by: vec![origin(Some(0)), origin(Some(3)), origin(None)],
        };
        let shown = origins(&hunk);
        let wanted = [
            "by ui, first turn: Round totals",
            "by ui, 4th turn: Round totals",
            "by ui: Round totals",
        ];
        assert_eq!(shown, wanted);
    }
}
