//! Draws the inbox: a line for each card, and of the selected one what a person needs to know.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::file::ShownFile;
use super::inbox::has_file;
use super::paint::{NARROW, bold, color_of, first_shown, mark_of, selection, since, tone};
use super::screen::Screen;
use crate::cli::budget::used;
use crate::cli::columns::{cut_words, wrap};
use crate::cli::output::plain;
use crate::model::{left, quoted};
use crate::view::{CardKind, Undecided};
use crate::wire::{Blocked, Budget, ConflictLine};

/// Lines for the description of the selected card.
pub(super) const CARD: u16 = 4;

/// The fewest lines for a file: its title, and two of it.
const FILE: u16 = 3;

/// Below so many lines only the selected card is shown.
const LOW: u16 = CARD + FILE + 1;

pub(super) fn draw_inbox(screen: &Screen, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let cards: Vec<_> = screen.view.waiting().collect();
    if cards.is_empty() {
        frame.render_widget(Paragraph::new("Nothing waits for a decision."), area);
        return;
    }
    let selected = screen.inbox.card.as_ref();
    let at = cards.iter().position(|it| selected.is_some_and(|card| it.is(card))).unwrap_or(0);
    if area.height < LOW {
        draw_low(screen, cards[at], frame, area, now_ms);
        return;
    }
    let (list, detail, file) = areas(area, cards.len(), cards[at].kind());
    let room = usize::from(list.height);
    let lines = cards.iter().enumerate().skip(first_shown(at, room, cards.len())).take(room);
    let lines = lines.map(|(place, card)| {
        let line = heading(screen, *card, area.width, now_ms);
        if place == at { line.style(selection(!screen.on_agents)) } else { line }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), list);
    draw_description(cards[at], frame, detail, now_ms);
    if has_file(cards[at].kind()) {
        draw_file(screen, frame, file);
    }
}

/// Draws the selected card alone: in so few lines its path and its file are more than the others.
fn draw_low(screen: &Screen, card: Undecided<'_>, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let has_file = has_file(card.kind());
    let room = area.height.saturating_sub(if has_file { FILE } else { 0 });
    let lines = described(card, usize::from(area.width), usize::from(room), now_ms);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let heights = [Constraint::Length(height), Constraint::Min(0)];
    let [detail, file] = Layout::vertical(heights).areas(area);
    frame.render_widget(Paragraph::new(lines), detail);
    if has_file {
        draw_file(screen, frame, file);
    }
}

/// The places of the list, the description and the file, which has what is left.
fn areas(area: Rect, cards: usize, selected: CardKind) -> (Rect, Rect, Rect) {
    let left = area.height.saturating_sub(CARD);
    let most = if has_file(selected) { (left / 3).max(1) } else { left };
    let list = u16::try_from(cards).unwrap_or(u16::MAX).min(most);
    let file = left.saturating_sub(list);
    let file = if file < FILE { 0 } else { file };
    let [list, detail, file] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(CARD), Constraint::Length(file)])
            .areas(area);
    (list, detail, file)
}

fn heading(screen: &Screen, card: Undecided<'_>, width: u16, now_ms: u64) -> Line<'static> {
    let agent = card.agent();
    let whose = match (card, agent) {
        (Undecided::Budget(_), "") => Span::raw("the team"),
        _ => Span::styled(
            format!("{} {}", mark_of(&screen.view, agent), plain(agent)),
            color_of(&screen.view, agent),
        ),
    };
    let (id, what) = match card {
        Undecided::Access(access) => {
            let action = plain(access.action.as_str());
            (plain(&access.id), format!("{action} {}", quoted(&access.path)))
        }
        Undecided::Conflict(conflict) => {
            let others = others(conflict);
            let against = if others.is_empty() { String::new() } else { format!(" of {others}") };
            (plain(&conflict.id), format!("write {}{against}", quoted(&conflict.path)))
        }
        Undecided::Budget(budget) => (String::new(), format!("budget used up: {}", used(budget))),
    };
    let age = since(card.timestamp_ms(), now_ms);
    let before = match (width < NARROW, id.as_str()) {
        (true, "") => format!("{age} "),
        (true, id) => format!("{id} {age} "),
        (false, id) => format!("{id:>5} {age:>6} "),
    };
    let room = usize::from(width).saturating_sub(before.width() + whose.width() + 1);
    Line::from(vec![Span::raw(before), whose, Span::raw(format!(" {}", cut_words(&what, room)))])
}

fn draw_description(card: Undecided<'_>, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let width = usize::from(area.width);
    let mut lines = described(card, width, usize::from(CARD) - 1, now_ms);
    lines.insert(0, Line::from("─".repeat(width)).style(Style::new().add_modifier(Modifier::DIM)));
    frame.render_widget(Paragraph::new(lines), area);
}

/// A card in words, in at most so many lines.
fn described(card: Undecided<'_>, width: usize, room: usize, now_ms: u64) -> Vec<Line<'static>> {
    let (described, command) = match card {
        Undecided::Access(access) => (of_access(access, now_ms), "inbox"),
        Undecided::Conflict(conflict) => (of_conflict(conflict), "inbox"),
        Undecided::Budget(budget) => (of_budget(budget), "team budget"),
    };
    let wrapped = described.iter().flat_map(|line| wrap(line, width.max(1)));
    let mut lines: Vec<_> = wrapped.map(Line::from).collect();
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1));
        let all = format!("… not all of it fits: `eisen-core {command} --json` has it");
        let more = if all.width() > width { "… there is more".to_owned() } else { all };
        lines.push(Line::from(more).style(tone("pending")));
    }
    lines
}

