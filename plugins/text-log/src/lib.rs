//! Reads the lines of a tool that only prints text. Patterns of the configuration say which lines are
//! reads, writes, questions or ends of a turn; the README describes them.
//!
//! The regex crate matches in linear time, whatever the pattern: neither the tool's output nor the
//! user's patterns can be trusted to be harmless.

mod config;

use std::borrow::Cow;
use std::collections::VecDeque;

use eisen_plugin::{Description, Direction, Extractor, Records, Usage, export_extractor, testing};
use regex::{Captures, Regex};

use crate::config::{Action, Ask, Config, group};

/// Bytes read of a line; the rest is ignored.
const LONGEST_LINE: usize = 64 * 1024;
/// Questions that may be open at once; past that, the oldest is forgotten.
const MOST_ASKS: usize = 256;

/// One run of a tool.
pub struct TextLog {
    config: Config,
    /// The answers (allow, deny) to open questions, by id.
    asks: VecDeque<(String, (String, String))>,
    last_ask: u64,
    is_cancelled: bool,
    /// Escape sequences of terminal colours.
    colours: Option<Regex>,
}

impl Extractor for TextLog {
    const DESCRIPTION: Description = Description {
        name: "text-log",
        version: env!("CARGO_PKG_VERSION"),
        protocols: &["text-log"],
    };
    const GATES: bool = true;
    const DRIVES: bool = true;

    fn create(config: &str) -> Result<Self, String> {
        Ok(Self {
            config: Config::new(config)?,
            asks: VecDeque::new(),
            last_ask: 0,
            is_cancelled: false,
            colours: Regex::new(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\))").ok(),
        })
    }

    fn observe(
        &mut self,
        direction: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String> {
        if direction == Direction::ToAgent {
            // Or goes on: a line that is sent meanwhile belongs to the same turn.
            records.turn_began();
            return Ok(());
        }
        let line = self.plain(line);
        let config = &self.config;
        if any(&config.ignore, &line) {
            return Ok(());
        }
        let mut is_known = config.asks.iter().any(|ask| ask.pattern.is_match(&line));
        for (action, pattern) in &config.touches {
            if let Some(path) = found(pattern, &line, "path") {
                records.touched(action, path, "");
                is_known = true;
            }
        }
        if let Some(command) = first(&config.runs, &line, "command") {
            records.runs(command, "");
            is_known = true;
        }
        if let Some(id) = first(&config.session, &line, "id") {
            records.session(id);
            is_known = true;
        }
        if let Some(id) = first(&config.model, &line, "id") {
            records.model(id, id);
            is_known = true;
        }
        if let Some(captures) = config.usage.iter().find_map(|pattern| pattern.captures(&line)) {
            let usage = usage(&captures);
            if usage != Usage::default() {
                records.usage(usage);
            }
            is_known = true;
        }
        let failed = config.fails.iter().find_map(|pattern| pattern.captures(&line));
        let ended = failed.is_some() || any(&config.ends, &line);
        if any(&config.thoughts, &line) {
            records.thought(&format!("{line}\n"));
        } else if match &config.text {
            Some(text) => any(text, &line),
            None => !is_known && !ended,
        } {
            records.text(&format!("{line}\n"));
        }
        if ended && std::mem::take(&mut self.is_cancelled) {
            records.turn_ended("cancelled", "");
        } else if let Some(failed) = failed {
            records.turn_ended("error", group(&failed, "error").unwrap_or(&line));
        } else if ended {
            records.turn_ended("end_turn", "");
        }
        Ok(())
    }

    fn gate(&mut self, line: &[u8], records: &mut Records<'_>) -> Result<(), String> {
        let line = self.plain(line);
        let asked =
            self.config.asks.iter().find_map(|ask| Some((ask, ask.pattern.captures(&line)?)));
        let Some((ask, captures)) = asked else { return Ok(()) };
        let answers = (filled(&ask.allow, &captures), filled(&ask.deny, &captures));
        let path = group(&captures, "path");
        let command = group(&captures, "command");
        if path.is_none() && command.is_none() {
            let why = "Nobody can answer this now.";
            put(&answers.1.replace("{why}", why), records);
            return Ok(());
        }
        let id = if let Some(id) = group(&captures, "id") {
            // If the id is open already, the host denies both.
            id.to_owned()
        } else {
            self.last_ask += 1;
            format!("ask-{}", self.last_ask)
        };
        match (command, path) {
            (Some(command), _) => records.ask_to_run(&id, &line, command),
            (None, Some(path)) => records.ask(&id, &line, &[(action(ask, &captures), path)]),
            (None, None) => {}
        }
        self.asks.retain(|(open, _)| *open != id);
        if self.asks.len() == MOST_ASKS {
            self.asks.pop_front();
        }
        self.asks.push_back((id, answers));
        Ok(())
    }

    fn deny(&mut self, id: &str, why: &str, records: &mut Records<'_>) -> Result<(), String> {
        let (_, denied) = self.answers(id)?;
        put(&denied.replace("{why}", &why.replace(['\r', '\n'], " ")), records);
        Ok(())
    }

    fn prompt(&mut self, text: &str, records: &mut Records<'_>) -> Result<(), String> {
        self.is_cancelled = false;
        let text = text.replace("\r\n", "\n").replace('\n', &self.config.newline);
        put(&self.config.prompt.replace("{prompt}", &text), records);
        Ok(())
    }

    fn cancel(&mut self, records: &mut Records<'_>) -> Result<(), String> {
        if let Some(cancel) = &self.config.cancel {
            self.is_cancelled = true;
            put(cancel, records);
        }
        Ok(())
    }

    fn allow(&mut self, id: &str, records: &mut Records<'_>) -> Result<(), String> {
        let (allowed, _) = self.answers(id)?;
        put(&allowed, records);
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        testing::check::<Self>(
            r#"{"reads": ["^read (?<path>.+)"]}"#,
            "< \x1b[32mread\x1b[0m a\ntouched read a\n",
        )
    }
}

