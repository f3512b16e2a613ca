//! The terminal in which `top` draws.

use std::io;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use ratatui::DefaultTerminal;

/// The terminal, while it is ours. A panic restores it, too.
pub(in crate::cli) struct RawTerminal(pub(in crate::cli) DefaultTerminal);

impl RawTerminal {
    pub(in crate::cli) fn enter() -> io::Result<Self> {
        let terminal = Self(ratatui::try_init()?);
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(terminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        ratatui::restore();
    }
}
