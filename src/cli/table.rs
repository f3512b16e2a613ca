//! A table for terminals: aligned columns, fitted to the terminal's width.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::columns::cut;

/// Space between two columns.
const GAP: &str = "  ";

/// Fewest columns of the terminal that a text is cut to while a column of less weight is there.
const SHORTEST: usize = 12;

/// A heading and rows; each column is as wide as its widest cell. Where that is too wide, texts are cut, the widest
/// first; then columns are left out. Cells that are aligned to the right are numbers and never cut.
pub(super) struct Table {
    columns: Vec<Column>,
    /// Titles of columns that are left out where there is no room, the first one first.
    least: &'static [&'static str],
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
        Self { columns: titles.iter().map(column).collect(), least: &[], rows: Vec::new() }
    }

    /// Says which columns are left out where there is no room for all, the first one first.
    pub(super) fn leaving_out(self, least: &'static [&'static str]) -> Self {
        Self { least, ..self }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Formats the table, one line per row, none wider than `width` columns.
    pub(super) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let heading = self.columns.iter().map(|c| Cell::styled(c.title, Style::new().bold()));
        let heading: Vec<_> = heading.collect();
        let all = || std::iter::once(&heading).chain(&self.rows);
        let widths: Vec<_> = (0..self.columns.len())
            .map(|at| all().map(|row| row[at].text.width()).max().unwrap_or(0))
            .collect();
        let shown = self.fitted(&widths, width.unwrap_or(usize::MAX));
        all().map(|row| self.line(row, &shown)).collect()
    }

    /// The columns that are shown, and how wide each is.
    fn fitted(&self, widths: &[usize], room: usize) -> Vec<(usize, usize)> {
        let mut shown: Vec<_> = widths.iter().copied().enumerate().collect();
        let mut least = self.least.iter();
        loop {
            let bound = if least.len() == 0 { 0 } else { SHORTEST };
            let shortest = |&(at, width): &(usize, usize)| match &self.columns[at] {
                column if column.right => width,
                column => width.min(bound.max(column.title.width())),
            };
            let gaps = GAP.len() * shown.len().saturating_sub(1);
            if shown.iter().map(shortest).sum::<usize>() + gaps <= room {
                let excess = shown.iter().map(|(_, width)| width).sum::<usize>() + gaps;
                let bounds: Vec<_> = shown.iter().map(shortest).collect();
                shorten(&mut shown, &bounds, excess.saturating_sub(room));
                return shown;
            }
            let next = least
                .next()
                .map(|title| shown.iter().position(|&(at, _)| self.columns[at].title == *title));
            match next {
                Some(place) => drop(place.map(|place| shown.remove(place))),
                None if shown.len() > 1 => drop(shown.pop()),
                None => break,
            }
        }
        // One column is left, and there is no room for it.
        shown.retain(|&(at, _)| room > 0 && !self.columns[at].right);
        for (_, width) in &mut shown {
            *width = room;
        }
        shown
    }

    fn line(&self, row: &[Cell], shown: &[(usize, usize)]) -> String {
        let mut line = String::new();
        for (place, &(at, width)) in shown.iter().enumerate() {
            let gap = if place == 0 { "" } else { GAP };
            let cell = &row[at];
            let text = cut(&cell.text, width);
            // No padding after the last word of a line.
            let is_last = shown[place + 1..].iter().all(|&(at, _)| row[at].text.is_empty());
            let padding = width.saturating_sub(text.width());
            let (before, after) = match self.columns[at].right {
                true => (padding, 0),
                false if is_last => (0, 0),
                false => (0, padding),
            };
            let style = cell.style;
            let _ = write!(line, "{gap}{:before$}{style}{text}{style:#}{:after$}", "", "");
            if is_last {
                break;
            }
        }
        line
    }
}

/// Takes `excess` from the widest columns, down to their bounds; from the first, which names the row, at last.
fn shorten(shown: &mut [(usize, usize)], bounds: &[usize], excess: usize) {
    for _ in 0..excess {
        let may = |place: &usize| shown[*place].1 > bounds[*place];
        let widest = (1..shown.len()).filter(may).max_by_key(|place| shown[*place].1);
        if let Some(place) = widest.or_else(|| Some(0).filter(may)) {
            shown[place].1 -= 1;
        }
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
    fn a_number_is_whole_or_left_out() {
        let titles = ["TURN", ">INPUT", ">CACHED", ">COST"];
        let mut table = Table::new(&titles).leaving_out(&["CACHED"]);
        let row = ["lead/ABCDEF turn 12", "120,400", "96,000", "12.06 USD + 3.50 EUR"];
        table.row(row.into_iter().map(Cell::from).collect());
        let lines = |width| {
            let lines = table.lines(Some(width)).join("\n");
            format!("{}\n", anstream::adapter::strip_str(&lines))
        };
        let shown = [60, 50, 40, 25].map(lines).concat();
        expect![[r#"
            TURN                   INPUT  CACHED                  COST
            lead/ABCDEF turn 12  120,400  96,000  12.06 USD + 3.50 EUR
            TURN                   INPUT                  COST
            lead/ABCDEF turn 12  120,400  12.06 USD + 3.50 EUR
            TURN         INPUT                  COST
            lead/ABC…  120,400  12.06 USD + 3.50 EUR
            TURN                INPUT
            lead/ABCDEF tur…  120,400
        "#]]
        .assert_eq(&shown);
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
