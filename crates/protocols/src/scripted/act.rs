//! The steps that are tool calls: each starts a call, sends a request to the client or accesses the
//! disk, and ends the call as completed or failed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;

use eisen_base::task;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::script::{Act, CommandLine, FileEdit};
use super::search::{Hit, hits};
use super::turn::{ScriptedTurn, StepDone};
use crate::acp::{self, PermissionAnswer};
use crate::line::lenient;

impl ScriptedTurn {
    pub(super) async fn act(&mut self, act: &Act) -> StepDone {
        match act {
            Act::Read { path, line, limit } => self.read(path, *line, *limit).await,
            Act::Write { path, change } => self.write(path, change).await,
            Act::Search { text, within } => self.search(text, within).await,
            Act::Run { command, cwd, output_limit } => {
                self.run(command, cwd.as_deref(), *output_limit).await
            }
            Act::Ask { kind, path, command, title, options } => {
                let (path, command) = (path.as_deref(), command.as_deref());
                self.ask(kind, path, command, title.as_deref(), options).await
            }
            Act::Request { method, params } => {
                let answer = self.request(method, self.vars.expand_json(params)).await?;
                Ok(Some(answer.to_string()))
            }
            Act::DiskRead { path } => self.disk_read(path).await,
            Act::DiskWrite { path, content } => self.disk_write(path, content).await,
            Act::SpawnChild { command, detach } => self.spawn_child(command, *detach),
            // `ScriptedTurn::step` plays every other step.
            _ => Ok(None),
        }
    }

    async fn read(&mut self, path: &str, line: Option<u64>, limit: Option<u64>) -> StepDone {
        let (shown, path) = self.path(path);
        let call =
            self.begin_call(&format!("Read {shown}"), "read", &[location(&path, line)]).await;
        let read = self.read_text(&path, line, limit).await;
        self.end_call(call, status(&read), read.as_deref().map_or(json!({}), text_fields)).await;
        read.map(Some)
    }

    async fn write(&mut self, path: &str, change: &FileEdit) -> StepDone {
        let (shown, path) = self.path(path);
        let call =
            self.begin_call(&format!("Write {shown}"), "edit", &[location(&path, None)]).await;
        let written = self.change(&path, change).await;
        let fields = written.as_ref().map_or(json!({}), |(old, new)| {
            json!({"content": [{"type": "diff", "path": path, "oldText": old, "newText": new}]})
        });
        self.end_call(call, status(&written), fields).await;
        written.map(|_| None)
    }

    /// Writes a file through the client; returns its old text, if it was read, and its new text.
    async fn change(
        &self,
        path: &Path,
        change: &FileEdit,
    ) -> Result<(Option<String>, String), String> {
        let (old, new) = match change {
            FileEdit::Whole(content) => (None, self.vars.expand(content)),
            FileEdit::Replace { old, new } => {
                let (old, new) = (self.vars.expand(old), self.vars.expand(new));
                let text = self.read_text(path, None, None).await?;
                if !text.contains(&old) {
                    return Err(format!("`{old}` is not in {}", path.display()));
                }
                let changed = text.replacen(&old, &new, 1);
                (Some(text), changed)
            }
        };
        self.request("fs/write_text_file", json!({"path": path, "content": new})).await?;
        Ok((old, new))
    }

    async fn read_text(
        &self,
        path: &Path,
        line: Option<u64>,
        limit: Option<u64>,
    ) -> Result<String, String> {
        let params = json!(ReadParams { path, line, limit });
        let answer = self.request("fs/read_text_file", params).await?;
        let ClientAnswer { content, .. } = acp::read(&answer);
        content.ok_or_else(|| "the client's answer has no `content`".to_owned())
    }

    /// Searches the disk directly, as agents do: the protocol has no search.
    async fn search(&mut self, text: &str, within: &str) -> StepDone {
        let text = self.vars.expand(text);
        let (shown, within) = self.path(within);
        let title = format!("Search `{text}` in {shown}");
        let call = self.begin_call(&title, "search", &[]).await;
        let cwd = self.stage.cwd.clone();
        let searching = task::spawn_blocking(move || hits(&text, &within));
        let found = searching.await.unwrap_or_else(|error| Err(error.to_string()));
        let shown = |Hit { path, line, text }: &Hit| {
            format!("{}:{line}: {text}", path.strip_prefix(&cwd).unwrap_or(path).display())
        };
        let lines =
            found.as_ref().map(|hits| hits.iter().map(shown).collect::<Vec<_>>().join("\n"));
        let fields = found.as_ref().map_or(json!({}), |hits| {
            let locations = hits.iter().map(|hit| location(&hit.path, Some(hit.line)));
            let content = text_content(lines.as_deref().unwrap_or_default());
            json!({"content": content, "locations": locations.collect::<Vec<_>>()})
        });
        self.end_call(call, status(&found), fields).await;
        lines.map(Some).map_err(Clone::clone)
    }

