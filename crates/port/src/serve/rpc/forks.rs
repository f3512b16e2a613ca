//! Owns the methods by which a session continues from an earlier point: `fork_session` and
//! `rewind_session`.

use std::sync::Arc;

use super::events::read;
use super::{MethodCall, Reply, reply};
use crate::client_host::{Continuation, Document, Forking};
use crate::journal::{NewEvent, Point, Session};
use crate::model::{AgentId, How, SessionId, SessionKey};
use crate::serve::shared::Shared;
use crate::serve::sight::Sight;
use crate::serve::{Caller, Fork, Refused, Rewind, ownership};
use crate::undo;
use crate::wire::{
    ForkSession, ForkSessionParams, Forked, RewindSession, RewindSessionParams, Rewound,
};
use eisen_base::task;

pub(super) async fn fork_session(
    call: MethodCall<'_>,
    params: ForkSessionParams,
) -> Result<Reply<ForkSession>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let to = params.agent_id.clone().map(AgentId::new);
    // Another agent learns no more of files than its zone would open.
    let sight = match &to {
        Some(agent) => Sight::of_agent(shared, agent).await,
        None => Sight::All,
    };
    let (session, point, document) = read(shared, move |store| {
        let session = store.session_named(&params.session_id, None)?;
        let point = store.point(&session, params.at.as_deref())?;
        let is_own = to.is_none_or(|agent| agent.as_str() == session.agent_id);
        let may_see = |payload: &str| is_own || sight.opens_all_of(payload);
        let text = store.conversation_for(&point.event, &may_see)?;
        let document = document(&session, &point, text);
        Ok((session, point, document))
    })
    .await?;
    let agent =
        AgentId::new(params.agent_id.map_or_else(|| session.agent_id.clone(), String::from));
    let is_head = point.behind == Some(0) && agent.as_str() == session.agent_id;
    let source = session.wire_session_id.filter(|_| is_head).map(SessionId::new);
    let origin = Some((Arc::from(session.id), Arc::from(point.event.as_str())));
    let forking = Forking { source, origin, document };
    let fork = Fork { agent: agent.clone(), forking };
    let team = Arc::clone(&shared.team);
    // Runs to its end even if the client leaves.
    let forked = task::spawn(async move { team.fork(fork).await });
    let (wire, how) = forked.await.map_err(Refused::fault)??;
    ownership::note_session(shared, caller, &SessionKey::new(agent.clone(), wire.clone())).await;
    let (name, at) = (format!("{agent}/{wire}"), point.event.clone());
    let recorded = read(shared, move |store| {
        let session = store.session_named(&name, None)?;
        let root = store.event(&session.root_event_id)?;
        Ok(root.filter(|root| root.parent_id == Some(at)).map(|_| session.id))
    })
    .await;
    let journal_session_id = recorded.ok().flatten().ok_or_else(|| {
        let why =
            format!("the session {agent}/{wire} is open, but the journal can't record the fork");
        Refused::new(500, why)
    })?;
    reply(&Forked {
        agent_id: agent.to_string().into(),
        session_id: wire.to_string(),
        how: how.into(),
        journal_session_id,
        at: point.event,
    })
}

pub(super) async fn rewind_session(
    call: MethodCall<'_>,
    params: RewindSessionParams,
) -> Result<Reply<RewindSession>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let files = params.files.unwrap_or(false);
    if files && !matches!(caller, Some(Caller::Person | Caller::Holder(_) | Caller::Web(_))) {
        let why = "`files` changes files of the workspace: it takes the control token of a person";
        return Err(Refused::new(403, why));
    }
    let (session, point, document) = read(shared, move |store| {
        let session = store.session_named(&params.session_id, None)?;
        let point = store.point(&session, Some(&params.to))?;
        let document = document(&session, &point, store.conversation(&point.event)?);
        Ok((session, point, document))
    })
    .await?;
    let Some(behind) = point.behind else {
        let why = format!(
            "the event {} is on no branch: a rewind left it behind. `fork_session` continues it",
            point.event
        );
        return Err(Refused::wrong(why));
    };
    let continuation = if behind == 0 { Continuation::Same } else { Continuation::Anew(document) };
    let sources = Arc::clone(&shared.sources);
    let event = NewEvent::rewind(&session, &point.event, false);
    let undo = files.then(|| undo::UndoRequest::of_rewind(&session, &point.event));
    let undoes = Arc::clone(&shared.team);
    let commit = async move {
        // The files and the session in one step.
        if let Some(undo) = undo {
            return undoes.undo(undo).await.map(drop);
        }
        // Earlier words of the agent belong to the branch that is left.
        let journal = sources.recorded().await.ok_or_else(no_journal)?;
        let appended = journal.append(event).await;
        appended
            .map(drop)
            .map_err(|error| Refused::new(500, format!("the rewind was not recorded: {error}")))
    };
    let wire = session.wire_session_id.clone();
    let key = SessionKey::new(
        AgentId::new(session.agent_id.as_str()),
        SessionId::new(wire.clone().unwrap_or_default()),
    );
    let rewind = Rewind { key, continuation, commit: Box::pin(commit) };
    let team = Arc::clone(&shared.team);
    let rewound = task::spawn(async move { team.rewind(rewind).await });
    let is_primed = rewound.await.map_err(Refused::fault)??;
    reply(&Rewound {
        agent_id: session.agent_id.into(),
        session_id: wire,
        journal_session_id: session.id,
        head_event_id: point.event,
        how: is_primed.then_some(How::Primed.into()),
    })
}

/// The conversation in a session of an agent.
pub(in crate::serve) async fn conversation(
    shared: &Shared,
    agent: &str,
    session: &str,
) -> Result<String, Refused> {
    let name = format!("{agent}/{session}");
    let said = read(shared, move |store| {
        let session = store.session_named(&name, None)?;
        let point = store.point(&session, None)?;
        Ok(store.conversation(&point.event)?)
    });
    Ok(said.await?.unwrap_or_default())
}

fn document(session: &Session, point: &Point, text: Option<String>) -> Option<Document> {
    let uri = format!("eisen://session/{}?at={}", session.id, point.event);
    Some(Document { uri, text: text? })
}

fn no_journal() -> Refused {
    Refused::new(404, "the team keeps no journal")
}
