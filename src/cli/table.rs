//! A table for terminals: aligned columns, cut at the terminal's width.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::columns::cut;

/// Space between two columns.
const GAP: &str = "  ";

/// A heading and rows; each column is as wide as its widest cell.
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

struct Column {
    title: &'static str,
    /// Aligned to the right.
    right: bool,
}

#[derive(Clone)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

impl Cell {
    pub(super) fn styled(text: &str, style: Style) -> Self {
        Self { text: text.to_owned(), style }
    }
}

impl Table {
    /// Creates columns by title; a leading `>` aligns a column to the right.
    pub(super) fn new(titles: &[&'static str]) -> Self {
        let column = |title: &&'static str| Column {
            title: title.strip_prefix('>').unwrap_or(title),
            right: title.starts_with('>'),
        };
        Self { columns: titles.iter().map(column).collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Formats the table, one line per row; lines are cut at `width` columns.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let heading = self.columns.iter().map(|c| Cell::styled(c.title, Style::new().bold()));
        let heading: Vec<_> = heading.collect();
        let all = || std::iter::once(&heading).chain(&self.rows);
        let widths: Vec<_> = (0..self.columns.len())
            .map(|at| all().map(|row| row[at].text.width()).max().unwrap_or(0))
            .collect();
        all().map(|row| self.line(row, &widths, width.unwrap_or(usize::MAX))).collect()
    }

    fn line(&self, row: &[Cell], widths: &[usize], mut room: usize) -> String {
        let mut line = String::new();
        for (at, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
            let gap = if at == 0 { "" } else { GAP };
            if room <= gap.len() {
                break;
            }
            room -= gap.len();
            let text = cut(&cell.text, room);
            let length = text.width();
            room -= length;
            // No padding after the last word of a line.
            let is_last = row[at + 1..].iter().all(|cell| cell.text.is_empty());
            let padding = (widths[at] - length).min(room);
            let (before, after) = match column.right {
                true => (padding, 0),
                false if is_last => (0, 0),
                false => (0, padding),
            };
            room -= before + after;
            let style = cell.style;
            let _ = write!(line, "{gap}{:before$}{style}{text}{style:#}{:after$}", "", "");
            if is_last {
                break;
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;
    use expect_test::{Expect, expect};

    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["AGENT", ">PID", "STATE", "REASON"]);
        let ready = Cell::styled("ready", AnsiColor::Green.on_default());
        table.row(vec!["ui".into(), "4711".into(), ready, "".into()]);
        let row = ["long-name", "7", "error", "exit status 1: no such modél"];
        table.row(row.into_iter().map(Cell::from).collect());
        table
    }

    fn check(width: Option<usize>, expect: &Expect) {
        let lines = table().lines(width).join("\n");
        expect.assert_eq(&anstream::adapter::strip_str(&lines).to_string());
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        check(
            None,
            &expect![[r#"
                AGENT       PID  STATE  REASON
                ui         4711  ready
                long-name     7  error  exit status 1: no such modél"#]],
        );
    }

    #[test]
    fn lines_are_cut_at_the_width_of_the_terminal() {
        check(
            Some(30),
            &expect![[r#"
                AGENT       PID  STATE  REASON
                ui         4711  ready
                long-name     7  error  exit …"#]],
        );
        for width in 0..40 {
            for line in table().lines(Some(width)) {
                let line = anstream::adapter::strip_str(&line).to_string();
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(&["AGENT", "STATE"]);
        table.row(vec!["設計".into(), "ready".into()]);
        assert_eq!(table.lines(None)[1], "設計   ready");
        assert_eq!(table.lines(Some(4))[1], "設計");
        assert_eq!(table.lines(Some(3))[1], "設…");
    }

    #[test]
    fn a_style_is_around_its_word_and_not_its_padding() {
        assert!(table().lines(None)[1].ends_with("\u{1b}[32mready\u{1b}[0m"));
    }
}
