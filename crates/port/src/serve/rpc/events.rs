//! Owns the methods that read the team's journal: events, one event, a search.

use std::borrow::Cow;
use std::time::Duration;

use eisen_base::task;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{MethodCall, Reply, reply};
use crate::journal::{self, EventType, Filter, NameError, OpenError, Session, Store};
use crate::serve::shared::Shared;
use crate::serve::sight::Sight;
use crate::serve::{Caller, Refused};
use crate::wire::{
    Event, Events, FoundEvent, FoundEvents, GetEvent, GetEventParams, ListEvents, ListEventsParams,
    SearchEvents, SearchEventsParams,
};

/// Events of one answer: by default, and at most.
const USUAL: u64 = 100;
const MOST: u64 = 1_000;

/// Bytes of payloads after which an answer ends. One event has about 1.5 MiB at most.
const MOST_BYTES: usize = 1 << 20;

/// Bytes of the words of a search, and types of a request.
const LONGEST_QUERY: usize = 4_096;
const MOST_TYPES: usize = 100;

/// How long one request may read; a reader keeps the write-ahead log from being emptied.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn list_events(
    call: MethodCall<'_>,
    params: ListEventsParams,
) -> Result<Reply<ListEvents>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let types = params.types.unwrap_or_default();
    check_types(&types)?;
    let limit = limit(params.limit)?;
    for (name, id) in [("after", &params.after), ("before", &params.before)] {
        if let Some(id) = id.as_deref().filter(|id| !is_id(id)) {
            let id = &id[..id.floor_char_boundary(100)];
            return Err(Refused::wrong(format!(
                "`{name}` is the id of an event, as `next` is, not `{id}`"
            )));
        }
    }
    let own = own(caller).map(str::to_owned);
    if let (Some(own), Some(named)) = (&own, &params.agent_id)
        && named != own
    {
        return Err(foreign(own));
    }
    let sight = Sight::of(shared, caller).await;
    read(shared, move |store| {
        let agent = params.agent_id.as_deref();
        let session =
            params.session_id.map(|name| store.session_named(&name, agent)).transpose()?;
        session.iter().try_for_each(|session| permit_session(own.as_deref(), session))?;
        let filter = Filter {
            session_id: session.map(|session| session.id),
            agent_id: own.or(params.agent_id.map(Into::into)),
            types,
            after: params.after,
            before: params.before,
            last: params.last,
            limit,
            bytes: MOST_BYTES,
            ..Filter::default()
        };
        let mut page = store.events(&filter)?;
        page.events.iter_mut().for_each(|event| sight.reduce(event));
        reply(&Events {
            events: page.events.iter().map(row).collect(),
            next: page.next.as_deref().map(Cow::from),
        })
    })
    .await
}

pub(super) async fn get_event(
    call: MethodCall<'_>,
    params: GetEventParams,
) -> Result<Reply<GetEvent>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let own = own(caller).map(str::to_owned);
    let sight = Sight::of(shared, caller).await;
    read(shared, move |store| {
        let mut event = store.event_named(&params.id)?;
        sight.reduce(&mut event);
        match own {
            Some(own) if event.agent_id.as_ref() != Some(&own) => Err(foreign(&own)),
            _ => reply(&row(&event)),
        }
    })
    .await
}

pub(super) async fn search_events(
    call: MethodCall<'_>,
    params: SearchEventsParams,
) -> Result<Reply<SearchEvents>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let limit = limit(params.limit)?;
    if params.query.len() > LONGEST_QUERY {
        return Err(Refused::wrong(format!("`query` may have at most {LONGEST_QUERY} bytes")));
    }
    if !journal::is_searchable(&params.query) {
        return Err(Refused::wrong("`query` has no word to search for"));
    }
    let own = own(caller).map(str::to_owned);
    let sight = Sight::of(shared, caller).await;
    read(shared, move |store| {
        let mut found = store.search_of(own.as_deref(), &params.query, limit, MOST_BYTES)?;
        // That it was found would say what is in it.
        found.retain(|found| sight.opens_event(&found.event));
        let events = found.iter().map(|found| FoundEvent {
            event: row(&found.event),
            snippet: (&*found.snippet).into(),
            rank: found.rank,
        });
        reply(&FoundEvents { events: events.collect() })
    })
    .await
}

