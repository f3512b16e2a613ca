//! The hosts that were heard, and what they are asked.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::forward::{self, Errand};
use super::merged_answers;
use super::message::{Beat, Sender};
use super::names;
use super::presence::{BeatNews, Presence};
use crate::model::{AgentId, now_ms};
use crate::serve::Refused;
use crate::tokens::Visitor;
use crate::wire::{AtHub, Facts};

/// How long a host may say nothing that is asked for a list, or for something else.
const SOON: Duration = Duration::from_secs(3);
const LATER: Duration = Duration::from_secs(12);

/// A beat of a clock that differs by more is not heard: it may be recorded, and sent again.
const SKEW_MS: u64 = 60_000;

#[derive(Debug)]
pub(super) struct Hosts {
    pub(super) sender: Sender,
    presence: Mutex<Presence>,
    /// A beat was heard.
    heard: watch::Sender<()>,
}

impl Hosts {
    pub(super) fn new(sender: Sender) -> Self {
        Self { sender, presence: Mutex::default(), heard: watch::Sender::default() }
    }

    /// Waits until a host was heard once.
    pub(super) async fn heard(&self, host: &str) {
        let mut heard = self.heard.subscribe();
        let _ = heard.wait_for(|()| self.presence.lock().get(host).is_some()).await;
    }

    pub(super) fn beat(&self, host: &str, beat: Beat) -> BeatNews {
        if is_old(&beat) {
            return BeatNews::Late;
        }
        let news = self.presence.lock().beat(host, beat, Instant::now());
        self.heard.send_replace(());
        news
    }

    /// Returns the hosts that are silent for too long since now.
    pub(super) fn gone(&self) -> Vec<String> {
        self.presence.lock().gone(Instant::now())
    }

    /// Whether this is the start of the team that is heard as this host now. What a team says before its first
    /// beat is not taken: it would be shown as being there, and could not be asked.
    pub(super) fn is_start(&self, host: &str, epoch: &str) -> bool {
        let presence = self.presence.lock();
        presence.get(host).is_some_and(|heard| !heard.is_away && heard.beat.epoch == epoch)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.presence.lock().hosts().cloned().collect()
    }

    /// Has one host perform a method; names in the result are those of a hub.
    pub(super) async fn ask(
        &self,
        host: &str,
        by: Visitor,
        method: &'static Facts,
        params: Map<String, Value>,
    ) -> Result<Value, Refused> {
        let mut result = self.ask_team(host, by, method, params).await?;
        names::result_to_hub(&mut result, method, host);
        for item in merged_answers::items(method, &mut result) {
            if let Value::Object(item) = item {
                item.insert("host".to_owned(), host.into());
            }
        }
        Ok(result)
    }

    /// Has one host perform a method; names in the result are those of its team.
    pub(super) async fn ask_team(
        &self,
        host: &str,
        by: Visitor,
        method: &'static Facts,
        params: Map<String, Value>,
    ) -> Result<Value, Refused> {
        let by = self.of_host(host, by)?;
        let params = to_raw_value(&params).map_err(Refused::fault)?;
        let patience = if matches!(method.hub, AtHub::All(_)) { SOON } else { LATER };
        let errand = Errand { host, by, method: method.name, params, patience };
        let standing = || {
            let presence = self.presence.lock();
            let heard = presence.get(host).filter(|heard| !heard.is_away)?;
            Some((heard.beat.epoch.clone(), heard.beat.number))
        };
        let result = forward::ask(&self.sender, errand, standing).await?;
        serde_json::from_str(result.get()).map_err(Refused::fault)
    }

    /// Returns a visitor as one host is to see it.
    fn of_host(&self, host: &str, by: Visitor) -> Result<Visitor, Refused> {
        let presence = self.presence.lock();
        if presence.get(host).is_none() {
            let known: Vec<_> = presence.hosts().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("there is no host `{host}`; there are: {known}");
            return Err(Refused::new(404, message));
        }
        let agents = by.agents.map(|agents| {
            let own = agents.iter().filter_map(|agent| agent.as_str().split_once('/'));
            own.filter(|(of, _)| *of == host).map(|(_, agent)| AgentId::new(agent)).collect()
        });
        Ok(Visitor { agents, ..by })
    }
}

/// Whether a beat is too old, or of the future.
pub(super) fn is_old(beat: &Beat) -> bool {
    let is_off = now_ms().abs_diff(beat.timestamp_ms) > SKEW_MS;
    if is_off {
        tracing::debug!(team = beat.team, "a beat is old, or the clocks of two hosts differ");
    }
    is_off
}