    async fn run(
        &mut self,
        command: &CommandLine,
        cwd: Option<&str>,
        output_limit: Option<u64>,
    ) -> StepDone {
        let (title, command, args) = match command {
            CommandLine::Shell(line) => {
                let line = self.vars.expand(line);
                (line.clone(), line, None)
            }
            CommandLine::Argv(argv) => {
                let argv: Vec<_> = argv.iter().map(|arg| self.vars.expand(arg)).collect();
                (argv.join(" "), argv[0].clone(), Some(argv[1..].to_vec()))
            }
        };
        let cwd = cwd.map(|cwd| self.path(cwd).1);
        let params = json!(TerminalParams { command, args, cwd, output_byte_limit: output_limit });
        let call = self.begin_call(&title, "execute", &[]).await;
        let run = self.terminal(&call, params).await;
        let ended = run.as_ref().map_err(Clone::clone).and_then(|Ran { output, exit, .. }| {
            let exit: TerminalExit = acp::read(exit);
            match exit.exit_code {
                Some(0) => Ok(output.clone()),
                Some(code) => Err(format!("`{title}` exited with code {code}")),
                None => {
                    let signal = exit.signal.as_deref().unwrap_or("of an unknown name");
                    Err(format!("`{title}` ended by signal {signal}"))
                }
            }
        });
        // The call shows the terminal even if its command failed.
        let fields = run.map_or(json!({}), |run| run.fields);
        self.end_call(call, status(&ended), fields).await;
        ended.map(Some)
    }

