//! Changes of a running team: reload, added and removed agents. Applies one change after the other.

mod failover;
mod helpers;
mod reloaded;
mod runs;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::agent::Surroundings;
use crate::alert::Channel;
use crate::app::members::Conditions;
use crate::app::{budget, journal, limits, members, notices};
use crate::bus::Bus;
use crate::config::{Agent, AgentTable, Config, LayerError, Layered, Overlay, Plan, Source};
use crate::failover::setbacks::Setbacks;
use crate::helpers::StartLimits;
use crate::journal::Journal;
use crate::kernel::warn_of_tier;
use crate::model::{AgentId, AgentStatus};
use crate::program::note;
use crate::routing::RoutingHandle;
use crate::serve::{Refused, blocking};
use crate::supervisor::Supervisor;
use crate::team_file::load;
use crate::team_file::load::Candidates;
use crate::team_file::without_file;
use crate::tracker::TrackerHandle;

use crate::turn::command::TeamCommand;
use crate::wire::Reloaded;
pub(super) use failover::follow_setbacks;
use reloaded::on_wire;

/// Owns the configuration of a running team, and applies its changes one after the other.
pub(super) struct Changes {
    pub(super) supervisor: Supervisor,
    pub(super) routing: RoutingHandle,
    tracker: TrackerHandle,
    /// How the team notifies people.
    notices: watch::Sender<Vec<Channel>>,
    pub(super) conditions: Arc<Conditions>,
    pub(super) file: PathBuf,
    /// The configuration in effect.
    current: Config,
    /// The file that `current` was compiled from.
    source: Source,
    overlay: Overlay,
    /// Ids of the agents in the file.
    in_file: Vec<AgentId>,
    /// The current configuration, and each one that a running agent was started with.
    editions: BTreeMap<u64, Config>,
    /// The usage of helpers that have left, until the end of their tasks.
    used: HashMap<AgentId, Vec<serde_json::Value>>,
    bus: Bus,
    /// Agents that were set back.
    setbacks: HashMap<AgentId, Setbacks>,
}

impl Changes {
    pub(super) fn new(
        supervisor: Supervisor,
        surroundings: &Surroundings,
        notices: watch::Sender<Vec<Channel>>,
        conditions: Conditions,
        file: PathBuf,
        layered: Layered,
    ) -> Self {
        Self {
            supervisor,
            routing: surroundings.routing.clone(),
            tracker: surroundings.tracker.clone(),
            notices,
            conditions: Arc::new(conditions),
            file,
            editions: BTreeMap::from([(0, layered.config.clone())]),
            current: layered.config,
            source: layered.source,
            overlay: layered.overlay,
            in_file: ids(&layered.alone),
            used: HashMap::new(),
            bus: surroundings.bus.clone(),
            setbacks: HashMap::new(),
        }
    }

    /// The configuration in effect.
    pub(super) fn config(&self) -> &Config {
        &self.current
    }

    /// Applies changes until all senders are dropped.
    pub(super) async fn run(&mut self, mut commands: mpsc::Receiver<TeamCommand>) {
        // A reply fails if its client has disconnected; the change stays applied.
        while let Some(command) = commands.recv().await {
            match command {
                TeamCommand::Reload(reply) => {
                    let reloaded = self.reload().await;
                    let _ = reloaded.as_ref().map(|it| journal::reloaded(self.journal(), it));
                    let _ = reply.send(reloaded);
                }
                TeamCommand::Add(table, reply) => {
                    let added = self.add(table.clone()).await;
                    let _ = added.as_ref().map(|_| journal::added(self.journal(), &table));
                    let _ = reply.send(added);
                }
                TeamCommand::Remove(agent, reply) => {
                    let removed = self.remove(agent).await;
                    let _ = removed
                        .as_ref()
                        .map(|it| journal::removed(self.journal(), it.agent.as_str()));
                    let _ = reply.send(removed);
                }
                TeamCommand::StartHelper(helper, reply) => {
                    let _ = reply.send(self.start_helper(helper).await);
                }
                TeamCommand::StartRun(id, parent, spec, earlier, reply) => {
                    // It is large.
                    let started = self.start_run(id, &parent, *spec, earlier.as_deref());
                    let started = Box::pin(started).await;
                    let _ = reply.send(started);
                }
                TeamCommand::EndHelper(end, reply) => {
                    let _ = reply.send(self.end_helper(&end).await);
                }
                TeamCommand::AddMember(member, reply) => {
                    let _ = reply.send(self.add_member(member).await);
                }
                TeamCommand::RemoveMember(agent, reply) => {
                    let _ = reply.send(self.remove_member(agent).await);
                }
                TeamCommand::Rests(agent) => self.parent_rests(&agent),
                TeamCommand::SetBack(setback, reply) => {
                    // It is large.
                    let moved = Box::pin(self.set_back(*setback)).await;
                    let _ = reply.map(|reply| reply.send(moved));
                }
                TeamCommand::Works(agent) => self.works(&agent),
                TeamCommand::TryAgain(agent, reply) => {
                    let _ = reply.send(self.try_again(&agent).await);
                }
                TeamCommand::Patience(agent, reply) => {
                    let _ = reply.send(Ok(self.patience(&agent)));
                }
            }
        }
    }

