//! A team as a member of a hub: publishes the lines of its port and that it is there, and performs what
//! hubs ask. Without NATS the team goes on alone, and its whole state is published once that is back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Message, Subscriber};
use bytes::{Bytes, BytesMut};
use eisen_base::task::TaskSet;
use futures_util::stream::{SelectAll, select_all};
use futures_util::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::answers::{Admission, Answers};
use super::hosts::{self, Hosts};
use super::key::HubKey;
use super::lines::JOINED;
use super::message::{
    self, Beat, Chunk, HubRequest, Reply, ReplyPart, Sender, Sync, kind, subject,
};
use super::nats::{self, NatsError};
use super::neighbours::Neighbours;
use super::presence::{EVERY, SILENCE};
use crate::model::{NatsAccess, Topic, WebScope, now_ms};
use crate::serve::{Gateway, OpenedOnWeb};

/// The time between two feeds, each of which begins with the whole state: at first, and at most if they
/// are asked for without a quiet time in between.
const BETWEEN_FEEDS: Duration = Duration::from_millis(500);
const LONGEST_BETWEEN: Duration = Duration::from_secs(30);
const QUIET: Duration = Duration::from_mins(1);

/// Bytes of a reply; a longer one is an error.
const LONGEST_REPLY: usize = 64 << 20;

/// How long the last words may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Topics of the port that a hub has.
const TOPICS: [Topic; 4] = [Topic::SessionUpdate, Topic::Overlap, Topic::Task, Topic::Report];

#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// The name of the team in the hub.
    pub host: String,
    pub team: String,
    pub access: NatsAccess,
    pub key: HubKey,
    /// Reaches the other teams from now on.
    pub neighbours: Neighbours,
}

/// Serves a team to hubs until `cancel`.
pub async fn serve(settings: MemberSettings, gateway: Gateway, cancel: CancellationToken) {
    let host = settings.host.clone();
    let joined = cancel.run_until_cancelled(Membership::join(settings, gateway)).await;
    match joined {
        None => {}
        Some(Ok((member, connected, down))) => member.run(connected, down, cancel).await,
        Some(Err(error)) => tracing::error!(host, "the team can't join a hub: {error}"),
    }
}

struct Membership {
    host: String,
    team: String,
    epoch: String,
    hosts: Arc<Hosts>,
    gateway: Gateway,
    answers: Arc<Mutex<Answers>>,
    /// Requests that are performed.
    running: TaskSet,
    beats: u64,
    /// The last feed, and how many chunks of it were sent.
    feed: u64,
    chunks: u64,
    /// The port's lines; None: nobody would get them.
    lines: Option<DuplexStream>,
    began: Option<Instant>,
    /// The least time until the next feed.
    between: Duration,
    /// A message with another key was logged.
    is_warned: bool,
    /// When another team was heard that has the name of this host.
    taken: Option<Instant>,
}

/// The beats that are heard: of this host, and of those that the team asks, which are added.
type Beats = (SelectAll<Subscriber>, mpsc::UnboundedReceiver<Subscriber>);

type Joined = (Membership, watch::Receiver<bool>, (Subscriber, Beats));

impl Membership {
    async fn join(settings: MemberSettings, gateway: Gateway) -> Result<Joined, NatsError> {
        let MemberSettings { host, team, access, key, neighbours } = settings;
        let (client, connected) =
            nats::connect(&access, format!("eisen-core {team}"), format!("_INBOX.{host}")).await?;
        let down = client.subscribe(subject(&host, kind::DOWN)).await?;
        let own = client.subscribe(subject(&host, kind::BEAT)).await?;
        let hosts = Arc::new(Hosts::new(Sender { client, key }));
        let (sender, more) = mpsc::unbounded_channel();
        neighbours.reached(&host, Arc::clone(&hosts), sender);
        let beats = (select_all([own]), more);
        let epoch = ulid::Ulid::generate().to_string();
        let member = Self {
            answers: Arc::new(Mutex::new(Answers::new(epoch.clone()))),
            running: TaskSet::default(),
            hosts,
            host,
            team,
            epoch,
            gateway,
            beats: 0,
            feed: 0,
            chunks: 0,
            lines: None,
            began: None,
            between: BETWEEN_FEEDS,
            is_warned: false,
            taken: None,
        };
        Ok((member, connected, (down, beats)))
    }

