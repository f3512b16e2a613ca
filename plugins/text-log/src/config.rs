//! Parses the configuration: compiles each pattern, and checks that it has the groups it needs.

use regex::{Captures, Regex, RegexBuilder};
use serde::Deserialize;

/// Limit of a compiled pattern, in bytes.
const PATTERN_SIZE: usize = 1024 * 1024;
/// Limit of patterns in a configuration.
const MOST_PATTERNS: usize = 256;

/// `config` in `eisen.toml`, before its patterns are compiled.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    reads: Vec<String>,
    writes: Vec<String>,
    searches: Vec<String>,
    runs: Vec<String>,
    session: Vec<String>,
    model: Vec<String>,
    usage: Vec<String>,
    thoughts: Vec<String>,
    ignore: Vec<String>,
    text: Option<Vec<String>>,
    ends: Vec<String>,
    fails: Vec<String>,
    asks: Vec<WrittenAsk>,
    prompt: String,
    newline: String,
    cancel: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAsk {
    pattern: String,
    #[serde(default)]
    action: Action,
    allow: String,
    deny: String,
}

/// The action of a question whose line doesn't name one.
#[derive(Deserialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Read,
    #[default]
    Write,
    Search,
}

pub(crate) struct Config {
    /// The action of each pattern with a `path`.
    pub(crate) touches: Vec<(&'static str, Regex)>,
    pub(crate) runs: Vec<Regex>,
    pub(crate) session: Vec<Regex>,
    pub(crate) model: Vec<Regex>,
    pub(crate) usage: Vec<Regex>,
    pub(crate) thoughts: Vec<Regex>,
    pub(crate) ignore: Vec<Regex>,
    /// None: each line that matches no other pattern.
    pub(crate) text: Option<Vec<Regex>>,
    pub(crate) ends: Vec<Regex>,
    pub(crate) fails: Vec<Regex>,
    pub(crate) asks: Vec<Ask>,
    pub(crate) prompt: String,
    pub(crate) newline: String,
    pub(crate) cancel: Option<String>,
}

pub(crate) struct Ask {
    pub(crate) pattern: Regex,
    pub(crate) action: Action,
    pub(crate) allow: String,
    pub(crate) deny: String,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            reads: Vec::new(),
            writes: Vec::new(),
            searches: Vec::new(),
            runs: Vec::new(),
            session: Vec::new(),
            model: Vec::new(),
            usage: Vec::new(),
            thoughts: Vec::new(),
            ignore: Vec::new(),
            text: None,
            ends: Vec::new(),
            fails: Vec::new(),
            asks: Vec::new(),
            prompt: "{prompt}".to_owned(),
            newline: " ".to_owned(),
            cancel: None,
        }
    }
}

impl Config {
    pub(crate) fn new(config: &str) -> Result<Self, String> {
        let written: Written = serde_json::from_str(config).map_err(|error| error.to_string())?;
        if written.count() > MOST_PATTERNS {
            return Err(format!("there are more than {MOST_PATTERNS} patterns"));
        }
        if !written.prompt.contains("{prompt}") {
            return Err("`prompt` has no {prompt}: the agent would not get the prompt".to_owned());
        }
        let mut touches = Vec::new();
        for (key, action, patterns) in [
            ("reads", "read", &written.reads),
            ("writes", "write", &written.writes),
            ("searches", "search", &written.searches),
        ] {
            let patterns = compiled(key, patterns, &["path"])?;
            touches.extend(patterns.into_iter().map(|pattern| (action, pattern)));
        }
        let asks = written.asks.into_iter().map(|ask| {
            let pattern = one("asks", &ask.pattern)?;
            let names = ["path", "command"];
            if !pattern.capture_names().flatten().any(|name| names.contains(&name)) {
                return Err(lacks("asks", &ask.pattern, "`path` or `command`"));
            }
            Ok(Ask { pattern, action: ask.action, allow: ask.allow, deny: ask.deny })
        });
        Ok(Self {
            touches,
            asks: asks.collect::<Result<_, _>>()?,
            runs: compiled("runs", &written.runs, &["command"])?,
            session: compiled("session", &written.session, &["id"])?,
            model: compiled("model", &written.model, &["id"])?,
            usage: compiled("usage", &written.usage, &["used", "size", "cost"])?,
            thoughts: compiled("thoughts", &written.thoughts, &[])?,
            ignore: compiled("ignore", &written.ignore, &[])?,
            text: written.text.map(|text| compiled("text", &text, &[])).transpose()?,
            ends: compiled("ends", &written.ends, &[])?,
            fails: compiled("fails", &written.fails, &[])?,
            prompt: written.prompt,
            newline: written.newline,
            cancel: written.cancel,
        })
    }
}

impl Written {
    fn count(&self) -> usize {
        let lists = [
            &self.reads,
            &self.writes,
            &self.searches,
            &self.runs,
            &self.session,
            &self.model,
            &self.usage,
            &self.thoughts,
            &self.ignore,
            &self.ends,
            &self.fails,
        ];
        let text = self.text.as_ref().map_or(0, Vec::len);
        lists.iter().map(|list| list.len()).sum::<usize>() + text + self.asks.len()
    }
}

/// Compiles the patterns of a key; each has to have one of the names, if any are given.
fn compiled(key: &str, patterns: &[String], names: &[&str]) -> Result<Vec<Regex>, String> {
    let compiled = patterns.iter().map(|pattern| {
        let regex = one(key, pattern)?;
        if names.is_empty() || regex.capture_names().flatten().any(|name| names.contains(&name)) {
            return Ok(regex);
        }
        Err(lacks(key, pattern, &format!("`{}`", names.join("`, `"))))
    });
    compiled.collect()
}

fn one(key: &str, pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).build().map_err(|error| {
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("`{key}` has the pattern `{pattern}`, which is none: {why}")
    })
}

fn lacks(key: &str, pattern: &str, names: &str) -> String {
    format!("`{key}` has the pattern `{pattern}`, which lacks a group named {names}: (?<name>…)")
}

/// The text that a named group matched.
pub(crate) fn group<'a>(captures: &Captures<'a>, name: &str) -> Option<&'a str> {
    captures.name(name).map(|found| found.as_str()).filter(|text| !text.is_empty())
}
