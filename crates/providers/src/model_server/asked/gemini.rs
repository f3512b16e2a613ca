//! Requests of Gemini's `generateContent`. The model and the way of the answer are in the path.

use serde::Deserialize;
use serde_json::Value;

use super::talk::Talk;
use super::{ModelAsk, Tool, ToolForm};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiRequest {
    #[serde(default)]
    contents: Value,
    tools: Option<Vec<DeclaredTools>>,
    #[serde(alias = "tool_config")]
    tool_config: Option<ToolConfig>,
    #[serde(alias = "generation_config")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Deserialize)]
struct TalkMessage {
    role: Option<String>,
    parts: Option<Vec<GeminiPart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart {
    text: Option<String>,
    #[serde(alias = "function_call")]
    function_call: Option<FunctionCall>,
    #[serde(alias = "function_response")]
    function_response: Option<FunctionResponse>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
}

#[derive(Deserialize)]
struct FunctionResponse {
    #[serde(default)]
    response: Value,
}

/// The usual members of a response.
#[derive(Deserialize)]
struct ToolOutcome {
    output: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredTools {
    #[serde(alias = "function_declarations")]
    function_declarations: Option<Vec<Declaration>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declaration {
    name: String,
    #[serde(alias = "parameters_json_schema")]
    parameters_json_schema: Option<Value>,
    parameters: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    #[serde(alias = "function_calling_config")]
    function_calling_config: Option<CallingConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig {
    #[serde(alias = "allowed_function_names")]
    allowed_function_names: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names that the API has")]
struct GenerationConfig {
    #[serde(alias = "response_mime_type")]
    response_mime_type: Option<String>,
    #[serde(alias = "response_schema")]
    response_schema: Option<Value>,
    #[serde(alias = "response_json_schema")]
    response_json_schema: Option<Value>,
}

impl From<GeminiRequest> for ModelAsk {
    fn from(request: GeminiRequest) -> Self {
        let mut talk = Talk::default();
        for message in request.contents.as_array().into_iter().flatten() {
            if let Ok(message) = TalkMessage::deserialize(message) {
                fold(&mut talk, &message);
            }
        }
        let declared = request.tools.into_iter().flatten();
        let declared = declared.filter_map(|tools| tools.function_declarations).flatten();
        let tools = declared.map(|tool| {
            let schema = tool.parameters_json_schema.or(tool.parameters).unwrap_or_default();
            Tool { name: tool.name, namespace: None, takes: ToolForm::Json(schema) }
        });
        let forced = request.tool_config.and_then(|config| config.function_calling_config);
        let forced = forced.and_then(|config| config.allowed_function_names).unwrap_or_default();
        let json = request.generation_config.and_then(|config| {
            let schema = config.response_json_schema.or(config.response_schema);
            let is_json = config.response_mime_type.as_deref() == Some("application/json");
            schema.or_else(|| is_json.then_some(Value::Null))
        });
        Self {
            prompt: talk.prompt,
            round: talk.round,
            result: talk.result,
            tools: tools.collect(),
            forced: <[String; 1]>::try_from(forced).ok().map(|[name]| name),
            json,
            wants_usage: true,
            messages: request.contents,
            ..Self::default()
        }
    }
}

fn fold(talk: &mut Talk, message: &TalkMessage) {
    let parts = message.parts.as_deref().unwrap_or_default();
    let texts = || parts.iter().filter_map(|part| part.text.as_deref());
    if message.role.as_deref() == Some("model") {
        talk.model();
        for call in parts.iter().filter_map(|part| part.function_call.as_ref()) {
            talk.call(call.id.as_deref());
        }
        return;
    }
    let mut results = parts.iter().filter_map(|part| part.function_response.as_ref()).peekable();
    if results.peek().is_none() {
        talk.user(&texts().collect::<Vec<_>>().join("\n"));
        return;
    }
    for result in results {
        let outcome = ToolOutcome::deserialize(&result.response).ok();
        let text = outcome.and_then(|outcome| outcome.output.or(outcome.error));
        talk.result(text.unwrap_or_else(|| result.response.to_string()));
    }
    for text in texts() {
        talk.beside_results(text);
    }
}
