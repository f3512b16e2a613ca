//! The screen of a review: hunks on the left, the lines of the selected one on the right.

use std::io::{IsTerminal as _, stdin};
use std::path::Path;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, List, ListItem, ListState, Paragraph, Wrap};

use super::send;
use super::shown::{heading, hunk_title, origins, title};
use crate::branches::{self, Reviewed};
use crate::cli::output::plain;
use crate::cli::top::RawTerminal;
use crate::program::Failure;
use crate::review::Hunk;
use crate::team_file;

/// Letters of a comment.
const LONGEST_COMMENT: usize = 4000;

/// The keys, for the last line.
const KEYS: &str = "j/k move  a accept  x take back  c comment  s send  t checks  q leave";

/// The state of a review's screen.
struct ReviewScreen {
    reviewed: Reviewed,
    selected: usize,
    scrolled: u16,
    /// The comment that is being typed.
    typed: Option<String>,
    said: String,
}

/// Something that is done outside of the screen.
enum Leave {
    Quit,
    Send,
    Check,
}

/// Whether keys can be read.
pub(super) fn is_possible() -> bool {
    stdin().is_terminal()
}

/// Shows a review until the person leaves it.
pub(super) async fn show(
    reviewed: Reviewed,
    folder: &Path,
    into: Option<&str>,
) -> Result<u8, Failure> {
    let branch = reviewed.tree.branch.clone();
    let mut screen =
        ReviewScreen { reviewed, selected: 0, scrolled: 0, typed: None, said: String::new() };
    loop {
        match screen.run(folder, into)? {
            Leave::Quit => {
                screen.reviewed.looked()?;
                return Ok(0);
            }
            Leave::Send => send(&mut screen.reviewed, folder).await?,
            Leave::Check => {
                let shared = team_file::shared_config(folder)?;
                let mut said = |line: &str| crate::cli::output::note(plain(line));
                screen.said = match screen.reviewed.check(&shared, &mut said).await {
                    Ok(passed) => format!("{passed} checks passed"),
                    Err(failure) => format!("{:#}", failure.error()),
                };
            }
        }
        screen.reviewed = branches::reviewed(folder, Some(&branch), into)?;
        screen.selected = screen.selected.min(screen.hunks().len().saturating_sub(1));
    }
}

