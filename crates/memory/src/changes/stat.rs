//! The summary of patches that `git diff --stat` prints.

use std::fmt::Write as _;
use std::path::Path;

use unicode_width::UnicodeWidthStr as _;

use super::patch::FilePatch;
use super::quote::quoted;

/// A line of the summary, in parts of different colours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatLine {
    /// All in front of the graph.
    pub text: String,
    /// The `+` signs of the graph. Empty for binary files, and in the sum.
    pub added: String,
    /// The `-` signs of the graph. Empty for binary files, and in the sum.
    pub removed: String,
}

struct StatRow {
    name: String,
    added: usize,
    removed: usize,
    binary: Option<(usize, usize)>,
}

/// The lines of the summary in `width` columns; the last is the sum.
pub fn stat(patches: &[FilePatch], width: usize) -> Vec<StatLine> {
    let row = |patch: &FilePatch| StatRow {
        name: name(&patch.from, &patch.path),
        added: patch.added,
        removed: patch.removed,
        binary: patch.binary,
    };
    let rows: Vec<StatRow> = patches.iter().map(row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let layout = Layout::of(&rows, width);
    let mut lines: Vec<_> = rows.iter().map(|row| layout.line(row)).collect();
    let [added, removed] = [|row: &StatRow| row.added, |row: &StatRow| row.removed]
        .map(|count| rows.iter().map(count).sum::<usize>());
    lines.push(StatLine { text: sum(rows.len(), added, removed), ..StatLine::empty() });
    lines
}

impl StatLine {
    fn empty() -> Self {
        Self { text: String::new(), added: String::new(), removed: String::new() }
    }
}

fn sum(files: usize, added: usize, removed: usize) -> String {
    let s = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = format!(" {files} file{} changed", s(files));
    if added > 0 || removed == 0 {
        let _ = write!(text, ", {added} insertion{}(+)", s(added));
    }
    if removed > 0 || added == 0 {
        let _ = write!(text, ", {removed} deletion{}(-)", s(removed));
    }
    text
}

/// Columns of a name, of the number, and of the graph; `most` is the number of the longest graph.
struct Layout {
    name: usize,
    number: usize,
    graph: usize,
    most: usize,
}

impl Layout {
    /// Divides a line as git does: at least 3/8 for the graph, and the rest for the name as needed.
    fn of(rows: &[StatRow], width: usize) -> Self {
        let digits = |number: usize| number.to_string().len();
        let most = rows.iter().filter(|it| it.binary.is_none()).map(|it| it.added + it.removed);
        let most = most.max().unwrap_or(0);
        let sizes = rows.iter().filter_map(|it| it.binary);
        // `Bin OLD -> NEW bytes`.
        let of_sizes = sizes.map(|(old, new)| 14 + digits(old) + digits(new)).max().unwrap_or(0);
        let number = digits(most).max(if of_sizes > 0 { 3 } else { 0 });
        let width = width.max(16 + 6 + number);
        let mut graph = if most + 4 > of_sizes { most } else { of_sizes - 4 };
        let mut name = rows.iter().map(|row| row.name.width()).max().unwrap_or(0);
        if name + number + 6 + graph > width {
            graph = graph.min((width * 3 / 8).saturating_sub(number + 6).max(6));
            if name > width - number - 6 - graph {
                name = width - number - 6 - graph;
            } else {
                graph = width - number - 6 - name;
            }
        }
        Self { name, number, graph, most }
    }

    fn line(&self, row: &StatRow) -> StatLine {
        let name = shortened(&row.name, self.name);
        let pad = " ".repeat(self.name.saturating_sub(name.width()));
        let number = self.number;
        if let Some((old, new)) = row.binary {
            let text = format!(" {name}{pad} | {:>number$} {old} -> {new} bytes", "Bin");
            return StatLine { text, ..StatLine::empty() };
        }
        let total = row.added + row.removed;
        let space = if total > 0 { " " } else { "" };
        let (mut added, mut removed) = (row.added, row.removed);
        if self.graph <= self.most {
            let mut of_both = self.scaled(total);
            if of_both < 2 && added > 0 && removed > 0 {
                of_both = 2;
            }
            if added < removed {
                added = self.scaled(added);
                removed = of_both - added;
            } else {
                removed = self.scaled(removed);
                added = of_both - removed;
            }
        }
        StatLine {
            text: format!(" {name}{pad} | {total:>number$}{space}"),
            added: "+".repeat(added),
            removed: "-".repeat(removed),
        }
    }

    fn scaled(&self, count: usize) -> usize {
        if count == 0 || self.most == 0 { 0 } else { 1 + count * (self.graph - 1) / self.most }
    }
}

/// The end of a name that is too long, from a `/` on if it has one.
fn shortened(name: &str, most: usize) -> String {
    if name.width() <= most {
        return name.to_owned();
    }
    let mut rest = name;
    while rest.width() + 3 > most {
        let mut chars = rest.chars();
        if chars.next().is_none() {
            break;
        }
        rest = chars.as_str();
    }
    let rest = rest.find('/').map_or(rest, |at| &rest[at..]);
    format!("...{rest}")
}

/// The name of a file; of a moved one both names, with their common parts once.
fn name(from: &Path, to: &Path) -> String {
    let [from, to] = [from, to].map(|path| quoted("", path));
    let [from, to] = [from, to].map(|name| String::from_utf8_lossy(&name).into_owned());
    if from == to {
        return to;
    }
    if from.starts_with('"') || to.starts_with('"') {
        return format!("{from} => {to}");
    }
    // Whole folders in front and behind, each with its `/`.
    let mut front = 0;
    for (at, (one, other)) in from.bytes().zip(to.bytes()).enumerate() {
        if one != other {
            break;
        }
        if one == b'/' {
            front = at + 1;
        }
    }
    let mut behind = 0;
    let shorter = from.len().min(to.len()) + usize::from(front > 0);
    for (at, (one, other)) in from.bytes().rev().zip(to.bytes().rev()).enumerate() {
        if one != other || at + 1 + front > shorter {
            break;
        }
        if one == b'/' {
            behind = at + 1;
        }
    }
    if front + behind == 0 {
        return format!("{from} => {to}");
    }
    let middle = |name: &str| {
        name.get(front..name.len().saturating_sub(behind).max(front)).unwrap_or("").to_owned()
    };
    let (first, last) = (&to[..front], &to[to.len() - behind..]);
    format!("{first}{{{} => {}}}{last}", middle(&from), middle(&to))
}
