//! Draws the agents: in a table who does what; in a narrow terminal each in two lines; and by a key their figures.

use std::borrow::Cow;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::paint::{
    NARROW, bold, color_of, first_shown, mark_of, of_budget, padded, selection, stopwatch, tone,
};
use super::screen::Screen;
use super::turn::{ChangedLines, first_line};
use crate::cli::columns::{cut, cut_words};
use crate::cli::output::plain;
use crate::cli::ps::AgentFigures;
use crate::model::AgentState;
use crate::wire::AgentDetails;

/// The fewest lines of agents; past a third of the terminal they scroll.
const FEWEST_ROWS: u16 = 2;

/// The fewest columns for the task and the step together. With less only the task is shown.
const BOTH: usize = 40;

/// The columns with which the task takes more than half of them.
const WIDE: usize = 60;

/// The most columns of a name, and of a state.
const LONGEST_NAME: usize = 20;
const LONGEST_STATE: usize = 12;

/// The words that are shown of an agent.
pub(super) struct AgentWords<'a> {
    details: &'a AgentDetails<'static>,
    waits: usize,
    pub(super) state: Cow<'a, str>,
    state_tone: Cow<'a, str>,
    pub(super) task: &'a str,
    /// The step, or why there is none.
    pub(super) step: String,
    /// How long the step goes on; empty: that says nothing.
    time: String,
    step_tone: &'static str,
    pub(super) changed: Option<ChangedLines>,
}

impl<'a> AgentWords<'a> {
    pub(super) fn of(
        screen: &'a Screen,
        (details, waits): (&'a AgentDetails<'static>, usize),
        now_ms: u64,
    ) -> Self {
        let status = &details.status;
        let turn = screen.activity.of(&status.agent_id);
        let is_running = AgentFigures(details).is_running();
        let is_ready = status.state == AgentState::Ready;
        let outcome = turn.and_then(|turn| turn.outcome.as_ref());
        let (state, state_tone): (Cow<'_, str>, Cow<'_, str>) = match outcome {
            Some(outcome) if is_ready && !is_running && status.reason.is_none() => {
                (outcome.word().into(), outcome.tone().into())
            }
            _ if is_ready && is_running => ("working".into(), "working".into()),
            _ => (plain(status.state.as_str()).into(), status.state.as_str().into()),
        };
        let step = turn.and_then(|turn| turn.step()).filter(|_| is_running);
        let (step, step_tone) = if let Some(reason) = status.reason.as_deref() {
            (first_line(reason), "error")
        } else if is_running && waits > 0 {
            ("waits for a decision".to_owned(), "pending")
        } else if let Some((step, _)) = step {
            (step.to_owned(), "")
        } else {
            let why = outcome.filter(|it| !is_running && it.tone() == "error");
            (why.map(|it| it.why.clone()).unwrap_or_default(), "error")
        };
        let is_timed = status.reason.is_none() && waits == 0;
        let time = turn.and_then(|turn| turn.step()).filter(|_| is_running && is_timed);
        Self {
            details,
            time: time.map(|(_, since)| stopwatch(since, now_ms)).unwrap_or_default(),
            waits,
            state,
            state_tone,
            task: turn.map_or("", |turn| &turn.task),
            step,
            step_tone,
            changed: turn.and_then(|turn| turn.changed),
        }
    }

    fn id(&self) -> &str {
        &self.details.status.agent_id
    }

    /// The step in so many columns, of which its time keeps those that it needs.
    pub(super) fn timed_step(&self, width: usize) -> String {
        if self.time.is_empty() {
            return cut_words(&self.step, width);
        }
        let room = width.saturating_sub(self.time.width() + 2);
        format!("{}, {}", cut_words(&self.step, room), self.time)
    }

    fn task_or_none(&self) -> Span<'static> {
        match self.task {
            "" => Span::styled("No task yet", Style::new().add_modifier(Modifier::DIM)),
            task => Span::raw(task.to_owned()),
        }
    }

    fn changes(&self) -> Option<(String, String)> {
        let ChangedLines { added, removed } = self.changed?;
        (added + removed > 0).then(|| (format!("+{added}"), format!("−{removed}")))
    }
}

/// The lines of the agents in a terminal of this size: the head of the table, all agents together, and each.
#[derive(Clone, Copy)]
pub(super) struct TeamHeight {
    head: u16,
    pub(super) all: u16,
    each: u16,
}

impl TeamHeight {
    /// `is_short`: what is below needs the lines more.
    pub(super) fn of(agents: usize, width: u16, height: u16, is_short: bool) -> Self {
        let agents = u16::try_from(agents).unwrap_or(u16::MAX / 2);
        let most = if is_short { 1 } else { (height / 3).max(FEWEST_ROWS) };
        if width >= NARROW {
            return Self { head: 1, all: agents.min(most) + 1, each: 1 };
        }
        let each = if agents.saturating_mul(2) <= height / 2 && !is_short { 2 } else { 1 };
        let all = agents.saturating_mul(each).min(most);
        Self { head: 0, all: all - all % each, each }
    }
}

