//! Parses TOML into a [`ModelScript`]. Stops at the first error, which has its line and a suggestion for an unknown
//! key.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::script::{
    CallStep, ChatUsage, ModelScript, PlayedRule, PlayedStep, ServerKeys, StopReason, Texts,
    ToolName, When,
};
use super::troubles::{ModelRefusal, ModelTrouble};
use super::usage::ModelTokens;
use crate::model::Variants;
use crate::script::{Fields, Invalid, Item, PromptPattern};

/// Bytes of a script.
const LONGEST_SCRIPT: u64 = 4 << 20;

/// A delay, in milliseconds: a day.
const LONGEST_WAIT_MS: u64 = 86_400_000;

/// How often a text may be repeated.
const MOST_REPEATED: u64 = 100_000;

/// Tokens that an answer may report: sums of many answers stay numbers that JSON readers take.
const MOST_TOKENS: u64 = 1 << 40;

/// Keys of a script.
pub(super) const SCRIPT: &[&str] = &["server", "on"];

/// Keys of `[server]`.
pub(super) const SERVER: &[&str] = &["models", "usage", "done", "chat_usage"];

/// Keys of `[[on]]`.
pub(super) const ON: &[&str] = &[
    "prompt", "regex", "model", "api", "call", "times", "tools", "json", "usage", "steps",
    "answers",
];

/// Parts of `usage`.
pub(super) const USAGE: &[&str] =
    &["input", "cache_read", "cache_write", "cache_write_1h", "output", "reasoning"];

/// Every kind of step, with its further keys; a test compares `docs/model-server.md` with this table.
pub(super) const STEPS: &[(&str, &[&str])] = &[
    ("say", &["repeat", "delay_ms"]),
    ("think", &["repeat", "delay_ms"]),
    ("call", CALL),
    ("one_of", &[]),
    ("usage", &[]),
    ("stop", &[]),
    ("error", &["status", "message", "retry_after_s"]),
    ("wait_ms", &[]),
    ("ping", &[]),
    ("raw", &[]),
    ("cut", &[]),
    ("cut_after", &[]),
    ("hang", &[]),
];

const CALL: &[&str] = &["args", "input", "half", "optional"];

#[derive(Debug, thiserror::Error)]
pub enum ModelScriptError {
    #[error("cannot read the script {}: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}:{line}:{column}: {message}", .file.display())]
    Invalid { file: PathBuf, line: usize, column: usize, message: String },
}

impl ModelScript {
    pub fn load(file: &Path) -> Result<Self, ModelScriptError> {
        let unreadable = |source| ModelScriptError::Read { file: file.to_owned(), source };
        let mut text = String::new();
        let opened = File::open(file).map_err(unreadable)?;
        opened.take(LONGEST_SCRIPT + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LONGEST_SCRIPT {
            let most = LONGEST_SCRIPT >> 20;
            return Err(unreadable(io::Error::other(format!("it has more than {most} MiB"))));
        }
        Self::parse(&text).map_err(|invalid| ModelScriptError::Invalid {
            file: file.to_owned(),
            line: invalid.line,
            column: invalid.column,
            message: invalid.message,
        })
    }

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Invalid::new(text, at, error.message().replace('\n', ", "))
        })?;
        let fields = Fields::new(text, 0, "a script", table.get_ref());
        fields.only(SCRIPT)?;
        let server = match fields.item("server") {
            Some(item) => server(&Fields::of(text, "`[server]`", item)?)?,
            None => ServerKeys::default(),
        };
        let rules = fields.items("on")?.unwrap_or_default().iter().map(|item| rule(text, item));
        Ok(Self { server, rules: rules.collect::<Result<_, _>>()? })
    }
}

fn server(fields: &Fields<'_>) -> Result<ServerKeys, Invalid> {
    fields.only(SERVER)?;
    let default = ServerKeys::default();
    Ok(ServerKeys {
        models: fields.texts("models")?.unwrap_or(default.models),
        tokens: usage(fields)?.unwrap_or(default.tokens),
        done: fields.text("done")?.unwrap_or(default.done),
        chat_usage: choice(fields, "chat_usage")?.unwrap_or(ChatUsage::Asked),
    })
}

