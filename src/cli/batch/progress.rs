//! The progress of a batch on standard error: a line for each end, and on a terminal a bar below them.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::format;
use crate::cli::output::{note, plain};
use crate::jobs::{BatchNews, JobEnd, JobOutcome};

/// How often the elapsed time is drawn.
const TICK: Duration = Duration::from_millis(250);

pub(super) struct BatchProgress {
    /// Hidden where standard error is no terminal.
    bar: ProgressBar,
    is_terminal: bool,
}

impl BatchProgress {
    pub(super) fn start(tasks: usize) -> Self {
        let is_terminal = stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(tasks as u64), ProgressDrawTarget::hidden());
        if is_terminal {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(TICK);
        }
        Self { bar, is_terminal }
    }

    pub(super) fn is_drawn(&self) -> bool {
        self.is_terminal
    }

    pub(super) fn tell(&self, news: &BatchNews<'_>) {
        match news {
            BatchNews::Note(text) => self.say(text),
            BatchNews::Ended(end) => {
                self.say(&line(end));
                self.bar.inc(1);
            }
            BatchNews::Running(tasks) => {
                let named = tasks.iter().map(|(id, doing)| match doing {
                    Some(doing) => format!("{id}: {doing}"),
                    None => (*id).to_owned(),
                });
                self.bar.set_message(named.collect::<Vec<_>>().join("; "));
            }
        }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| note(plain(text)));
    }
}

fn line(end: &JobEnd) -> String {
    let status = end.status();
    let JobOutcome::Ran(state) = &end.outcome else {
        return format!("{}: {status}: {}", end.id, end.reason().unwrap_or_default());
    };
    if end.earlier && end.has_succeeded() {
        return format!("{}: {status} before (run {})", end.id, state.id);
    }
    let took = super::took(state).map(|took| format!(", {}", format::duration(took)));
    let reason = state.reason.as_ref().map(|reason| format!(": {reason}"));
    let (took, reason) = (took.unwrap_or_default(), reason.unwrap_or_default());
    format!("{}: {status} (run {}{took}){reason}", end.id, state.id)
}
