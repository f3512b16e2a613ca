//! Draws a frame of `top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::cards::{CARD, draw_inbox};
use super::inbox::named;
use super::keys;
use super::paint::{bold, of_budget, selection, tone};
use super::panes::{draw_log, draw_map, draw_review, draw_transcript};
use super::screen::{Pane, Screen};
use super::team::{TeamHeight, draw_team};
use super::wish::Asking;
use crate::cli::columns::{cut, cut_words};
use crate::cli::output::plain;
use crate::cli::{budget, format};

/// The lines of a terminal in which the notice has one of its own, besides that of the keys.
const HIGH: u16 = 16;

/// The width for the selected card in a terminal of this size, if there is room for it.
pub(super) fn card_width(screen: &Screen, width: u16, height: u16) -> Option<usize> {
    let [.., pane, _, _] = areas(screen, Rect::new(0, 0, width, height)).1;
    (pane.height >= CARD).then_some(usize::from(width))
}

/// The places of title, agents, tabs, pane, notice and keys.
fn areas(screen: &Screen, area: Rect) -> (TeamHeight, [Rect; 6]) {
    let is_short = area.height < HIGH && screen.pane == Pane::Inbox;
    let team = TeamHeight::of(screen.view.agents().len(), area.width, area.height, is_short);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(team.all),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(u16::from(area.height >= HIGH)),
        Constraint::Length(1),
    ]);
    (team, areas.areas(area))
}

pub(super) fn draw(screen: &Screen, frame: &mut Frame<'_>, now_ms: u64) {
    let area = frame.area();
    let width = usize::from(area.width);
    let (team, [title, table, tabs, pane, notice, keys]) = areas(screen, area);
    frame.render_widget(Paragraph::new(heading(screen, width)), title);
    draw_team(screen, frame, table, team, now_ms);
    frame.render_widget(Paragraph::new(tab_line(screen, width)), tabs);
    match screen.pane {
        Pane::Team => draw_transcript(screen, frame, pane, now_ms),
        Pane::Review => draw_review(screen, frame, pane),
        Pane::Map => draw_map(screen, frame, pane),
        Pane::Log => draw_log(screen, frame, pane, now_ms),
        Pane::Inbox => draw_inbox(screen, frame, pane, now_ms),
    }
    let dim = Style::new().add_modifier(Modifier::DIM);
    let has_own_line = notice.height > 0;
    let is_said = screen.input.is_some() || screen.notice.is_some();
    if has_own_line || !is_said {
        frame.render_widget(Paragraph::new(keys::line(screen, width)).style(dim), keys);
    }
    draw_notice(screen, frame, if has_own_line { notice } else { keys });
    if let Some(at) = screen.help {
        draw_help(frame, area, at);
    }
}

/// Draws the keys over all but the title.
fn draw_help(frame: &mut Frame<'_>, area: Rect, at: usize) {
    let [_, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let mut rows = keys::help(usize::from(area.width));
    let room = usize::from(below.height);
    let from = at.min(rows.len().saturating_sub(room));
    let has_more = rows.len() > from + room;
    rows = rows.into_iter().skip(from).take(room).collect();
    if let Some(last) = rows.last_mut().filter(|_| has_more) {
        "… more: ↓".clone_into(last);
    }
    let [shown, _] = Layout::vertical([
        Constraint::Length(u16::try_from(rows.len()).unwrap_or(u16::MAX)),
        Constraint::Min(0),
    ])
    .areas(below);
    frame.render_widget(Clear, shown);
    frame.render_widget(Paragraph::new(rows.join("\n")), shown);
}

/// The team, what waits, how many agents there are, and the team's budget: as much as fits whole.
fn heading(screen: &Screen, width: usize) -> Line<'static> {
    let name = Span::styled(format!(" {} ", plain(&screen.team)), bold());
    let mut left = width.saturating_sub(name.width());
    let mut fits = |text: String, style: Style| {
        let span = Span::styled(text, style);
        let fits = span.width() <= left;
        if fits {
            left -= span.width();
        }
        fits.then_some(span)
    };
    let waits = screen.view.waiting().count();
    let style = tone("pending").add_modifier(Modifier::BOLD);
    let word = if waits == 1 { "waits" } else { "wait" };
    let waiting = (waits > 0).then(|| {
        let whole = fits(format!(" {waits} {word} for a decision "), style);
        whole.or_else(|| fits(format!(" {waits} {word} "), style))
    });
    let agents = format::counted(screen.view.agents().len() as u64, "agent");
    let agents = fits(format!(" {agents} "), Style::new());
    let budget = screen.view.budget(None).and_then(|team| {
        let style = of_budget(team);
        let whole = fits(format!(" budget {}", budget::used(team)), style);
        whole.or_else(|| fits(format!(" budget {}", plain(team.state.as_str())), style))
    });
    let spans = [Some(name), agents, waiting.flatten(), budget];
    Line::from(spans.into_iter().flatten().collect::<Vec<_>>())
}

