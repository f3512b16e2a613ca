//! `doctor`: prints what was found on this machine, and how to fix it.

use std::io::{IsTerminal as _, stderr};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};
use unicode_width::UnicodeWidthStr as _;

use super::columns::wrap;
use super::config_file::ConfigFile;
use super::help;
use super::output::{is_terminal, note, plain, print};
use crate::care;
use crate::care::{Examination, Finding, Health};
use crate::home;
use crate::program::Failure;

/// How long nothing is said about the progress, and between two signs of it.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Columns of the longest state, and the fewest that a message gets.
const STATE: usize = "warning".len();
const NARROWEST: usize = 30;

/// Check this machine and this folder, and say how to fix what is wrong
///
/// Looks at the agents on PATH, their versions and whether they are logged in, git, the kernel, limits,
/// `EISEN_DIR`, running teams, what killed runs left, the configuration, the ports, and the disks. Each
/// finding is `ok`, `warning` or `error`, with its fix. Programs are only asked for their
/// version, unless `--deep` is given; no secret is read.
#[derive(Args, Debug)]
#[command(after_help = help::DOCTOR)]
pub(super) struct Doctor {
    #[command(flatten)]
    file: ConfigFile,
    /// Fix what is safe to fix: the mode of `EISEN_DIR`, and what killed runs left
    #[arg(long)]
    fix: bool,
    /// Start each installed agent, two at a time, until it has answered `initialize`; no model is called
    #[arg(long)]
    deep: bool,
    /// Print the findings as a JSON array
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self, cwd: Option<PathBuf>) -> Result<u8, Failure> {
        let examination = Examination {
            // Also one that is refused: the findings say how to mend it.
            eisen_dir: home::eisen_place(),
            configuration: self.file.find(cwd),
            fix: self.fix,
            deep: self.deep,
        };
        let progress = Spinner::start();
        let found =
            care::doctor(&examination, &|what| progress.show(what)).map_err(Failure::Run)?;
        progress.end();
        if self.json {
            let json = serde_json::to_string_pretty(&found);
            print(json.map_err(|error| Failure::Run(error.into()))?)?;
        } else {
            show(&found)?;
        }
        Ok(u8::from(count(&found, Health::Error) > 0))
    }
}

fn show(found: &[Finding]) -> Result<(), Failure> {
    let columns = is_terminal().then(terminal_size::terminal_size).flatten();
    let columns = columns.map(|(width, _)| usize::from(width.0));
    for line in lines(found, columns) {
        print(line)?;
    }
    let mended = found.iter().filter(|finding| finding.fixed.is_some()).count();
    let mended = if mended > 0 { format!(", {mended} mended") } else { String::new() };
    let counted = |state| match count(found, state) {
        1 => format!("1 {}", state.as_str()),
        count => format!("{count} {}s", state.as_str()),
    };
    let (errors, warnings) = (counted(Health::Error), counted(Health::Warning));
    note(format_args!("{errors}, {warnings}{mended}"));
    Ok(())
}

fn count(found: &[Finding], state: Health) -> usize {
    found.iter().filter(|finding| finding.state == state).count()
}

/// Lays the findings out in columns; messages are wrapped at the width of the terminal.
fn lines(found: &[Finding], columns: Option<usize>) -> Vec<String> {
    let checks: Vec<String> = found.iter().map(|finding| plain(&finding.check)).collect();
    let widest = checks.iter().map(|check| check.width()).max().unwrap_or(0);
    let indent = STATE + widest + 4;
    let room = columns.map(|columns| columns.saturating_sub(indent).max(NARROWEST));
    let wrapped = |text: &str| match room {
        Some(room) => wrap(&plain(text), room),
        None => vec![plain(text)],
    };
    let mut lines = Vec::new();
    for (finding, check) in found.iter().zip(checks) {
        let (state, style) = (finding.state.as_str(), style(finding.state));
        let (after, gap) = (STATE - state.len() + 2, widest - check.width() + 2);
        let mut head = format!("{style}{state}{style:#}{:after$}{check}{:gap$}", "", "");
        for line in wrapped(&finding.message) {
            lines.push(format!("{head}{line}"));
            head = " ".repeat(indent);
        }
        let notes = [("fixed: ", &finding.fixed), ("fix: ", &finding.fix)];
        for (what, text) in
            notes.into_iter().filter_map(|(what, text)| Some((what, text.as_ref()?)))
        {
            // A command stays in one piece, to be copied.
            let (text, bold) = (plain(text), Style::new().bold());
            lines.push(format!("{:indent$}{what}{bold}{text}{bold:#}", ""));
        }
    }
    lines
}