pub(super) fn draw_team(
    screen: &Screen,
    frame: &mut Frame<'_>,
    area: Rect,
    height: TeamHeight,
    now_ms: u64,
) {
    let agents = screen.view.agents();
    let at =
        agents.iter().position(|(it, _)| Some(&*it.status.agent_id) == screen.agent.as_deref());
    let room = usize::from(area.height.saturating_sub(height.head) / height.each);
    let from = first_shown(at.unwrap_or(0), room, agents.len());
    let shown = agents.into_iter().skip(from).take(room);
    let shown: Vec<_> = shown.map(|agent| AgentWords::of(screen, agent, now_ms)).collect();
    let width = usize::from(area.width);
    let lines = if screen.figures {
        figures(screen, &shown, width, height)
    } else if height.head > 0 {
        table(screen, &shown, width)
    } else {
        narrow(screen, &shown, width, height.each)
    };
    frame.render_widget(Paragraph::new(lines), area);
}

fn selected(screen: &Screen, agent: &AgentWords<'_>, line: Line<'static>) -> Line<'static> {
    if Some(agent.id()) == screen.agent.as_deref() {
        return line.style(selection(screen.on_agents));
    }
    line
}

/// Each agent in one line, or in two: who and how, and below it what for.
fn narrow(
    screen: &Screen,
    shown: &[AgentWords<'_>],
    width: usize,
    each: u16,
) -> Vec<Line<'static>> {
    let lines = shown.iter().flat_map(|agent| {
        let color = color_of(&screen.view, agent.id());
        let name = cut(&plain(agent.id()), LONGEST_NAME.min(width / 2));
        let mut parts = vec![vec![
            Span::styled(mark_of(&screen.view, agent.id()), color),
            Span::raw(" "),
            Span::styled(name, color),
        ]];
        parts.push(vec![Span::styled(agent.state.to_string(), tone(&agent.state_tone))]);
        if agent.waits > 0 {
            let word = if agent.waits == 1 { "waits" } else { "wait" };
            parts.push(vec![Span::styled(format!("{} {word}", agent.waits), tone("pending"))]);
        }
        if let Some((added, removed)) = agent.changes() {
            parts.push(vec![
                Span::styled(added, tone("ready")),
                Span::raw(" "),
                Span::styled(removed, tone("error")),
            ]);
        }
        parts.extend(AgentFigures(agent.details).cost().map(|cost| vec![Span::raw(cost)]));
        let first = Line::from(fitting(parts, width));
        let mut lines = vec![selected(screen, agent, first)];
        if each > 1 {
            let mut task = agent.task_or_none();
            task.content = cut_words(&task.content, width.saturating_sub(2)).into();
            lines.push(Line::from(vec![Span::raw("  "), task]));
        }
        lines
    });
    lines.collect()
}

/// The parts that fit whole, from the first one on.
fn fitting(parts: Vec<Vec<Span<'static>>>, width: usize) -> Vec<Span<'static>> {
    let (mut spans, mut used) = (Vec::new(), 0);
    for part in parts {
        let wide = part.iter().map(Span::width).sum::<usize>() + usize::from(used > 0);
        if used + wide > width && used > 0 {
            continue;
        }
        if used > 0 {
            spans.push(Span::raw(" "));
        }
        used += wide;
        spans.extend(part);
    }
    spans
}

/// A column of a table: its head, and the cell of each row.
struct Column {
    head: &'static str,
    cells: Vec<Vec<Span<'static>>>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.iter().map(Span::width).sum());
        cells.max().unwrap_or(0).max(self.head.width())
    }

    fn new(head: &'static str, cells: impl Iterator<Item = Span<'static>>) -> Self {
        Self { head, cells: cells.map(|cell| vec![cell]).collect() }
    }
}

