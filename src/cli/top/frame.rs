//! Draws a frame of `top`.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Row, Table};

use super::cards::{CARD, draw_inbox};
use super::inbox::named;
use super::paint::{bold, color_of, first_shown, mark_of, of_budget, selection, tone};
use super::panes::{draw_heat, draw_log, draw_transcript};
use super::screen::{Pane, Screen};
use super::wish::Asking;
use crate::cli::columns::cut;
use crate::cli::output::plain;
use crate::cli::ps::AgentFigures;
use crate::cli::{budget, format};
use crate::view::CardKind;
use crate::wire::AgentDetails;

/// The fewest agents that are listed at once; past a third of the terminal they scroll.
const FEWEST_ROWS: u16 = 2;

const HELP: &str = "\
Tab        agents / pane   1 2 3 4 inbox, heat, transcript, log   o all of log
↑ ↓ k j    select, or scroll      PgUp PgDn ten at once     End   follow again
q Ctrl-C   leave; the team goes on, prompts that have not begun are withdrawn

On an access or a write that waits  PgUp PgDn scroll its file, or the diff
a          allow it for this tool call
d  D       deny it; with a message to the agent
s          an access only: allow it until the session ends
m  t       an access only: allow a pattern; for the session, or for the team
r          an access only: answer it, your text stands in place of the file

On a budget that is used up
r          a new total

On an agent
p          prompt it              c  cancel its turn
S  x  R    start, stop, restart   Enter  its transcript

A card that has just come up takes no key for half a second.";

/// The width for the selected card in a terminal of this size, if there is room for it.
pub(super) fn card_width(screen: &Screen, width: u16, height: u16) -> Option<usize> {
    // Title, heads of the table, tabs, notice and keys.
    let left = height.saturating_sub(rows_of_agents(screen, height)).saturating_sub(5);
    (left > CARD).then_some(usize::from(width))
}

fn rows_of_agents(screen: &Screen, height: u16) -> u16 {
    let agents = u16::try_from(screen.agents().len()).unwrap_or(u16::MAX);
    agents.min((height / 3).max(FEWEST_ROWS))
}

pub(super) fn draw(screen: &Screen, frame: &mut Frame<'_>, now_ms: u64) {
    let area = frame.area();
    let [title, table, tabs, pane, notice, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(rows_of_agents(screen, area.height) + 1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(screen)), title);
    draw_agents(screen, frame, table);
    frame.render_widget(Paragraph::new(tab_line(screen)), tabs);
    match screen.pane {
        Pane::Inbox => draw_inbox(screen, frame, pane, now_ms),
        Pane::Heat => draw_heat(screen, frame, pane),
        Pane::Transcript => draw_transcript(screen, frame, pane),
        Pane::Log => draw_log(screen, frame, pane, now_ms),
    }
    draw_notice(screen, frame, notice);
    let dim = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new(keys_of(screen)).style(dim), keys);
    if screen.helps {
        let lines = u16::try_from(HELP.lines().count()).unwrap_or(u16::MAX);
        let [_, shown, _] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(lines),
            Constraint::Min(0),
        ])
        .areas(area);
        frame.render_widget(Clear, shown);
        frame.render_widget(Paragraph::new(HELP), shown);
    }
}

fn heading(screen: &Screen) -> Line<'static> {
    let agents = format::counted(screen.agents().len() as u64, "agent");
    let waits = screen.view.waiting().count();
    let mut spans = vec![
        Span::styled(format!(" {} ", plain(&screen.team)), bold()),
        Span::raw(format!(" {agents} ")),
    ];
    if waits > 0 {
        let word = if waits == 1 { "waits" } else { "wait" };
        let text = format!(" {waits} {word} for a decision ");
        spans.push(Span::styled(text, tone("pending").add_modifier(Modifier::BOLD)));
    }
    if let Some(team) = screen.view.budget(None) {
        spans.push(Span::styled(format!(" budget {}", budget::used(team)), of_budget(team)));
    }
    Line::from(spans)
}

