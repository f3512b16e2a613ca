//! Tokens of an answer, in parts that do not overlap, and the form in which each vendor reports them.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Tokens of one answer, or of many. No token is in two parts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct ModelTokens {
    /// Tokens of the prompt that were neither read from a cache nor written to one.
    pub input: u64,
    pub cache_read: u64,
    /// Tokens written to a cache for five minutes.
    pub cache_write: u64,
    /// Tokens written to a cache for an hour.
    pub cache_write_1h: u64,
    /// Tokens of the answer, without those of thoughts.
    pub output: u64,
    pub reasoning: u64,
}

impl ModelTokens {
    /// Tokens of the prompt alone.
    pub(super) fn of_prompt(self) -> Self {
        Self { output: 0, reasoning: 0, ..self }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    pub(super) fn less(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_sub(other.cache_write_1h),
            output: self.output.saturating_sub(other.output),
            reasoning: self.reasoning.saturating_sub(other.reasoning),
        }
    }

    pub(super) fn prompt(self) -> u64 {
        self.input + self.cache_read + self.written()
    }

    pub(super) fn answer(self) -> u64 {
        self.output + self.reasoning
    }

    fn written(self) -> u64 {
        self.cache_write + self.cache_write_1h
    }

    /// `input_tokens` are those that no cache had; thoughts are a part of `output_tokens`.
    pub(super) fn anthropic(self) -> Value {
        json!({
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.written(),
            "cache_read_input_tokens": self.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_write,
                "ephemeral_1h_input_tokens": self.cache_write_1h,
            },
            "output_tokens": self.answer(),
            "service_tier": "standard",
        })
    }

    /// `prompt_tokens` are all of the prompt, and the details say which of them a cache had or got.
    pub(super) fn chat(self) -> Value {
        json!({
            "prompt_tokens": self.prompt(),
            "completion_tokens": self.answer(),
            "total_tokens": self.prompt() + self.answer(),
            "prompt_tokens_details": self.cached(),
            "completion_tokens_details": {
                "reasoning_tokens": self.reasoning,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        })
    }

    pub(super) fn responses(self) -> Value {
        json!({
            "input_tokens": self.prompt(),
            "input_tokens_details": self.cached(),
            "output_tokens": self.answer(),
            "output_tokens_details": { "reasoning_tokens": self.reasoning },
            "total_tokens": self.prompt() + self.answer(),
        })
    }

    /// The details of a prompt. Writes to a cache are named where there are any, as not all models have them.
    fn cached(self) -> Value {
        match self.written() {
            0 => json!({ "cached_tokens": self.cache_read }),
            written => json!({ "cached_tokens": self.cache_read, "cache_write_tokens": written }),
        }
    }

    /// `promptTokenCount` has what is cached, `candidatesTokenCount` has no thoughts. Parts of nothing are left out.
    pub(super) fn gemini(self) -> Value {
        let mut usage = Map::new();
        let total = self.prompt() + self.answer();
        for (name, count) in [
            ("promptTokenCount", self.prompt()),
            ("cachedContentTokenCount", self.cache_read),
            ("candidatesTokenCount", self.output),
            ("thoughtsTokenCount", self.reasoning),
            ("totalTokenCount", total),
        ] {
            if count > 0 || ["promptTokenCount", "totalTokenCount"].contains(&name) {
                usage.insert(name.to_owned(), count.into());
            }
        }
        Value::Object(usage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vendor_reports_the_same_tokens_in_its_form() {
        let tokens = ModelTokens {
            input: 100,
            cache_read: 2000,
            cache_write: 300,
            cache_write_1h: 30,
            output: 40,
            reasoning: 5,
        };
        assert_eq!(
            tokens.anthropic(),
            json!({
                "input_tokens": 100, "cache_creation_input_tokens": 330,
                "cache_read_input_tokens": 2000,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 30,
                },
                "output_tokens": 45, "service_tier": "standard",
            })
        );
        let chat = tokens.chat();
        assert_eq!(chat["prompt_tokens"], 2430);
        let details = json!({ "cached_tokens": 2000, "cache_write_tokens": 330 });
        assert_eq!(chat["prompt_tokens_details"], details);
        assert_eq!(chat["completion_tokens"], 45);
        assert_eq!(chat["completion_tokens_details"]["reasoning_tokens"], 5);
        assert_eq!(chat["total_tokens"], 2475);
        assert_eq!(
            tokens.responses(),
            json!({
                "input_tokens": 2430, "input_tokens_details": details,
                "output_tokens": 45, "output_tokens_details": { "reasoning_tokens": 5 },
                "total_tokens": 2475,
            })
        );
        assert_eq!(
            tokens.gemini(),
            json!({
                "promptTokenCount": 2430, "cachedContentTokenCount": 2000,
                "candidatesTokenCount": 40, "thoughtsTokenCount": 5, "totalTokenCount": 2475,
            })
        );
        assert_eq!(
            ModelTokens { input: 7, ..ModelTokens::default() }.gemini(),
            json!({ "promptTokenCount": 7, "totalTokenCount": 7 })
        );
    }
}
