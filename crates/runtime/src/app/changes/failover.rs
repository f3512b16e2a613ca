//! Agents that have a tier: where one's candidate can't work, the next one takes over.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use eisen_base::task;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::app::changes::{Changes, refused, unknown};
use crate::app::journal;
use crate::bus::{Received, Subscriber};
use crate::config::{AgentTier, TierCandidate};
use crate::failover::candidates::Untried;
use crate::failover::cool_down;
use crate::failover::handover::{PastWork, record};
use crate::failover::past_work::look_at;
use crate::failover::setbacks::{Move, SetBackAt, Setbacks};
use crate::failover::told::{Failed, is_none_left, told};
use crate::model::{AgentId, AgentState, AgentStatus, Event, Order, TimestampMs, now_ms};
use crate::serve::Refused;
use crate::supervisor::Roster;
use crate::team_file::load::Candidates;
use crate::tiers::{Cooldowns, Setback};
use crate::turn::command::request;
use crate::turn::command::{SetBack, TeamCommand};

/// The shortest time after which an agent tries its tier again by itself.
const TRY_AGAIN: Duration = Duration::from_secs(1);

impl Changes {
    /// The candidates that agents have now.
    pub(super) fn candidates(&self) -> Candidates {
        let agents = self.current.agents.iter();
        let own = agents.filter_map(|it| Some((it.id.to_string(), it.candidate.clone()?)));
        own.collect()
    }

    /// Begins the cool-down of a candidate, and has the next one take over.
    pub(super) async fn set_back(&mut self, of: SetBack) -> Result<Move, Refused> {
        let SetBack { agent: id, reason, of } = of;
        let Some((tier, candidate)) = self.tier_of(&id) else { return Ok(Move::Stays) };
        let Some(setback) = Setback::of(&reason, now_ms()) else { return Ok(Move::Stays) };
        let Some(handle) = self.supervisor.roster().get(&id) else { return Err(unknown(&id)) };
        let status = handle.status();
        let known = self.setbacks.entry(id.clone()).or_default();
        let patience = self.current.shared.runs.patience;
        if let Some(stays) = known.stays(&of, &status, &setback, patience) {
            return Ok(stays);
        }
        let kept = Cooldowns::new(&self.conditions.eisen_dir);
        let account = (candidate.profile.as_str(), candidate.provider.as_deref());
        let model = candidate.model.as_deref();
        let cooled = cool_down(&kept, &self.current.shared, account, model, &setback);
        let again_at = cooled.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot keep the cool-down of {candidate}");
            setback.again_at
        });
        let failed = Failed { candidate, what: setback.what.to_owned(), again_at };
        let reason = told(&failed);
        let past = self.past(&id, &failed, &of).await;
        let known = self.setbacks.entry(id.clone()).or_default();
        known.fell_back(failed);
        let (next, skipped) = self.next(&id, &tier);
        let Some(next) = next else { return Ok(self.exhaust(&id, &tier, &skipped).await) };
        if let Some(past) = past {
            handle.hand_over(record(&past));
        }
        tracing::warn!(agent = %id, "{reason}: goes on with {next}");
        self.move_to(&id, &tier.name, next, Some(&reason)).await?;
        Ok(Move::Moved)
    }

    /// An agent that was set back works: its candidates may be tried anew.
    pub(super) fn works(&mut self, agent: &AgentId) {
        if let Some(known) = self.setbacks.get_mut(agent) {
            known.works();
        }
    }

    /// Has an agent of which no candidate could work take one that can. Answers when one may, if none can.
    pub(super) async fn try_again(&mut self, id: &AgentId) -> Result<Option<TimestampMs>, Refused> {
        let Some((tier, _)) = self.tier_of(id) else { return Ok(None) };
        let status = self.supervisor.roster().get(id).map(|handle| handle.status());
        if status.is_none_or(|status| status.state != AgentState::Error) {
            return Ok(None);
        }
        let (next, skipped) = self.next(id, &tier);
        let Some(next) = next else {
            return Ok(skipped.iter().filter_map(|it| it.again_at).min());
        };
        self.works(id);
        tracing::info!(agent = %id, "tries again with {next}");
        self.move_to(id, &tier.name, next, None).await.map(|()| None)
    }

    /// How long an agent may show no progress before another candidate takes over; None if none can.
    pub(super) fn patience(&self, id: &AgentId) -> Option<Duration> {
        let longest = self.current.shared.runs.silence;
        let (tier, own) = self.tier_of(id)?;
        self.untried(id, &tier).silence(&own, longest)
    }

    fn tier_of(&self, id: &AgentId) -> Option<(AgentTier, TierCandidate)> {
        let agent = self.current.agent(id)?;
        let tier = self.current.shared.tier(agent.tier.as_ref()?)?;
        Some((tier.clone(), agent.candidate.clone()?))
    }

    /// The candidate that can be taken now, and those that can't.
    pub(super) fn next(
        &self,
        id: &AgentId,
        tier: &AgentTier,
    ) -> (Option<TierCandidate>, Vec<Failed>) {
        let (next, skipped) = self.untried(id, tier).next();
        (next.map(|standing| standing.candidate), skipped)
    }

    fn untried(&self, id: &AgentId, tier: &AgentTier) -> Untried {
        let kept = Cooldowns::new(&self.conditions.eisen_dir);
        let tried = self.setbacks.get(id).map_or(&[][..], Setbacks::tried);
        let untried = Untried::look(&self.current.shared, tier, &kept, tried);
        if let Some(error) = &untried.trouble {
            tracing::warn!(%error, "cannot read the cool-downs, so none counts");
        }
        untried
    }

    /// The work of an agent in the session whose turn failed.
    async fn past(&self, id: &AgentId, failed: &Failed, of: &SetBackAt) -> Option<PastWork> {
        let SetBackAt::Turn { session: Some(session), .. } = of else { return None };
        let journal = self.journal()?;
        // What it did last is to be read, too.
        let _ = journal.settled(self.bus.position()).await;
        let path = journal.settings().path.clone();
        let done = look_at(path, id.to_string(), Some(session.clone())).await;
        let (candidate, what) = (failed.candidate.to_string(), failed.what.clone());
        let agent = id.to_string();
        Some(PastWork { agent, candidate, what, done: Some(done), ..PastWork::default() })
    }

    async fn exhaust(&mut self, id: &AgentId, tier: &AgentTier, skipped: &[Failed]) -> Move {
        let known = self.setbacks.entry(id.clone()).or_default();
        let why = known.exhaust(&tier.name, skipped);
        let payload = json!({
            "by": "failover",
            "agent_id": id.as_str(),
            "tier": tier.name,
            "candidate": null,
            "reason": why,
        });
        journal::moved(self.journal(), &payload);
        if let Some(handle) = self.supervisor.roster().get(id) {
            handle.fail(why.clone()).await;
        }
        Move::Exhausted(why)
    }

    /// Restarts an agent with a candidate of its tier.
    async fn move_to(
        &mut self,
        id: &AgentId,
        tier: &str,
        next: TierCandidate,
        reason: Option<&str>,
    ) -> Result<(), Refused> {
        let kept = Cooldowns::new(&self.conditions.eisen_dir);
        if let Err(error) = kept.take(tier, &next.key(), now_ms()) {
            tracing::warn!(%error, "cannot note which candidate of a tier is taken");
        }
        let mut taken: BTreeMap<_, _> = self.candidates();
        let from = taken.insert(id.to_string(), next.clone());
        let layered = self.compile_with(self.source.clone(), self.overlay.clone(), taken).await;
        let layered = layered.map_err(refused)?;
        let mut config = self.current.clone();
        let own = config.agents.iter_mut().find(|agent| agent.id == *id);
        let (Some(own), Some(new)) = (own, layered.config.agent(id)) else {
            return Err(unknown(id));
        };
        own.clone_from(new);
        self.adopt(config, layered).await?;
        let edition = self.editions.last_key_value().map_or(0, |(last, _)| *last);
        self.setbacks.entry(id.clone()).or_default().moved(edition);
        let payload = json!({
            "by": "failover",
            "agent_id": id.as_str(),
            "tier": tier,
            "from": from.map(|from| from.to_string()),
            "candidate": next.to_string(),
            "reason": reason,
        });
        journal::moved(self.journal(), &payload);
        let handle = self.supervisor.roster().get(id).ok_or_else(|| unknown(id))?;
        let ordered = handle.order(Order::Restart).await;
        ordered.map(drop).map_err(|error| Refused::new(409, error.to_string()))
    }
}