    async fn reload(&mut self) -> Result<Reloaded, Refused> {
        let (file, eisen_dir) = (self.file.clone(), &self.conditions.eisen_dir);
        let unread = without_file::unread(&file, eisen_dir, &self.current.team.workspace);
        unread.map_or(Ok(()), |why| Err(conflict(why)))?;
        let source = blocking(move || Source::read(&file)).await?;
        let source = source.map_err(Refused::wrong)?;
        let layered =
            self.compile(source, self.overlay.clone()).await.map_err(|error| match error {
                LayerError::File(errors) => Refused::wrong(errors),
                LayerError::Unfit(mistakes) => Refused::wrong(format!(
                    "the configuration conflicts with agents added or removed over the port \
                     ({}: {}):\n{}",
                    self.kept().display(),
                    self.overlay.notes().join("; "),
                    mistakes.join("\n")
                )),
                LayerError::Kept(error) => Refused::fault(error),
            })?;
        let started = |id: &AgentId| {
            let edition = self.supervisor.roster().get(id)?.edition()?;
            self.editions.get(&edition)?.agent(id)
        };
        let plan = Plan::new(&self.current, &layered.config, started);
        let mut notes = layered.said.clone();
        notes.extend(layered.overlay.notes());
        if let Some(config) = plan.config {
            self.adopt(config, layered).await?;
        }
        Ok(Reloaded {
            applied: plan.applied.iter().map(on_wire).collect(),
            needs_restart: plan.needs_restart.iter().map(on_wire).collect(),
            notes,
        })
    }

    async fn add(&mut self, table: AgentTable) -> Result<AgentStatus, Refused> {
        let id = table.get("id").and_then(serde_json::Value::as_str).unwrap_or_default();
        let id = AgentId::new(id);
        if self.current.agent(&id).is_some() {
            return Err(conflict(format!("agent `{id}` exists already")));
        }
        let mut overlay = self.overlay.clone();
        overlay.add(table);
        self.add_by(overlay, &id).await
    }

