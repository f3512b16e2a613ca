//! Agents that agents start and add: helpers, which end with their task or their parent, and members
//! that the orchestrator adds within `may_add`.

use eisen_base::task;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::app::changes::{Changes, conflict, refused, unknown};
use crate::app::journal;
use crate::bus::{Received, Subscriber};
use crate::config::{Config, Layered, Overlay};
use crate::helpers::{may_take_branch, plain, table_of};
use crate::model::{AgentId, AgentStatus, Event, Order};
use crate::serve::{HelperEnd, NewHelper, NewMember, Refused, StartedHelper};
use crate::supervisor::Roster;
use crate::turn::command::TeamCommand;
use crate::turn::details;

impl Changes {
    pub(super) async fn start_helper(&mut self, new: NewHelper) -> Result<StartedHelper, Refused> {
        let NewHelper { parent, zone, branch, profile } = new;
        let Some(of) = self.current.agent(&parent) else { return Err(unknown(&parent)) };
        let (depth, most) = (of.depth + 1, self.current.team.max_depth);
        if depth > most {
            return Err(conflict(format!(
                "a helper of `{parent}` would be {depth} levels deep, and `[team] max_depth` is {most}: \
                 do the work yourself"
            )));
        }
        self.limits().may_spawn()?;
        let id = self.limits().free_id(&parent);
        let zone: Vec<_> = zone.iter().map(|pattern| plain(pattern)).collect();
        let mut table = table_of(json!({
            "id": id,
            "parent": parent.as_str(),
            "restart": { "policy": "never" },
        }));
        if !zone.is_empty() {
            table.insert("zone".to_owned(), json!({ "allowed": zone }));
        }
        if let Some(branch) = branch {
            may_take_branch(&self.current, of, &branch).await?;
            table.insert("worktree".to_owned(), json!({ "branch": plain(&branch.name) }));
        }
        if let Some(profile) = profile {
            table.insert("profile".to_owned(), plain(&profile).into());
        }
        let mut overlay = self.overlay.clone();
        overlay.add_helper(table.clone());
        let agent = self.add_by(overlay, &AgentId::new(id)).await?.agent;
        journal::spawned(self.journal(), &parent, depth, &table);
        let without = self.current.agent(&agent).map(|it| it.without.clone()).unwrap_or_default();
        Ok(StartedHelper { agent, without })
    }

    /// Records the end of a helper's task, and removes the helper with those that it started.
    pub(super) async fn end_helper(&mut self, end: &HelperEnd) -> Result<(), Refused> {
        let is_there = self.overlay.helpers().any(|(helper, _)| helper == end.agent);
        // Otherwise it left with its parent.
        let dropped = if is_there { self.drop_helper(&end.agent).await } else { Ok(()) };
        let usage = self.used.remove(&end.agent).unwrap_or_default();
        journal::completed(self.journal(), end, &usage);
        dropped
    }

    /// Has the helpers of agents that rest end with them, until `cancel`.
    pub(crate) async fn follow_rests(
        mut events: Subscriber,
        roster: Roster,
        changes: mpsc::Sender<TeamCommand>,
        cancel: CancellationToken,
    ) {
        while let Some(Some(received)) = cancel.run_until_cancelled(events.recv()).await {
            let resting = match received {
                Received::Event(_, event) => match &**event {
                    Event::Agent(status) if status.state.is_at_rest() => vec![status.agent.clone()],
                    _ => continue,
                },
                Received::Missed(_) => {
                    let resting = roster.statuses().into_iter().filter(|it| it.state.is_at_rest());
                    resting.map(|status| status.agent).collect()
                }
            };
            for agent in resting {
                let _ = changes.send(TeamCommand::Rests(agent)).await;
            }
        }
    }

    /// Stops the helpers of an agent that is at rest. Those that it started leave with the end of
    /// their task, which has what they used.
    pub(super) fn parent_rests(&self, parent: &AgentId) {
        let roster = self.supervisor.roster();
        let rests = |status: AgentStatus| status.state.is_at_rest();
        if !roster.get(parent).is_none_or(|agent| rests(agent.status())) {
            // It was started again meanwhile.
            return;
        }
        let agents = self.current.agents.iter();
        let helpers = agents.filter(|agent| agent.parent.as_ref() == Some(parent));
        for helper in helpers.filter_map(|agent| roster.get(&agent.id)) {
            let of_parent = format!("`{parent}`, which started it, has ended");
            self.conditions.runs.ends(helper.status().agent.as_str(), &of_parent);
            task::spawn(async move { helper.order(Order::Stop).await });
        }
    }

