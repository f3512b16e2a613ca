//! Parses TOML into a [`Script`]. Stops at the first error, which has its line and a suggestion for
//! an unknown key.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ScriptError;
use super::script::{Act, CommandLine, FileEdit, Persona, PromptRule, Script, Step};
use crate::script::{Fields, Item, PromptPattern};

pub use crate::script::Invalid;

/// A kind of step.
pub(super) struct StepKind {
    pub(super) name: &'static str,
    /// Additional keys.
    pub(super) keys: &'static [&'static str],
    pub(super) needs: Needs,
}

/// The requirements of a kind of step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    /// A session: not allowed in `start`.
    Session,
    /// A session; the step can fail, and takes the keys of [`REACTIONS`].
    Client,
}

const fn kind(name: &'static str, keys: &'static [&'static str], needs: Needs) -> StepKind {
    StepKind { name, keys, needs }
}

/// Every kind of step; a test compares `docs/scripted-agent.md` with this table.
pub(super) const KINDS: &[StepKind] = &[
    kind("say", &[], Needs::Session),
    kind("think", &[], Needs::Session),
    kind("plan", &["done"], Needs::Session),
    kind("usage", &[], Needs::Session),
    kind("update", &[], Needs::Session),
    kind("answer", &[], Needs::Session),
    kind("read", &["line", "limit"], Needs::Client),
    kind("write", &["content", "replace"], Needs::Client),
    kind("search", &["in"], Needs::Client),
    kind("run", &["cwd", "output_limit"], Needs::Client),
    kind("ask", &["path", "command", "title", "options"], Needs::Client),
    kind("request", &["params"], Needs::Client),
    kind("disk_read", &[], Needs::Client),
    kind("disk_write", &["content"], Needs::Client),
    kind("spawn_child", &["detach"], Needs::Nothing),
    kind("wait_ms", &[], Needs::Nothing),
    kind("wait", &[], Needs::Nothing),
    kind("for_each", &["text", "steps"], Needs::Nothing),
    kind("repeat", &["steps"], Needs::Nothing),
    kind("stop", &[], Needs::Nothing),
    kind("fail", &[], Needs::Nothing),
    kind("raw", &["newline"], Needs::Nothing),
    kind("stderr", &[], Needs::Nothing),
    kind("exit", &[], Needs::Nothing),
    kind("crash", &[], Needs::Nothing),
    kind("hang", &[], Needs::Nothing),
    kind("ignore_eof", &[], Needs::Nothing),
    kind("ignore_term", &[], Needs::Nothing),
];

/// Additional keys of a step that can fail.
pub(super) const REACTIONS: &[&str] = &["on_ok", "on_error", "required"];

/// Keys of `[agent]`.
pub(super) const AGENT: &[&str] =
    &["name", "version", "auth_methods", "modes", "models", "start", "load", "fork"];

/// Keys of `[[on]]`.
pub(super) const ON: &[&str] = &["prompt", "regex", "times", "ignore_cancel", "steps"];

/// The kinds of permission options; by default, a permission request offers all of them.
pub(super) const OPTION_KINDS: &[&str] =
    &["allow_once", "allow_always", "reject_once", "reject_always"];

impl Script {
    pub fn load(file: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| ScriptError::Read { file: file.to_owned(), source })?;
        Self::parse(&text).map_err(|invalid| ScriptError::Invalid {
            file: PathBuf::from(file),
            line: invalid.line,
            column: invalid.column,
            message: invalid.message,
        })
    }

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        script(text)
    }
}

fn script(text: &str) -> Result<Script, Invalid> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Invalid::new(text, at, error.message().replace('\n', ", "))
    })?;
    let fields = Fields::new(text, 0, "a script", table.get_ref());
    fields.only(&["agent", "on"])?;
    let parser = Parser { text };
    let agent = match fields.item("agent") {
        Some(item) => parser.agent(&Fields::of(text, "`[agent]`", item)?)?,
        None => parser.agent(&Fields::new(text, 0, "`[agent]`", &DeTable::new()))?,
    };
    let rules = fields.items("on")?.unwrap_or_default().iter().map(|item| parser.rule(item));
    Ok(Script { agent, rules: rules.collect::<Result<_, _>>()? })
}

struct Parser<'a> {
    text: &'a str,
}