impl TextLog {
    /// The line as a terminal shows it.
    fn plain<'a>(&self, line: &'a [u8]) -> Cow<'a, str> {
        let line = &line[..line.len().min(LONGEST_LINE)];
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        match &self.colours {
            Some(colours) if line.contains('\x1b') => {
                colours.replace_all(&line, "").into_owned().into()
            }
            _ => line,
        }
    }

    fn answers(&mut self, id: &str) -> Result<(String, String), String> {
        let place = self.asks.iter().position(|(open, _)| open == id);
        let open = place.and_then(|place| self.asks.remove(place));
        open.map(|(_, answers)| answers).ok_or_else(|| format!("nothing is asked under {id}"))
    }
}

/// The action that a question asks for; the line may name it.
fn action(ask: &Ask, captures: &Captures<'_>) -> &'static str {
    // An unknown word may mean a write.
    let action = match group(captures, "action").map(str::to_ascii_lowercase).as_deref() {
        Some("read") => Action::Read,
        Some("search") => Action::Search,
        Some(_) => Action::Write,
        None => ask.action,
    };
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Search => "search",
    }
}

fn usage<'a>(captures: &Captures<'a>) -> Usage<'a> {
    let number = |name| group(captures, name)?.replace([',', '_', '\''], "").parse().ok();
    let cost = group(captures, "cost").filter(|cost| cost.parse::<f64>().is_ok_and(f64::is_finite));
    let currency = cost.map(|_| group(captures, "currency").unwrap_or("USD"));
    Usage {
        used: number("used"),
        size: number("size"),
        cost: cost.map(Into::into),
        currency: currency.map(Into::into),
    }
}

fn any(patterns: &[Regex], line: &str) -> bool {
    patterns.iter().any(|pattern| pattern.is_match(line))
}

fn found<'a>(pattern: &Regex, line: &'a str, name: &str) -> Option<&'a str> {
    group(&pattern.captures(line)?, name)
}

fn first<'a>(patterns: &[Regex], line: &'a str, name: &str) -> Option<&'a str> {
    patterns.iter().find_map(|pattern| found(pattern, line, name))
}

/// Replaces the names of groups by what they matched.
fn filled(template: &str, captures: &Captures<'_>) -> String {
    let mut filled = template.to_owned();
    for name in ["id", "path", "command", "action"] {
        filled = filled.replace(&format!("{{{name}}}"), group(captures, name).unwrap_or_default());
    }
    filled
}

/// Puts each line of a text.
fn put(text: &str, records: &mut Records<'_>) {
    text.split('\n').for_each(|line| records.line(line));
}

export_extractor!(TextLog);
