//! Reads Claude Code's own protocol: `claude -p --input-format stream-json --output-format
//! stream-json --verbose --permission-prompt-tool stdio`. Made against Claude Code 2.1, as its
//! agent SDK describes its messages; the README says how an agent is configured.
//!
//! A tool's steps: Claude announces it (`assistant`), asks for permission (`control_request`), and
//! reports the result (`tool_result`); only then does a file count as touched.

mod control;
mod strict;
mod tool;

use std::collections::HashMap;

use eisen_plugin::{Description, Direction, Extractor, Records, Usage, export_extractor, testing};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control::Asks;
use crate::tool::Tool;

/// Tool calls that may run at once; further ones are ignored.
const MOST_CALLS: usize = 4096;

/// One run of Claude.
pub struct ClaudeStreamJson {
    config: Config,
    asks: Asks,
    /// Tool calls without a result yet, by id.
    calls: HashMap<String, Tool>,
    session: String,
    model: String,
    /// The message whose text arrived in chunks.
    streamed: Option<String>,
    /// Tokens in its context.
    used: Option<u64>,
    /// Size of the context, in tokens.
    size: Option<u64>,
    is_cancelled: bool,
    last_request: u64,
}

/// `config` in `eisen.toml`.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Config {
    ask: When,
    /// The agent is a script that reads `resume ID` or `begin` before it starts Claude.
    resumes: bool,
}

/// When an agent asks for permission.
#[derive(Deserialize, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
enum When {
    /// Before each tool that accesses files, whatever Claude's own settings allow.
    #[default]
    Always,
    /// When Claude would ask its user.
    Own,
}

impl Extractor for ClaudeStreamJson {
    const DESCRIPTION: Description = Description {
        name: "claude-stream-json",
        version: env!("CARGO_PKG_VERSION"),
        protocols: &["claude-stream-json"],
    };
    const GATES: bool = true;
    const DRIVES: bool = true;

    fn create(config: &str) -> Result<Self, String> {
        let config = serde_json::from_str(config).map_err(|error| error.to_string())?;
        Ok(Self {
            config,
            asks: Asks::default(),
            calls: HashMap::new(),
            session: String::new(),
            model: String::new(),
            streamed: None,
            used: None,
            size: None,
            is_cancelled: false,
            last_request: 0,
        })
    }