impl Parser<'_> {
    fn agent(&self, fields: &Fields<'_>) -> Result<Persona, Invalid> {
        fields.only(AGENT)?;
        let start = fields.items("start")?.map(|items| self.steps(items, false)).transpose()?;
        Ok(Persona {
            name: fields.text("name")?.unwrap_or_else(|| "scripted-agent".to_owned()),
            version: fields.text("version")?.unwrap_or_else(|| "1.0.0".to_owned()),
            auth_methods: fields.texts("auth_methods")?.unwrap_or_default(),
            modes: fields.texts("modes")?.unwrap_or_default(),
            models: fields.texts("models")?.unwrap_or_default(),
            start: start.unwrap_or_default(),
            fork: fields.flag("fork")?.unwrap_or(false),
            load: fields.items("load")?.map(|items| self.steps(items, true)).transpose()?,
        })
    }

    fn rule(&self, item: Item<'_>) -> Result<PromptRule, Invalid> {
        let fields = Fields::of(self.text, "`[[on]]`", item)?;
        fields.only(ON)?;
        let pattern = match (fields.text("prompt")?, fields.text("regex")?) {
            (None, None) => None,
            (Some(glob), None) => {
                Some(PromptPattern::glob(&glob).map_err(|why| fields.error("prompt", why))?)
            }
            (None, Some(regex)) => Some(
                PromptPattern::regex(&regex).map_err(|why| bad_regex(&fields, "regex", &why))?,
            ),
            (Some(_), Some(_)) => {
                return Err(fields.error("regex", "`prompt` and `regex` exclude each other"));
            }
        };
        Ok(PromptRule {
            pattern,
            times: fields.count("times", u64::MAX)?,
            ignore_cancel: fields.flag("ignore_cancel")?.unwrap_or(false),
            steps: self.list(&fields, "steps", true)?,
        })
    }

    fn steps(&self, items: &[Spanned<DeValue<'_>>], session: bool) -> Result<Vec<Step>, Invalid> {
        items.iter().map(|item| self.step(item, session)).collect()
    }

    /// The steps under the required `key`.
    fn list(&self, fields: &Fields<'_>, key: &str, session: bool) -> Result<Vec<Step>, Invalid> {
        self.steps(fields.items(key)?.ok_or_else(|| fields.missing(key))?, session)
    }

    fn step(&self, item: Item<'_>, session: bool) -> Result<Step, Invalid> {
        let fields = Fields::of(self.text, "a step", item)?;
        let mut kinds = KINDS.iter().filter(|kind| fields.has(kind.name));
        let Some(kind) = kinds.next() else {
            let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
            fields.only(&names)?;
            return Err(fields.error("", "an empty step"));
        };
        if let Some(second) = kinds.next() {
            let message = format!("`{}` and `{}` are two steps", kind.name, second.name);
            return Err(fields.error(second.name, message));
        }
        if !session && kind.needs != Needs::Nothing {
            let message = format!("`{}` needs a session, and `start` has none", kind.name);
            return Err(fields.error(kind.name, message));
        }
        let name = format!("a `{}` step", kind.name);
        let fields = Fields::of(self.text, &name, item)?;
        let reactions = if kind.needs == Needs::Client { REACTIONS } else { &[] };
        fields.only(&[&[kind.name], kind.keys, reactions].concat())?;
        let reaction = |key| -> Result<Vec<Step>, Invalid> {
            fields.items(key)?.map_or(Ok(Vec::new()), |items| self.steps(items, session))
        };
        Ok(Step {
            act: self.act(kind.name, &fields, session)?,
            required: fields.flag("required")?.unwrap_or(false),
            on_ok: reaction("on_ok")?,
            on_error: reaction("on_error")?,
        })
    }

    fn act(&self, kind: &str, fields: &Fields<'_>, session: bool) -> Result<Act, Invalid> {
        let text = |key: &str| fields.text(key)?.ok_or_else(|| fields.missing(key));
        Ok(match kind {
            "say" => Act::Say(text(kind)?),
            "think" => Act::Think(text(kind)?),
            "plan" => Act::Plan {
                entries: fields.texts(kind)?.unwrap_or_default(),
                done: count(fields, "done")?,
            },
            "usage" => self.usage(fields)?,
            "update" => Act::Update(json(fields, kind)?),
            "answer" => Act::Answer(json(fields, kind)?),
            "read" => Act::Read {
                path: text(kind)?,
                line: fields.count("line", u32::MAX.into())?,
                limit: fields.count("limit", u32::MAX.into())?,
            },
            "write" => Act::Write { path: text(kind)?, change: change(fields)? },
            "search" => Act::Search {
                text: text(kind)?,
                within: fields.text("in")?.unwrap_or_else(|| ".".to_owned()),
            },
            "run" => Act::Run {
                command: command(fields)?,
                cwd: fields.text("cwd")?,
                output_limit: fields.count("output_limit", u64::MAX)?,
            },
            "ask" => ask(fields)?,
            "request" => Act::Request { method: text(kind)?, params: json(fields, "params")? },
            "disk_read" => Act::DiskRead { path: text(kind)? },
            "disk_write" => Act::DiskWrite { path: text(kind)?, content: text("content")? },
            "spawn_child" => Act::SpawnChild {
                command: text(kind)?,
                detach: fields.flag("detach")?.unwrap_or(false),
            },
            "wait_ms" => Act::WaitMs(fields.count(kind, 86_400_000)?.unwrap_or(0)),
            "wait" => match text(kind)?.as_str() {
                "cancel" => Act::WaitCancel,
                _ => return Err(fields.error(kind, "`wait` knows only \"cancel\"")),
            },
            "for_each" => Act::ForEach {
                pattern: PromptPattern::regex(&text(kind)?)
                    .map_err(|why| bad_regex(fields, kind, &why))?,
                text: fields.text("text")?,
                steps: self.list(fields, "steps", session)?,
            },
            "repeat" => Act::Repeat {
                times: fields.count(kind, u64::MAX)?.unwrap_or(0),
                steps: self.list(fields, "steps", session)?,
            },
            "stop" => Act::Stop(text(kind)?),
            "fail" => Act::Fail(text(kind)?),
            "raw" => {
                Act::Raw { line: text(kind)?, newline: fields.flag("newline")?.unwrap_or(true) }
            }
            "stderr" => Act::Stderr(text(kind)?),
            "exit" => Act::Exit(u8::try_from(fields.count(kind, 255)?.unwrap_or(0)).unwrap_or(1)),
            "crash" => switch(fields, kind, Act::Crash)?,
            "hang" => switch(fields, kind, Act::Hang)?,
            "ignore_eof" => switch(fields, kind, Act::IgnoreEof)?,
            "ignore_term" => switch(fields, kind, Act::IgnoreTerm)?,
            other => return Err(fields.error(other, format!("there is no step `{other}`"))),
        })
    }

    fn usage(&self, fields: &Fields<'_>) -> Result<Act, Invalid> {
        let item = fields.item("usage").ok_or_else(|| fields.missing("usage"))?;
        let usage = Fields::of(self.text, "`usage`", item)?;
        usage.only(&["used", "size", "cost", "currency"])?;
        let count = |key| usage.count(key, u64::MAX)?.ok_or_else(|| usage.missing(key));
        let cost = match (usage.number("cost")?, usage.text("currency")?) {
            (Some(amount), currency) => {
                Some((amount, currency.unwrap_or_else(|| "USD".to_owned())))
            }
            (None, None) => None,
            (None, Some(_)) => return Err(usage.missing("cost")),
        };
        Ok(Act::Usage { used: count("used")?, size: count("size")?, cost })
    }
}