impl ReviewScreen {
    fn run(&mut self, folder: &Path, into: Option<&str>) -> Result<Leave, Failure> {
        let failed = |error: std::io::Error| Failure::Run(error.into());
        let mut terminal = RawTerminal::enter().map_err(failed)?;
        loop {
            terminal.0.draw(|frame| self.draw(frame)).map_err(failed)?;
            let event = read().map_err(failed)?;
            let Event::Key(key) = event else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            if let Some(typed) = &mut self.typed {
                match key.code {
                    KeyCode::Esc => self.typed = None,
                    KeyCode::Backspace => drop(typed.pop()),
                    KeyCode::Char(letter) if typed.len() < LONGEST_COMMENT => typed.push(letter),
                    KeyCode::Enter => self.comment(),
                    _ => {}
                }
                continue;
            }
            let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('c') if is_interrupt => return Ok(Leave::Quit),
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Leave::Quit),
                KeyCode::Char('j') | KeyCode::Down => self.move_by(1),
                KeyCode::Char('k') | KeyCode::Up => self.move_by(-1),
                KeyCode::PageDown | KeyCode::Char(' ') => {
                    self.scrolled = self.scrolled.saturating_add(10);
                }
                KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
                KeyCode::Char('a') => self.accept()?,
                KeyCode::Char('x') => self.take_back(folder, into)?,
                KeyCode::Char('c') => self.typed = self.selected_hunk().map(|_| String::new()),
                KeyCode::Char('s') => return Ok(Leave::Send),
                KeyCode::Char('t') => return Ok(Leave::Check),
                _ => {}
            }
        }
    }

    /// Each hunk with the title of its file.
    fn hunks(&self) -> Vec<(String, &Hunk)> {
        let files = self.reviewed.review.files.iter();
        files.flat_map(|file| file.hunks.iter().map(|hunk| (title(file), hunk))).collect()
    }

    fn selected_hunk(&self) -> Option<&Hunk> {
        self.hunks().get(self.selected).map(|(_, hunk)| *hunk)
    }

    fn move_by(&mut self, by: isize) {
        let last = self.hunks().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
        self.scrolled = 0;
    }

    fn accept(&mut self) -> Result<(), Failure> {
        let Some(id) = self.selected_hunk().map(|hunk| hunk.id.clone()) else { return Ok(()) };
        let is_accepted = self
            .reviewed
            .note(|notes| Ok(!notes.accepted.remove(&id) && notes.accepted.insert(id.clone())))?;
        for file in &mut self.reviewed.review.files {
            for hunk in file.hunks.iter_mut().filter(|hunk| hunk.id == id) {
                hunk.is_accepted = is_accepted;
            }
        }
        self.move_by(1);
        Ok(())
    }

    fn take_back(&mut self, folder: &Path, into: Option<&str>) -> Result<(), Failure> {
        let Some(id) = self.selected_hunk().map(|hunk| hunk.id.clone()) else { return Ok(()) };
        match self.reviewed.revert(&id) {
            Ok(_) => {
                let branch = self.reviewed.tree.branch.clone();
                self.reviewed = branches::reviewed(folder, Some(&branch), into)?;
                self.move_by(0);
                self.said = format!("{id} was taken back");
            }
            Err(failure) => self.said = format!("{:#}", failure.error()),
        }
        Ok(())
    }

    fn comment(&mut self) {
        let text = self.typed.take().unwrap_or_default();
        let Some(id) = self.selected_hunk().map(|hunk| hunk.id.clone()) else { return };
        self.said = match self.reviewed.comment(&id, &text) {
            Ok(()) => "kept; s sends all comments to the agent".to_owned(),
            Err(failure) => format!("{:#}", failure.error()),
        };
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let above = heading(&self.reviewed.review);
        let height = u16::try_from(above.len()).unwrap_or(u16::MAX).min(8);
        let [top, middle, bottom] = Layout::vertical([
            Constraint::Length(height),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let lines: Vec<_> = above.into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines), top);
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(36), Constraint::Percentage(64)])
                .areas(middle);
        let hunks = self.hunks();
        let items = hunks.iter().map(|(file, hunk)| {
            let mark = match (hunk.is_accepted, hunk.is_new, hunk.comments.is_empty()) {
                (true, _, _) => "✓ ",
                (_, true, _) => "• ",
                (_, _, false) => "… ",
                _ => "  ",
            };
            ListItem::new(format!("{mark}{file}"))
        });
        let list = List::new(items)
            .block(Block::bordered().title("Hunks"))
            .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = ListState::default().with_selected(Some(self.selected));
        frame.render_stateful_widget(list, left, &mut state);
        let lines = hunks.get(self.selected).map(|(_, hunk)| lines_of(hunk)).unwrap_or_default();
        let shown = Paragraph::new(lines).block(Block::bordered().title("Lines"));
        frame.render_widget(shown.wrap(Wrap { trim: false }).scroll((self.scrolled, 0)), right);
        let below = match &self.typed {
            Some(typed) => format!("comment: {typed}▏"),
            None if self.said.is_empty() => KEYS.to_owned(),
            None => format!("{}   {KEYS}", plain(&self.said)),
        };
        frame.render_widget(Paragraph::new(below), bottom);
    }
}

fn lines_of(hunk: &Hunk) -> Vec<Line<'static>> {
    let faint = Style::new().fg(Color::Cyan);
    let mut lines = vec![Line::styled(hunk_title(hunk), faint)];
    lines.extend(origins(hunk).into_iter().map(|origin| Line::styled(origin, faint)));
    for line in &hunk.lines {
        let color = match line.as_bytes().first() {
            Some(b'+') => Style::new().fg(Color::Green),
            Some(b'-') => Style::new().fg(Color::Red),
            _ => Style::new(),
        };
        lines.push(Line::from(Span::styled(plain(line).replace('\t', "    "), color)));
    }
    for comment in &hunk.comments {
        let sent = if comment.is_sent { "" } else { " (not sent)" };
        let text = format!("said: {}{sent}", plain(&comment.text));
        lines.push(Line::styled(text, Style::new().fg(Color::Yellow)));
    }
    lines
}