fn style(state: Health) -> Style {
    match state {
        Health::Ok => AnsiColor::Green.on_default(),
        Health::Warning => AnsiColor::Yellow.on_default(),
        Health::Error => AnsiColor::Red.on_default(),
    }
}

/// Shows the current check on a terminal, once the checks take longer than [`PROGRESS_DELAY`].
struct Spinner {
    /// None without a terminal.
    shown: Option<(Sender<&'static str>, JoinHandle<()>)>,
}

impl Spinner {
    fn start() -> Self {
        if !stderr().is_terminal() {
            return Self { shown: None };
        }
        let (sender, received) = channel::<&'static str>();
        let draw = move || {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::hidden());
            let start = std::time::Instant::now();
            let mut is_drawn = false;
            loop {
                match received.recv_timeout(TICK) {
                    Ok(what) => bar.set_message(format!("looking at {what} …")),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if !is_drawn && start.elapsed() >= PROGRESS_DELAY {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    is_drawn = true;
                }
                bar.tick();
            }
            bar.finish_and_clear();
        };
        // Without the thread nothing is shown.
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(draw);
        Self { shown: thread.ok().map(|thread| (sender, thread)) }
    }

    fn show(&self, what: &'static str) {
        if let Some((sender, _)) = &self.shown {
            let _ = sender.send(what);
        }
    }

    fn end(self) {
        if let Some((sender, thread)) = self.shown {
            drop(sender);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(check: &str, state: Health, message: &str, fix: Option<&str>) -> Finding {
        Finding {
            check: check.to_owned(),
            state,
            message: message.to_owned(),
            fix: fix.map(str::to_owned),
            fixed: None,
        }
    }

    #[test]
    fn findings_stand_in_columns() {
        let found = [
            finding("git", Health::Ok, "git 2.47.3, /usr/bin/git", None),
            finding("login/codex", Health::Warning, "not logged in", Some("codex login")),
        ];
        let shown = lines(&found, None).join("\n");
        let wanted = "ok       git          git 2.47.3, /usr/bin/git\n\
                      warning  login/codex  not logged in\n                      \
                      fix: codex login";
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), wanted);
        assert!(shown.contains("\u{1b}[33mwarning\u{1b}[0m"), "{shown:?}");
    }

    #[test]
    fn messages_are_wrapped_and_names_steer_no_terminal() {
        let name = "a\u{1b}[2Jb\u{202e}\nc";
        let found = [finding(name, Health::Error, &format!("{name} word ").repeat(9), Some(name))];
        let lines = lines(&found, Some(60));
        assert!(lines.len() > 2);
        for line in lines {
            let line = anstream::adapter::strip_str(&line).to_string();
            assert!(!line.contains(['\u{1b}', '\u{202e}', '\n']), "{line:?}");
            assert!(line.width() <= 60, "{line:?}");
        }
    }

    #[test]
    fn json_says_what_is_known_and_nothing_else() {
        let found = finding("git", Health::Warning, "none", Some("install it"));
        assert_eq!(
            serde_json::to_value(&found).ok(),
            Some(serde_json::json!({
                "check": "git", "state": "warning", "message": "none", "fix": "install it",
            }))
        );
    }
}