/// Has agents of tiers move on where their candidates can't work, until `cancel`.
pub(crate) async fn follow_setbacks(
    mut events: Subscriber,
    roster: Roster,
    changes: mpsc::Sender<TeamCommand>,
    cancel: CancellationToken,
) {
    let mut set_back: HashSet<AgentId> = HashSet::new();
    while let Some(Some(received)) = cancel.run_until_cancelled(events.recv()).await {
        let Received::Event(_, event) = received else {
            for status in roster.statuses() {
                came_to_rest(&status, &changes, &cancel).await;
            }
            continue;
        };
        let command = match &**event {
            Event::Turn(end) => {
                let agent = &end.key.agent;
                let handle = roster.get(agent).filter(|it| it.status().candidate.is_some());
                let Some(edition) = handle.and_then(|handle| handle.edition()) else { continue };
                let session = Some(end.key.session.to_string());
                let of = SetBackAt::Turn { session, edition };
                match end.reason.as_deref().and_then(|reason| report(agent, reason, of)) {
                    Some(report) => {
                        set_back.insert(agent.clone());
                        report
                    }
                    None if set_back.remove(agent) => TeamCommand::Works(agent.clone()),
                    None => continue,
                }
            }
            Event::Agent(status) => {
                came_to_rest(status, &changes, &cancel).await;
                continue;
            }
            _ => continue,
        };
        let _ = changes.send(command).await;
    }
}

/// Has an agent move on that could not start, and one that has no candidate left try again later.
async fn came_to_rest(
    status: &AgentStatus,
    changes: &mpsc::Sender<TeamCommand>,
    cancel: &CancellationToken,
) {
    let Some(reason) = &status.reason else { return };
    if status.state != AgentState::Error || status.candidate.is_none() {
        return;
    }
    if is_none_left(reason) {
        let again = again(status.agent.clone(), changes.clone());
        task::spawn(cancel.clone().run_until_cancelled_owned(again));
    } else if let Some(command) =
        report(&status.agent, reason, SetBackAt::Start(status.timestamp_ms))
    {
        let _ = changes.send(command).await;
    }
}

fn report(agent: &AgentId, reason: &str, of: SetBackAt) -> Option<TeamCommand> {
    Setback::of(reason, now_ms())?;
    let setback = SetBack { agent: agent.clone(), reason: reason.to_owned(), of };
    Some(TeamCommand::SetBack(Box::new(setback), None))
}

/// Tries an agent's tier again as soon as a candidate may work.
async fn again(agent: AgentId, changes: mpsc::Sender<TeamCommand>) {
    let mut wait = TRY_AGAIN;
    loop {
        tokio::time::sleep(wait).await;
        let asked = request(&changes, |reply| TeamCommand::TryAgain(agent.clone(), reply)).await;
        let Ok(Some(at)) = asked else { return };
        wait = Duration::from_millis(at.saturating_sub(now_ms())).max(TRY_AGAIN);
    }
}