    async fn run(
        mut self,
        mut connected: watch::Receiver<bool>,
        (mut down, (mut beats, mut more)): (Subscriber, Beats),
        cancel: CancellationToken,
    ) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut buffer, most) = (BytesMut::new(), self.hosts.sender.room());
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Ok(()) = connected.changed() => {
                    // What is published meanwhile would come late: the state is sent anew.
                    (self.lines, self.began) = (None, None);
                    if *connected.borrow_and_update() {
                        self.begin_feed(&cancel).await;
                    }
                }
                _ = ticks.tick() => {
                    let is_connected = *connected.borrow();
                    self.tick(is_connected, &cancel).await;
                }
                Some(message) = beats.next() => self.heard(&message),
                Some(of_another) = more.recv() => beats.push(of_another),
                Some(message) = down.next() => self.asked(&message, &cancel).await,
                Some(_) = self.running.join_next() => {}
                read = read(&mut self.lines, &mut buffer, most) => match read {
                    Some(()) => {
                        gather(&mut self.lines, &mut buffer, most).await;
                        self.publish(&buffer.split()).await;
                    }
                    None => self.lines = None,
                }
            }
        }
        if *connected.borrow() {
            let last = async {
                self.say(true).await;
                let _ = self.hosts.sender.client.flush().await;
            };
            let _ = timeout(LAST_WORDS, last).await;
        }
    }

    /// Says that the team is there.
    async fn tick(&mut self, is_connected: bool, cancel: &CancellationToken) {
        self.hosts.gone();
        if !is_connected || self.is_taken() {
            return;
        }
        if self.lines.is_some() || !self.begin_feed(cancel).await {
            self.say(false).await;
        }
    }

    async fn say(&mut self, ending: bool) {
        self.beats += 1;
        let beat = Beat {
            epoch: self.epoch.clone(),
            number: self.beats,
            team: self.team.clone(),
            timestamp_ms: now_ms(),
            feed: self.feed,
            chunks: self.chunks,
            ending,
        };
        self.answers.lock().beat(self.beats, Instant::now());
        self.send(kind::BEAT, &beat, &[]).await;
    }

    /// Publishes; false: the server takes nothing now.
    async fn send(&self, kind: &str, head: &impl serde::Serialize, bytes: &[u8]) -> bool {
        let sent = self.hosts.sender.send(subject(&self.host, kind), head, bytes).await;
        sent.inspect_err(|error| tracing::debug!(?error, "cannot publish to NATS")).is_ok()
    }

    /// Opens the port anew, whose first lines are the whole state, and says so; false: not now.
    async fn begin_feed(&mut self, cancel: &CancellationToken) -> bool {
        let age = self.began.map(|began| began.elapsed());
        if age.is_some_and(|age| age < self.between) || self.is_taken() {
            return false;
        }
        // One that is asked for again and again is not what helps.
        self.between = match age {
            Some(age) if age < QUIET => (self.between * 2).min(LONGEST_BETWEEN),
            _ => BETWEEN_FEEDS,
        };
        let all = Arc::new(|_: &str| Ok(OpenedOnWeb::Scope(WebScope::Control)));
        let Some(mut lines) = self.gateway.open(all, cancel.clone()) else { return false };
        let topics = TOPICS.map(Topic::as_str);
        let opening = format!(
            "{{\"type\":\"auth\",\"token\":\"hub\"}}\n\
             {{\"type\":\"subscribe\",\"topics\":{topics:?}}}\n\
             {{\"type\":\"rpc\",\"id\":\"{JOINED}\",\"method\":\"list_agents\"}}\n"
        );
        if lines.write_all(opening.as_bytes()).await.is_err() {
            return false;
        }
        (self.lines, self.began) = (Some(lines), Some(Instant::now()));
        self.feed += 1;
        self.chunks = 0;
        // A hub that took the team to be away hears of it first.
        self.say(false).await;
        true
    }

    async fn publish(&mut self, bytes: &[u8]) {
        let chunk = Chunk { epoch: self.epoch.clone(), feed: self.feed, number: self.chunks };
        if self.send(kind::LIVE, &chunk, bytes).await {
            self.chunks += 1;
        } else {
            // The next feed has all of it.
            self.lines = None;
        }
    }

    /// Whether another team has the name of this host.
    fn is_taken(&self) -> bool {
        self.taken.is_some_and(|taken| taken.elapsed() < SILENCE)
    }

    /// Hears a beat: of another host, its own, or one of a team that has the same name.
    fn heard(&mut self, message: &Message) {
        let Some((beat, _)) = message::read::<Beat>(message, &self.hosts.sender.key) else {
            return;
        };
        match message::parts_of(message.subject.as_str()) {
            Some((host, _)) if *host == self.host => {}
            Some((host, _)) => {
                self.hosts.beat(host, beat);
                return;
            }
            None => return,
        }
        // The one that was there first keeps it.
        if beat.epoch >= self.epoch || beat.ending || hosts::is_old(&beat) {
            return;
        }
        if !self.is_taken() {
            tracing::error!(
                host = self.host,
                "the team is not in the hub: the team `{}` has this name of a host; `[hub] host` has to \
                 be another for each team",
                beat.team
            );
        }
        self.taken = Some(Instant::now());
        self.lines = None;
    }

    async fn asked(&mut self, message: &Message, cancel: &CancellationToken) {
        let key = &self.hosts.sender.key;
        if self.is_taken() {
            return;
        }
        let kind = message::parts_of(message.subject.as_str()).map(|(_, kind)| kind);
        if kind == Some(kind::SYNC) {
            let asked = message::read::<Sync>(message, key);
            if asked.is_some_and(|(it, _)| it.epoch == self.epoch && it.feed == self.feed) {
                self.begin_feed(cancel).await;
            }
            return;
        }
        let Some((request, _)) = message::read::<HubRequest>(message, key) else {
            if !self.is_warned {
                self.is_warned = true;
                tracing::warn!(
                    host = self.host,
                    "a request is not signed with the key of this team"
                );
            }
            return;
        };
        let admission = self.answers.lock().admit(&request, Instant::now());
        let answer = match admission {
            Admission::Run => return self.perform(request),
            Admission::Ignored => return,
            Admission::Running => Bytes::new(),
            Admission::Done(answer) => answer,
            Admission::Refused(code, message) => encode(&Reply::Error { code, message }),
        };
        // A long answer is not to hold up the lines.
        let hosts = Arc::clone(&self.hosts);
        self.running.spawn(async move { reply(&hosts.sender, &request, &answer).await });
    }

    fn perform(&mut self, request: HubRequest) {
        let (gateway, answers) = (self.gateway.clone(), Arc::clone(&self.answers));
        let hosts = Arc::clone(&self.hosts);
        self.running.spawn(async move {
            reply(&hosts.sender, &request, &[]).await;
            let HubRequest { by, method, params, .. } = &request;
            let outcome = match gateway.call(by.clone(), method, params.as_deref()).await {
                Ok(result) => Reply::Result(result),
                Err(refused) => Reply::Error { code: refused.code, message: refused.message },
            };
            let mut answer = encode(&outcome);
            if answer.len() > LONGEST_REPLY {
                let message = format!("the answer has more than {LONGEST_REPLY} bytes");
                answer = encode(&Reply::Error { code: 500, message });
            }
            answers.lock().done(&request.id, &answer, Instant::now());
            reply(&hosts.sender, &request, &answer).await;
        });
    }
}