fn draw_agents(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let titles = ["", "AGENT", "STATE", "WAITS", "CONTEXT", "SPENT", "COST", "MEMORY", "ZONE"];
    let agents = screen.view.agents();
    let cells = |(agent, waits): &(&AgentDetails<'_>, usize)| {
        let row = AgentFigures(agent);
        let id = &*agent.status.agent_id;
        let or_dash = |known: Option<String>| known.unwrap_or_else(|| "-".to_owned());
        let state = if row.is_running() { "working" } else { agent.status.state.as_str() };
        (
            id.to_owned(),
            [
                Span::styled(mark_of(&screen.view, id), color_of(&screen.view, id)),
                Span::styled(cut(&plain(id), 20), color_of(&screen.view, id)),
                Span::styled(plain(state), tone(state)),
                match waits {
                    0 => Span::raw("-"),
                    _ => Span::styled(waits.to_string(), tone("pending")),
                },
                Span::raw(or_dash(row.tokens())),
                Span::styled(
                    or_dash(row.spent()),
                    screen.view.budget(Some(id)).map(of_budget).unwrap_or_default(),
                ),
                Span::raw(or_dash(row.cost())),
                Span::raw(or_dash(row.memory())),
                Span::raw(or_dash(row.zone())),
            ],
        )
    };
    let rows: Vec<_> = agents.iter().map(cells).collect();
    let widths = (0..titles.len()).map(|at| {
        let cells = rows.iter().map(|(_, row)| row[at].width()).max().unwrap_or(0);
        Constraint::Length(u16::try_from(cells.max(titles[at].len())).unwrap_or(u16::MAX))
    });
    let widths: Vec<_> = widths.collect();
    let room = usize::from(area.height.saturating_sub(1));
    let at = rows.iter().position(|(id, _)| Some(id) == screen.agent.as_ref()).unwrap_or(0);
    let from = first_shown(at, room, rows.len());
    let shown = rows.into_iter().skip(from).take(room).map(|(id, cells)| {
        let selected = Some(&id) == screen.agent.as_ref();
        let style = if selected { selection(screen.on_agents) } else { Style::new() };
        Row::new(cells.map(Line::from)).style(style)
    });
    let table = Table::new(shown, widths).header(Row::new(titles).style(bold())).column_spacing(1);
    frame.render_widget(table, area);
}

fn tab_line(screen: &Screen) -> Line<'static> {
    let tab = |(at, pane): (usize, &Pane)| {
        let more = match pane {
            Pane::Inbox => match screen.view.waiting().count() {
                0 => String::new(),
                waits => format!(" {waits}"),
            },
            Pane::Transcript => {
                screen.agent.as_ref().map(|agent| format!(" {}", plain(agent))).unwrap_or_default()
            }
            Pane::Heat | Pane::Log => String::new(),
        };
        let is_shown = *pane == screen.pane;
        let style = if is_shown { selection(!screen.on_agents) } else { Style::new() };
        [Span::styled(format!(" {} {}{more} ", at + 1, pane.title()), style), Span::raw(" ")]
    };
    Line::from(Pane::ALL.iter().enumerate().flat_map(tab).collect::<Vec<_>>())
}

fn draw_notice(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let Some(input) = &screen.input else {
        if let Some(notice) = &screen.notice {
            let style = tone(if notice.is_error { "error" } else { "ready" });
            frame.render_widget(Paragraph::new(plain(&notice.text)).style(style), area);
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

fn keys_of(screen: &Screen) -> &'static str {
    match (&screen.input, screen.on_agents, screen.pane) {
        (Some(_), _, _) => "Enter send · Esc back",
        (None, true, _) => "p prompt · c cancel · S start · x stop · R restart · Tab pane · ? help",
        (None, false, Pane::Inbox) => match screen.inbox.card.as_ref().map(|card| card.kind) {
            Some(CardKind::Access) => {
                "a allow · s session · m t pattern · d D deny · r answer · PgDn file · ? help · q"
            }
            Some(CardKind::Conflict) => "a allow · d D deny · PgDn file · Tab agents · ? help · q",
            Some(CardKind::Budget) => "r new total · Tab agents · ? help · q",
            None => "1-4 panes · Tab agents · ? help · q",
        },
        (None, false, Pane::Heat) => "1-4 panes · Tab agents · ? help · q",
        (None, false, _) if screen.held_at.is_some() => "↑↓ scroll · End follow again · ? help · q",
        (None, false, Pane::Log) => "↑↓ scroll · o all · 1-4 panes · Tab agents · ? help · q",
        (None, false, _) => "↑↓ scroll · 1-4 panes · Tab agents · ? help · q",
    }
}