/// Reads the journal in a thread of its own, with all events published before. Breaks the read off
/// if it takes too long or its client is gone.
pub(super) async fn read<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&Store) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let journal = shared.sources.recorded().await.ok_or_else(|| {
        Refused::new(404, "the team keeps no journal: `journal.enabled` is false")
    })?;
    let closed = |_| Refused::new(409, "the team is stopping");
    let place = shared.reads.clone().acquire_owned().await.map_err(closed)?;
    let path = journal.settings().path.clone();
    let (opened, is_open) = oneshot::channel();
    let reading = task::spawn_blocking(move || {
        let _place = place;
        let store = Store::open(&path)?;
        let _ = opened.send(Interrupt(store.interrupt_handle()));
        work(&store)
    });
    let read = async {
        let _interrupt = is_open.await;
        reading.await
    };
    let late = || Refused::new(500, "the journal could not be read in time: ask for less of it");
    let read = timeout(PATIENCE, read).await.map_err(|_| late())?;
    read.map_err(Refused::fault)?
}

/// Ends a read when it is dropped.
struct Interrupt(journal::InterruptHandle);

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// The agent whose sessions alone the caller may read.
pub(super) fn own(caller: Option<&Caller>) -> Option<&str> {
    match caller {
        Some(Caller::Member(agent)) => Some(agent.as_str()),
        _ => None,
    }
}

/// Checks that the caller may read a session; `own` is the agent whose sessions alone it may.
pub(super) fn permit_session(own: Option<&str>, session: &Session) -> Result<(), Refused> {
    match own {
        Some(own) if own != session.agent_id => Err(foreign(own)),
        _ => Ok(()),
    }
}

pub(super) fn foreign(own: &str) -> Refused {
    Refused::new(403, format!("the token of `{own}` opens its own sessions only"))
}

fn check_types(types: &[String]) -> Result<(), Refused> {
    if types.len() > MOST_TYPES {
        return Err(Refused::wrong(format!("`types` may name {MOST_TYPES} types")));
    }
    match types.iter().find(|name| !EventType::is_known(name)) {
        None => Ok(()),
        Some(unknown) => {
            let known = EventType::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>();
            let unknown = &unknown[..unknown.floor_char_boundary(100)];
            let known = known.join(", ");
            Err(Refused::wrong(format!("there is no type `{unknown}`; there are {known}")))
        }
    }
}

fn limit(wanted: Option<u64>) -> Result<usize, Refused> {
    match wanted.unwrap_or(USUAL) {
        0 => Err(Refused::wrong(format!("`limit` is from 1 to {MOST}"))),
        limit => Ok(usize::try_from(limit.min(MOST)).unwrap_or(usize::MAX)),
    }
}

/// Whether a text has the form of an event's id.
fn is_id(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_digit(byte),
        })
}

fn row(event: &journal::Event) -> Event<'_> {
    Event {
        id: (&*event.id).into(),
        parent_id: event.parent_id.as_deref().map(Cow::from),
        session_id: event.session_id.as_deref().map(Cow::from),
        agent_id: event.agent_id.as_deref().map(Into::into),
        sequence: event.sequence,
        depth: event.depth,
        kind: (&*event.kind).into(),
        timestamp: event.timestamp,
        turn: event.turn,
        payload: Cow::Borrowed(&event.payload),
    }
}

impl From<NameError> for Refused {
    fn from(error: NameError) -> Self {
        match error {
            NameError::NoSession { .. } | NameError::NoEvent(_) => {
                Self::new(404, error.to_string())
            }
            NameError::SeveralSessions { .. }
            | NameError::SeveralEvents { .. }
            | NameError::Elsewhere { .. } => Refused::wrong(error.to_string()),
            NameError::Open(error) => error.into(),
        }
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        let code = if matches!(error, OpenError::Missing(_)) { 404 } else { 500 };
        Self::new(code, error.to_string())
    }
}
