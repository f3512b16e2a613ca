//! Connections of clients that come by single requests: each is one client of the gateway, until it leaves,
//! is not used, or loses its credential.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eisen_base::task;
use futures_util::stream::{self, Stream};
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::message::AcpEnvelope;
use super::streams::{AcpStreams, StreamLease};
use crate::line::LineReader;
use crate::web::credential::{Credential, Secret, SecretHash};
use crate::web::socket::LONGEST_LINE;

/// How long a connection may be without a request or an open stream.
const MAX_UNUSED: Duration = Duration::from_secs(90);

/// How often something is sent on a stream: proxies end one on which nothing comes, and a client that is
/// gone is found out.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const NOTHING: Bytes = Bytes::from_static(b":\n\n");

/// Requests in sessions whose answers are waited for, and bytes of an id; the answer of one more comes on
/// the stream of the connection. The gateway refuses more than half of that.
const MAX_EXPECTED: usize = 512;
const MAX_ID: usize = 4096;

/// All connections of this kind. There are as many as the gateway has clients.
#[derive(Default)]
pub(super) struct AcpConnections(Mutex<HashMap<String, Arc<AcpConnection>>>);

/// One connection.
pub(super) struct AcpConnection {
    /// Others' requests are not for it.
    owner: SecretHash,
    streams: Arc<AcpStreams>,
    to_team: mpsc::Sender<Bytes>,
    /// Requests in sessions: their ids, and the sessions.
    expected: Mutex<VecDeque<(String, String)>>,
    /// Requests and streams that are open.
    uses: watch::Sender<usize>,
    /// Ends it, and its streams with what waits in them.
    cut: CancellationToken,
}

/// A request or a stream of a connection, until it is dropped.
pub(super) struct ConnectionUse(Arc<AcpConnection>);

impl AcpConnections {
    /// Opens a connection; returns its id, and the answer to the first request.
    pub(super) fn open(
        self: &Arc<Self>,
        agent: DuplexStream,
        credential: &Credential,
    ) -> Result<(String, Arc<AcpConnection>, oneshot::Receiver<Bytes>), getrandom::Error> {
        let id = Secret::generate()?.into_text();
        let (to_team, lines) = mpsc::channel(1);
        let connection = Arc::new(AcpConnection {
            owner: credential.secret,
            streams: Arc::default(),
            to_team,
            expected: Mutex::default(),
            uses: watch::Sender::new(0),
            cut: CancellationToken::new(),
        });
        let (answers, answer) = oneshot::channel();
        self.all().insert(id.clone(), Arc::clone(&connection));
        let (all, named) = (Arc::clone(self), id.clone());
        let (carried, revoked) = (Arc::clone(&connection), credential.revoked.clone());
        task::spawn(async move {
            carried.carry(agent, lines, answers, revoked).await;
            all.all().remove(&named);
        });
        Ok((id, connection, answer))
    }

    /// The connection with an id, if it is this credential's.
    pub(super) fn find(&self, id: &str, credential: &Credential) -> Option<Arc<AcpConnection>> {
        self.all().get(id).filter(|it| it.owner == credential.secret).cloned()
    }

