//! The answers of a provider after which another provider, or a later time, may help.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::reported::ReportedError;

/// Longest time that a provider may ask to be left alone: a longer one is that long.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Why a provider does not serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProviderTrouble {
    /// Too many calls or tokens in its span of time.
    RateLimited,
    /// The provider has too much to do: 503 and 529.
    Overloaded,
    /// The account has no credit, or its quota is used up.
    NoCredit,
    /// The provider's key is refused.
    KeyRefused,
    /// No connection, or one that ended before an answer.
    Away,
}

/// A provider that does not serve, and for how long it says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderSetback {
    /// Why.
    pub trouble: ProviderTrouble,
    /// How long it wants to be left alone.
    pub retry_after: Option<Duration>,
}

impl ProviderSetback {
    /// The setback of a provider that can't be reached.
    pub(crate) fn away() -> Self {
        Self { trouble: ProviderTrouble::Away, retry_after: None }
    }

    /// The setback that an answer's head and its error tell; None: it is no setback.
    pub(super) fn of(
        status: StatusCode,
        retry_after: Option<Duration>,
        error: Option<&ReportedError>,
    ) -> Option<Self> {
        let trouble = error.and_then(named).or(match status.as_u16() {
            402 => Some(ProviderTrouble::NoCredit),
            401 => Some(ProviderTrouble::KeyRefused),
            429 => Some(ProviderTrouble::RateLimited),
            503 | 529 => Some(ProviderTrouble::Overloaded),
            _ => None,
        })?;
        let told = error.and_then(|error| error.retry_s).and_then(seconds);
        Some(Self { trouble, retry_after: retry_after.or(told) })
    }
}

/// The trouble that an error names itself, also one within a stream.
fn named(error: &ReportedError) -> Option<ProviderTrouble> {
    let is_named = |names: &[&str]| names.iter().any(|name| error.names.contains(name));
    let says = |texts: &[&str]| texts.iter().any(|text| error.message.contains(text));
    let no_credit = ["insufficient_quota", "billing", "insufficient_balance", "credit"];
    if is_named(&no_credit)
        || says(&["credit balance is too low", "insufficient balance", "insufficient credits"])
    {
        Some(ProviderTrouble::NoCredit)
    } else if is_named(&["rate_limit", "resource_exhausted"]) {
        Some(ProviderTrouble::RateLimited)
    } else if is_named(&["overloaded", "unavailable"]) {
        Some(ProviderTrouble::Overloaded)
    } else {
        None
    }
}

/// How long the headers of an answer ask to wait. A date is not read.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let in_ms = number("retry-after-ms").map(|ms| ms / 1000.0);
    in_ms.or_else(|| number("retry-after")).and_then(seconds)
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(LONGEST_WAIT))
}
