//! Draws the panes of `top`.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

use super::paint::{color_of, first_shown, mark_of, selection, styled, tone};
use super::screen::Screen;
use crate::cli::columns::{cut, wrap};
use crate::cli::format;
use crate::cli::output::plain;
use crate::cli::watch::style_of;
use crate::model::quoted;
use crate::view::HotFile;

/// Lines for the card that is selected.
pub(super) const CARD: u16 = 4;
/// Cells of a bar of heat.
const BAR: usize = 8;
pub(super) fn draw_inbox(screen: &Screen, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let cards: Vec<_> = screen.view.pending().collect();
    if cards.is_empty() {
        frame.render_widget(Paragraph::new("Nothing waits for a decision."), area);
        return;
    }
    let [list, detail] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(CARD)]).areas(area);
    let at = cards.iter().position(|(id, _)| Some(*id) == screen.card.as_deref()).unwrap_or(0);
    let room = usize::from(list.height);
    let lines = cards.iter().enumerate().skip(first_shown(at, room, cards.len())).take(room);
    let lines = lines.map(|(place, (id, card))| {
        let agent = text(card, "agent_id");
        let (action, path) = (text(card, "action"), text(card, "path"));
        let line = Line::from(vec![
            Span::raw(format!("{:>5} {:>6} ", plain(id), age(card, now_ms))),
            Span::styled(
                format!("{} {}", mark_of(&screen.view, agent), plain(agent)),
                color_of(&screen.view, agent),
            ),
            Span::raw(format!(" {} {}", plain(action), quoted(path))),
        ]);
        if place == at { line.style(selection(!screen.on_agents)) } else { line }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), list);
    let (_, card) = cards[at];
    let width = usize::from(detail.width);
    let mut lines: Vec<_> = description(card)
        .iter()
        .flat_map(|line| wrap(line, width.max(1)))
        .map(Line::from)
        .collect();
    let room = usize::from(CARD) - 1;
    if lines.len() > room {
        lines.truncate(room - 1);
        let more = "… not all of it fits: `eisen-core blocked --json` has it";
        lines.push(Line::from(more).style(tone("pending")));
    }
    lines.insert(0, Line::from("─".repeat(width)).style(Style::new().add_modifier(Modifier::DIM)));
    frame.render_widget(Paragraph::new(lines), detail);
}

/// What a person needs to know of an access before deciding.
fn description(card: &Value) -> Vec<String> {
    let known = |name: &str| card[name].as_str().filter(|text| !text.is_empty()).map(plain);
    let agent = plain(text(card, "agent_id"));
    let (action, path) = (plain(text(card, "action")), quoted(text(card, "path")));
    let via = known("via").map(|via| format!(", via {via}")).unwrap_or_default();
    let mut lines = vec![format!("{agent} asks to {action} {path}{via}")];
    let owners = card["owners"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let owners: Vec<_> = owners.map(plain).collect();
    let mut facts = Vec::new();
    if !owners.is_empty() {
        facts.push(format!("owned by {}", owners.join(", ")));
    }
    if let (Some(rule), Some(decide)) = (card["rule"].as_u64(), known("decide")) {
        facts.push(format!("sent here by rule {rule} of [[routing]]: {decide}"));
    }
    if let Some(pattern) = known("denied_by") {
        facts.push(format!(
            "`denied` has {pattern}: `eisen-core resolve {} allow --even-denied`",
            plain(text(card, "id"))
        ));
    }
    lines.extend((!facts.is_empty()).then(|| facts.join("; ")));
    lines.extend(known("reason").map(|reason| format!("its reason: {reason}")));
    lines
}

pub(super) fn draw_heat(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let files = screen.view.hottest(usize::from(area.height));
    if files.is_empty() {
        frame.render_widget(Paragraph::new("No file was touched yet."), area);
        return;
    }
    let width = usize::from(area.width);
    let lines = files.iter().map(|file| {
        let mut spans = vec![Span::styled(bar(file), heat(file)), Span::raw(" ")];
        for (agent, in_context) in &file.agents {
            let mut style = color_of(&screen.view, agent);
            if !in_context {
                style = style.add_modifier(Modifier::DIM);
            }
            spans.push(Span::styled(mark_of(&screen.view, agent), style));
        }
        let action = file.action.trim_start_matches("user_");
        spans.push(Span::raw(format!(" {:<10} ", plain(action))));
        let used: usize = spans.iter().map(Span::width).sum();
        spans.push(Span::raw(cut(&plain(file.path), width.saturating_sub(used))));
        Line::from(spans)
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn bar(file: &HotFile<'_>) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
    #[expect(clippy::cast_precision_loss, reason = "a few cells")]
    let full = ((file.heat.clamp(0.0, 1.0) * BAR as f32).ceil() as usize).min(BAR);
    "█".repeat(full) + &"░".repeat(BAR - full)
}

fn heat(file: &HotFile<'_>) -> Style {
    Style::new().fg(match file.heat {
        heat if heat > 0.66 => Color::Red,
        heat if heat > 0.33 => Color::Yellow,
        _ => Color::Blue,
    })
}

pub(super) fn draw_transcript(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let Some(transcript) = screen.transcript().filter(|it| !it.lines.is_empty()) else {
        let text = "Nothing was said since this view was opened.";
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

pub(super) fn draw_log(screen: &Screen, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let log = screen.view.log();
    let behind = match screen.held_at {
        Some(last) => (last + 1).saturating_sub(log.first()).min(log.len()),
        None => log.len(),
    };
    let lines = log.entries().iter().take(behind).rev().map(|entry| {
        let ago = entry.timestamp_ms.map(|at| since(at, now_ms)).unwrap_or_default();
        let text = format!("{ago:>6} {} {}", entry.agent, entry.text);
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

fn text<'a>(card: &'a Value, name: &str) -> &'a str {
    card[name].as_str().unwrap_or_default()
}

fn age(card: &Value, now_ms: u64) -> String {
    since(card["timestamp_ms"].as_u64().unwrap_or(now_ms), now_ms)
}

fn since(at_ms: u64, now_ms: u64) -> String {
    let seconds = now_ms.saturating_sub(at_ms) / 1000;
    match seconds {
        0 => "now".to_owned(),
        1..10 => format!("{seconds}s"),
        _ => format::duration(Duration::from_secs(seconds)),
    }
}