    /// Takes no more requests for a connection.
    pub(super) fn forget(&self, connection: &Arc<AcpConnection>) {
        self.all().retain(|_, other| !Arc::ptr_eq(other, connection));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<AcpConnection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AcpConnection {
    /// Ends it at once.
    pub(super) fn cut(&self) -> CancellationToken {
        self.cut.clone()
    }

    /// Keeps it until the returned value is dropped.
    pub(super) fn keep(self: &Arc<Self>) -> ConnectionUse {
        self.uses.send_modify(|uses| *uses += 1);
        ConnectionUse(Arc::clone(self))
    }

    /// Hands a line to the team, whole or not at all; false if the connection has ended.
    pub(super) async fn send(&self, line: Bytes) -> bool {
        self.to_team.send(line).await.is_ok()
    }

    /// Notes where the answer to a request goes.
    pub(super) fn expects(&self, envelope: &AcpEnvelope<'_>) {
        let id = envelope.id.filter(|id| id.get().len() <= MAX_ID);
        let (Some(id), Some(session)) = (id, envelope.session()) else { return };
        if session.len() > MAX_ID {
            return;
        }
        let mut expected = self.expected();
        if expected.len() >= MAX_EXPECTED {
            expected.pop_front();
        }
        expected.push_back((id.get().to_owned(), session.to_owned()));
    }

    /// The stream of a session, or of the rest; None if another request reads it.
    pub(super) fn listen(&self, session: Option<&str>) -> Option<StreamLease> {
        self.streams.lease(session)
    }

    /// The events of a stream, as the answer to a request.
    pub(super) fn events(
        self: &Arc<Self>,
        lease: StreamLease,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
        let cut = self.cut();
        stream::unfold((lease, cut, self.keep()), |(mut lease, cut, used)| async move {
            let event = tokio::select! {
                biased;
                () = cut.cancelled() => None,
                event = lease.next() => event,
                () = sleep(KEEP_ALIVE) => Some(NOTHING),
            };
            event.map(|event| (Ok(event), (lease, cut, used)))
        })
    }

    /// Carries lines until the connection ends.
    async fn carry(
        &self,
        agent: DuplexStream,
        lines: mpsc::Receiver<Bytes>,
        answers: oneshot::Sender<Bytes>,
        revoked: CancellationToken,
    ) {
        let (from_team, to_team) = split(agent);
        let is_drained = tokio::select! {
            () = revoked.cancelled() => false,
            () = self.cut.cancelled() => false,
            () = unused(self.uses.subscribe()) => false,
            is_drained = self.deliver(from_team, answers) => is_drained,
            () = take(lines, to_team) => false,
        };
        self.streams.close();
        if !is_drained {
            self.cut.cancel();
        }
    }

    /// Takes what the team says; true if it has said all, false if too much waits for the client.
    async fn deliver(
        &self,
        from_team: ReadHalf<DuplexStream>,
        answers: oneshot::Sender<Bytes>,
    ) -> bool {
        let mut answers = Some(answers);
        let mut lines = LineReader::new(from_team, LONGEST_LINE);
        loop {
            let line = match lines.next_whole().await {
                Ok(Some(line)) => line,
                Ok(None) => return true,
                Err(_) => return false,
            };
            let Ok(envelope) = AcpEnvelope::read(&line) else { continue };
            let is_answer = envelope.is_answer();
            if is_answer && let Some(answers) = answers.take() {
                // Who waits for it may be gone.
                let _ = answers.send(line);
                continue;
            }
            let session = if is_answer {
                envelope.id.and_then(|id| self.expected_in(id.get()))
            } else {
                envelope.session().map(str::to_owned)
            };
            if !self.streams.push(session, is_answer, event(&line)) {
                tracing::debug!("a client of the gateway takes too little, and is cut off");
                return false;
            }
        }
    }

    /// The session in which an answer with this id is expected.
    fn expected_in(&self, id: &str) -> Option<String> {
        let mut expected = self.expected();
        let at = expected.iter().position(|(other, _)| other == id)?;
        expected.remove(at).map(|(_, session)| session)
    }

    fn expected(&self) -> MutexGuard<'_, VecDeque<(String, String)>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.uses.send_modify(|uses| *uses -= 1);
    }
}

/// Waits until a connection was not used for too long.
async fn unused(mut uses: watch::Receiver<usize>) {
    loop {
        let is_used = *uses.borrow_and_update() > 0;
        tokio::select! {
            changed = uses.changed() => if changed.is_err() { return },
            () = sleep(MAX_UNUSED), if !is_used => return,
        }
    }
}

/// Takes the client's lines.
async fn take(mut lines: mpsc::Receiver<Bytes>, mut to_team: WriteHalf<DuplexStream>) {
    while let Some(line) = lines.recv().await {
        if to_team.write_all(&line).await.is_err() {
            break;
        }
    }
    // The team has ended this connection; its last lines are on their way.
    std::future::pending::<()>().await;
}

/// A line as an event. Between the members of an object there may be a carriage return, which would end
/// the event's line.
fn event(line: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(line.len() + 8);
    event.extend_from_slice(b"data: ");
    event.extend(line.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }));
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures_util::StreamExt as _;
    use tokio::io::{AsyncReadExt as _, duplex};
    use tokio::time::Instant;

    use super::*;
    use crate::model::WebScope;
    use crate::serve::OpenedOnWeb;
    use crate::web::credential::ShownBy;

    fn credential(name: &str) -> Credential {
        let opens = OpenedOnWeb::Scope(WebScope::Control);
        Credential::new(SecretHash::of(name), ShownBy::Bearer, opens)
    }

    async fn next(events: &mut (impl Stream<Item = Result<Bytes, Infallible>> + Unpin)) -> String {
        String::from_utf8(events.next().await.unwrap().unwrap().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_not_used_ends() {
        let connections = Arc::new(AcpConnections::default());
        let (near, mut team) = duplex(1024);
        let ada = credential("ada");
        let (id, connection, answer) = connections.open(near, &ada).unwrap();
        let begun = Instant::now();
        let used = connection.keep();
        assert!(connection.send(Bytes::from_static(b"{}\n")).await);
        team.write_all(b"{\"id\":1,\"result\":{}}\n").await.unwrap();
        assert_eq!(answer.await.unwrap(), "{\"id\":1,\"result\":{}}");
        assert!(connections.find(&id, &credential("bob")).is_none());
        let mut events = Box::pin(connection.events(connection.listen(None).unwrap()));
        drop(used);
        for _ in 0..9 {
            assert_eq!(next(&mut events).await, ":\n\n");
        }
        // It is asked for something now and then.
        drop(events);
        for _ in 0..9 {
            sleep(Duration::from_secs(89)).await;
            drop(connections.find(&id, &ada).unwrap().keep());
        }
        let mut sent = String::new();
        team.read_to_string(&mut sent).await.unwrap();
        assert_eq!((&*sent, begun.elapsed().as_secs()), ("{}\n", 9 * 30 + 9 * 89 + 90));
        assert!(connections.find(&id, &ada).is_none());
        assert!(!connection.send(Bytes::from_static(b"{}\n")).await);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_come_where_their_session_is_heard() {
        let connections = Arc::new(AcpConnections::default());
        let (near, mut team) = duplex(1024);
        let ada = credential("ada");
        let (_, connection, _answer) = connections.open(near, &ada).unwrap();
        let request = |line: &str| connection.expects(&AcpEnvelope::read(line.as_bytes()).unwrap());
        request(r#"{"id":"a","method":"session/prompt","params":{"sessionId":"s"}}"#);
        request(r#"{"id":2,"method":"session/new","params":{}}"#);
        let mut in_session = Box::pin(connection.events(connection.listen(Some("s")).unwrap()));
        let mut rest = Box::pin(connection.events(connection.listen(None).unwrap()));
        let said = concat!(
            r#"{"id":0,"result":{}}"#,
            "\n",
            r#"{"method":"session/update","params":{"sessionId":"s"}}"#,
            "\n",
            r#"{"id":2,"result":{}}"#,
            "\n",
            "{\"id\":\"a\",\r\"result\":{}}\n",
        );
        team.write_all(said.as_bytes()).await.unwrap();
        let update = "data: {\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\"}}\n\n";
        assert_eq!(next(&mut in_session).await, update);
        assert_eq!(next(&mut in_session).await, "data: {\"id\":\"a\", \"result\":{}}\n\n");
        assert_eq!(next(&mut rest).await, "data: {\"id\":2,\"result\":{}}\n\n");
        // What the team said last comes, and then the end.
        team.write_all(b"{\"method\":\"bye\"}\n").await.unwrap();
        drop(team);
        assert_eq!(next(&mut rest).await, "data: {\"method\":\"bye\"}\n\n");
        assert!(rest.next().await.is_none() && in_session.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_too_little_is_cut_off() {
        let connections = Arc::new(AcpConnections::default());
        let (near, mut team) = duplex(64 * 1024);
        let ada = credential("ada");
        let (_, connection, _answer) = connections.open(near, &ada).unwrap();
        let mut events = Box::pin(connection.events(connection.listen(None).unwrap()));
        let line = [br#"{"method":"x","y":""#, &*vec![b'x'; 1 << 20], b"\"}\n"].concat();
        let mut sent = 0;
        while team.write_all(&line).await.is_ok() {
            sent += 1;
        }
        assert!((64..=66).contains(&sent), "{sent}");
        assert!(events.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_credential_that_is_revoked_ends_its_connections() {
        let connections = Arc::new(AcpConnections::default());
        let (near, mut team) = duplex(1024);
        let ada = credential("ada");
        let (_, connection, _answer) = connections.open(near, &ada).unwrap();
        let mut events = Box::pin(connection.events(connection.listen(None).unwrap()));
        ada.revoked.cancel();
        assert!(events.next().await.is_none());
        assert_eq!(team.read(&mut [0; 1]).await.unwrap(), 0);
    }
}
