//! Requests of OpenAI's `responses`. The whole conversation is in `input`: no earlier response is kept.

use serde::Deserialize;
use serde_json::Value;

use super::content::{MessageContent, text_of};
use super::talk::Talk;
use super::{ModelAsk, Tool, ToolForm};

#[derive(Deserialize)]
pub(super) struct ResponsesRequest {
    model: Option<String>,
    stream: Option<bool>,
    #[serde(default)]
    input: Value,
    tools: Option<Vec<ToolSpec>>,
    tool_choice: Option<ToolChoice>,
    text: Option<TextConfig>,
}

#[derive(Deserialize)]
struct InputItem {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    content: Option<MessageContent>,
    call_id: Option<String>,
    output: Option<MessageContent>,
    #[serde(default)]
    tools: Vec<ToolSpec>,
}

#[derive(Deserialize)]
struct ToolSpec {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    #[serde(default)]
    parameters: Value,
    /// The tools of a namespace.
    #[serde(default)]
    tools: Vec<ToolSpec>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ToolChoice {
    One { name: String },
    Other(#[allow(dead_code)] Value),
}

#[derive(Deserialize)]
struct TextConfig {
    format: Option<JsonFormat>,
}

#[derive(Deserialize)]
struct JsonFormat {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    schema: Value,
}

impl From<ResponsesRequest> for ModelAsk {
    fn from(request: ResponsesRequest) -> Self {
        let mut talk = Talk::default();
        if let Value::String(text) = &request.input {
            talk.user(text);
        }
        let mut tools = Vec::new();
        offer(&mut tools, request.tools.unwrap_or_default(), None);
        for item in request.input.as_array().into_iter().flatten() {
            let Ok(item) = InputItem::deserialize(item) else { continue };
            fold(&mut talk, &item);
            if item.kind.as_deref() == Some("additional_tools") {
                offer(&mut tools, item.tools, None);
            }
        }
        let format = request.text.and_then(|text| text.format);
        let format =
            format.filter(|it| matches!(it.kind.as_deref(), Some("json_schema" | "json_object")));
        Self {
            model: request.model.unwrap_or_default(),
            streams: request.stream.unwrap_or(false),
            prompt: talk.prompt,
            round: talk.round,
            result: talk.result,
            tools,
            forced: request.tool_choice.and_then(|choice| match choice {
                ToolChoice::One { name } => Some(name),
                ToolChoice::Other(_) => None,
            }),
            json: format.map(|format| format.schema),
            wants_usage: true,
            messages: request.input,
        }
    }
}

/// Adds the tools of a list, and those of the namespaces in it.
fn offer(tools: &mut Vec<Tool>, specs: Vec<ToolSpec>, namespace: Option<&str>) {
    for spec in specs {
        let (name, takes) = match (spec.kind.as_deref(), spec.name) {
            (Some("namespace"), Some(name)) if namespace.is_none() => {
                offer(tools, spec.tools, Some(&name));
                continue;
            }
            (Some("function"), Some(name)) => (name, ToolForm::Json(spec.parameters)),
            (Some("custom"), Some(name)) => (name, ToolForm::Text),
            _ => continue,
        };
        tools.push(Tool { name, namespace: namespace.map(str::to_owned), takes });
    }
}

fn fold(talk: &mut Talk, item: &InputItem) {
    match (item.kind.as_deref().unwrap_or("message"), item.role.as_deref()) {
        ("message", Some("user")) => talk.user(&text_of(item.content.as_ref())),
        ("message", Some("assistant")) => talk.model(),
        ("function_call" | "custom_tool_call" | "local_shell_call", _) => {
            talk.call(item.call_id.as_deref());
        }
        (kind, _) if kind.ends_with("_call_output") => {
            talk.result(text_of(item.output.as_ref()));
        }
        _ => {}
    }
}
