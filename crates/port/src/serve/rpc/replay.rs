//! Owns `replay_session`: an earlier session for the one client that asks, beside the live stream.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::events::{own, permit_session, read};
use super::{MethodCall, Reply, reply};
use crate::bus::{Backlog, Bus, Received, Subscriber};
use crate::model::{AgentId, SessionId, SessionKey, Topic};
use crate::replay::{Audience, Player, Recording, Speed};
use crate::serve::command::ViewerCommand;
use crate::serve::lines;
use crate::serve::progress::Progress;
use crate::serve::sight::{Sight, UpdateSight};
use crate::serve::{BoxFuture, Refused};
use crate::tracker::OrchestratorView;
use crate::wire::{ReplaySession, ReplaySessionParams, Replayed, SpeedParam};

/// The bound of events between two lines of a journal; the next line is not played before they are
/// sent.
const BACKLOG: Backlog = Backlog { events: 16_384, bytes: 32 << 20 };

/// The client that asked. If it does not read, its own replay waits.
struct Client<'a> {
    events: Subscriber,
    sight: UpdateSight,
    progress: &'a Progress,
}

impl Audience for Client<'_> {
    fn shown(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            while let Some(received) = self.events.try_recv() {
                if let Received::Event(_, event) = received
                    && self.sight.opens(&event)
                {
                    self.progress.command(ViewerCommand::Replayed(event)).await;
                }
            }
        })
    }
}

pub(super) async fn replay_session(
    call: MethodCall<'_>,
    params: ReplaySessionParams,
) -> Result<Reply<ReplaySession>, Refused> {
    let MethodCall { shared, caller, progress } = call;
    let speed = match params.speed {
        None => Speed::new(1.0),
        Some(SpeedParam::Times(times)) => Speed::new(times),
        Some(SpeedParam::Named(name)) => name.parse(),
    };
    let speed = speed.map_err(|error| Refused::wrong(error.to_string()))?;
    let many = |_| Refused::new(409, "too many replays run on this port: wait for one to end");
    let _place = Arc::clone(&shared.replays).try_acquire_owned().map_err(many)?;
    let own = own(caller).map(str::to_owned);
    let session = read(shared, move |store| {
        let session = store.session_named(&params.session_id, None)?;
        permit_session(own.as_deref(), &session)?;
        Ok(session)
    })
    .await?;
    let no_journal = || Refused::new(404, "the team keeps no journal");
    let journal = shared.sources.recorded().await.ok_or_else(no_journal)?;
    let journal_session_id = session.id.clone();
    let key = SessionKey::new(
        AgentId::new(session.agent_id.as_str()),
        SessionId::new(session.wire_session_id.clone().unwrap_or_default()),
    );
    let path = journal.settings().path.clone();
    let recording = Recording { path, session: Some(session) };
    let (bus, view) = (Bus::encoding(BACKLOG, lines::encode), OrchestratorView::None(key));
    let sight = UpdateSight::new(Sight::of(shared, caller).await);
    let mut client = Client { events: bus.subscribe(), sight, progress };
    client.events.want(Topic::SessionUpdate);
    let settings = shared
        .sources
        .tracking()
        .ok_or_else(|| Refused::new(409, "this port shows an earlier run already"))?;
    let (player, tracking) =
        Player::new(recording, speed, settings, view, bus, CancellationToken::new());
    let playing = player.play(&mut client);
    let events = tokio::select! {
        count = playing => count?,
        () = tracking => return Err(Refused::new(500, "the replay broke off")),
    };
    reply(&Replayed { journal_session_id, events })
}
