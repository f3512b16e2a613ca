//! The cool-down of an agent that could not work, for later runs that may take another one.

use std::time::Duration;

use tokio::time::Instant;

use super::work::work;
use crate::app::turn::WorkEnd;
use crate::app::turn::request::RunRequest;
use crate::app::up::TeamStart;
use crate::config::SharedConfig;
use crate::model::{TimestampMs, now_ms};
use crate::tiers::{Cooldown, Cooldowns, LoginId, Setback};

/// Performs a run of an agent that was named. What sets it back is known to runs by tiers.
pub(super) async fn alone(
    start: TeamStart,
    prompt: (&RunRequest, String),
    deadline: Option<Instant>,
    profile: Option<&str>,
) -> WorkEnd {
    let (shared, kept) = (start.layered.config.shared.clone(), Cooldowns::new(&start.eisen_dir));
    let model = start.layered.config.agents[0].model.clone();
    let end = work(start, prompt, deadline, None).await;
    if let (Some(profile), Some(setback)) = (profile, end.setback())
        && let Some(found) = shared.on_machine(profile, &|name| std::env::var(name).ok())
        && let Ok(login) = kept.login(&found)
    {
        let base = shared.base_of(profile);
        // It says what it came to; the cool-down is for others.
        let _ = begin(&kept, &shared, (base, login, model.as_deref()), &setback);
    }
    end
}

/// Begins the cool-down of an account, or of one model of it; returns when it ends.
pub(super) fn begin(
    kept: &Cooldowns,
    shared: &SharedConfig,
    (base, login, model): (&str, LoginId, Option<&str>),
    setback: &Setback,
) -> std::io::Result<Option<TimestampMs>> {
    if !setback.cools_down() {
        return Ok(None);
    }
    let now = now_ms();
    let until = setback.again_at.unwrap_or_else(|| now + millis(shared.runs.cooldown));
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

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
