//! The names of members that figures and texts are found by.

/// A step of the way to a value: a name that means something here, or any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// An element of an array.
    Item,
    Other,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    CacheWriteTokens,
    CachedContentTokenCount,
    CachedTokens,
    Candidates,
    CandidatesTokenCount,
    Choices,
    Code,
    CompletionTokens,
    CompletionTokensDetails,
    Content,
    ContentBlock,
    Cost,
    Delta,
    Details,
    Error,
    FinishReason,
    Id,
    InputTokens,
    InputTokensDetails,
    Message,
    Model,
    ModelVersion,
    OutputTokens,
    OutputTokensDetails,
    Output,
    PromptCacheHitTokens,
    PromptTokenCount,
    PromptTokens,
    PromptTokensDetails,
    ReasoningTokens,
    Response,
    RetryDelay,
    Role,
    Signature,
    Status,
    ThinkingTokens,
    ThoughtsTokenCount,
    ToolUsePromptTokenCount,
    TotalTokenCount,
    TotalTokens,
    Type,
    Usage,
    UsageMetadata,
    XGroq,
}

impl Key {
    pub(super) fn of(name: &[u8]) -> Self {
        match name {
            b"cache_creation_input_tokens" => Self::CacheCreationInputTokens,
            b"cache_read_input_tokens" => Self::CacheReadInputTokens,
            b"cache_write_tokens" => Self::CacheWriteTokens,
            b"cachedContentTokenCount" => Self::CachedContentTokenCount,
            b"cached_tokens" => Self::CachedTokens,
            b"candidates" => Self::Candidates,
            b"candidatesTokenCount" => Self::CandidatesTokenCount,
            b"choices" => Self::Choices,
            b"code" => Self::Code,
            b"completion_tokens" => Self::CompletionTokens,
            b"completion_tokens_details" => Self::CompletionTokensDetails,
            b"content" => Self::Content,
            b"content_block" => Self::ContentBlock,
            b"cost" => Self::Cost,
            b"delta" => Self::Delta,
            b"details" => Self::Details,
            b"error" => Self::Error,
            b"finishReason" => Self::FinishReason,
            b"id" => Self::Id,
            b"input_tokens" => Self::InputTokens,
            b"input_tokens_details" => Self::InputTokensDetails,
            b"message" => Self::Message,
            b"model" => Self::Model,
            b"modelVersion" => Self::ModelVersion,
            b"output_tokens" => Self::OutputTokens,
            b"output_tokens_details" => Self::OutputTokensDetails,
            b"output" => Self::Output,
            b"prompt_cache_hit_tokens" => Self::PromptCacheHitTokens,
            b"promptTokenCount" => Self::PromptTokenCount,
            b"prompt_tokens" => Self::PromptTokens,
            b"prompt_tokens_details" => Self::PromptTokensDetails,
            b"reasoning_tokens" => Self::ReasoningTokens,
            b"response" => Self::Response,
            b"retryDelay" => Self::RetryDelay,
            b"role" => Self::Role,
            b"signature" | b"thoughtSignature" | b"encrypted_content" => Self::Signature,
            b"status" => Self::Status,
            b"thinking_tokens" => Self::ThinkingTokens,
            b"thoughtsTokenCount" => Self::ThoughtsTokenCount,
            b"toolUsePromptTokenCount" => Self::ToolUsePromptTokenCount,
            b"totalTokenCount" => Self::TotalTokenCount,
            b"total_tokens" => Self::TotalTokens,
            b"type" => Self::Type,
            b"usage" => Self::Usage,
            b"usageMetadata" => Self::UsageMetadata,
            b"x_groq" => Self::XGroq,
            _ => Self::Other,
        }
    }

    /// Whether the text of a member with this name is kept, and not only measured.
    pub(super) fn is_kept(self) -> bool {
        matches!(
            self,
            Self::Code
                | Self::Message
                | Self::Model
                | Self::ModelVersion
                | Self::RetryDelay
                | Self::Status
                | Self::Type
        )
    }
}