/// The panes with their keys: with all there is to say, with less, or only the shown one by its name.
fn tab_line(screen: &Screen, width: usize) -> Line<'static> {
    let waits = match screen.view.waiting().count() {
        0 => String::new(),
        waits => format!(" {waits}"),
    };
    let whose = screen.agent.as_ref().map(|agent| format!(" {}", cut(&plain(agent), 20)));
    let whose = whose.unwrap_or_default();
    let tabs = |step: usize| {
        let tab = |(key, pane, name): (char, Pane, &'static str)| {
            let is_shown = pane == screen.pane;
            let more = match pane {
                Pane::Inbox => &*waits,
                Pane::Team if step == 0 => &*whose,
                _ => "",
            };
            let name = if step < 2 || is_shown { format!(" {name}") } else { String::new() };
            let pad = if step == 0 { " " } else { "" };
            let style = if is_shown { selection(!screen.on_agents) } else { Style::new() };
            [Span::styled(format!("{pad}{key}{name}{more}{pad}"), style), Span::raw(" ")]
        };
        Pane::ALL.into_iter().flat_map(tab).collect::<Vec<_>>()
    };
    let fits = |spans: &Vec<Span<'_>>| spans.iter().map(Span::width).sum::<usize>() <= width + 1;
    let spans = (0..2).map(tabs).find(fits);
    Line::from(spans.unwrap_or_else(|| tabs(2)))
}

fn draw_notice(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let Some(input) = &screen.input else {
        if let Some(notice) = &screen.notice {
            let style = tone(if notice.is_error { "error" } else { "ready" });
            let text = cut_words(&plain(&notice.text), usize::from(area.width));
            frame.render_widget(Paragraph::new(text).style(style), area);
        }
        return;
    };
    let before = match &input.asking {
        Asking::Prompt(agent) => format!("prompt {}: ", plain(agent)),
        Asking::Answer(card) => format!("answer {}: ", named(card)),
        Asking::Denial(card) => format!("deny {}, since: ", named(card)),
        Asking::Pattern(card, span) => format!("allow with {} {}: ", named(card), span.name()),
        Asking::Total(card, unit) => format!("new total of {unit}, {}: ", named(card)),
        Asking::Sure(order, agent) => format!("{} {}? y / n", order.name(), plain(agent)),
    };
    let typed = plain(&input.text);
    // The end of what is typed is what one looks at.
    let room = usize::from(area.width).saturating_sub(before.chars().count() + 1);
    let from = typed.char_indices().rev().nth(room.saturating_sub(1)).map_or(0, |(at, _)| at);
    let line = format!("{before}{}", &typed[from..]);
    let column = u16::try_from(Span::raw(&line).width()).unwrap_or(area.width);
    frame.render_widget(Paragraph::new(line).style(bold()), area);
    frame.set_cursor_position((area.x + column.min(area.width.saturating_sub(1)), area.y));
}
