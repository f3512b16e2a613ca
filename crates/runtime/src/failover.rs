//! Common parts of runs by tiers and agents of tiers: cool-downs, the record for the next candidate, and the
//! words for them.

pub(crate) mod candidates;
pub(crate) mod handover;
pub(crate) mod past_work;
pub(crate) mod setbacks;
pub(crate) mod told;

pub use told::clock;

use std::time::Duration;

use crate::config::SharedConfig;
use crate::model::{AgentState, AgentStatus, TimestampMs, now_ms};
use crate::tiers::{Cooldown, Cooldowns, LoginId, Setback};

/// Begins the cool-down of an account, or of one model of it; returns when it ends.
pub(crate) fn begin_cooldown(
    kept: &Cooldowns,
    shared: &SharedConfig,
    base: &str,
    login: LoginId,
    model: Option<&str>,
    setback: &Setback,
) -> std::io::Result<Option<TimestampMs>> {
    if !setback.cools_down() {
        return Ok(None);
    }
    let now = now_ms();
    let until = setback.again_at.unwrap_or_else(|| now + wait_of(shared.runs.cooldown));
    let mut cooldown = Cooldown::new(base, login, setback.what, until);
    if setback.is_of_model() {
        cooldown = cooldown.of_model(model);
    }
    if setback.is_of_login() {
        cooldown = cooldown.of_login();
    }
    kept.begin(cooldown, now)?;
    Ok(Some(until))
}

/// Begins the cool-down of a profile, for the provider that it names or the account that it has on this machine. One that is not known has none.
pub(crate) fn cool_down(
    kept: &Cooldowns,
    shared: &SharedConfig,
    (profile, provider): (&str, Option<&str>),
    model: Option<&str>,
    setback: &Setback,
) -> std::io::Result<Option<TimestampMs>> {
    let found = shared.on_machine(profile, provider, &|name| std::env::var(name).ok());
    let Some(found) = found else { return Ok(setback.again_at) };
    let login = kept.login(&found)?;
    begin_cooldown(kept, shared, shared.base_of(profile), login, model, setback)
}

/// Whether an agent could not start, and its next candidate is about to take over.
pub(crate) fn moves_on(status: &AgentStatus) -> bool {
    let reason = status.reason.as_deref().filter(|reason| !told::is_none_left(reason));
    let is_set_back = |reason: &str| Setback::of(reason, now_ms()).is_some();
    status.state == AgentState::Error
        && status.candidate.is_some()
        && reason.is_some_and(is_set_back)
}

/// A duration in milliseconds.
pub(crate) fn wait_of(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
