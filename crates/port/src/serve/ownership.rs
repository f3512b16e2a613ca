//! Owns whose the sessions and tasks are that callers begin.

use super::remote_teams::PERSON;
use super::shared::Shared;
use super::{Caller, Team};
use crate::model::SessionKey;
use crate::session::RegistryRequest;
use crate::tokens::TokenHolder;

/// The owner of the token with a scope that a caller showed.
fn of_token(caller: Option<&Caller>) -> Option<&str> {
    let Some(Caller::Holder(holder)) = caller else { return None };
    let is_nobodys =
        is_persons(holder) || holder.is_visitor() && holder.agent_elsewhere().is_some();
    (!is_nobodys).then_some(&*holder.owner)
}

/// Whether a person asks through a hub, or from another host, with the control token there.
pub(super) fn is_persons(holder: &TokenHolder) -> bool {
    let is_person = holder.owner.rsplit('/').next() == Some(PERSON);
    holder.is_visitor() && is_person && holder.agent_elsewhere().is_none()
}

/// Records who owns a session that was opened for a caller. Without a record the agent's owner owns it.
pub(super) async fn note_session(shared: &Shared, caller: Option<&Caller>, key: &SessionKey) {
    let Some(owner) = of_token(caller).filter(|_| shared.team.keeps(&key.agent)) else { return };
    let request = RegistryRequest::SetOwner { key: key.clone(), owner: owner.to_owned() };
    if let Err(error) = shared.sources.registry(request).await {
        let SessionKey { agent, session } = key;
        tracing::warn!(%agent, %session, owner, %error, "cannot note the owner of a session");
    }
}

/// Whose a task is that a caller gives.
pub(super) fn of_task(team: &dyn Team, caller: Option<&Caller>) -> Option<String> {
    match of_token(caller) {
        Some(owner) => Some(owner.to_owned()),
        None => team.owner(caller?.agent()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AgentId;
    use crate::tokens::Visitor;

    #[test]
    fn the_control_token_is_nobodys_also_through_a_hub() {
        let owner = |owner: &str, agent: Option<&str>| {
            let (owner, agent) = (owner.to_owned(), agent.map(AgentId::new));
            let visitor = Visitor { owner, agent, ..Visitor::default() };
            of_token(Some(&Caller::Holder(TokenHolder::of_visitor(visitor)))).map(str::to_owned)
        };
        assert_eq!(owner("ada", None).as_deref(), Some("ada"));
        assert_eq!(owner("a/ada", None).as_deref(), Some("a/ada"));
        assert_eq!([owner("person", None), owner("a/person", None)], [None, None]);
        assert_eq!(owner("a/lead", Some("a/lead")), None);
        assert_eq!(of_token(Some(&Caller::Person)), None);
    }
}
