//! Prints lines of agents, prefixed with the agent; coloured and wrapped on a terminal.

use std::io::{self, Write as _};

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::cli::columns::{cut, wrap};
use crate::cli::output::{self, is_terminal, plain, style};
use crate::cli::transcript::{LineKind, ShownLine};
use crate::program::Failure;

/// Colours of agents on a terminal.
const COLORS: [AnsiColor; 5] =
    [AnsiColor::Cyan, AnsiColor::Green, AnsiColor::Magenta, AnsiColor::Blue, AnsiColor::Yellow];
/// Minimum columns for a line's text on a narrow terminal.
const NARROWEST: usize = 16;

pub(super) struct Page {
    terminal: bool,
    agents: Vec<String>,
    /// Columns of the longest agent id.
    width: usize,
}

impl Page {
    pub(super) fn new(agents: &[String]) -> Self {
        let width = agents.iter().map(|agent| agent.width()).max().unwrap_or(0);
        Self { terminal: is_terminal(), agents: agents.to_vec(), width }
    }

    pub(super) fn print(&mut self, label: &str, line: &ShownLine) -> Result<(), Failure> {
        self.write(label, line).map_err(output::failure)
    }

    fn write(&mut self, label: &str, line: &ShownLine) -> io::Result<()> {
        let columns = self.terminal.then(terminal_size::terminal_size).flatten();
        let columns = columns.map(|(width, _)| usize::from(width.0));
        let color = self.color(label);
        let label = plain(label);
        // The label takes at most a third of the terminal.
        let room = columns.map_or(self.width.max(label.width()), |columns| {
            self.width.max(label.width()).min(columns / 3)
        });
        let name = cut(&label, room);
        let text = plain(&strip_str(&line.text).to_string());
        let pieces = match columns {
            Some(columns) => wrap(&text, columns.saturating_sub(room + 3).max(NARROWEST)),
            None => vec![text],
        };
        let style = style_of(&line.kind);
        let mut out = anstream::stdout().lock();
        for (at, piece) in pieces.iter().enumerate() {
            let name = if at == 0 { name.as_str() } else { "" };
            let padding = room - name.width();
            if piece.is_empty() {
                writeln!(out, "{color}{name}{:padding$} |{color:#}", "")?;
            } else {
                writeln!(out, "{color}{name}{:padding$} |{color:#} {style}{piece}{style:#}", "")?;
            }
        }
        out.flush()
    }

    fn color(&mut self, label: &str) -> Style {
        let agent = label.split(' ').next().unwrap_or_default();
        let at = self.agents.iter().position(|known| known == agent).unwrap_or_else(|| {
            self.agents.push(agent.to_owned());
            self.agents.len() - 1
        });
        COLORS[at % COLORS.len()].on_default()
    }
}

pub(in crate::cli) fn style_of(kind: &LineKind) -> Style {
    match kind {
        LineKind::Message => Style::new(),
        LineKind::Thought | LineKind::Note => Style::new().dimmed(),
        LineKind::Prompt => Style::new().italic(),
        LineKind::Call => AnsiColor::Cyan.on_default(),
        LineKind::FailedCall => AnsiColor::Red.on_default(),
        LineKind::Plan => AnsiColor::Blue.on_default(),
        LineKind::State(word) => style(word),
        LineKind::Turn => Style::new().bold(),
    }
}
