//! A hub: hears the teams of all hosts, and is one team to the clients of its port.

use std::collections::HashMap;
use std::sync::Arc;

use async_nats::{Message, Subscriber};
use eisen_base::task;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::hosts::Hosts;
use super::key::HubKey;
use super::merged_answers;
use super::message::{self, Beat, Chunk, Sender, Sync, kind, subject};
use super::mirror::{AfterLine, Mirror};
use super::names;
use super::nats;
use super::presence::{BeatNews, EVERY, SILENCE};
use super::upstream::{Taken, Upstream};
use crate::bus::Bus;
use crate::journal::Journal;
use crate::model::{
    AgentId, AgentStatus, BlockedAccess, BlockedId, BlockedStatus, NatsAccess, Relayed, UsageReport,
};
use crate::routing::{Decider, Decision, ResolveError};
use crate::serve::{AgentDetails, BoxFuture, Refused, RemoteTeams, Sources, Team};
use crate::session::{Answer, Registry, RegistryError, RegistryRequest};
use crate::tokens::{ScopedTokens, TokenRight, Visitor};
use crate::tracker::Snapshots;
use crate::watch::GraphState;
use crate::wire::{AtHub, Facts, ListAgents, ListBlocked, ListConflicts, Method as _};

#[derive(Debug)]
pub struct HubSettings {
    pub access: NatsAccess,
    pub key: HubKey,
    /// The bus of the hub's own port.
    pub bus: Bus,
    pub tokens: Option<ScopedTokens>,
}

/// The sources of a hub's port. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Hub(Arc<HubState>);

#[derive(Debug)]
struct HubState {
    hosts: Hosts,
    mirror: Mirror,
    tokens: Option<ScopedTokens>,
}

impl Hub {
    /// Connects, also later; the future hears the teams until `cancel`.
    pub async fn start(
        settings: HubSettings,
        cancel: CancellationToken,
    ) -> anyhow::Result<(Self, impl Future<Output = ()> + Send)> {
        let HubSettings { access, key, bus, tokens } = settings;
        let (client, _) =
            nats::connect(&access, "eisen-core hub".to_owned(), "_INBOX._hub".to_owned()).await?;
        let up = client.subscribe(subject("*", kind::UP)).await?;
        let hub = Self(Arc::new(HubState {
            hosts: Hosts::new(Sender { client, key }),
            mirror: Mirror::new(bus),
            tokens,
        }));
        let listening = Listening { hub: hub.clone(), upstreams: HashMap::new(), is_warned: false };
        Ok((hub, async move {
            cancel.run_until_cancelled(listening.run(up)).await;
        }))
    }

    async fn perform(
        &self,
        by: Visitor,
        method: &'static Facts,
        params: Option<&RawValue>,
    ) -> Result<Value, Refused> {
        let wrong = |message: String| Refused::wrong(message);
        let params = params.map_or("{}", RawValue::get);
        let mut params: Map<String, Value> = serde_json::from_str(params)
            .map_err(|_| wrong("params: must be an object".to_owned()))?;
        if let Some(host) = names::from_hub(&mut params, method).map_err(wrong)? {
            return self.0.hosts.ask(&host, by, method, params).await;
        }
        let merge = match method.hub {
            AtHub::All(merge) => merge,
            AtHub::Graph => {
                let message = "a hub has no code graph of its own: give `host`";
                return Err(Refused::new(404, message));
            }
            AtHub::One | AtHub::Port => {
                let message = format!(
                    "`{}` is for one host: name an agent as `HOST/AGENT`, an id as `HOST/ID`, or give \
                     `host`",
                    method.name
                );
                return Err(wrong(message));
            }
        };
        let hosts = self.0.hosts.names();
        let asked =
            hosts.iter().map(|host| self.0.hosts.ask(host, by.clone(), method, params.clone()));
        let answers = join_all(asked).await;
        let mut all: Option<Value> = None;
        let mut refused = None;
        for (host, answer) in hosts.iter().zip(answers) {
            let answer = match answer {
                Ok(answer) => {
                    if method.name == ListAgents::FACTS.name {
                        self.0.mirror.listed(host, &answer);
                    }
                    answer
                }
                // Its agents are shown as they were.
                Err(error) => {
                    refused = refused.or(Some(error));
                    let agents =
                        (method.name == ListAgents::FACTS.name).then(|| self.0.mirror.agents(host));
                    let Some(agents) = agents.flatten() else { continue };
                    agents
                }
            };
            match &mut all {
                Some(all) => merged_answers::add(all, answer),
                None => all = Some(answer),
            }
        }
        match (all, refused) {
            (Some(mut all), _) => {
                merged_answers::sort(merge, &mut all);
                Ok(all)
            }
            (None, Some(refused)) => Err(refused),
            (None, None) => Ok(json!([])),
        }
    }