    /// Runs a command in a terminal of the client.
    async fn terminal(&mut self, call: &str, params: Value) -> Result<Ran, String> {
        let created = self.request("terminal/create", params).await?;
        let ClientAnswer { terminal_id: terminal, .. } = acp::read(&created);
        self.open_terminal = Some(terminal.clone());
        let content = json!([{"type": "terminal", "terminalId": terminal}]);
        self.update(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": call, "content": content,
        }))
        .await;
        let id = json!({"terminalId": terminal});
        let exit = self.request("terminal/wait_for_exit", id.clone()).await;
        let output = self.request("terminal/output", id.clone()).await;
        self.open_terminal = None;
        self.request("terminal/release", id).await?;
        let (exit, output) = (exit?, acp::read::<ClientAnswer>(&output?).output);
        let fields = json!({"content": content, "rawOutput": exit});
        Ok(Ran { output, exit, fields })
    }

    async fn ask(
        &mut self,
        kind: &str,
        path: Option<&str>,
        command: Option<&str>,
        title: Option<&str>,
        options: &[String],
    ) -> StepDone {
        let path = path.map(|path| self.path(path));
        let command = command.map(|command| self.vars.expand(command));
        let object = path.as_ref().map(|(shown, _)| shown).or(command.as_ref());
        let title = title.map_or_else(
            || format!("{kind} {}", object.map_or("", String::as_str)).trim_end().to_owned(),
            |title| self.vars.expand(title),
        );
        let locations: Vec<_> = path.iter().map(|(_, path)| location(path, None)).collect();
        let call = self.begin_call(&title, kind, &locations).await;
        let tool_call = AskedCall {
            tool_call_id: call.clone(),
            title,
            kind,
            status: "pending",
            locations,
            raw_input: command.map(|command| json!({"command": command})),
        };
        let options: Vec<_> = options
            .iter()
            .map(|kind| json!({"optionId": kind, "name": kind, "kind": kind}))
            .collect();
        let params = json!({"toolCall": tool_call, "options": options});
        let answer = self.request("session/request_permission", params).await;
        let option = |answer: &Value| acp::read::<PermissionAnswer>(answer).outcome.option_id;
        let chosen = answer.and_then(|answer| match option(&answer) {
            Some(option) if option.starts_with("allow") => Ok(option),
            Some(option) => Err(format!("refused with {option}")),
            None => Err("the permission was cancelled".to_owned()),
        });
        self.end_call(call, status(&chosen), json!({})).await;
        chosen.map(Some)
    }

    async fn disk_read(&mut self, path: &str) -> StepDone {
        let (shown, path) = self.path(path);
        let call =
            self.begin_call(&format!("Read {shown}"), "read", &[location(&path, None)]).await;
        let read = tokio::fs::read_to_string(&path).await.map_err(|error| error.to_string());
        self.end_call(call, status(&read), read.as_deref().map_or(json!({}), text_fields)).await;
        read.map(Some)
    }

    async fn disk_write(&mut self, path: &str, content: &str) -> StepDone {
        let content = self.vars.expand(content);
        let (shown, path) = self.path(path);
        let call =
            self.begin_call(&format!("Write {shown}"), "edit", &[location(&path, None)]).await;
        let made = match path.parent() {
            Some(parent) => tokio::fs::create_dir_all(parent).await,
            None => Ok(()),
        };
        let written = match made {
            Ok(()) => tokio::fs::write(&path, content).await,
            failed => failed,
        };
        let written = written.map_err(|error| error.to_string());
        self.end_call(call, status(&written), json!({})).await;
        written.map(|()| None)
    }

    /// Starts a child that may outlive the agent.
    fn spawn_child(&self, command: &str, detach: bool) -> StepDone {
        let mut child = tokio::process::Command::new("sh");
        child.arg("-c").arg(self.vars.expand(command));
        child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if detach {
            child.process_group(0);
        }
        let child = child.spawn().map_err(|error| error.to_string())?;
        Ok(child.id().map(|pid| pid.to_string()))
    }

    /// A path as written in the script, and absolute.
    fn path(&self, path: &str) -> (String, PathBuf) {
        let path = self.vars.expand(path);
        let absolute = self.stage.cwd.join(&path);
        (path, absolute)
    }

    async fn begin_call(&mut self, title: &str, kind: &str, locations: &[Value]) -> String {
        let id = format!("t{}", self.stage.calls.fetch_add(1, Ordering::Relaxed) + 1);
        self.open_calls.push(id.clone());
        self.update(json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind,
            "status": "in_progress", "locations": locations,
        }))
        .await;
        id
    }

    /// Ends a call: completed with additional `fields`, or failed with an error.
    pub(super) async fn end_call(&mut self, id: String, status: Result<(), &str>, fields: Value) {
        let has_content = fields.as_object().is_some_and(|fields| fields.contains_key("content"));
        let content = status.err().filter(|_| !has_content).map(text_content);
        self.update(json!(EndOfCall {
            session_update: "tool_call_update",
            tool_call_id: &id,
            fields,
            status: if status.is_ok() { "completed" } else { "failed" },
            content,
        }))
        .await;
        self.open_calls.retain(|open| *open != id);
    }
}

fn status<T>(done: &Result<T, String>) -> Result<(), &str> {
    done.as_ref().map(|_| ()).map_err(String::as_str)
}

fn location(path: &Path, line: Option<u64>) -> Value {
    line.map_or_else(|| json!({"path": path}), |line| json!({"path": path, "line": line}))
}

fn text_fields(text: &str) -> Value {
    json!({"content": text_content(text)})
}

fn text_content(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

#[derive(Serialize)]
struct ReadParams<'a> {
    path: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TerminalParams {
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_byte_limit: Option<u64>,
}

/// The tool call of a permission.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AskedCall<'a> {
    tool_call_id: String,
    title: String,
    kind: &'a str,
    status: &'static str,
    locations: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_input: Option<Value>,
}

/// The last update of a tool call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EndOfCall<'a> {
    session_update: &'static str,
    tool_call_id: &'a str,
    #[serde(flatten)]
    fields: Value,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
}

/// The answers of a client that are read.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClientAnswer {
    #[serde(deserialize_with = "lenient")]
    content: Option<String>,
    #[serde(deserialize_with = "lenient")]
    output: String,
    /// Any JSON.
    terminal_id: Value,
}

/// The result of `terminal/wait_for_exit`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TerminalExit {
    #[serde(deserialize_with = "lenient")]
    exit_code: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    signal: Option<String>,
}

/// A command that has ended.
struct Ran {
    output: String,
    /// The client's result of `terminal/wait_for_exit`.
    exit: Value,
    /// The fields of the tool call's last update.
    fields: Value,
}
