//! Token counts of one message, in the shapes of several makers, brought into one.

use super::update::typed;
use crate::extract::json::{Members, elements};
use crate::model::{Figure, TokenKind, Tokens};

/// Models of one message; past that only their sum is taken.
const MOST_MODELS: usize = 16;

/// Bytes of a model's id; a longer one is left out.
const LONGEST_MODEL: usize = 256;

/// Counts of one message: what is absent is unknown. `input` has no cached tokens, `output` has the
/// reasoning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Count {
    pub(super) input: Option<u64>,
    pub(super) cached_read: Option<u64>,
    pub(super) cached_write: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) total: Option<u64>,
}

/// The names of the counts, one list for each figure.
const NAMES: [(TokenKind, &[&str]); 6] = [
    (TokenKind::Input, &["inputTokens", "input_tokens", "promptTokens"]),
    (
        TokenKind::CachedRead,
        &["cachedReadTokens", "cachedInputTokens", "cachedTokens", "cache_read_tokens"],
    ),
    (TokenKind::CachedWrite, &["cachedWriteTokens", "cacheWriteInputTokens"]),
    (TokenKind::Output, &["outputTokens", "output_tokens", "completionTokens"]),
    (TokenKind::Reasoning, &["thoughtTokens", "reasoningOutputTokens", "reasoning_tokens"]),
    (TokenKind::Total, &["totalTokens"]),
];

impl Count {
    /// Reads an object with counts; None if there are none.
    pub(super) fn of(raw: &str) -> Option<Self> {
        Self::read(raw).map(Self::normalised)
    }

    /// Reads an object whose cached tokens are within the input, and reasoning within the output; None if there
    /// are no counts.
    pub(super) fn of_inclusive(raw: &str) -> Option<Self> {
        let count = Self::read(raw)?;
        let total = count.input.unwrap_or(0).saturating_add(count.output.unwrap_or(0));
        Some(Self { total: Some(total), ..count }.normalised())
    }

    fn read(raw: &str) -> Option<Self> {
        let members = Members::of(raw)?;
        let mut count = Self::default();
        for (kind, names) in NAMES {
            *count.figure(kind) = names.iter().find_map(|name| members.get(name)).and_then(number);
        }
        (count.input.is_some() || count.output.is_some() || count.total.is_some()).then_some(count)
    }

    /// The counts by model in `_meta.quota` of an answer; None if there are none, or too many.
    pub(super) fn by_model(quota: &Members<'_>) -> Option<Vec<(Option<String>, Self)>> {
        let rows = quota.get("model_usage").and_then(elements)?;
        if rows.is_empty() || rows.len() > MOST_MODELS {
            return None;
        }
        let row = |raw| {
            let row = Members::of(raw)?;
            let model = row.text("model").filter(|model| model.len() <= LONGEST_MODEL);
            let mut count = Self::of(row.get("token_count")?)?;
            // Some makers write 0 where they don't know it.
            count.reasoning = count.reasoning.filter(|reasoning| *reasoning > 0);
            Some((model.map(std::borrow::Cow::into_owned), count))
        };
        rows.into_iter().map(row).collect()
    }

    pub(super) fn get(&self, kind: TokenKind) -> Option<u64> {
        let mut this = *self;
        *this.figure(kind)
    }

    pub(super) fn all(&self) -> u64 {
        self.total.unwrap_or(0)
    }

    /// Returns the counts that were added since `before`; all of them if the counts began anew.
    pub(super) fn since(&self, before: &Self) -> Self {
        if self.all() < before.all() {
            return *self;
        }
        self.map(|kind, number| number.saturating_sub(before.get(kind).unwrap_or(0)))
    }

    pub(super) fn figures(&self, figure: impl Fn(u64) -> Figure) -> Tokens {
        Tokens::of(|kind| self.get(kind).map_or(Figure::Unknown, &figure))
    }

    fn map(&self, change: impl Fn(TokenKind, u64) -> u64) -> Self {
        let mut changed = *self;
        for kind in TokenKind::ALL {
            let figure = changed.figure(kind);
            *figure = figure.map(|number| change(kind, number));
        }
        changed
    }

    fn figure(&mut self, kind: TokenKind) -> &mut Option<u64> {
        match kind {
            TokenKind::Input => &mut self.input,
            TokenKind::CachedRead => &mut self.cached_read,
            TokenKind::CachedWrite => &mut self.cached_write,
            TokenKind::Output => &mut self.output,
            TokenKind::Reasoning => &mut self.reasoning,
            TokenKind::Total => &mut self.total,
        }
    }

    /// Makers count cached tokens within the input or beside it, and reasoning within the output or
    /// beside it; the total says which. Without one they count as beside it.
    fn normalised(mut self) -> Self {
        let cached = self.cached_read.unwrap_or(0).saturating_add(self.cached_write.unwrap_or(0));
        let thought = self.reasoning.unwrap_or(0);
        if let (Some(input), Some(output), Some(total)) = (self.input, self.output, self.total) {
            let beside = total.saturating_sub(input).saturating_sub(output);
            let cached_is_beside = cached > 0 && beside >= cached;
            let rest = if cached_is_beside { beside - cached } else { beside };
            if !cached_is_beside {
                self.input = Some(input.saturating_sub(cached));
            }
            if thought > 0 && rest >= thought {
                self.output = Some(output.saturating_add(thought));
            }
        }
        if let (Some(input), Some(output)) = (self.input, self.output) {
            let sum = input.saturating_add(cached).saturating_add(output);
            self.total = Some(self.total.unwrap_or(0).max(sum));
        }
        self
    }
}

/// A count of tokens; some agents write it with a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
pub(super) fn number(raw: &str) -> Option<u64> {
    let number: f64 = typed(raw)?;
    (0.0..=9e15).contains(&number).then_some(number as u64)
}
