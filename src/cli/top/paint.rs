//! Styles of `top`: those of the command line for a frame, and those of a frame for standard output.

use std::fmt::Write as _;
use std::time::Duration;

use anstyle::{AnsiColor, Effects};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::cli::format;
use crate::cli::output::style;
use crate::model::BudgetState;
use crate::view::TeamView;
use crate::wire::Budget;

/// Below so many columns everything stands in one column.
pub(super) const NARROW: u16 = 60;

/// Each agent has a colour and a mark.
const COLORS: [Color; 6] =
    [Color::Cyan, Color::Green, Color::Magenta, Color::Blue, Color::Yellow, Color::LightRed];
const MARKS: [&str; 7] = ["●", "▲", "■", "◆", "✚", "★", "▼"];

const EFFECTS: [(Effects, Modifier); 5] = [
    (Effects::BOLD, Modifier::BOLD),
    (Effects::DIMMED, Modifier::DIM),
    (Effects::ITALIC, Modifier::ITALIC),
    (Effects::UNDERLINE, Modifier::UNDERLINED),
    (Effects::INVERT, Modifier::REVERSED),
];

pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// The style of what is selected, where the focus is or elsewhere.
pub(super) fn selection(has_focus: bool) -> Style {
    let underlined = Style::new().add_modifier(Modifier::UNDERLINED);
    if has_focus { Style::new().add_modifier(Modifier::REVERSED) } else { underlined }
}

pub(super) fn of_budget(budget: &Budget<'_>) -> Style {
    match budget.state.known() {
        Some(BudgetState::Exceeded) => tone("error"),
        Some(BudgetState::Warned) => tone("pending"),
        _ => Style::new(),
    }
}

/// The style of a state, as elsewhere on the command line.
pub(super) fn tone(word: &str) -> Style {
    styled(style(word))
}

pub(super) fn styled(style: anstyle::Style) -> Style {
    let mut styled = Style::new();
    if let Some(anstyle::Color::Ansi(color)) = style.get_fg_color() {
        styled = styled.fg(match color {
            AnsiColor::Red => Color::Red,
            AnsiColor::Green => Color::Green,
            AnsiColor::Yellow => Color::Yellow,
            AnsiColor::Blue => Color::Blue,
            AnsiColor::Magenta => Color::Magenta,
            AnsiColor::Cyan => Color::Cyan,
            _ => Color::Reset,
        });
    }
    for (effect, modifier) in EFFECTS {
        if style.get_effects().contains(effect) {
            styled = styled.add_modifier(modifier);
        }
    }
    styled
}

/// The lines of a frame, with its colours.
pub(super) fn printed_lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let rows = (area.top()..area.bottom()).map(|y| {
        let mut line = String::new();
        let mut last = Style::new();
        let mut wide = 0;
        for x in area.left()..area.right() {
            let cell = &buffer[(x, y)];
            if wide > 0 {
                wide -= 1;
                continue;
            }
            wide = cell.symbol().width().saturating_sub(1);
            if cell.style() != last {
                last = cell.style();
                let _ = write!(line, "{}{}", anstyle::Reset, printed(last));
            }
            line += cell.symbol();
        }
        format!("{}{}", line.trim_end(), anstyle::Reset)
    });
    let rows: Vec<_> = rows.collect();
    let is_empty = |row: &String| anstream::adapter::strip_str(row).to_string().is_empty();
    let last = rows.iter().rposition(|row| !is_empty(row)).map_or(0, |at| at + 1);
    rows.into_iter().take(last).collect()
}

/// A style for standard output.
fn printed(style: Style) -> anstyle::Style {
    let color = match style.fg {
        Some(Color::Red | Color::LightRed) => Some(AnsiColor::Red),
        Some(Color::Green) => Some(AnsiColor::Green),
        Some(Color::Yellow) => Some(AnsiColor::Yellow),
        Some(Color::Blue) => Some(AnsiColor::Blue),
        Some(Color::Magenta) => Some(AnsiColor::Magenta),
        Some(Color::Cyan) => Some(AnsiColor::Cyan),
        _ => None,
    };
    let effects = EFFECTS.iter().filter(|(_, modifier)| style.add_modifier.contains(*modifier));
    let effects = effects.fold(Effects::new(), |all, (effect, _)| all | *effect);
    anstyle::Style::new().fg_color(color.map(Into::into)).effects(effects)
}

/// The first item that is shown, so that `at` is among `room`.
pub(super) fn first_shown(at: usize, room: usize, all: usize) -> usize {
    at.saturating_sub(room.saturating_sub(1)).min(all.saturating_sub(room))
}

pub(super) fn mark_of(view: &TeamView, agent: &str) -> &'static str {
    view.place(agent).map_or("?", |at| MARKS[at % MARKS.len()])
}

pub(super) fn color_of(view: &TeamView, agent: &str) -> Style {
    let at = view.place(agent);
    at.map_or_else(Style::new, |at| Style::new().fg(COLORS[at % COLORS.len()]))
}

/// A text with blanks behind it.
pub(super) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// How long something goes on, as on the page: 0:42.
pub(super) fn stopwatch(since_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(since_ms) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("{minutes}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

/// How long ago something happened.
pub(super) fn since(at_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(at_ms) / 1000;
    match seconds {
        0 => "now".to_owned(),
        1..10 => format!("{seconds}s"),
        _ => format::duration(Duration::from_secs(seconds)),
    }
}