fn names(screen: &Screen, shown: &[AgentWords<'_>], width: usize) -> [Column; 2] {
    let marks = shown
        .iter()
        .map(|it| Span::styled(mark_of(&screen.view, it.id()), color_of(&screen.view, it.id())));
    let names = shown.iter().map(|it| {
        let name = cut(&plain(it.id()), LONGEST_NAME.min(width / 4));
        Span::styled(name, color_of(&screen.view, it.id()))
    });
    [Column::new("", marks), Column::new("AGENT", names)]
}

fn states(shown: &[AgentWords<'_>]) -> Column {
    let states =
        shown.iter().map(|it| Span::styled(cut(&it.state, LONGEST_STATE), tone(&it.state_tone)));
    Column::new("STATE", states)
}

fn table(screen: &Screen, shown: &[AgentWords<'_>], width: usize) -> Vec<Line<'static>> {
    let [marks, names] = names(screen, shown, width);
    let waits = shown.iter().map(|it| match it.waits {
        0 => Span::raw(""),
        waits => Span::styled(waits.to_string(), tone("pending")),
    });
    let changes = shown.iter().map(|it| match it.changes() {
        None => Vec::new(),
        Some((added, removed)) => vec![
            Span::styled(added, tone("ready")),
            Span::raw(" "),
            Span::styled(removed, tone("error")),
        ],
    });
    let changes = Column { head: "+ −", cells: changes.collect() };
    let costs =
        shown.iter().map(|it| Span::raw(AgentFigures(it.details).cost().unwrap_or_default()));
    let costs = Column::new("COST", costs);
    let is_known = |column: &Column| column.cells.iter().flatten().any(|it| it.width() > 0);
    let last: Vec<_> = [changes, costs].into_iter().filter(is_known).collect();
    let mut columns = vec![marks, names, states(shown), Column::new("WAITS", waits)];
    let used: usize = columns.iter().chain(&last).map(|column| column.width() + 1).sum();
    let room = width.saturating_sub(used);
    let mut tasks = Column::new("TASK", shown.iter().map(AgentWords::task_or_none));
    let has_steps = room >= BOTH && shown.iter().any(|it| !it.step.is_empty());
    let wide = if has_steps {
        tasks.width().min(if room < WIDE { room / 2 } else { room * 3 / 5 })
    } else {
        room
    };
    for cell in tasks.cells.iter_mut().flatten() {
        cell.content = padded(&cut_words(&cell.content, wide), wide).into();
    }
    columns.push(tasks);
    if has_steps {
        let left = room.saturating_sub(wide + 1);
        let steps = shown
            .iter()
            .map(|it| Span::styled(padded(&it.timed_step(left), left), tone(it.step_tone)));
        columns.push(Column::new("STEP", steps));
    }
    columns.extend(last);
    rows(screen, shown, &columns)
}

/// The figures that a person seldom needs, as many as fit whole.
fn figures(
    screen: &Screen,
    shown: &[AgentWords<'_>],
    width: usize,
    height: TeamHeight,
) -> Vec<Line<'static>> {
    let [marks, names] = names(screen, shown, width);
    let column = |head, of: fn(AgentFigures<'_>) -> Option<String>| {
        let cells = shown
            .iter()
            .map(|it| Span::raw(of(AgentFigures(it.details)).unwrap_or_else(|| "-".to_owned())));
        Column::new(head, cells)
    };
    let mut spent = column("SPENT", |it| it.spent());
    for (cell, agent) in spent.cells.iter_mut().flatten().zip(shown) {
        cell.style = screen.view.budget(Some(agent.id())).map(of_budget).unwrap_or_default();
    }
    let mut columns = vec![marks, names];
    let mut used: usize = columns.iter().map(|column| column.width() + 1).sum();
    let wanted = [
        column("CONTEXT", |it| it.tokens()),
        spent,
        column("COST", |it| it.cost()),
        column("MEMORY", |it| it.memory()),
        column("ZONE", |it| it.zone()),
        states(shown),
    ];
    for column in wanted {
        if used + column.width() <= width {
            used += column.width() + 1;
            columns.push(column);
        }
    }
    let lines = rows(screen, shown, &columns);
    if height.head > 0 {
        return lines;
    }
    // With two lines for each agent there is one for the head.
    lines.into_iter().skip(usize::from(height.each == 1)).collect()
}

fn rows(screen: &Screen, shown: &[AgentWords<'_>], columns: &[Column]) -> Vec<Line<'static>> {
    let widths: Vec<_> = columns.iter().map(Column::width).collect();
    let heads = columns.iter().zip(&widths).map(|(column, width)| padded(column.head, *width));
    let head = Line::from(heads.collect::<Vec<_>>().join(" ")).style(bold());
    let lines = shown.iter().enumerate().map(|(at, agent)| {
        let mut spans = Vec::new();
        for (column, width) in columns.iter().zip(&widths) {
            let cell = &column.cells[at];
            let used: usize = cell.iter().map(Span::width).sum();
            spans.extend(cell.iter().cloned());
            spans.push(Span::raw(" ".repeat(width.saturating_sub(used) + 1)));
        }
        selected(screen, agent, Line::from(spans))
    });
    std::iter::once(head).chain(lines).collect()
}

/// The step of the selected agent, and the figures that the table does not show, as many as fit whole.
pub(super) fn details(screen: &Screen, width: usize, now_ms: u64) -> String {
    let agents = screen.view.agents().into_iter();
    let mut agents = agents.filter(|(it, _)| Some(&*it.status.agent_id) == screen.agent.as_deref());
    let Some(agent) = agents.next() else { return String::new() };
    let agent = AgentWords::of(screen, agent, now_ms);
    let figures = AgentFigures(agent.details);
    let named = |name: &str, figure: Option<String>| figure.map(|it| format!("{name} {it}"));
    let parts = [
        Some(if agent.step.is_empty() { agent.state.to_string() } else { agent.timed_step(width) }),
        named("context", figures.tokens()),
        named("spent", figures.spent()),
        named("memory", figures.memory()),
        named("zone", figures.zone()),
    ];
    let mut line = String::new();
    for part in parts.into_iter().flatten() {
        if line.is_empty() {
            line = cut_words(&part, width);
        } else if line.width() + 3 + part.width() <= width {
            line = format!("{line} · {part}");
        }
    }
    line
}
