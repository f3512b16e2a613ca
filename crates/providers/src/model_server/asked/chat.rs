//! Requests of OpenAI's `chat/completions`, and of the many servers that speak it.

use serde::Deserialize;
use serde_json::Value;

use super::content::{MessageContent, text_of};
use super::talk::Talk;
use super::{ModelAsk, Tool, ToolForm};

#[derive(Deserialize)]
pub(super) struct ChatRequest {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    messages: Value,
    tools: Option<Vec<ToolSpec>>,
    tool_choice: Option<ToolChoice>,
    response_format: Option<JsonFormat>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct TalkMessage {
    role: String,
    content: Option<MessageContent>,
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    id: Option<String>,
}

#[derive(Deserialize)]
struct ToolSpec {
    function: Option<Function>,
    custom: Option<NamedTool>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Value,
}

#[derive(Deserialize)]
struct NamedTool {
    name: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ToolChoice {
    One { function: NamedTool },
    Other(#[allow(dead_code)] Value),
}

#[derive(Deserialize)]
struct JsonFormat {
    #[serde(rename = "type")]
    kind: Option<String>,
    json_schema: Option<JsonSchema>,
}

#[derive(Deserialize)]
struct JsonSchema {
    #[serde(default)]
    schema: Value,
}

impl From<ChatRequest> for ModelAsk {
    fn from(request: ChatRequest) -> Self {
        let mut talk = Talk::default();
        for message in request.messages.as_array().into_iter().flatten() {
            if let Ok(message) = TalkMessage::deserialize(message) {
                fold(&mut talk, &message);
            }
        }
        let tools = request.tools.unwrap_or_default().into_iter();
        let tools = tools.filter_map(|tool| match (tool.function, tool.custom) {
            (Some(function), _) => {
                let takes = ToolForm::Json(function.parameters);
                Some(Tool { name: function.name, namespace: None, takes })
            }
            (None, Some(custom)) => {
                Some(Tool { name: custom.name, namespace: None, takes: ToolForm::Text })
            }
            (None, None) => None,
        });
        let json = request.response_format.and_then(|format| match format.kind.as_deref() {
            Some("json_schema" | "json_object") => {
                Some(format.json_schema.map_or(Value::Null, |json| json.schema))
            }
            _ => None,
        });
        Self {
            model: request.model.unwrap_or_default(),
            streams: request.stream.unwrap_or(false),
            prompt: talk.prompt,
            round: talk.round,
            result: talk.result,
            tools: tools.collect(),
            forced: request.tool_choice.and_then(|choice| match choice {
                ToolChoice::One { function } => Some(function.name),
                ToolChoice::Other(_) => None,
            }),
            json,
            wants_usage: request.stream_options.and_then(|options| options.include_usage)
                == Some(true),
            messages: request.messages,
        }
    }
}

fn fold(talk: &mut Talk, message: &TalkMessage) {
    match message.role.as_str() {
        "assistant" => {
            talk.model();
            for call in message.tool_calls.iter().flatten() {
                talk.call(call.id.as_deref());
            }
        }
        "tool" => talk.result(text_of(message.content.as_ref())),
        "user" => talk.user(&text_of(message.content.as_ref())),
        _ => {}
    }
}