    /// Tells clients what became of accesses and writes that a new feed did not repeat.
    async fn tell_settled(self, host: String, gone: Vec<Relayed>) {
        let by = Visitor {
            owner: "hub".to_owned(),
            may: [TokenRight::Read].into(),
            ..Visitor::default()
        };
        let mut listed = Vec::new();
        let lists = [(&ListBlocked::FACTS, ""), (&ListConflicts::FACTS, "/conflicts")];
        for (method, list) in lists {
            let asked = self.0.hosts.ask_team(&host, by.clone(), method, Map::new()).await;
            let mut answer = asked.unwrap_or_default();
            let items = answer.pointer_mut(list).and_then(Value::as_array_mut);
            listed.append(items.unwrap_or(&mut Vec::new()));
        }
        for waited in gone {
            self.0.mirror.settled(&host, waited, &listed);
        }
    }
}

/// Hears the teams.
struct Listening {
    hub: Hub,
    upstreams: HashMap<String, Upstream>,
    /// A message with another key was logged.
    is_warned: bool,
}

impl Listening {
    async fn run(mut self, mut up: Subscriber) {
        let mut ticks = interval(EVERY);
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => self.look_for_gone(),
                message = up.next() => match message {
                    Some(message) => self.message(&message).await,
                    None => return,
                },
            }
        }
    }

    fn look_for_gone(&mut self) {
        let gone = self.hub.0.hosts.gone();
        for host in gone {
            tracing::warn!(host, "the team of this host is not heard any more");
            if let Some(upstream) = self.upstreams.get_mut(&host) {
                upstream.lose();
            }
            let why = format!("the host `{host}` is not heard for {} s", SILENCE.as_secs());
            self.hub.0.mirror.away(&host, &why);
        }
    }

    async fn message(&mut self, message: &Message) {
        let Some((host, kind)) = message::parts_of(message.subject.as_str()) else { return };
        let key = &self.hub.0.hosts.sender.key;
        let heard = match kind {
            kind::BEAT => match message::read::<Beat>(message, key) {
                Some((beat, _)) => {
                    let host = host.to_owned();
                    self.beat(host, beat).await;
                    true
                }
                None => false,
            },
            kind::LIVE => match message::read::<Chunk>(message, key) {
                Some((chunk, bytes)) => {
                    let host = host.to_owned();
                    self.chunk(&host, &chunk, &bytes).await;
                    true
                }
                None => false,
            },
            _ => true,
        };
        if !heard && !self.is_warned {
            self.is_warned = true;
            tracing::warn!(
                subject = message.subject.as_str(),
                "a message is not signed with this hub's key, hub.key: its teams need the same one"
            );
        }
    }

    async fn beat(&mut self, host: String, beat: Beat) {
        let news = self.hub.0.hosts.beat(&host, beat.clone());
        match news {
            BeatNews::Known => {}
            BeatNews::Late => return,
            BeatNews::New => tracing::info!(host, team = beat.team, "a team is there"),
            BeatNews::Ended => {
                tracing::info!(host, team = beat.team, "a team has ended");
                self.upstreams.remove(&host);
                self.hub.0.mirror.end(&host);
                return;
            }
            BeatNews::Taken => {
                tracing::debug!(host, team = beat.team, "another team has this name of a host");
                return;
            }
            BeatNews::TooMany => {
                tracing::warn!(host, "there are too many hosts: this one is not heard");
                return;
            }
        }
        let upstream = self.upstreams.entry(host.clone()).or_default();
        if upstream.is_lost(&beat) {
            upstream.lose();
            self.sync(&host, beat.epoch, beat.feed).await;
        }
    }

    /// Asks for the whole state.
    async fn sync(&self, host: &str, epoch: String, feed: u64) {
        let to = subject(host, kind::SYNC);
        let sent = self.hub.0.hosts.sender.send(to, &Sync { epoch, feed }, &[]).await;
        if let Err(error) = sent {
            tracing::debug!(?error, host, "cannot ask for the state of a host");
        }
    }

    async fn chunk(&mut self, host: &str, chunk: &Chunk, bytes: &[u8]) {
        // Of a team that is not there, or that wants the name of another.
        if !self.hub.0.hosts.is_start(host, &chunk.epoch) {
            return;
        }
        let upstream = self.upstreams.entry(host.to_owned()).or_default();
        let (begins, lines) = match upstream.chunk(chunk, bytes) {
            Taken::Lines { begins, lines } => (begins, lines),
            Taken::Nothing => return,
            Taken::Gap => return self.sync(host, chunk.epoch.clone(), chunk.feed).await,
        };
        let mirror = &self.hub.0.mirror;
        if begins {
            mirror.begin(host);
        }
        for line in lines {
            match mirror.line(host, &line) {
                Ok(AfterLine::Nothing) => {}
                Ok(AfterLine::Settled(gone)) if gone.is_empty() => {}
                Ok(AfterLine::Settled(gone)) => {
                    task::spawn(self.hub.clone().tell_settled(host.to_owned(), gone));
                }
                Err(error) => {
                    tracing::warn!(host, "the lines of this host can't be followed: {error}");
                    upstream.lose();
                    return;
                }
            }
        }
    }
}