    async fn remove(&mut self, id: AgentId) -> Result<AgentStatus, Refused> {
        if self.current.agent(&id).is_none() {
            return Err(unknown(&id));
        }
        if self.current.orchestrator.agent.as_ref() == Some(&id) {
            return Err(conflict(format!("agent `{id}` is the orchestrator: the team needs it")));
        }
        let needs = |agent: &&Agent| agent.depends_on.contains(&id);
        let others: Vec<_> = self.current.agents.iter().filter(needs).collect();
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(|other| format!("`{}`", other.id)).collect();
            let others = others.join(", ");
            return Err(conflict(format!("other agents depend on agent `{id}`: {others}")));
        }
        let started: Vec<_> = self.overlay.helpers().map(|(helper, _)| helper).collect();
        let is_helper =
            |agent: &&Agent| agent.parent.as_ref() == Some(&id) && !started.contains(&agent.id);
        if let Some(helper) = self.current.agents.iter().find(is_helper) {
            return Err(conflict(format!("agent `{}` is a helper of agent `{id}`", helper.id)));
        }
        let mut overlay = self.overlay.clone();
        overlay.remove(&id, self.in_file.contains(&id));
        let layered = self.compile(self.source.clone(), overlay).await.map_err(refused)?;
        let mut config = self.current.clone();
        config.agents.retain(|agent| agent.id != id);
        self.remove_orphans(&mut config, &layered).await;
        let last = self.adopt(config, layered).await?;
        last.into_iter().find(|status| status.agent == id).ok_or_else(|| unknown(&id))
    }

    /// Applies a new configuration, compiled from `layered`. Returns the last status of each
    /// removed agent.
    async fn adopt(
        &mut self,
        mut config: Config,
        layered: Layered,
    ) -> Result<Vec<AgentStatus>, Refused> {
        let order = ids(&layered.config);
        config.agents.sort_by_key(|agent| {
            order.iter().position(|id| *id == agent.id).unwrap_or(order.len())
        });
        let edition = self.editions.last_key_value().map_or(0, |(last, _)| last + 1);
        let trees = self.conditions.trees.make(&config, note).await;
        let trees = trees.map_err(|error| conflict(format!("{error:#}")));
        let keys = Box::pin(self.conditions.providers.ready(&config)).await;
        let trees = trees.and(keys.map_err(|error| conflict(format!("{error:#}"))));
        let (conditions, next) = (Arc::clone(&self.conditions), config.clone());
        let members = blocking(move || conditions.members(&next, edition)).await?;
        let members = members.map_err(|error| Refused::wrong(format!("{error:#}")));
        let ready = trees.and(members);
        let (members, rules) =
            ready.inspect_err(|_| self.conditions.trees.keep_those_of(&self.current))?;
        if !layered.overlay.is_stored_as(&self.overlay) {
            let (overlay, kept) = (layered.overlay.clone(), self.kept());
            blocking(move || overlay.write(&kept)).await?.map_err(Refused::fault)?;
        }

        let is_new = |agent: &&Agent| self.current.agent(&agent.id).is_none();
        let (kernel, mode) = (&self.conditions.kernel, self.conditions.mode);
        warn_of_tier(kernel, mode, config.agents.iter().filter(is_new));
        // The change is accepted: it stays applied even if the team stops before it is complete.
        self.current = config.clone();
        self.editions.insert(edition, config);
        (self.source, self.overlay) = (layered.source, layered.overlay);
        self.in_file = ids(&layered.alone);

        let channels = notices::channels(&self.current);
        self.notices.send_if_modified(|now| {
            let is_new = *now != channels;
            *now = channels;
            is_new
        });
        budget::configure(&self.conditions.budgets, &self.current);
        self.conditions.owners.configure(&self.current);
        self.routing.change(rules).await;
        if let (Some(conflicts), Some(rules)) = (
            &self.conditions.conflicts,
            members::conflicts(&self.current, self.conditions.mode.unattended),
        ) {
            conflicts.change(rules);
        }
        self.supervisor.set_capacity(limits::capacity(&self.current));
        let left = self.supervisor.assemble(members).await;
        self.conditions.trees.keep_those_of(&self.current);
        self.conditions.providers.keep_those_of(&self.current);
        self.forget_finished(edition);
        Ok(left)
    }

    async fn compile(&self, source: Source, overlay: Overlay) -> Result<Layered, LayerError> {
        self.compile_with(source, overlay, self.candidates()).await
    }

    /// Compiles with the candidates that agents of tiers take.
    async fn compile_with(
        &self,
        source: Source,
        overlay: Overlay,
        taken: Candidates,
    ) -> Result<Layered, LayerError> {
        let conditions = Arc::clone(&self.conditions);
        let compile = move || {
            let dir = &conditions.eisen_dir;
            load::compile(&source, dir, &overlay, &taken)
        };
        match blocking(compile).await {
            Ok(layered) => layered,
            Err(refused) => Err(LayerError::Unfit(vec![refused.message])),
        }
    }

    /// Drops configurations that no agent runs by.
    fn forget_finished(&mut self, current: u64) {
        let roster = self.supervisor.roster();
        let used: Vec<_> =
            ids(&self.current).iter().filter_map(|id| roster.get(id)?.edition()).collect();
        self.editions.retain(|edition, _| *edition == current || used.contains(edition));
    }

    /// The limits of what agents start.
    fn limits(&self) -> StartLimits<'_> {
        StartLimits { config: &self.current, overlay: &self.overlay }
    }

    fn journal(&self) -> Option<&Journal> {
        self.conditions.journal.as_ref()
    }

    fn kept(&self) -> PathBuf {
        Overlay::path(&self.conditions.eisen_dir, &self.current.team.name)
    }
}

fn ids(config: &Config) -> Vec<AgentId> {
    config.agents.iter().map(|agent| agent.id.clone()).collect()
}

fn refused(error: LayerError) -> Refused {
    match error {
        LayerError::Kept(error) => Refused::fault(error),
        error => Refused::wrong(error),
    }
}

fn conflict(message: String) -> Refused {
    Refused::new(409, message)
}

fn unknown(id: &AgentId) -> Refused {
    Refused::new(404, format!("there is no agent `{id}`"))
}