    fn observe(
        &mut self,
        direction: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String> {
        let Some(message) = parsed(line)? else { return Ok(()) };
        let kind = message["type"].as_str().unwrap_or_default();
        if direction == Direction::ToAgent {
            match kind {
                "user" => records.turn_began(),
                "control_response" => self.asks.closed(&message["response"], records),
                _ => {}
            }
            return Ok(());
        }
        match kind {
            "system" if message["subtype"] == "init" => self.began(&message, records),
            "assistant" => self.said(&message, records),
            "stream_event" if is_main(&message) => self.streams(&message["event"], records),
            "user" => self.results(&message, records),
            "result" => self.ended(&message, records),
            "control_cancel_request" => self.asks.closed(&message, records),
            "control_response" if message["response"]["subtype"] == "error" => {
                let why = message["response"]["error"].as_str().unwrap_or("it does not say why");
                return Err(format!("Claude refused a control request: {why}"));
            }
            _ => {}
        }
        Ok(())
    }

    fn gate(&mut self, line: &[u8], records: &mut Records<'_>) -> Result<(), String> {
        match strict::request(line)? {
            Some(message) => self.asks.asked(&message, records),
            None => Ok(()),
        }
    }

    fn deny(&mut self, id: &str, why: &str, records: &mut Records<'_>) -> Result<(), String> {
        self.asks.deny(id, why).into_iter().for_each(|line| records.line(line));
        Ok(())
    }

    fn start(&mut self, settings: &str, records: &mut Records<'_>) -> Result<(), String> {
        let settings: Value = serde_json::from_str(settings).map_err(|error| error.to_string())?;
        match settings["resume"].as_str().filter(|id| is_id(id)) {
            Some(id) if self.config.resumes => {
                records.session(id);
                records.line(format!("resume {id}"));
            }
            _ if self.config.resumes => records.line("begin"),
            _ => {}
        }
        let initialize = control::initialize(self.config.ask == When::Always);
        self.request(&initialize, records);
        if let Some(model) = settings["model"].as_str() {
            self.request(&json!({"subtype": "set_model", "model": model}), records);
        }
        Ok(())
    }

    fn prompt(&mut self, text: &str, records: &mut Records<'_>) -> Result<(), String> {
        self.is_cancelled = false;
        let content = json!([{"type": "text", "text": text}]);
        let message = json!({"type": "user", "message": {"role": "user", "content": content}});
        records.line(message.to_string());
        Ok(())
    }

    fn cancel(&mut self, records: &mut Records<'_>) -> Result<(), String> {
        self.is_cancelled = true;
        self.request(&json!({"subtype": "interrupt"}), records);
        Ok(())
    }

    fn allow(&mut self, id: &str, records: &mut Records<'_>) -> Result<(), String> {
        self.asks.allow(id).into_iter().for_each(|line| records.line(line));
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        testing::check::<Self>(
            "{}",
            r#"< {"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"a"}}]}}
< {"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}
touched read a t
"#,
        )
    }
}

impl ClaudeStreamJson {
    fn request(&mut self, request: &Value, records: &mut Records<'_>) {
        self.last_request += 1;
        let id = format!("eisen-{}", self.last_request);
        let message = json!({"type": "control_request", "request_id": id, "request": request});
        records.line(message.to_string());
    }

    /// Each turn begins with the same message, also if the prompt was a command line argument.
    fn began(&mut self, message: &Value, records: &mut Records<'_>) {
        if let Some(session) = changed(&mut self.session, &message["session_id"]) {
            records.session(session);
            records.turn_began();
        }
        if let Some(model) = changed(&mut self.model, &message["model"]) {
            records.model(model, model);
        }
    }

    fn said(&mut self, message: &Value, records: &mut Records<'_>) {
        // A subagent's text is for the agent that started it.
        let is_main = is_main(message);
        let message = &message["message"];
        if is_main {
            self.uses(&message["usage"], records);
        }
        let is_heard =
            self.streamed.is_some() && self.streamed.as_deref() == message["id"].as_str();
        for block in blocks(message) {
            match block["type"].as_str() {
                Some("text") if is_main && !is_heard => text(&block["text"], records),
                Some("thinking") if is_main && !is_heard => thought(&block["thinking"], records),
                Some("tool_use") if self.calls.len() < MOST_CALLS => {
                    if let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) {
                        self.calls.insert(id.to_owned(), Tool::new(name, &block["input"]));
                    }
                }
                _ => {}
            }
        }
    }

    /// With `--include-partial-messages` a message comes in chunks, and then again as a whole.
    fn streams(&mut self, event: &Value, records: &mut Records<'_>) {
        match event["type"].as_str() {
            Some("message_start") => {
                self.streamed = event["message"]["id"].as_str().map(str::to_owned);
            }
            Some("content_block_delta") => {
                text(&event["delta"]["text"], records);
                thought(&event["delta"]["thinking"], records);
            }
            _ => {}
        }
    }

    fn results(&mut self, message: &Value, records: &mut Records<'_>) {
        for block in blocks(&message["message"]) {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            let Some(tool) = self.calls.remove(id) else { continue };
            let failed = block["is_error"] == true;
            if let Some(command) = &tool.command {
                // A failed command may have had effects before it failed.
                let ran = block["content"].as_str().is_some_and(|it| it.starts_with("Exit code"));
                if !failed || ran {
                    records.runs(command, id);
                }
            } else if !failed {
                tool.paths.iter().for_each(|path| records.touched(tool.action, path, id));
            }
        }
    }

    fn uses(&mut self, usage: &Value, records: &mut Records<'_>) {
        let parts = [
            "input_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
            "output_tokens",
        ];
        let used =
            parts.iter().filter_map(|&part| usage[part].as_u64()).fold(0, u64::saturating_add);
        // A message is repeated once for each of its blocks.
        if used > 0 && self.used != Some(used) {
            self.used = Some(used);
            records.usage(Usage { used: self.used, size: self.size, ..Usage::default() });
        }
    }

    fn ended(&mut self, message: &Value, records: &mut Records<'_>) {
        let models = &message["modelUsage"];
        let window = |usage: &Value| usage["contextWindow"].as_u64();
        self.size = window(&models[&self.model])
            .or_else(|| models.as_object()?.values().filter_map(window).max())
            .or(self.size);
        let cost = message["total_cost_usd"].as_number().map(|cost| cost.to_string().into());
        let currency = cost.is_some().then_some("USD".into());
        records.usage(Usage { used: self.used, size: self.size, cost, currency });

        // Claude names the cause of a turn of its own, between prompts; its end is not a prompt's end.
        if message["origin"]["kind"].as_str().is_some_and(|kind| kind != "human") {
            return;
        }
        self.calls.clear();
        let subtype = message["subtype"].as_str().unwrap_or_default();
        let was_aborted =
            message["terminal_reason"].as_str().is_some_and(|why| why.starts_with("aborted"));
        if std::mem::take(&mut self.is_cancelled) || was_aborted {
            records.turn_ended("cancelled", "");
        } else if subtype == "error_max_turns" {
            records.turn_ended("max_turn_requests", "");
        } else if message["is_error"] == true || subtype.starts_with("error") {
            records.turn_ended("error", &why(message, subtype));
        } else {
            match message["stop_reason"].as_str() {
                Some(reason @ ("max_tokens" | "refusal")) => records.turn_ended(reason, ""),
                _ => records.turn_ended("end_turn", ""),
            }
        }
    }
}

/// Parses a message; None if the line is something else, such as a warning.
fn parsed(line: &[u8]) -> Result<Option<Value>, String> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return Ok(None);
    }
    let message = serde_json::from_slice(line);
    message.map(Some).map_err(|error| format!("a line of Claude's is no JSON: {error}"))
}

/// Whether a message is the agent's own, not a subagent's.
fn is_main(message: &Value) -> bool {
    message["parent_tool_use_id"].is_null()
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

fn text(text: &Value, records: &mut Records<'_>) {
    if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
        records.text(text);
    }
}

fn thought(text: &Value, records: &mut Records<'_>) {
    if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
        records.thought(text);
    }
}

/// Stores a text; returns it if it changed.
fn changed<'a>(known: &'a mut String, new: &Value) -> Option<&'a str> {
    let new = new.as_str().filter(|new| !new.is_empty() && *new != known)?;
    new.clone_into(known);
    Some(known)
}

/// Whether a text can be a session id. It must not be taken for an option, or split by a shell.
fn is_id(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    (1..=128).contains(&text.len()) && !text.starts_with('-') && text.chars().all(is_sign)
}

/// Returns why a turn failed.
fn why(message: &Value, subtype: &str) -> String {
    let errors = message["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let errors = errors.collect::<Vec<_>>().join("; ");
    let result = message["result"].as_str().filter(|_| errors.is_empty());
    match result.unwrap_or(&errors) {
        "" => format!("Claude's turn ended with {subtype}"),
        why => why.to_owned(),
    }
}

export_extractor!(ClaudeStreamJson);