fn rule(text: &str, item: Item<'_>) -> Result<PlayedRule, Invalid> {
    let fields = Fields::of(text, "`[[on]]`", item)?;
    fields.only(ON)?;
    let answers = match (fields.items("steps")?, fields.items("answers")?) {
        (Some(list), None) => vec![steps(text, list)?],
        (None, Some(lists)) => {
            let lists = lists.iter().map(|list| match list.get_ref() {
                DeValue::Array(list) => steps(text, list),
                _ => Err(fields.error("answers", "`answers` is a list of lists of steps")),
            });
            lists.collect::<Result<Vec<_>, _>>()?
        }
        (None, None) => return Err(fields.missing("steps")),
        (Some(_), Some(_)) => {
            return Err(fields.error("answers", "`steps` and `answers` exclude each other"));
        }
    };
    if answers.is_empty() {
        return Err(fields.error("answers", "`answers` has at least one list of steps"));
    }
    let has_calls = answers.iter().flatten().any(PlayedStep::calls_tools);
    Ok(PlayedRule { when: when(&fields, has_calls)?, tokens: usage(&fields)?, answers })
}

fn when(fields: &Fields<'_>, has_calls: bool) -> Result<When, Invalid> {
    let prompt = match (fields.text("prompt")?, fields.text("regex")?) {
        (None, None) => None,
        (Some(glob), None) => {
            Some(PromptPattern::glob(&glob).map_err(|why| fields.error("prompt", why))?)
        }
        (None, Some(regex)) => Some(PromptPattern::regex(&regex).map_err(|why| {
            fields.error("regex", format!("`regex` is not a regular expression: {why}"))
        })?),
        (Some(_), Some(_)) => {
            return Err(fields.error("regex", "`prompt` and `regex` exclude each other"));
        }
    };
    let model = fields.text("model")?.map(|name| PromptPattern::name(&name)).transpose();
    let tools = fields.flag("tools")?;
    if has_calls && tools == Some(false) {
        let message = "the steps call tools, and `tools = false` is for requests without any";
        return Err(fields.error("tools", message));
    }
    let call = fields.count("call", u64::MAX)?;
    if call == Some(0) {
        return Err(fields.error("call", "`call` counts from 1"));
    }
    Ok(When {
        prompt,
        model: model.map_err(|why| fields.error("model", why))?,
        api: choice(fields, "api")?,
        call,
        times: fields.count("times", u64::MAX)?,
        tools: if has_calls { Some(true) } else { tools },
        json: fields.flag("json")?.unwrap_or(false),
    })
}

fn steps(text: &str, items: &[Spanned<DeValue<'_>>]) -> Result<Vec<PlayedStep>, Invalid> {
    items.iter().map(|item| step(text, item)).collect()
}

fn step(text: &str, item: Item<'_>) -> Result<PlayedStep, Invalid> {
    let fields = Fields::of(text, "a step", item)?;
    let mut kinds = STEPS.iter().filter(|(name, _)| fields.has(name));
    let Some((kind, keys)) = kinds.next() else {
        let names: Vec<_> = STEPS.iter().map(|(name, _)| *name).collect();
        fields.only(&names)?;
        return Err(fields.error("", "an empty step"));
    };
    if let Some((second, _)) = kinds.next() {
        return Err(fields.error(second, format!("`{kind}` and `{second}` are two steps")));
    }
    let name = format!("a `{kind}` step");
    let fields = Fields::of(text, &name, item)?;
    fields.only(&[&[*kind], *keys].concat())?;
    let millis = |key, most| Ok(Duration::from_millis(fields.count(key, most)?.unwrap_or(0)));
    let text_of = |key: &str| fields.text(key)?.ok_or_else(|| fields.missing(key));
    Ok(match *kind {
        "say" => PlayedStep::Say(texts(&fields, kind)?),
        "think" => PlayedStep::Think(texts(&fields, kind)?),
        "call" => PlayedStep::Call(call(&fields)?),
        "one_of" => PlayedStep::OneOf(one_of(&fields)?),
        "usage" => PlayedStep::Usage(usage(&fields)?.unwrap_or_default()),
        "stop" => PlayedStep::Stop(choice(&fields, kind)?.unwrap_or(StopReason::End)),
        "error" => PlayedStep::Error(refusal(&fields)?),
        "wait_ms" => PlayedStep::Wait(millis(kind, LONGEST_WAIT_MS)?),
        "ping" => switch(&fields, kind, PlayedStep::Ping)?,
        "raw" => PlayedStep::Raw(text_of(kind)?),
        "cut" => switch(&fields, kind, PlayedStep::Cut)?,
        "cut_after" => PlayedStep::CutAfter(fields.count(kind, u64::MAX)?.unwrap_or(0)),
        "hang" => switch(&fields, kind, PlayedStep::Hang)?,
        other => return Err(fields.error(other, format!("there is no step `{other}`"))),
    })
}

/// One text, or a list of pieces.
fn one_or_more(fields: &Fields<'_>, key: &str) -> Result<Vec<String>, Invalid> {
    match fields.item(key).map(Spanned::get_ref) {
        Some(DeValue::String(text)) => Ok(vec![text.clone().into_owned()]),
        _ => fields.texts(key)?.ok_or_else(|| fields.missing(key)),
    }
}

fn texts(fields: &Fields<'_>, key: &str) -> Result<Texts, Invalid> {
    Ok(Texts {
        pieces: one_or_more(fields, key)?,
        repeat: fields.count("repeat", MOST_REPEATED)?.unwrap_or(1),
        delay: Duration::from_millis(fields.count("delay_ms", LONGEST_WAIT_MS)?.unwrap_or(0)),
    })
}

fn call(fields: &Fields<'_>) -> Result<CallStep, Invalid> {
    let names = one_or_more(fields, "call")?;
    if names.is_empty() {
        return Err(fields.error("call", "`call` names at least one tool"));
    }
    let tools = names.into_iter().map(|written| match PromptPattern::name(&written) {
        Ok(pattern) => Ok(ToolName { written, pattern }),
        Err(why) => Err(fields.error("call", why)),
    });
    let args = match fields.item("args") {
        None => Value::Object(serde_json::Map::new()),
        Some(item) => json(fields, item.get_ref())?,
    };
    if !args.is_object() {
        return Err(fields.error("args", "`args` is a table, or the text of a JSON object"));
    }
    Ok(CallStep {
        names: tools.collect::<Result<_, _>>()?,
        args,
        input: fields.text("input")?,
        half: fields.flag("half")?.unwrap_or(false),
        optional: fields.flag("optional")?.unwrap_or(false),
    })
}

fn one_of(fields: &Fields<'_>) -> Result<Vec<CallStep>, Invalid> {
    let items = fields.items("one_of")?.unwrap_or_default();
    let calls = items.iter().map(|item| {
        let fields = Fields::of(fields.script(), "a `call` step of `one_of`", item)?;
        fields.only(&[&["call"], CALL].concat())?;
        call(&fields)
    });
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    if calls.is_empty() {
        return Err(fields.error("one_of", "`one_of` has at least one `call` step"));
    }
    Ok(calls)
}

/// JSON as TOML writes it; of `args` also JSON as a text.
fn json(fields: &Fields<'_>, value: &DeValue<'_>) -> Result<Value, Invalid> {
    match value {
        DeValue::String(text) => serde_json::from_str(text)
            .map_err(|error| fields.error("args", format!("`args` is not JSON: {error}"))),
        other => Ok(plain(other)),
    }
}

fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.as_str().to_owned()), Value::from),
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| plain(item.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, item)| (key.get_ref().to_string(), plain(item.get_ref())))
                .collect(),
        ),
    }
}

