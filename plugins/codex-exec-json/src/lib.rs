//! Reads the output of `codex exec --json`: threads, turns and their items. Made against codex-cli
//! 0.169; the README says how an agent is configured.
//!
//! A Codex process runs one turn, so the supervisor starts a shell loop (`turns.sh`) instead. The
//! loop reads two lines for a turn, `prompt THREAD` and the prompt, escaped for `printf %b`; the line
//! `cancel` cancels the turn. It writes `{"type":"exited","status":0}` when Codex has exited. Codex
//! asks for no permission in this mode, so only the kernel enforces a zone.

use eisen_plugin::{Description, Direction, Extractor, Records, Usage, export_extractor, testing};
use serde_json::Value;

/// One loop of turns.
pub struct CodexExecJson {
    /// The thread that the next turn continues.
    thread: Option<String>,
    /// A turn runs, or may run: a replacing instance may begin in the middle of a turn, and an end
    /// without a turn is ignored.
    is_running: bool,
    is_cancelled: bool,
    /// Processes that were prompted or wrote a line, and have not exited.
    processes: usize,
    /// The last error that Codex reported.
    complaint: Option<String>,
}

impl Extractor for CodexExecJson {
    const DESCRIPTION: Description = Description {
        name: "codex-exec-json",
        version: env!("CARGO_PKG_VERSION"),
        protocols: &["codex-exec-json"],
    };
    const DRIVES: bool = true;

    fn create(config: &str) -> Result<Self, String> {
        match serde_json::from_str::<Value>(config) {
            Ok(Value::Object(config)) => match config.keys().next() {
                Some(key) => Err(format!("`{key}` is no setting: this plugin has none")),
                None => Ok(Self {
                    thread: None,
                    is_running: true,
                    is_cancelled: false,
                    processes: 0,
                    complaint: None,
                }),
            },
            _ => Err("the configuration is no JSON object".to_owned()),
        }
    }

    fn observe(
        &mut self,
        direction: Direction,
        line: &[u8],
        records: &mut Records<'_>,
    ) -> Result<(), String> {
        // Codex's warnings go to standard error, but a shell's startup output may come here.
        if direction == Direction::ToAgent || !line.trim_ascii_start().starts_with(b"{") {
            return Ok(());
        }
        let event: Value = serde_json::from_slice(line)
            .map_err(|error| format!("a line of Codex's is no JSON: {error}"))?;
        let kind = event["type"].as_str();
        if kind != Some("exited") {
            // It runs, also if an earlier instance prompted it.
            self.processes = self.processes.max(1);
        }
        match kind {
            Some("thread.started") => self.knows(&event["thread_id"], records)?,
            Some("turn.started") => records.turn_began(),
            Some("turn.completed") => {
                used(&event["usage"], records);
                self.ended("end_turn", "", records);
            }
            Some("turn.failed") => {
                self.complains(&event["error"]["message"]);
                let why = self.complaint.take().unwrap_or_default();
                self.ended("error", &why, records);
            }
            Some("error") => self.complains(&event["message"]),
            Some("item.completed") => item(&event["item"], records),
            Some("exited") => self.exited(&event["status"], records),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, settings: &str, records: &mut Records<'_>) -> Result<(), String> {
        let settings: Value = serde_json::from_str(settings).map_err(|error| error.to_string())?;
        self.thread = settings["resume"].as_str().filter(|id| is_id(id)).map(str::to_owned);
        self.thread.iter().for_each(|thread| records.session(thread));
        Ok(())
    }

    fn prompt(&mut self, text: &str, records: &mut Records<'_>) -> Result<(), String> {
        (self.is_running, self.is_cancelled, self.complaint) = (true, false, None);
        self.processes += 1;
        let thread = self.thread.as_deref().unwrap_or_default();
        records.line(format!("prompt {thread}").trim_end());
        // Shell variables can't hold NUL.
        records.line(text.replace('\\', r"\\").replace('\n', r"\n").replace('\0', ""));
        Ok(())
    }

    fn cancel(&mut self, records: &mut Records<'_>) -> Result<(), String> {
        self.is_cancelled = true;
        records.line("cancel");
        Ok(())
    }

    fn self_test() -> Result<(), String> {
        testing::check::<Self>(
            "{}",
            r#"< {"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"completed"}}
touched write a i
"#,
        )
    }
}

impl CodexExecJson {
    fn knows(&mut self, thread: &Value, records: &mut Records<'_>) -> Result<(), String> {
        let thread = thread.as_str().unwrap_or_default();
        // It becomes an argument of the next turn's command.
        if !is_id(thread) {
            return Err("Codex began a thread without an id that can be used".to_owned());
        }
        if self.thread.as_deref() != Some(thread) {
            self.thread = Some(thread.to_owned());
            records.session(thread);
        }
        Ok(())
    }

    fn complains(&mut self, message: &Value) {
        if let Some(message) = message.as_str() {
            self.complaint = Some(message.to_owned());
        }
    }

    /// Codex has exited. The process of a turn may exit only after the next prompt.
    fn exited(&mut self, status: &Value, records: &mut Records<'_>) {
        self.processes = self.processes.saturating_sub(1);
        if self.processes == 0 && self.is_running {
            let why = self.complaint.take();
            let why = why.unwrap_or_else(|| {
                format!("Codex ended with status {status} before its turn did: see the agent's log")
            });
            self.ended("error", &why, records);
        }
    }

    fn ended(&mut self, reason: &str, error: &str, records: &mut Records<'_>) {
        self.is_running = false;
        if std::mem::take(&mut self.is_cancelled) {
            records.turn_ended("cancelled", "");
        } else {
            records.turn_ended(reason, error);
        }
    }
}

/// Reports one item.
fn item(item: &Value, records: &mut Records<'_>) {
    let text = |key: &str| item[key].as_str().filter(|text| !text.is_empty());
    let id = text("id").unwrap_or_default();
    match item["type"].as_str() {
        Some("agent_message") => text("text").into_iter().for_each(|text| records.text(text)),
        Some("reasoning") => text("text").into_iter().for_each(|text| records.thought(text)),
        // A warning: an error that ends the turn comes as `turn.failed`.
        Some("error") => text("message").into_iter().for_each(|text| records.thought(text)),
        // Without an exit code, it was declined or never began.
        Some("command_execution") if item["exit_code"].is_number() => {
            if let Some(command) = text("command") {
                records.runs(command, id);
            }
        }
        Some("file_change") if item["status"] == "completed" => {
            let changes = item["changes"].as_array().into_iter().flatten();
            for path in changes.filter_map(|change| change["path"].as_str()) {
                records.touched("write", path, id);
            }
        }
        _ => {}
    }
}

/// Codex counts the tokens that the thread has used since it began, not those in its context.
fn used(usage: &Value, records: &mut Records<'_>) {
    let counts = ["input_tokens", "output_tokens"].map(|key| usage[key].as_u64());
    if let [Some(input), Some(output)] = counts {
        records.usage(Usage { used: Some(input.saturating_add(output)), ..Usage::default() });
    }
}

/// Whether a text can be a thread id. It must not be taken for an option.
fn is_id(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    (1..=128).contains(&text.len()) && !text.starts_with('-') && text.chars().all(is_sign)
}

export_extractor!(CodexExecJson);