fn draw_file(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let Some(file) = screen.inbox.file() else {
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new("The file is on its way …").style(dim), area);
        return;
    };
    draw_rows(&file.title, file, frame, area);
}

/// Draws a file below its title.
pub(super) fn draw_rows(title: &str, file: &ShownFile, frame: &mut Frame<'_>, area: Rect) {
    let Some(room) = usize::from(area.height).checked_sub(1) else { return };
    let title = cut_words(title, usize::from(area.width));
    let mut lines = vec![Line::from(title).style(bold())];
    let rows = file.rows();
    // The last line says that there is more.
    let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
    lines.extend(rows[..shown].iter().map(|(row, style)| Line::from(row.as_str()).style(*style)));
    if shown < rows.len() {
        let more = format!("… {} more lines: PgDn", rows.len() - shown);
        lines.push(Line::from(more).style(tone("pending")));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The facts of an access that a person needs before deciding.
fn of_access(access: &Blocked<'_>, now_ms: u64) -> Vec<String> {
    let known = |text: &str| Some(text).filter(|text| !text.is_empty()).map(plain);
    let agent = plain(&access.session.agent_id);
    let (action, path) = (plain(access.action.as_str()), quoted(&access.path));
    let via = known(access.via.as_str()).map(|via| format!(", via {via}")).unwrap_or_default();
    let left = access.until_ms.map(|until| format!("; {}", left(until, now_ms)));
    let mut lines =
        vec![format!("{agent} asks to {action} {path}{via}{}", left.unwrap_or_default())];
    let owners: Vec<_> = access.owners.iter().map(|owner| plain(owner)).collect();
    let mut facts = Vec::new();
    if !owners.is_empty() {
        facts.push(format!("owned by {}", owners.join(", ")));
    }
    if let (Some(rule), Some(decide)) = (access.rule, &access.decide) {
        let decide = plain(decide.as_str());
        facts.push(format!("sent here by rule {rule} of [[routing]]: {decide}"));
    }
    if let Some(by) = access.denied_by.as_deref().and_then(known) {
        let id = plain(&access.id);
        facts.push(format!("denied by {by}: `eisen-core inbox allow {id} --even-denied`"));
    }
    if let Some(pattern) = &access.offered {
        facts.push(format!("`m` offers {}", quoted(pattern)));
    }
    lines.extend((!facts.is_empty()).then(|| facts.join("; ")));
    let reason = access.reason.as_deref().and_then(known);
    lines.extend(reason.map(|reason| format!("its reason: {reason}")));
    lines
}

fn of_conflict(conflict: &ConflictLine<'_>) -> Vec<String> {
    let agent = plain(conflict.writer());
    let path = quoted(&conflict.path);
    vec![format!("{agent} waits to write {path}"), plain(&conflict.message)]
}

fn of_budget(budget: &Budget<'_>) -> Vec<String> {
    let why = budget.reason.as_deref().map_or_else(|| "It is used up.".to_owned(), plain);
    vec![why, format!("used: {}", used(budget))]
}

/// The agents that a write is in conflict with.
fn others(conflict: &ConflictLine<'_>) -> String {
    let agents = conflict.agents.iter().skip(1).map(|agent| plain(agent));
    agents.collect::<Vec<_>>().join(", ")
}
