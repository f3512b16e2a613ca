//! Accesses that an agent asks for before it tries them, the owners of paths, and questions to them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use eisen_base::task;
use tokio::sync::mpsc;

use super::task::RoutingMsg;
use super::task::questions::AskingMsg;
use super::{AccessAnswer, AccessScope, Making, OwnerQuestion, Request, RoutingHandle, Whose};
use crate::model::{
    AccessRule, Action, AgentId, BlockedId, OwnerAnswer, SessionId, SessionKey, Via, wire_path,
};
use crate::zone::Zone;

impl RoutingHandle {
    /// Puts an access before its decider, whether or not accesses are held. Once it is allowed, the
    /// next such access of the agent is. The agent asks in one of `sessions`: where there are
    /// several, the access belongs to none, and what is allowed for the session is for them all.
    /// None if the agent has no zone here, or routing has ended.
    pub async fn ask_access(
        &self,
        agent: AgentId,
        sessions: Vec<SessionId>,
        path: String,
        action: Action,
        reason: Arc<str>,
    ) -> Option<AccessAnswer> {
        let session = match &*sessions {
            [only] => only.clone(),
            _ => SessionId::new(""),
        };
        let key = SessionKey::new(agent, session);
        let Some(request) = self.asked(key, path, action, reason).await? else {
            return Some(AccessAnswer::Open);
        };
        let permit = self.lanes.enter(&request.key.agent).await;
        let message = |reply| RoutingMsg::Asking(AskingMsg::Access { request, sessions, reply });
        self.ask_from(permit, message).await
    }

    /// The questions to owners; None if they were taken before.
    pub fn take_questions(&self) -> Option<mpsc::Receiver<OwnerQuestion>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives the asker its answer, or says why there is none: then the access goes on as if its path
    /// had no owner.
    pub async fn owner_answered(
        &self,
        id: BlockedId,
        answer: Result<(OwnerAnswer, String), String>,
    ) {
        let _ = self.mailbox.send(RoutingMsg::OwnerAnswered { id, answer }.into()).await;
    }

    /// The rule of `[[routing]]` for an access that an agent would ask for.
    pub async fn rule_of_ask(
        &self,
        agent: AgentId,
        path: String,
        action: Action,
    ) -> Option<AccessRule> {
        let key = SessionKey::new(agent, SessionId::new(""));
        let request = self.asked(key, path, action, Arc::default()).await??;
        self.ask(|reply| RoutingMsg::Asking(AskingMsg::Rule { request, reply })).await.flatten()
    }

    /// The request of an agent that asks; None within if its zone allows the access.
    async fn asked(
        &self,
        key: SessionKey,
        path: String,
        action: Action,
        reason: Arc<str>,
    ) -> Option<Option<Request>> {
        let zone = self.zone_of(&key.agent).await?;
        let judged = judged(zone, path, move |zone, path| {
            zone.check(path, action).map(drop).map_err(|denied| {
                let denied_by = zone.denied_by(&denied.path);
                (denied, denied_by)
            })
        });
        let Err((denied, denied_by)) = judged.await? else { return Some(None) };
        Some(Some(Request {
            key,
            path: denied.path,
            action,
            via: Via::Request,
            scope: AccessScope::Path,
            making: Making::Nothing,
            hold: true,
            may_wait: true,
            grantable: denied.grantable,
            denied_by,
            caller: None,
            call: None,
            patience: None,
            reason: Some(reason),
            wanted: None,
        }))
    }

    /// Returns the owners of a path, and an agent's rights there; None if it has no zone here.
    pub async fn whose(&self, agent: &AgentId, path: String) -> Option<Whose> {
        let zone = self.zone_of(agent).await?;
        let judged = judged(zone, path, |zone, path| {
            let may = |action| zone.check(path, action).is_ok();
            let wire = wire_path(zone.workspace(), zone.workspace(), path);
            (wire, path.to_owned(), may(Action::Read), may(Action::Write))
        });
        let (path, file, may_read, may_write) = judged.await?;
        let wire = path.clone();
        let owners =
            self.ask(|reply| RoutingMsg::Asking(AskingMsg::Owners { path: wire, reply })).await?;
        Some(Whose { path, file, owners, may_read, may_write })
    }

    /// Returns the zones of all agents that have one.
    pub async fn zones(&self) -> HashMap<AgentId, Arc<Zone>> {
        let zones = self.ask(|reply| RoutingMsg::Asking(AskingMsg::Zones { reply })).await;
        zones.unwrap_or_default()
    }

    /// The zone of an agent; None: it has none here.
    pub async fn zone_of(&self, agent: &AgentId) -> Option<Arc<Zone>> {
        let agent = agent.clone();
        self.ask(|reply| RoutingMsg::Asking(AskingMsg::Zone { agent, reply })).await.flatten()
    }
}

/// Looks at a path in the workspace of a zone; reads the disk.
async fn judged<T: Send + 'static>(
    zone: Arc<Zone>,
    path: String,
    judge: impl FnOnce(&Zone, &Path) -> T + Send + 'static,
) -> Option<T> {
    let judging = move || judge(&zone, &zone.workspace().join(path));
    task::spawn_blocking(judging).await.ok()
}