fn encode(reply: &Reply) -> Bytes {
    // Fails only for a map with keys that are not text.
    serde_json::to_vec(reply).unwrap_or_default().into()
}

/// Sends an answer; an empty one says that the request is under way.
async fn reply(sender: &Sender, request: &HubRequest, answer: &[u8]) {
    let HubRequest { id, inbox, .. } = request;
    let parts: Vec<_> = answer.chunks(sender.room()).collect();
    let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let under_way = parts.is_empty().then_some(&[][..]);
    for (number, bytes) in (0..).zip(parts.into_iter().chain(under_way)) {
        let head = ReplyPart { id: id.clone(), number, parts: count };
        if sender.send(inbox.clone(), &head, bytes).await.is_err() {
            return;
        }
    }
}

/// Reads what is there of the lines; None at their end.
async fn read(lines: &mut Option<DuplexStream>, buffer: &mut BytesMut, most: usize) -> Option<()> {
    let Some(lines) = lines else { return std::future::pending().await };
    buffer.reserve(most);
    let count = lines.take(most as u64).read_buf(buffer).await.ok()?;
    (count > 0).then_some(())
}

/// Reads also what comes while other tasks run: many lines in one message cost little more than one.
async fn gather(lines: &mut Option<DuplexStream>, buffer: &mut BytesMut, most: usize) {
    let Some(lines) = lines else { return };
    while buffer.len() < most {
        yield_now().await;
        let room = (most - buffer.len()) as u64;
        let more = lines.take(room).read_buf(buffer).now_or_never();
        if !matches!(more, Some(Ok(1..))) {
            return;
        }
    }
}
