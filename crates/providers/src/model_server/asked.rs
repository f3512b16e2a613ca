//! A request as rules see it, whatever its API: the last prompt, the round of its tools, the tools offered.

mod anthropic;
mod chat;
mod content;
mod gemini;
mod responses;
mod talk;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::api::ModelApi;

/// A request for an answer of a model.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct ModelAsk {
    pub(super) model: String,
    pub(super) streams: bool,
    /// The text of the last prompt: all user messages since the model's last word.
    pub(super) prompt: String,
    /// How often the model has called tools since the prompt.
    pub(super) round: usize,
    /// The text of the last result of a tool since the prompt.
    pub(super) result: String,
    pub(super) tools: Vec<Tool>,
    /// The tool that the model has to call.
    pub(super) forced: Option<String>,
    /// The schema of the JSON that the model has to answer; null if it has none.
    pub(super) json: Option<Value>,
    /// Whether a stream of `chat/completions` ends with its usage.
    pub(super) wants_usage: bool,
    /// The messages as they came, for the log.
    pub(super) messages: Value,
}

/// A tool that a request offers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The group that a call of it names as well.
    pub(super) namespace: Option<String>,
    pub(super) takes: ToolForm,
}

/// The form of a tool's input.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ToolForm {
    /// JSON of this schema.
    Json(Value),
    Text,
}

impl ModelAsk {
    /// Reads the body of a request. An error says which member is wrong.
    pub(super) fn read(api: ModelApi, body: &[u8]) -> Result<Self, String> {
        match api {
            ModelApi::Anthropic => typed::<anthropic::AnthropicRequest>(body).map(Into::into),
            ModelApi::OpenAiChat => typed::<chat::ChatRequest>(body).map(Into::into),
            ModelApi::OpenAiResponses => typed::<responses::ResponsesRequest>(body).map(Into::into),
            ModelApi::Gemini => typed::<gemini::GeminiRequest>(body).map(Into::into),
        }
    }
}

fn typed<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    serde_path_to_error::deserialize(&mut json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
