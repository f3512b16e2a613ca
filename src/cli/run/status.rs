//! The line of a run on a terminal while it runs: for how long, what its agent does, how many tokens it used.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use eisen_base::task;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::watch;

use crate::cli::format;
use crate::program;
use crate::turn::RunProgress;

/// How often it is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Goes with its value; nothing is drawn where standard error is no terminal.
pub(super) struct StatusLine {
    bar: Option<ProgressBar>,
}

impl StatusLine {
    /// Call it on a runtime.
    pub(super) fn start(mut progress: watch::Receiver<RunProgress>) -> Self {
        if !stderr().is_terminal() {
            return Self { bar: None };
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(TICK);
        program::stderr().above(Some(bar.clone()));
        let shown = bar.clone();
        task::spawn(async move {
            while progress.changed().await.is_ok() {
                shown.set_message(line(&progress.borrow_and_update()));
            }
        });
        Self { bar: Some(bar) }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
            program::stderr().above(None);
        }
    }
}

fn line(progress: &RunProgress) -> String {
    let tokens = progress.tokens.map(|tokens| format!("{} tokens", format::tokens(tokens)));
    let parts: Vec<_> = tokens.into_iter().chain(progress.last_action.clone()).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_known() {
        let mut progress = RunProgress::default();
        assert_eq!(line(&progress), "");
        progress.last_action = Some("Read src/cart.rs".to_owned());
        assert_eq!(line(&progress), "Read src/cart.rs");
        progress.tokens = Some(12_400);
        assert_eq!(line(&progress), "12.4k tokens, Read src/cart.rs");
    }
}
