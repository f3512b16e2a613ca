//! Owns the incoming half of a connection: reads lines, authenticates the client and runs its
//! requests. All output goes to the viewer.

mod authentication;
mod takeover;

use std::future::pending;
use std::io;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, DuplexStream, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::command::ViewerCommand;
use super::entrance::{ClientInput, Entrance, wrong_token};
use super::http;
use super::places::{ConnectionSlot, Rank};
use super::progress::Progress;
use super::shared::Shared;
use super::viewer::Viewer;
use super::{BoxFuture, Caller, attached, peer, rights, rpc};
use crate::line::{Line, LineReader};
use crate::model::{SessionId, Topic};
use crate::serve::{Refused, lines};
use crate::wire::request::{self, Malformed, Request};

/// Commands that may wait for the viewer, some of which are answers of several megabytes. Past that
/// the client's lines are not read.
const COMMANDS: usize = 8;

/// Concurrent requests of one client; further ones are refused with 409.
const REQUESTS: usize = 256;

/// Wrong tokens after which the connection ends.
const WRONG_TOKENS: u32 = 3;

/// Malformed lines in a row after which the connection ends: the client speaks another protocol.
const MALFORMED_LINES: u32 = 100;

/// How long a client that loses its slot may take to read the last line: also on a machine so busy that nobody runs at
/// once.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long a client may stay without a token where one is required.
const AUTH_DEADLINE: Duration = Duration::from_secs(10);

/// Serves one client until it leaves or `cancel`; then waiting lines are sent, within the write
/// deadline.
pub(super) async fn serve(
    stream: TcpStream,
    place: Arc<ConnectionSlot>,
    shared: Arc<Shared>,
    cancel: CancellationToken,
) {
    let guarded = shared.guarded || !peer::is_own(&stream);
    serve_client(stream.into_split(), Entrance::Port, guarded, place, shared, cancel).await;
}

/// Serves one client on a stream of any kind; a guarded one shows a token first.
pub(super) async fn serve_client(
    (read, write): (impl ClientInput, impl AsyncWrite + Unpin),
    entrance: Entrance,
    guarded: bool,
    place: Arc<ConnectionSlot>,
    shared: Arc<Shared>,
    cancel: CancellationToken,
) {
    let _counted = shared.traffic.enter();
    let deadline = shared.limits.write_deadline;
    if guarded {
        place.set_rank(Rank::Stranger);
    }
    let lost = place.lost.clone();
    let (commands, waiting) = mpsc::channel(COMMANDS);
    let viewer = Viewer::new(Arc::clone(&shared), guarded, write, waiting);
    let reader = Reader {
        lines: LineReader::new(read, shared.limits.max_line_bytes),
        crowded: shared.crowded.subscribe(),
        shared,
        commands,
        cancel: cancel.clone(),
        guarded,
        entrance,
        place,
        caller: None,
        challenge: None,
        is_reading: true,
        first: true,
        malformed: 0,
        wrong_tokens: 0,
        turn: Arc::new(Semaphore::new(1)),
        running: FuturesUnordered::new(),
        attached: None,
    };
    // The end of the reader drops the command channel, which ends the viewer after the waiting
    // lines. The end of the viewer drops the reader and its requests, which withdraws queued
    // prompts.
    tokio::select! {
        ended = viewer.run() => match ended {
            Ok(()) => debug!("client disconnected"),
            Err(error) => debug!(%error, "client cut off"),
        },
        () = async { reader.run().await; pending().await } => {}
        () = async { cancel.cancelled().await; sleep(deadline).await } => {
            debug!("client cut off: it did not take its last lines in time");
        }
        () = async { lost.cancelled().await; sleep(LAST_WORDS).await } => {
            debug!("client cut off: another client took its slot");
        }
    }
}

struct Reader<R> {
    shared: Arc<Shared>,
    lines: LineReader<R>,
    commands: mpsc::Sender<ViewerCommand>,
    cancel: CancellationToken,
    /// Changes when new clients find no slot.
    crowded: watch::Receiver<()>,
    /// All requests need a token: others may use this connection's address.
    guarded: bool,
    entrance: Entrance,
    place: Arc<ConnectionSlot>,
    caller: Option<Caller>,
    /// The challenge by which the client may prove its token.
    challenge: Option<String>,
    /// False once the client has ended its side.
    is_reading: bool,
    /// No line came yet.
    first: bool,
    /// Malformed lines in a row.
    malformed: u32,
    wrong_tokens: u32,
    /// Held by a request that steers nothing. These run one at a time, since a client that does not
    /// read could ask for many large answers.
    turn: Arc<Semaphore>,
    /// Running requests, first polled in the order of their lines.
    running: FuturesUnordered<BoxFuture<'static, Bytes>>,
    /// The agent that gets the bytes once the client is attached.
    attached: Option<WriteHalf<DuplexStream>>,
}

