//! The reports of vendors in an answer, whichever shape it has: counts of tokens, the model, an error.

use super::keys::Key;
use super::scan::{Finder, Scalar};

/// A count that is believed: as in reports of agents.
const MOST_TOKENS: u64 = 9_000_000_000_000_000;

/// Money that is believed, in dollars.
const MOST_COST: f64 = 1e12;

/// Bytes of the name of a model; a longer one is left out.
const LONGEST_MODEL: usize = 200;

/// All that has been reported so far. A later count replaces an earlier one, but for zeros.
#[derive(Clone, Default, Debug)]
pub(super) struct ReportedCall {
    pub(super) input: Option<u64>,
    /// Beside the input of Gemini: results of its own tools.
    pub(super) tool_input: Option<u64>,
    pub(super) cached_read: Option<u64>,
    pub(super) cached_write: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) total: Option<u64>,
    /// In dollars.
    pub(super) cost: Option<f64>,
    pub(super) model: Option<Box<str>>,
    /// The counts are those of the whole answer, as far as it has come.
    pub(super) is_final: bool,
    /// The counts that Anthropic gives before the model writes have come.
    is_opened: bool,
    /// The counts are those of `usageMetadata`, which leaves out what is zero.
    pub(super) leaves_out_zeros: bool,
    /// Bytes of the texts that the model wrote.
    pub(super) text_bytes: u64,
    pub(super) error: Option<ReportedError>,
}

/// An error in an answer.
#[derive(Clone, Default, Debug)]
pub(super) struct ReportedError {
    /// Its type, code or status, in lower case.
    pub(super) names: String,
    /// Its text, in lower case, cut.
    pub(super) message: String,
    pub(super) retry_s: Option<f64>,
}

impl ReportedCall {
    /// Whether counts of the answer were reported, and not only those that stand before it.
    pub(super) fn has_counts(&self) -> bool {
        let is_any = self.input.is_some() || self.output.is_some() || self.total.is_some();
        is_any && (self.is_final || !self.is_opened)
    }

    fn number(&mut self, path: &[Key], number: u64) {
        let figure = match path {
            [Key::PromptTokens | Key::InputTokens | Key::PromptTokenCount] => &mut self.input,
            [Key::CompletionTokens | Key::OutputTokens | Key::CandidatesTokenCount] => {
                &mut self.output
            }
            [
                Key::CacheReadInputTokens
                | Key::CachedTokens
                | Key::PromptCacheHitTokens
                | Key::CachedContentTokenCount,
            ]
            | [Key::PromptTokensDetails | Key::InputTokensDetails, Key::CachedTokens] => {
                &mut self.cached_read
            }
            [Key::CacheCreationInputTokens | Key::CacheWriteTokens]
            | [Key::PromptTokensDetails | Key::InputTokensDetails, Key::CacheWriteTokens] => {
                &mut self.cached_write
            }
            [Key::ReasoningTokens | Key::ThoughtsTokenCount]
            | [
                Key::CompletionTokensDetails | Key::OutputTokensDetails,
                Key::ReasoningTokens | Key::ThinkingTokens,
            ] => &mut self.reasoning,
            [Key::ToolUsePromptTokenCount] => &mut self.tool_input,
            [Key::TotalTokens | Key::TotalTokenCount] => &mut self.total,
            _ => return,
        };
        // Some servers repeat a count as 0 in a later event.
        if number > 0 || figure.is_none() {
            *figure = Some(number);
        }
    }

    fn bare(&mut self, path: &[Key], bare: &[u8]) {
        let Ok(text) = std::str::from_utf8(bare) else { return };
        // The event that opens a message of Anthropic has what is known then.
        let is_first = path.first() == Some(&Key::Message);
        let path = path.strip_prefix(&[Key::Message]).unwrap_or(path);
        let path = path.strip_prefix(&[Key::Choices, Key::Item]).unwrap_or(path);
        match path {
            [Key::Usage | Key::UsageMetadata, Key::Cost] => {
                let cost = text.parse().ok().filter(|cost| (0.0..=MOST_COST).contains(cost));
                self.cost = cost.or(self.cost);
            }
            [Key::Usage | Key::UsageMetadata, count @ ..] => {
                let Some(number) = number(text) else { return };
                self.number(count, number);
                self.leaves_out_zeros |= path.first() == Some(&Key::UsageMetadata);
                let is_output = matches!(count, [Key::OutputTokens | Key::CompletionTokens]);
                self.is_final |= is_output && !is_first;
                self.is_opened |= is_first;
            }
            [Key::Error, Key::Code] => self.names_error(text),
            _ => {}
        }
    }

    fn text(&mut self, path: &[Key], is_exact: bool, start: &[u8], bytes: u64) {
        if is_written(path) && !path.ends_with(&[Key::Signature]) {
            self.text_bytes = self.text_bytes.saturating_add(bytes);
            // Some servers count after each piece: what was counted before this one is not all.
            self.is_final = false;
        }
        if !is_exact {
            return;
        }
        let text = String::from_utf8_lossy(start);
        let path = path.strip_prefix(&[Key::Message]).unwrap_or(path);
        match path {
            [Key::Model | Key::ModelVersion] => {
                let is_name = start.len() as u64 == bytes
                    && (1..=LONGEST_MODEL).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
                // Most events name the same.
                if is_name && self.model.as_deref() != Some(&*text) {
                    self.model = Some(text.into());
                }
            }
            [Key::Candidates, Key::Item, Key::FinishReason] => self.is_final = true,
            [Key::Error, Key::Type | Key::Code | Key::Status] => self.names_error(&text),
            [Key::Error, Key::Message] => {
                let error = self.error.get_or_insert_default();
                error.message = text.to_ascii_lowercase();
            }
            [Key::Error, Key::Details, Key::Item, Key::RetryDelay] => {
                let delay = text.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
                self.error.get_or_insert_default().retry_s = delay;
            }
            _ => {}
        }
    }

    fn names_error(&mut self, name: &str) {
        let error = self.error.get_or_insert_default();
        if error.names.len() < 1024 {
            error.names.push(' ');
            error.names.push_str(&name.to_ascii_lowercase());
        }
    }
}

impl Finder for ReportedCall {
    fn found(&mut self, path: &[Key], is_exact: bool, value: Scalar<'_>) {
        // An array of answers, an answer within an event, and what Groq puts around its usage.
        let path = path.strip_prefix(&[Key::Item]).unwrap_or(path);
        let is_around = matches!(path.first(), Some(Key::Response | Key::XGroq));
        let path = if is_around { &path[1..] } else { path };
        match value {
            Scalar::Bare(bare) if is_exact => self.bare(path, bare),
            Scalar::Bare(_) => {}
            Scalar::Text { start, bytes } => self.text(path, is_exact, start, bytes),
        }
    }
}

/// Whether a text is what the model wrote, and no name or kind of a part.
fn is_written(path: &[Key]) -> bool {
    let is_of_model = matches!(
        path.first(),
        Some(Key::Choices | Key::Delta | Key::Candidates | Key::Content | Key::Output)
    ) || path.starts_with(&[Key::ContentBlock]);
    let is_name = matches!(
        path.last(),
        Some(Key::Type | Key::Id | Key::Role | Key::FinishReason | Key::Status)
    );
    is_of_model && !is_name
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= MOST_TOKENS)
}