fn count(fields: &Fields<'_>, key: &str) -> Result<usize, Invalid> {
    let count = fields.count(key, u32::MAX.into())?.unwrap_or(0);
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn change(fields: &Fields<'_>) -> Result<FileEdit, Invalid> {
    match (fields.text("content")?, fields.texts("replace")?) {
        (Some(content), None) => Ok(FileEdit::Whole(content)),
        (None, Some(pair)) => match <[String; 2]>::try_from(pair) {
            Ok([old, new]) => Ok(FileEdit::Replace { old, new }),
            Err(_) => Err(fields.error("replace", "`replace` is [\"old\", \"new\"]")),
        },
        _ => Err(fields.error("write", "`write` needs either `content` or `replace`")),
    }
}

fn command(fields: &Fields<'_>) -> Result<CommandLine, Invalid> {
    if let Some(DeValue::String(line)) = fields.item("run").map(Spanned::get_ref) {
        return Ok(CommandLine::Shell(line.clone().into_owned()));
    }
    match fields.texts("run")? {
        Some(argv) if !argv.is_empty() => Ok(CommandLine::Argv(argv)),
        _ => Err(fields.error("run", "`run` is a command line, or a list: program and arguments")),
    }
}

fn ask(fields: &Fields<'_>) -> Result<Act, Invalid> {
    let options = fields.texts("options")?;
    let options = options.unwrap_or_else(|| OPTION_KINDS.iter().map(ToString::to_string).collect());
    if let Some(unknown) = options.iter().find(|option| !OPTION_KINDS.contains(&option.as_str())) {
        let known = OPTION_KINDS.join("`, `");
        let message = format!("`{unknown}` is not a permission option; the options are `{known}`");
        return Err(fields.error("options", message));
    }
    Ok(Act::Ask {
        kind: fields.text("ask")?.unwrap_or_default(),
        path: fields.text("path")?,
        command: fields.text("command")?,
        title: fields.text("title")?,
        options,
    })
}

fn json(fields: &Fields<'_>, key: &str) -> Result<Value, Invalid> {
    let text = fields.text(key)?.ok_or_else(|| fields.missing(key))?;
    serde_json::from_str(&text)
        .map_err(|error| fields.error(key, format!("`{key}` is not JSON: {error}")))
}

fn switch(fields: &Fields<'_>, key: &str, act: Act) -> Result<Act, Invalid> {
    match fields.flag(key)? {
        Some(true) => Ok(act),
        _ => Err(fields.error(key, format!("`{key}` can only be true"))),
    }
}

fn bad_regex(fields: &Fields<'_>, key: &str, why: &str) -> Invalid {
    fields.error(key, format!("`{key}` is not a regular expression: {why}"))
}
