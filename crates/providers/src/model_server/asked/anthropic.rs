//! Requests of Anthropic's `messages`.

use serde::Deserialize;
use serde_json::Value;

use super::content::{MessageContent, text_of};
use super::talk::Talk;
use super::{ModelAsk, Tool, ToolForm};

#[derive(Deserialize)]
pub(super) struct AnthropicRequest {
    model: Option<String>,
    stream: Option<bool>,
    #[serde(default)]
    messages: Value,
    tools: Option<Vec<ToolSpec>>,
    tool_choice: Option<ToolChoice>,
    output_config: Option<OutputConfig>,
    output_format: Option<JsonFormat>,
}

#[derive(Deserialize)]
struct TalkMessage {
    role: String,
    content: Option<MessageContent>,
}

/// A tool; those that Anthropic runs have no schema.
#[derive(Deserialize)]
struct ToolSpec {
    name: Option<String>,
    input_schema: Option<Value>,
}

#[derive(Deserialize)]
struct ToolChoice {
    name: Option<String>,
}

#[derive(Deserialize)]
struct OutputConfig {
    format: Option<JsonFormat>,
}

#[derive(Deserialize)]
struct JsonFormat {
    #[serde(default)]
    schema: Value,
}

impl From<AnthropicRequest> for ModelAsk {
    fn from(request: AnthropicRequest) -> Self {
        let mut talk = Talk::default();
        // The messages are an array of any objects: what is no message is passed over.
        for message in request.messages.as_array().into_iter().flatten() {
            if let Ok(message) = TalkMessage::deserialize(message) {
                fold(&mut talk, &message);
            }
        }
        let tools = request.tools.unwrap_or_default().into_iter().filter_map(|tool| {
            let takes = ToolForm::Json(tool.input_schema?);
            Some(Tool { name: tool.name?, namespace: None, takes })
        });
        let format = request.output_config.and_then(|config| config.format);
        Self {
            model: request.model.unwrap_or_default(),
            streams: request.stream.unwrap_or(false),
            prompt: talk.prompt,
            round: talk.round,
            result: talk.result,
            tools: tools.collect(),
            forced: request.tool_choice.and_then(|choice| choice.name),
            json: format.or(request.output_format).map(|format| format.schema),
            wants_usage: true,
            messages: request.messages,
        }
    }
}

fn fold(talk: &mut Talk, message: &TalkMessage) {
    let parts = message.content.as_ref().map(MessageContent::parts).unwrap_or_default();
    let is =
        |kind: &'static str| parts.iter().filter(move |part| part.kind.as_deref() == Some(kind));
    match message.role.as_str() {
        "assistant" => {
            talk.model();
            for call in is("tool_use") {
                talk.call(call.id.as_deref());
            }
        }
        "user" if is("tool_result").next().is_some() => {
            for result in is("tool_result") {
                talk.result(text_of(result.content.as_deref()));
            }
            for text in is("text") {
                talk.beside_results(text.text.as_deref().unwrap_or_default());
            }
        }
        "user" => talk.user(&text_of(message.content.as_ref())),
        _ => {}
    }
}
