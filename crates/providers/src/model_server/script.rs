//! A script as plain data: which request gets which steps. Knows neither TOML nor the APIs' forms.

use std::time::Duration;

use serde_json::Value;

use super::api::ModelApi;
use super::troubles::ModelRefusal;
use super::usage::ModelTokens;
use crate::model::named;
use crate::script::PromptPattern;

/// The text that a server says if no script says otherwise.
const DONE: &str = "done";

/// The tokens of an answer, if the script names none.
const TOKENS: ModelTokens = ModelTokens {
    input: 1000,
    cache_read: 0,
    cache_write: 0,
    cache_write_1h: 0,
    output: 10,
    reasoning: 0,
};

/// The models that a list has, if the script names none.
const MODELS: [&str; 6] = [
    "fake-model",
    "claude-sonnet-4-5",
    "gpt-5",
    "gpt-5-codex",
    "gemini-2.5-pro",
    "qwen3-coder-plus",
];

/// A valid script. The default says "done" to each request.
#[derive(Clone, Default, Debug)]
pub struct ModelScript {
    pub(super) server: ServerKeys,
    /// In the file's order: the first that matches a request is played.
    pub(super) rules: Vec<PlayedRule>,
}

/// The keys of `[server]`.
#[derive(Clone, Debug)]
pub(super) struct ServerKeys {
    pub(super) models: Vec<String>,
    pub(super) tokens: ModelTokens,
    pub(super) done: String,
    pub(super) chat_usage: ChatUsage,
}

impl Default for ServerKeys {
    fn default() -> Self {
        Self {
            models: MODELS.map(str::to_owned).to_vec(),
            tokens: TOKENS,
            done: DONE.to_owned(),
            chat_usage: ChatUsage::Asked,
        }
    }
}

named! {
    /// When a stream of `chat/completions` ends with its usage.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum ChatUsage {
        /// As OpenAI does: if the request has `stream_options.include_usage`.
        Asked = "asked",
        Always = "always",
        Never = "never",
    }
}

#[derive(Clone, Debug)]
pub(super) struct PlayedRule {
    pub(super) when: When,
    pub(super) tokens: Option<ModelTokens>,
    /// One list of steps for each answer to a prompt.
    pub(super) answers: Vec<Vec<PlayedStep>>,
}

/// The requests that a rule is for.
#[derive(Clone, Debug)]
pub(super) struct When {
    pub(super) prompt: Option<PromptPattern>,
    pub(super) model: Option<PromptPattern>,
    pub(super) api: Option<ModelApi>,
    /// The number of the call, from 1.
    pub(super) call: Option<u64>,
    /// Most calls that it matches.
    pub(super) times: Option<u64>,
    /// Whether the request offers tools.
    pub(super) tools: Option<bool>,
    /// Whether it is for requests of JSON by a schema.
    pub(super) json: bool,
}

#[derive(Clone, Debug)]
pub(super) enum PlayedStep {
    Say(Texts),
    Think(Texts),
    Call(CallStep),
    /// The first call whose tool is offered.
    OneOf(Vec<CallStep>),
    Usage(ModelTokens),
    Stop(StopReason),
    Error(ModelRefusal),
    Wait(Duration),
    Ping,
    Raw(String),
    Cut,
    /// The connection closes after this number of bytes of the body.
    CutAfter(u64),
    Hang,
}

impl PlayedStep {
    pub(super) fn calls_tools(&self) -> bool {
        match self {
            Self::Call(call) => !call.optional,
            Self::OneOf(_) => true,
            _ => false,
        }
    }
}

/// Texts in pieces: a stream sends each by itself.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    pub(super) pieces: Vec<String>,
    pub(super) repeat: u64,
    pub(super) delay: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct CallStep {
    /// Names of tools, the best first.
    pub(super) names: Vec<ToolName>,
    pub(super) args: Value,
    /// The text for a tool that takes a text.
    pub(super) input: Option<String>,
    pub(super) half: bool,
    /// Left out if no such tool is offered.
    pub(super) optional: bool,
}

#[derive(Clone, Debug)]
pub(super) struct ToolName {
    pub(super) written: String,
    pub(super) pattern: PromptPattern,
}

named! {
    /// Why an answer ends.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum StopReason {
        /// The model has said what it wanted, or calls tools.
        End = "end",
        MaxTokens = "max_tokens",
        ModelRefusal = "refusal",
    }
}
