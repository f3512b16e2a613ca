//! Draws the inbox: a line for each card, and of the selected one what a person needs to know.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::inbox::has_file;
use super::paint::{bold, color_of, first_shown, mark_of, selection, since, tone};
use super::screen::Screen;
use crate::cli::budget::used;
use crate::cli::columns::{cut, wrap};
use crate::cli::output::plain;
use crate::model::quoted;
use crate::view::{CardKind, Fields, Undecided};

/// Lines for the description of the selected card.
pub(super) const CARD: u16 = 4;

/// The fewest lines for a file: its title, and two of it.
const FILE: u16 = 3;

pub(super) fn draw_inbox(screen: &Screen, frame: &mut Frame<'_>, area: Rect, now_ms: u64) {
    let cards: Vec<_> = screen.view.waiting().collect();
    if cards.is_empty() {
        frame.render_widget(Paragraph::new("Nothing waits for a decision."), area);
        return;
    }
    let selected = screen.inbox.card.as_ref();
    let at = cards.iter().position(|it| selected.is_some_and(|card| it.is(card))).unwrap_or(0);
    let (list, detail, file) = areas(area, cards.len(), cards[at].kind);
    let room = usize::from(list.height);
    let lines = cards.iter().enumerate().skip(first_shown(at, room, cards.len())).take(room);
    let lines = lines.map(|(place, card)| {
        let line = heading(screen, card, now_ms);
        if place == at { line.style(selection(!screen.on_agents)) } else { line }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), list);
    draw_description(cards[at], frame, detail);
    if has_file(cards[at].kind) {
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

fn heading(screen: &Screen, card: &Undecided<'_>, now_ms: u64) -> Line<'static> {
    let agent = card.agent();
    let whose = match (card.kind, agent) {
        (CardKind::Budget, "") => Span::raw("the team"),
        _ => Span::styled(
            format!("{} {}", mark_of(&screen.view, agent), plain(agent)),
            color_of(&screen.view, agent),
        ),
    };
    let (id, what) = match card.kind {
        CardKind::Access => {
            let action = plain(&card.fields.action);
            (plain(card.id), format!("{action} {}", quoted(&card.fields.path)))
        }
        CardKind::Conflict => {
            let others = others(card.fields);
            let against = if others.is_empty() { String::new() } else { format!(" of {others}") };
            (plain(card.id), format!("write {}{against}", quoted(&card.fields.path)))
        }
        CardKind::Budget => (String::new(), format!("budget used up: {}", used(card.line))),
    };
    let age = since(card.fields.timestamp_ms.unwrap_or(now_ms), now_ms);
    Line::from(vec![Span::raw(format!("{id:>5} {age:>6} ")), whose, Span::raw(format!(" {what}"))])
}

fn draw_description(card: Undecided<'_>, frame: &mut Frame<'_>, area: Rect) {
    let described = match card.kind {
        CardKind::Access => of_access(card.fields),
        CardKind::Conflict => of_conflict(card.fields),
        CardKind::Budget => of_budget(card),
    };
    let width = usize::from(area.width);
    let wrapped = described.iter().flat_map(|line| wrap(line, width.max(1)));
    let mut lines: Vec<_> = wrapped.map(Line::from).collect();
    let room = usize::from(CARD) - 1;
    if lines.len() > room {
        lines.truncate(room - 1);
        let command = match card.kind {
            CardKind::Access => "blocked",
            CardKind::Conflict => "conflicts",
            CardKind::Budget => "budget",
        };
        let more = format!("… not all of it fits: `eisen-core {command} --json` has it");
        lines.push(Line::from(more).style(tone("pending")));
    }
    lines.insert(0, Line::from("─".repeat(width)).style(Style::new().add_modifier(Modifier::DIM)));
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_file(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let Some(room) = usize::from(area.height).checked_sub(1) else { return };
    let Some(file) = screen.inbox.file() else {
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Paragraph::new("The file is on its way …").style(dim), area);
        return;
    };
    let title = cut(&file.title, usize::from(area.width));
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

/// What a person needs to know of an access before deciding.
fn of_access(card: &Fields) -> Vec<String> {
    let known = |text: &str| Some(text).filter(|text| !text.is_empty()).map(plain);
    let agent = plain(card.agent());
    let (action, path) = (plain(&card.action), quoted(&card.path));
    let via = known(&card.via).map(|via| format!(", via {via}")).unwrap_or_default();
    let mut lines = vec![format!("{agent} asks to {action} {path}{via}")];
    let owners: Vec<_> = card.owners.iter().map(|owner| plain(owner)).collect();
    let mut facts = Vec::new();
    if !owners.is_empty() {
        facts.push(format!("owned by {}", owners.join(", ")));
    }
    if let (Some(rule), Some(decide)) = (card.rule, known(&card.decide)) {
        facts.push(format!("sent here by rule {rule} of [[routing]]: {decide}"));
    }
    if let Some(by) = known(&card.denied_by) {
        facts.push(format!(
            "denied by {by}: `eisen-core resolve {} allow --even-denied`",
            plain(card.id.as_deref().unwrap_or_default())
        ));
    }
    lines.extend((!facts.is_empty()).then(|| facts.join("; ")));
    let reason = card.reason.as_deref().and_then(known);
    lines.extend(reason.map(|reason| format!("its reason: {reason}")));
    lines
}

fn of_conflict(card: &Fields) -> Vec<String> {
    let agent = plain(card.agent());
    let mut lines = vec![format!("{agent} waits to write {}", quoted(&card.path))];
    lines.push(plain(&card.message));
    lines
}

fn of_budget(card: Undecided<'_>) -> Vec<String> {
    let why = card.fields.reason.as_deref().map_or_else(|| "It is used up.".to_owned(), plain);
    vec![why, format!("used: {}", used(card.line))]
}

/// The agents that a write is in conflict with.
fn others(conflict: &Fields) -> String {
    let agents = conflict.agents.iter().skip(1).map(|agent| plain(agent.as_str()));
    agents.collect::<Vec<_>>().join(", ")
}
