//! The cool-down of an agent that could not work, for later runs that may take another one.

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::app::up::TeamStart;
use crate::failover::cool_down;
use crate::jobs::run::work::work;
use crate::tiers::Cooldowns;
use crate::turn::WorkEnd;
use crate::turn::request::RunRequest;

/// Performs a run of an agent that was named. What sets it back is known to runs by tiers.
/// Its team closes meanwhile.
pub(super) async fn alone(
    start: TeamStart,
    request: &RunRequest,
    prompt: String,
    deadline: Option<Instant>,
    profile: Option<&str>,
    turn_ended: impl FnOnce(&WorkEnd),
) -> (WorkEnd, Option<JoinHandle<()>>) {
    let (shared, kept) = (start.layered.config.shared.clone(), Cooldowns::new(&start.eisen_dir));
    let agent = &start.layered.config.agents[0];
    let (model, provider) = (agent.model.clone(), agent.provider.name().map(str::to_owned));
    let (end, closing) = work(start, request, prompt, deadline, None, turn_ended).await;
    if let (Some(profile), Some(setback)) = (profile, end.setback()) {
        // It says what it came to; the cool-down is for others.
        let account = (profile, provider.as_deref());
        let _ = cool_down(&kept, &shared, account, model.as_deref(), &setback);
    }
    (end, closing)
}
