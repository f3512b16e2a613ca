//! The other teams of a hub, as one of them reaches them: its orchestrator agent and its persons prompt
//! agents there, give them tasks and decide what waits there, and an orchestrator there decides for it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::Subscriber;
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::hosts::Hosts;
use super::message::{kind, subject};
use super::names;
use super::presence::MOST;
use crate::model::{AgentId, Relayed};
use crate::routing::RoutingHandle;
use crate::serve::{BoxFuture, Refused, RemoteTeams};
use crate::tokens::{TokenRight, Visitor};
use crate::wire::{Facts, Method as _, PromptAgent};

/// When a briefing that could not be delivered is sent again.
const AGAIN: Duration = Duration::from_secs(2);

/// How long the first beat of a host may take.
const FIRST_BEAT: Duration = Duration::from_millis(2_500);

/// The other teams; none before the team is a member of a hub. Cheap to clone.
#[derive(Clone, Default, Debug)]
pub struct Neighbours(Arc<OnceLock<Reached>>);

#[derive(Debug)]
struct Reached {
    /// The team's own host.
    host: String,
    hosts: Arc<Hosts>,
    /// The hosts whose beats are heard: those that were asked. If each team heard all, their number would grow
    /// with its square.
    followed: Mutex<BTreeSet<String>>,
    /// Where these beats are read.
    beats: mpsc::UnboundedSender<Subscriber>,
}

impl Reached {
    async fn ask(
        &self,
        host: &str,
        by: Visitor,
        method: &'static Facts,
        params: Map<String, Value>,
    ) -> Result<Value, Refused> {
        if self.is_new(host) {
            let beats = self.hosts.sender.client.subscribe(subject(host, kind::BEAT)).await;
            let beats = beats.map_err(Refused::fault)?;
            // Fails only while the team ends.
            let _ = self.beats.send(beats);
        }
        let _ = timeout(FIRST_BEAT, self.hosts.heard(host)).await;
        self.hosts.ask(host, by, method, params).await
    }

    fn is_new(&self, host: &str) -> bool {
        let mut followed = self.followed.lock();
        followed.len() < MOST && followed.insert(host.to_owned())
    }
}

impl Neighbours {
    pub(super) fn reached(
        &self,
        host: &str,
        hosts: Arc<Hosts>,
        beats: mpsc::UnboundedSender<Subscriber>,
    ) {
        let (host, followed) = (host.to_owned(), Mutex::default());
        let _ = self.0.set(Reached { host, hosts, followed, beats });
    }

    /// The host of another team that params name.
    fn host_in(&self, method: &Facts, params: Option<&RawValue>) -> Option<String> {
        let own = &self.0.get()?.host;
        let mut params = fields(params)?;
        names::from_hub(&mut params, method).ok()?.filter(|host| host != own)
    }

    /// Prompts the orchestrator agent `HOST/AGENT` with what waits for it, until the team ends.
    pub async fn brief(self, lead: AgentId, routing: RoutingHandle) {
        let mut waiting = routing.waiting();
        waiting.mark_changed();
        while waiting.changed().await.is_ok() {
            let Some(text) = routing.briefing().await else { continue };
            match self.prompt(&lead, &text).await {
                Ok(_) => routing.briefed().await,
                Err(refused) => {
                    tracing::warn!(%lead, "a briefing failed, and will be sent again: {}", refused.message);
                    sleep(AGAIN).await;
                    routing.brief_again().await;
                }
            }
        }
    }

    async fn prompt(&self, agent: &AgentId, text: &str) -> Result<Value, Refused> {
        let away = || Refused::new(500, "the team is in no hub");
        let reached = self.0.get().ok_or_else(away)?;
        let (host, agent) = agent.as_str().split_once('/').ok_or_else(away)?;
        let params = json!({ "agent_id": agent, "text": text });
        let Value::Object(params) = params else { return Err(away()) };
        let (owner, may) = (reached.host.clone(), [TokenRight::Prompt].into());
        reached
            .ask(host, Visitor { owner, may, ..Visitor::default() }, &PromptAgent::FACTS, params)
            .await
    }
}

fn fields(params: Option<&RawValue>) -> Option<Map<String, Value>> {
    serde_json::from_str(params?.get()).ok()
}

impl RemoteTeams for Neighbours {
    fn is_hub(&self) -> bool {
        false
    }

    fn takes(&self, method: &Facts, params: Option<&RawValue>) -> bool {
        self.host_in(method, params).is_some()
    }

    fn standing(&self) -> Vec<Relayed> {
        Vec::new()
    }

    fn call<'a>(
        &'a self,
        by: Visitor,
        method: &'static Facts,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, Refused>> {
        Box::pin(async move {
            let away = || Refused::new(500, "the team is in no hub");
            let reached = self.0.get().ok_or_else(away)?;
            let own = &reached.host;
            let mut params = fields(params).unwrap_or_default();
            let host = names::from_hub(&mut params, method).map_err(Refused::wrong)?;
            let host = host.ok_or_else(away)?;
            let agent = by.agent.map(|agent| AgentId::new(format!("{own}/{agent}")));
            let by = Visitor { owner: format!("{own}/{}", by.owner), agent, ..by };
            let result = reached.ask(&host, by, method, params).await?;
            to_raw_value(&result).map_err(Refused::fault)
        })
    }
}