impl RemoteTeams for Hub {
    fn is_hub(&self) -> bool {
        true
    }

    fn takes(&self, _: &Facts, _: Option<&RawValue>) -> bool {
        true
    }

    fn standing(&self) -> Vec<Relayed> {
        self.0.mirror.standing()
    }

    fn call<'a>(
        &'a self,
        by: Visitor,
        method: &'static Facts,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Refused>> {
        Box::pin(async move {
            let result = self.perform(by, method, params).await?;
            to_raw_value(&result).map_err(Refused::fault)
        })
    }
}

impl Sources for Hub {
    fn snapshots(&self) -> BoxFuture<'_, Snapshots> {
        Box::pin(async { self.0.mirror.snapshots() })
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(async { Vec::new() })
    }

    fn blocked(&self, _: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        Box::pin(async { Vec::new() })
    }

    fn resolve(
        &self,
        id: BlockedId,
        _: Decision,
        _: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(async { Err(ResolveError::Unknown(id)) })
    }

    fn graph(&self, _: bool) -> BoxFuture<'_, GraphState> {
        Box::pin(async { GraphState::Off })
    }

    fn journal(&self) -> Option<Journal> {
        None
    }

    fn scoped_tokens(&self) -> Option<ScopedTokens> {
        self.0.tokens.clone()
    }

    fn elsewhere(&self) -> Option<&dyn RemoteTeams> {
        Some(self)
    }

    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>> {
        // It has no session of its own.
        Box::pin(async move { Registry::default().answer(request, 0) })
    }
}

impl Team for Hub {
    fn agents(&self) -> Vec<AgentStatus> {
        Vec::new()
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        Box::pin(async { Vec::new() })
    }

    fn keeps(&self, _: &AgentId) -> bool {
        false
    }

    fn refusal(&self) -> Refused {
        Refused::new(409, "this is for the port of a team, and this one is a hub's".to_owned())
    }
}