/// The parts under `usage`; those that are not named are 0.
fn usage(fields: &Fields<'_>) -> Result<Option<ModelTokens>, Invalid> {
    let Some(item) = fields.item("usage") else { return Ok(None) };
    let parts = Fields::of(fields.script(), "`usage`", item)?;
    parts.only(USAGE)?;
    let part = |key| Ok(parts.count(key, MOST_TOKENS)?.unwrap_or(0));
    Ok(Some(ModelTokens {
        input: part("input")?,
        cache_read: part("cache_read")?,
        cache_write: part("cache_write")?,
        cache_write_1h: part("cache_write_1h")?,
        output: part("output")?,
        reasoning: part("reasoning")?,
    }))
}

fn refusal(fields: &Fields<'_>) -> Result<ModelRefusal, Invalid> {
    let status = fields.count("status", 599)?;
    if status.is_some_and(|status| status < 400) {
        return Err(fields.error("status", "`status` is a number from 400 to 599"));
    }
    Ok(ModelRefusal {
        trouble: choice(fields, "error")?.unwrap_or(ModelTrouble::Server),
        status: status.and_then(|status| u16::try_from(status).ok()),
        message: fields.text("message")?,
        retry_after_s: fields.count("retry_after_s", LONGEST_WAIT_MS / 1000)?,
    })
}

/// A name of an enumeration.
fn choice<T: Variants>(fields: &Fields<'_>, key: &str) -> Result<Option<T>, Invalid> {
    let Some(text) = fields.text(key)? else { return Ok(None) };
    let found = T::all().iter().find(|variant| variant.name() == text);
    found.copied().map(Some).ok_or_else(|| {
        let names: Vec<_> = T::all().iter().map(|variant| variant.name()).collect();
        fields.error(key, format!("`{key}` is one of `{}`", names.join("`, `")))
    })
}

fn switch(fields: &Fields<'_>, key: &str, step: PlayedStep) -> Result<PlayedStep, Invalid> {
    match fields.flag(key)? {
        Some(true) => Ok(step),
        _ => Err(fields.error(key, format!("`{key}` can only be true"))),
    }
}
