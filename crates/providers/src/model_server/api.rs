//! The kinds of model API, and the paths that tell them apart.

use serde::{Serialize, Serializer};

use crate::model::named;

named! {
    /// A kind of model API.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum ModelApi {
        Anthropic = "anthropic",
        OpenAiChat = "openai-chat",
        OpenAiResponses = "openai-responses",
        Gemini = "gemini",
    }
}

impl Serialize for ModelApi {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The meaning of a path, whatever stands before it: base URLs end with `/v1`, `/v1beta`, `/openai` or nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ModelRoute {
    /// Text and calls of tools.
    Generate {
        api: ModelApi,
        streams: Option<bool>,
        model: Option<String>,
    },
    CountTokens(ModelApi),
    Embed(ModelApi),
    /// The list of models, or the model of this name.
    Models(Option<String>),
    /// The server's own count.
    Tally,
    Unknown,
}

impl ModelRoute {
    pub(super) fn of(path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if path == "/_count" {
            return Self::Tally;
        }
        let generate = |api| Self::Generate { api, streams: None, model: None };
        for (end, route) in [
            ("/chat/completions", generate(ModelApi::OpenAiChat)),
            ("/messages/count_tokens", Self::CountTokens(ModelApi::Anthropic)),
            ("/messages", generate(ModelApi::Anthropic)),
            ("/responses/input_tokens", Self::CountTokens(ModelApi::OpenAiResponses)),
            ("/responses", generate(ModelApi::OpenAiResponses)),
            ("/embeddings", Self::Embed(ModelApi::OpenAiChat)),
            ("/models", Self::Models(None)),
        ] {
            if path.ends_with(end) {
                return route;
            }
        }
        let Some((_, rest)) = path.rsplit_once("/models/") else { return Self::Unknown };
        let Some((model, action)) = rest.rsplit_once(':') else {
            return Self::Models(Some(rest.to_owned()));
        };
        let model = Some(model.to_owned());
        let gemini = ModelApi::Gemini;
        match action {
            "generateContent" => Self::Generate { api: gemini, streams: Some(false), model },
            "streamGenerateContent" => Self::Generate { api: gemini, streams: Some(true), model },
            "countTokens" => Self::CountTokens(gemini),
            "embedContent" | "batchEmbedContents" => Self::Embed(gemini),
            _ => Self::Unknown,
        }
    }

    /// The API whose form an error has.
    pub(super) fn api(&self, is_anthropic: bool) -> ModelApi {
        match self {
            Self::Generate { api, .. } | Self::CountTokens(api) | Self::Embed(api) => *api,
            _ if is_anthropic => ModelApi::Anthropic,
            _ => ModelApi::OpenAiChat,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart_by_their_ends() {
        let generate = |api, streams, model: Option<&str>| ModelRoute::Generate {
            api,
            streams,
            model: model.map(str::to_owned),
        };
        for (path, route) in [
            ("/v1/chat/completions", generate(ModelApi::OpenAiChat, None, None)),
            ("/chat/completions", generate(ModelApi::OpenAiChat, None, None)),
            ("/anthropic/v1/messages", generate(ModelApi::Anthropic, None, None)),
            ("/v1/messages/count_tokens", ModelRoute::CountTokens(ModelApi::Anthropic)),
            ("/v1/responses", generate(ModelApi::OpenAiResponses, None, None)),
            (
                "/v1beta/models/gemini-3-pro:streamGenerateContent",
                generate(ModelApi::Gemini, Some(true), Some("gemini-3-pro")),
            ),
            (
                "/v1beta/models/a:b:generateContent",
                generate(ModelApi::Gemini, Some(false), Some("a:b")),
            ),
            ("/v1/models/", ModelRoute::Models(None)),
            ("/v1/models/org/name", ModelRoute::Models(Some("org/name".to_owned()))),
            ("/_count", ModelRoute::Tally),
            ("/", ModelRoute::Unknown),
            ("/v1/models/a:tune", ModelRoute::Unknown),
        ] {
            assert_eq!(ModelRoute::of(path), route, "{path}");
        }
    }
}
