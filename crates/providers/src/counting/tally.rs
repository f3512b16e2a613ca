//! Counts one call while its answer passes.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Charge, Cost, Figure, Spending, TokenKind, Tokens};
use http::{HeaderMap, StatusCode, header};

use super::events::Events;
use super::report::CallEnd;
use super::reported::ReportedCall;
use super::setback::{self, ProviderSetback};
use crate::provider::ProviderKind;

/// How large a call can be, as its request says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AskedSizes {
    /// Bytes of the body. A token of text has one byte at least, so its text has no more tokens than this.
    pub body: u64,
    /// Tokens that the model may write, over all answers that are asked for. None: the request does not say.
    pub most_output: Option<u64>,
}

/// The counts of one call.
pub struct CallTally {
    kind: ProviderKind,
    asked: AskedSizes,
    status: Option<StatusCode>,
    retry_after: Option<Duration>,
    /// The body is compressed, so nothing in it can be read.
    is_encoded: bool,
    events: Events,
    reported: ReportedCall,
}

impl CallTally {
    /// Begins, before the answer comes.
    pub fn new(kind: ProviderKind, asked: AskedSizes) -> Self {
        Self {
            kind,
            asked,
            status: None,
            retry_after: None,
            is_encoded: false,
            events: Events::default(),
            reported: ReportedCall::default(),
        }
    }

    /// Takes the head of the answer.
    pub fn head(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = Some(status);
        self.retry_after = setback::retry_after(headers);
        let coding = headers.get(header::CONTENT_ENCODING);
        self.is_encoded = coding.is_some_and(|coding| coding != "identity");
    }

    /// Reads the next bytes of the answer's body.
    pub fn feed(&mut self, bytes: &[u8]) {
        if !self.is_encoded {
            self.events.feed(bytes, &mut self.reported);
        }
    }

    /// Ends a body that is whole.
    pub fn end(&mut self) {
        self.events.end(&mut self.reported);
    }

    /// Whether the provider does not serve.
    pub fn setback(&self) -> Option<ProviderSetback> {
        let error = self.reported.error.as_ref();
        ProviderSetback::of(self.status?, self.retry_after, error)
    }

    /// The tokens and money of the call; None: it failed, and took nothing. `asked_model` stands in for the one that the answer
    /// does not name.
    pub fn spending(&self, end: CallEnd, asked_model: Option<&Arc<str>>) -> Option<Spending> {
        let has_failed = self.status.is_some_and(|status| !status.is_success());
        if has_failed || end == CallEnd::Unsent {
            return None;
        }
        let model = self.reported.model.as_deref().map(Into::into);
        let dollars = |amount| Charge::Measured(Cost { amount, currency: Arc::from("USD") });
        Some(Spending {
            model: model.or_else(|| asked_model.cloned()),
            tokens: Some(self.tokens(end)),
            cost: Some(self.reported.cost.map_or(Charge::Unknown, dollars)),
        })
    }

    fn tokens(&self, end: CallEnd) -> Tokens {
        let mut tokens = self.counts();
        if self.reported.is_final || (end == CallEnd::Whole && self.reported.has_counts()) {
            return tokens;
        }
        if self.is_encoded || (end == CallEnd::Unanswered) {
            return self.unseen();
        }
        // Nothing was reported, or what was known before the end.
        if tokens.get(TokenKind::Input) == Figure::Unknown {
            tokens.set(TokenKind::Input, Figure::Estimated { least: 0, most: self.asked.body });
        }
        let least = tokens.get(TokenKind::Output).least();
        let most = least.max(self.reported.text_bytes);
        tokens.set(TokenKind::Output, Figure::Estimated { least, most });
        tokens.set(TokenKind::Total, total(&tokens));
        tokens
    }

    /// The bounds of a call of whose answer nothing is known.
    fn unseen(&self) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.set(TokenKind::Input, Figure::Estimated { least: 0, most: self.asked.body });
        if let Some(most) = self.asked.most_output {
            tokens.set(TokenKind::Output, Figure::Estimated { least: 0, most });
            tokens.set(TokenKind::Total, total(&tokens));
        }
        tokens
    }

    /// The counts as they were reported, in the form of the model: `input` without the cache, `output` with the
    /// reasoning.
    fn counts(&self) -> Tokens {
        let said = &self.reported;
        let cached = said.cached_read.unwrap_or(0).saturating_add(said.cached_write.unwrap_or(0));
        let (mut input, mut output) = (said.input, said.output);
        match self.kind {
            ProviderKind::Anthropic => {}
            ProviderKind::Gemini => {
                let tools = said.tool_input.unwrap_or(0);
                input = input.map(|input| input.saturating_sub(cached).saturating_add(tools));
                output = match (output, said.reasoning) {
                    (None, None) => None,
                    (output, thought) => {
                        Some(output.unwrap_or(0).saturating_add(thought.unwrap_or(0)))
                    }
                };
            }
            ProviderKind::OpenAi => {
                // Some servers count reasoning, or the cache, beside the rest: the total tells.
                let named = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
                let beside = said.total.map_or(0, |total| total.saturating_sub(named));
                let cache_is_beside = cached > 0 && beside >= cached;
                let beside = if cache_is_beside { beside - cached } else { beside };
                if !cache_is_beside {
                    input = input.map(|input| input.saturating_sub(cached));
                }
                output = output.map(|output| output.saturating_add(beside));
            }
        }
        let measured = |count: Option<u64>| count.map_or(Figure::Unknown, Figure::Measured);
        let or_zero = |count: Option<u64>| count.or(said.leaves_out_zeros.then_some(0));
        let (input, output) = (or_zero(input), or_zero(output));
        let mut tokens = Tokens::default();
        tokens.set(TokenKind::Input, measured(input));
        tokens.set(TokenKind::CachedRead, measured(or_zero(said.cached_read)));
        tokens.set(TokenKind::CachedWrite, measured(said.cached_write));
        tokens.set(TokenKind::Output, measured(output));
        tokens.set(TokenKind::Reasoning, measured(or_zero(said.reasoning)));
        let is_known = input.is_some() && output.is_some();
        let sum = if is_known { total(&tokens) } else { measured(said.total) };
        tokens.set(TokenKind::Total, sum);
        tokens
    }
}

/// The sum of input, cache and output; what is unknown of the cache is in the input.
fn total(tokens: &Tokens) -> Figure {
    let parts =
        [TokenKind::Input, TokenKind::CachedRead, TokenKind::CachedWrite, TokenKind::Output]
            .map(|kind| tokens.get(kind));
    let least = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.least()));
    let most = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.known().unwrap_or(0)));
    if parts.iter().any(|part| part.is_estimated()) {
        Figure::Estimated { least, most }
    } else {
        Figure::Measured(most)
    }
}