    async fn drop_helper(&mut self, helper: &AgentId) -> Result<(), Refused> {
        let mut overlay = self.overlay.clone();
        overlay.end_helper(helper);
        let layered = self.compile(self.source.clone(), overlay).await.map_err(refused)?;
        let mut config = self.current.clone();
        self.remove_orphans(&mut config, &layered).await;
        self.adopt(config, layered).await.map(drop)
    }

    /// Takes the helpers that are no longer there out of a configuration, and notes what they used.
    pub(super) async fn remove_orphans(&mut self, config: &mut Config, layered: &Layered) {
        let stay: Vec<_> = layered.overlay.helpers().map(|(helper, _)| helper).collect();
        let helpers = self.overlay.helpers().map(|(helper, _)| helper);
        let leave: Vec<_> = helpers.filter(|helper| !stay.contains(helper)).collect();
        config.agents.retain(|agent| !leave.contains(&agent.id));
        let roster = self.supervisor.roster();
        for helper in &leave {
            self.conditions.runs.ends(helper.as_str(), "what started it has ended");
        }
        let leave = leave.iter().filter_map(|helper| roster.get(helper)).collect();
        for helper in details::of_supervised(leave, &self.tracker).await {
            self.used.insert(helper.status.agent.clone(), details::usage_of(&helper));
        }
    }

    pub(super) async fn add_member(&mut self, new: NewMember) -> Result<AgentStatus, Refused> {
        let NewMember { id, profile, zone } = new;
        let agent = AgentId::new(id);
        if self.current.agent(&agent).is_some() {
            return Err(conflict(format!("agent `{agent}` exists already")));
        }
        self.limits().may_add(&profile, &zone)?;
        self.limits().may_spawn()?;
        let zone: Vec<_> = zone.iter().map(|pattern| plain(pattern)).collect();
        let table = table_of(json!({
            "id": agent.as_str(),
            "profile": plain(&profile),
            "zone": { "allowed": zone },
        }));
        let mut overlay = self.overlay.clone();
        overlay.add_for_lead(table.clone());
        let status = self.add_by(overlay, &agent).await?;
        journal::added(self.journal(), &table);
        Ok(status)
    }

    pub(super) async fn remove_member(&mut self, agent: AgentId) -> Result<AgentStatus, Refused> {
        if self.current.agent(&agent).is_none() {
            return Err(unknown(&agent));
        }
        if !self.overlay.by_lead().contains(agent.as_str()) {
            let message =
                format!("agent `{agent}` was not added by `add_member`: a person can remove it");
            return Err(Refused::new(403, message));
        }
        let removed = self.remove(agent.clone()).await?;
        journal::removed(self.journal(), agent.as_str());
        Ok(removed)
    }

    /// Counts anew what agents start: the team ends by itself.
    pub(crate) fn end(&self) {
        self.conditions.runs.close("its team has ended");
        let mut overlay = self.overlay.clone();
        overlay.forget_spawned();
        if !overlay.is_stored_as(&self.overlay)
            && let Err(error) = overlay.write(&self.kept())
        {
            tracing::warn!("{error}");
        }
    }

    /// Adds the agent that `overlay` has more.
    pub(super) async fn add_by(
        &mut self,
        overlay: Overlay,
        id: &AgentId,
    ) -> Result<AgentStatus, Refused> {
        let layered = self.compile(self.source.clone(), overlay).await.map_err(refused)?;
        // A table without an id was refused.
        let Some(agent) = layered.config.agent(id).cloned() else {
            return Err(Refused::wrong(format!("there is no agent `{id}`")));
        };
        let mut config = self.current.clone();
        config.agents.push(agent);
        self.adopt(config, layered).await?;
        let added = self.supervisor.roster().get(id);
        added.map(|agent| agent.status()).ok_or_else(|| unknown(id))
    }
}