impl<R: ClientInput> Reader<R> {
    async fn run(mut self) {
        let auth_deadline = Instant::now() + AUTH_DEADLINE;
        loop {
            let read = tokio::select! {
                biased;
                () = self.cancel.cancelled() => break,
                Some(answer) = self.running.next() => {
                    self.send(ViewerCommand::Answer(answer)).await;
                    continue;
                }
                read = listen(&mut self.lines, self.is_reading) => read,
                Ok(()) = self.crowded.changed(), if !self.is_reading && !self.is_locked() => {
                    self.send(ViewerCommand::Probe).await;
                    continue;
                }
                () = self.place.lost.cancelled() => {
                    let message = "the port has reached its limit of clients, and another client took this \
                                   slot: a client that shows the control token keeps its slot";
                    return self.refuse(None, 500, message).await;
                }
                () = authentication::ended(self.caller.as_ref()) => {
                    return self.refuse(None, 401, rpc::TOKEN_ENDED).await;
                }
                () = sleep_until(auth_deadline), if self.is_locked() => {
                    return self.refuse(None, 401, "no token was shown in time").await;
                }
            };
            self.place.touch();
            if self.on_read(read).await.is_break() {
                if let Some(agent) = self.attached.take() {
                    // When the team stops, its agents have ended already.
                    self.cancel.run_until_cancelled(attached::forward(self.lines, agent)).await;
                }
                return;
            }
        }
        // Each ends at once, with a result or the error that the team is stopping.
        while let Some(answer) = self.running.next().await {
            self.send(ViewerCommand::Answer(answer)).await;
        }
    }

