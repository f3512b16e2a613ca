//! Draws the panes of `top` but the inbox.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::cards::draw_rows;
use super::paint::{NARROW, color_of, mark_of, since, styled, tone};
use super::screen::Screen;
use super::team::details;
use crate::cli::columns::{cut, wrap};
use crate::cli::output::plain;
use crate::cli::watch::style_of;
use crate::view::HotFile;

/// The fewest lines of the transcript's pane, for a line about the agent above it.
const DETAILS: u16 = 5;

/// Cells of a bar of heat.
const BAR: usize = 8;

pub(super) fn draw_map(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let files = screen.view.hottest(usize::from(area.height));
    if files.is_empty() {
        frame.render_widget(Paragraph::new("No file was touched yet."), area);
        return;
    }
    let width = usize::from(area.width);
    let is_narrow = area.width < NARROW;
    let lines = files.iter().map(|file| {
        let cells = if is_narrow { BAR / 2 } else { BAR };
        let mut spans = vec![Span::styled(bar(file, cells), heat(file)), Span::raw(" ")];
        for (agent, in_context) in &file.agents {
            let mut style = color_of(&screen.view, agent);
            if !in_context {
                style = style.add_modifier(Modifier::DIM);
            }
            spans.push(Span::styled(mark_of(&screen.view, agent), style));
        }
        let action = file.action.trim_start_matches("user_");
        let action = if is_narrow { " ".to_owned() } else { format!(" {:<10} ", plain(action)) };
        spans.push(Span::raw(action));
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(Span::raw(end_of_path(&plain(file.path), width.saturating_sub(used))));
        Line::from(spans)
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// The end of a path, from the beginning of a folder where that fits.
fn end_of_path(path: &str, room: usize) -> String {
    if path.width() <= room {
        return path.to_owned();
    }
    let ends = path.match_indices('/').map(|(at, _)| &path[at..]);
    let whole = ends.into_iter().find(|end| end.width() < room);
    whole
        .map_or_else(|| cut(path.rsplit('/').next().unwrap_or(path), room), |end| format!("…{end}"))
}

fn bar(file: &HotFile<'_>, cells: usize) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
    #[expect(clippy::cast_precision_loss, reason = "a few cells")]
    let full = ((file.heat.clamp(0.0, 1.0) * cells as f32).ceil() as usize).min(cells);
    "█".repeat(full) + &"░".repeat(cells - full)
}

fn heat(file: &HotFile<'_>) -> Style {
    Style::new().fg(match file.heat {
        heat if heat > 0.66 => Color::Red,
        heat if heat > 0.33 => Color::Yellow,
        _ => Color::Blue,
    })
}

pub(super) fn draw_transcript(screen: &Screen, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let has_details = area.height >= DETAILS && screen.agent.is_some();
    let heights = [Constraint::Length(u16::from(has_details)), Constraint::Min(0)];
    let [head, area] = Layout::vertical(heights).areas(area);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let details = details(screen, usize::from(head.width), now_ms);
    frame.render_widget(Paragraph::new(details).style(dim), head);
    let Some(transcript) = screen.transcript().filter(|it| !it.lines.is_empty()) else {
        let text = "Nothing was said yet. Tab, and then p: tell the agent what to do.";
        frame.render_widget(Paragraph::new(text), area);
        return;
    };
    let behind = match screen.held_at {
        Some(last) => (last + 1).saturating_sub(transcript.first).min(transcript.lines.len()),
        None => transcript.lines.len(),
    };
    let lines = transcript.lines.iter().take(behind).rev().map(|line| {
        let shown = plain(&anstream::adapter::strip_str(&line.text).to_string());
        (shown, styled(style_of(&line.kind)))
    });
    draw_upwards(lines, frame, area);
}

/// Draws what the selected agent changed.
pub(super) fn draw_review(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let whose = screen.agent.as_deref().map(plain).unwrap_or_default();
    let of = if screen.review.only_last { "its last turn" } else { "all turns" };
    if let Some(file) = screen.review.file() {
        draw_rows(&format!("{whose}, {of}: {}", file.title), file, frame, area);
    } else {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let text = "The changes are on their way …";
        frame.render_widget(Paragraph::new(text).style(dim), area);
    }
}

pub(super) fn draw_log(screen: &Screen, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let log = screen.view.log();
    let behind = match screen.held_at {
        Some(last) => (last + 1).saturating_sub(log.first()).min(log.len()),
        None => log.len(),
    };
    let lines = log.shown(behind, screen.outside).into_iter().rev().map(|(entry, text)| {
        let ago = entry.timestamp_ms.map(|at| since(at, now_ms)).unwrap_or_default();
        let text = format!("{ago:>6} {} {text}", entry.agent);
        (text, tone(&entry.state))
    });
    draw_upwards(lines, frame, area);
}

/// Draws lines from the last one upwards, until the area is full.
fn draw_upwards(lines: impl Iterator<Item = (String, Style)>, frame: &mut Frame<'_>, area: Rect) {
    let (room, width) = (usize::from(area.height), usize::from(area.width).max(1));
    let mut shown = std::collections::VecDeque::new();
    for (text, style) in lines {
        if shown.len() >= room {
            break;
        }
        for piece in wrap(&text, width).into_iter().rev() {
            shown.push_front(Line::from(piece).style(style));
        }
    }
    let too_many = shown.len().saturating_sub(room);
    shown.drain(..too_many);
    frame.render_widget(Paragraph::new(Vec::from(shown)), area);
}