    /// Handles a line or the end; breaks if no more is read.
    async fn on_read(&mut self, read: io::Result<Line>) -> ControlFlow<()> {
        match read {
            Ok(Line::Whole(line)) => return self.on_line(&line).await,
            Ok(Line::TooLong(head)) => {
                let limit = self.shared.limits.max_line_bytes;
                let message =
                    format!("a line may have at most {limit} bytes, and this one has more");
                self.refuse(None, 400, message).await;
                // It may be HTTP, whose later lines must not be run.
                let is_first = std::mem::take(&mut self.first);
                return end_if(is_first && !head.trim_ascii_start().starts_with(b"{"));
            }
            Ok(Line::End) => {
                self.is_reading = false;
                // A closed client looks like one that only ended its side, until a write fails. The
                // prompts of a closed client must be withdrawn.
                if !self.running.is_empty() {
                    self.send(ViewerCommand::Probe).await;
                }
            }
            Err(error) => {
                debug!(%error, "cannot read from client");
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Runs a line; breaks if it was the connection's last.
    async fn on_line(&mut self, line: &[u8]) -> ControlFlow<()> {
        if line.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        if std::mem::take(&mut self.first) && http::is_request_line(line) {
            debug!("client speaks HTTP");
            return ControlFlow::Break(());
        }
        match request::parse(line) {
            Ok(request) => {
                self.malformed = 0;
                self.on_request(request).await
            }
            Err(Malformed { id, message }) => {
                self.refuse(id.as_deref(), 400, message).await;
                self.malformed += 1;
                end_if(self.malformed == MALFORMED_LINES)
            }
        }
    }

    async fn on_request(&mut self, request: Request) -> ControlFlow<()> {
        match request {
            Request::Auth { token } => {
                let caller = self.entrance.show(&token, &self.shared);
                return self.authenticate(caller).await;
            }
            Request::Prove { .. } | Request::Tools { .. } if self.entrance.is_web() => {
                return self.refuse_token(wrong_token()).await;
            }
            Request::Prove { proof } => {
                // A challenge is valid for one try.
                let challenge = self.challenge.take();
                let caller = challenge.and_then(|made| self.shared.prover(&proof, &made));
                return self.authenticate(caller.ok_or_else(wrong_token)).await;
            }
            Request::Tools { proof } => {
                let challenge = self.challenge.take();
                let caller = challenge.and_then(|made| self.shared.tokens.tool_user(&proof, &made));
                return self.serve_tools(caller).await;
            }
            Request::Challenge => self.challenge().await,
            Request::Unknown => {}
            Request::Rpc { id, .. } if self.is_locked() => {
                self.refuse(Some(&id), 401, "this port needs `auth` first").await;
            }
            Request::Snapshot { .. } | Request::Filter(_) | Request::Subscribe { .. }
                if self.is_locked() =>
            {
                self.refuse(None, 401, "this port needs `auth` first").await;
            }
            Request::Snapshot { .. } | Request::Filter(_) | Request::Subscribe { .. }
                if !rights::may_see(self.caller.as_ref()) =>
            {
                self.refuse(None, 403, "the stream takes the right `read` of this token").await;
            }
            Request::Snapshot { session } => {
                self.send(ViewerCommand::Snapshots(session.map(SessionId::new))).await;
            }
            Request::Filter(filter) => self.send(ViewerCommand::Filter(filter)).await,
            Request::Subscribe { topics } => self.subscribe(&topics).await,
            Request::Rpc { id, .. } if self.running.len() >= REQUESTS => {
                let message = format!("{REQUESTS} requests of this connection are under way");
                self.refuse(Some(&id), 409, message).await;
            }
            Request::Rpc { id, method, params }
                if let Some(error) = self.entrance.refusal(&method, params.as_deref()) =>
            {
                if let Some(Caller::Holder(holder)) = &self.caller {
                    rpc::record_use(&self.shared, holder, &method, None, Some(error.code)).await;
                }
                self.send(ViewerCommand::Answer(lines::answer(Some(&id), Err(&error)))).await;
            }
            Request::Rpc { id, method, params }
                if method == rpc::ATTACH && self.running.is_empty() =>
            {
                return self.attach(&id, params.as_deref()).await;
            }
            Request::Rpc { id, method, params } => self.start(id, method, params),
        }
        ControlFlow::Continue(())
    }

    /// An unknown topic, perhaps of another version, does not affect the others.
    async fn subscribe(&mut self, topics: &[String]) {
        let known = |name: &String| Topic::ON_WIRE.into_iter().find(|it| it.as_str() == *name);
        for topic in topics.iter().filter_map(known) {
            match rights::permit_topic(topic, self.caller.as_ref()) {
                Ok(()) => self.send(ViewerCommand::Want(topic)).await,
                Err(error) => {
                    self.send(ViewerCommand::Answer(lines::answer(None, Err(&error)))).await;
                }
            }
        }
        if let Some(unknown) = topics.iter().find(|topic| known(topic).is_none()) {
            let known = Topic::ON_WIRE.map(Topic::as_str).join(", ");
            let message = format!("there is no topic `{unknown}`; there are {known}");
            self.refuse(None, 404, message).await;
        }
    }

    fn start(&mut self, id: Box<RawValue>, method: String, params: Option<Box<RawValue>>) {
        let (shared, cancel) = (Arc::clone(&self.shared), self.cancel.clone());
        let caller = self.caller.clone();
        let turn = Arc::clone(&self.turn);
        let progress = Progress::new(id.clone(), self.commands.clone());
        self.running.push(Box::pin(async move {
            let call = async {
                let _turn = if rpc::steers(&method) { None } else { turn.acquire().await.ok() };
                rpc::call(&shared, caller.as_ref(), &method, params.as_deref(), &progress).await
            };
            let outcome = tokio::select! {
                biased;
                outcome = AssertUnwindSafe(call).catch_unwind() => {
                    outcome.unwrap_or_else(|_| Err(Refused::new(500, "the request failed; see the log")))
                }
                () = cancel.cancelled() => Err(Refused::new(409, "the team is stopping")),
                () = authentication::ended(caller.as_ref()) => Err(Refused::new(401, rpc::TOKEN_ENDED)),
            };
            lines::answer(Some(&id), outcome.as_deref())
        }));
    }

    /// Whether requests are refused until a token is shown.
    fn is_locked(&self) -> bool {
        self.guarded && self.caller.is_none()
    }

    async fn refuse(&mut self, id: Option<&RawValue>, code: u16, message: impl Into<String>) {
        let error = Refused::new(code, message);
        self.send(ViewerCommand::Answer(lines::answer(id, Err(&error)))).await;
    }

    /// Sends a command, and waits while the queue is full.
    async fn send(&mut self, command: ViewerCommand) {
        // Without a viewer this half is about to be dropped too.
        let _ = self.commands.send(command).await;
    }
}

fn end_if(last: bool) -> ControlFlow<()> {
    if last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Reads the next line. If no more lines are accepted, waits for the connection's end instead; the
/// client may read on for any time.
async fn listen(lines: &mut LineReader<impl ClientInput>, is_reading: bool) -> io::Result<Line> {
    if is_reading {
        return lines.next().await;
    }
    Err(lines.get_ref().gone().await)
}
