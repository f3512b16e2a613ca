//! A relay between an agent and a client that the test plays.

use std::path::Path;

use bytes::Bytes;
use eisen_base::task;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::budget::Account;
use crate::bus::{Backlog, Bus, Subscriber};
use crate::extract::{Access, Ask, Gate, Refusal, Target};
use crate::line::Direction;
use crate::metrics::Tally;
use crate::model::{
    Action, Activity, ActivityKind, BlockedId, BlockedStatus, Event, GrantSpan, Lines, SessionId,
    SessionKey, Source, Touch, Via,
};
use crate::proxy::*;
use crate::routing::{self, Decision, Orchestrator};
use crate::tracker::{self, OrchestratorView};
use crate::zone::{Confine, Reach, ZoneSpec};

/// `read ID SESSION PATH…` (a folder ends in `/`), `run …`, `may …`, `ambiguous ID`, `drop ID SESSION`, `did SESSION PATH`,
/// `names SESSION PATH`, `call SESSION TEXT`, `done SESSION`; to the agent `prompt SESSION`, `cancel SESSION`; all else is talk, and told as a
/// file that was read.
struct Words;

impl Extractor for Words {
    fn observe(&mut self, direction: Direction, line: &[u8], activities: &mut Vec<Activity>) {
        let text = String::from_utf8_lossy(line).into_owned();
        let words: Vec<_> = text.split(' ').collect();
        let (session, kind) = match (direction, words.as_slice()) {
            (Direction::ToAgent, ["cancel", session]) => (*session, ActivityKind::CancelRequested),
            (Direction::ToAgent, ["prompt", session]) => (*session, ActivityKind::TurnBegan),
            (Direction::ToClient, ["done", session]) => {
                (*session, ActivityKind::TurnEnded { stop_reason: "end_turn".into(), reason: None })
            }
            (Direction::ToClient, ["call", session, said]) => {
                let said = vec![(*said).into()];
                (
                    *session,
                    ActivityKind::Runs { call: "1".into(), cwd: Path::new("/").into(), said },
                )
            }
            (Direction::ToClient, ["drop", id, session]) => {
                (*session, ActivityKind::RequestCancelled { id: (*id).into() })
            }
            (Direction::ToClient, ["names", session, path]) => {
                let (path, lines) = ((*path).into(), Lines::default());
                let (touch, source) = (Touch::Read, Source::Tool);
                (*session, ActivityKind::Touched { path, touch, source, lines })
            }
            (Direction::ToClient, ["did", session, path]) => {
                let path = (*path).into();
                (
                    *session,
                    ActivityKind::Performed { path, action: Action::Read, by_program: false },
                )
            }
            _ => {
                let (path, lines) = (text.as_str().into(), Lines::default());
                let (touch, source) = (Touch::Read, Source::Output);
                ("s", ActivityKind::Touched { path, touch, source, lines })
            }
        };
        activities.push(Activity { session: SessionId::new(session), kind });
    }

    fn gate(&mut self, line: &[u8]) -> Gate {
        let text = String::from_utf8_lossy(line).into_owned();
        let words: Vec<_> = text.split(' ').collect();
        let via = match words.first() {
            Some(&"read") => Via::Fs,
            Some(&"run") => Via::Terminal,
            Some(&"may") => Via::Permission,
            Some(&"ambiguous") => {
                let replies = vec![Bytes::from(format!("invalid {}\n", words[1]))];
                return Gate::Ambiguous { why: "it says so", replies };
            }
            _ => return Gate::Pass,
        };
        let access = |path: &&str| match path.strip_suffix('/') {
            Some(folder) => Access { path: folder.into(), target: Target::Search },
            None => Access { path: path.into(), target: Target::File(Action::Read) },
        };
        Gate::Ask(Ask {
            id: Some(serde_json::value::RawValue::from_string(words[1].to_owned()).unwrap()),
            session: SessionId::new(words[2]),
            via,
            accesses: words[3..].iter().map(access).collect(),
            options: Vec::new(),
            is_team_tool: false,
        })
    }

    fn refuse(&self, ask: &Ask, refusal: &Refusal) -> Option<Bytes> {
        let id = ask.id.as_ref()?;
        Some(Bytes::from(match refusal {
            Refusal::Outside { path, .. } => format!("outside {id} {path}\n"),
            Refusal::Locked { path, .. } => format!("locked {id} {path}\n"),
            Refusal::Cancelled => format!("cancelled {id}\n"),
            Refusal::NoTerminals => format!("no terminals {id}\n"),
        }))
    }

    fn answer(&self, ask: &Ask, content: &str) -> Option<Bytes> {
        Some(Bytes::from(format!("content {} {content}\n", ask.id.as_ref()?)))
    }

    fn cancel(&self, session: &SessionId) -> Bytes {
        Bytes::from(format!("cancel {session}\n"))
    }

    fn awaits(&self) -> bool {
        false
    }

    fn end(&mut self, reason: &str, activities: &mut Vec<Activity>) {
        let kind =
            ActivityKind::TurnEnded { stop_reason: "error".into(), reason: Some(reason.into()) };
        activities.push(Activity { session: SessionId::new("s"), kind });
    }
}

/// A relay between an agent and a client that the test plays.
pub(super) struct Bench {
    pub(super) agent: BufReader<DuplexStream>,
    pub(super) client: BufReader<DuplexStream>,
    pub(super) handle: RelayHandle,
    pub(super) ended: oneshot::Sender<String>,
    /// With the agent's streams.
    pub(super) relay: JoinHandle<(Result<(), ProxyError>, Box<dyn Send>)>,
    pub(super) routing: RoutingHandle,
    pub(super) events: Subscriber,
    pub(super) permits: Arc<Permits>,
    pub(super) running: Arc<LiveCalls>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) tracker: TrackerHandle,
    pub(super) tally: Arc<Tally>,
    pub(super) folder: TempDir,
}

#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the bench")]
pub(super) struct Options {
    pub(super) zoned: bool,
    pub(super) hold: bool,
    pub(super) terminals: bool,
    pub(super) orchestrator_permits: bool,
    pub(super) has_tools: bool,
    /// The kernel holds the zone.
    pub(super) kernel: bool,
    pub(super) on_violation: OnViolation,
    pub(super) buffer: usize,
}

pub(super) const ZONED: Options = Options {
    zoned: true,
    hold: false,
    terminals: true,
    orchestrator_permits: false,
    has_tools: true,
    kernel: false,
    on_violation: OnViolation::Report,
    buffer: 1 << 16,
};

pub(super) fn bench(options: &Options) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let (bus, cancel) = (Bus::new(Backlog::of(1000)), CancellationToken::new());
    let events = bus.subscribe();
    let settings = tracker::Settings {
        context_turns: 3,
        compaction_threshold: 0.5,
        decay_rate: 0.95,
        tick: std::time::Duration::from_hours(1),
        idle_tick: std::time::Duration::from_hours(1),
    };
    let view = OrchestratorView::None(SessionKey::new(AgentId::new("a"), SessionId::new("")));
    let (tracker, task) = TrackerHandle::spawn(settings, view, bus.clone(), cancel.clone());
    task::spawn(task);
    let rules = routing::Rules {
        hold: options.hold,
        hold_timeout: Some(std::time::Duration::from_hours(1)),
        ..routing::Rules::default()
    };
    let settings = routing::Settings::new(Orchestrator::Nobody, rules);
    let (routing, task) = RoutingHandle::spawn(settings, bus, tracker.clone(), cancel);
    task::spawn(task);
    let spec = ZoneSpec {
        terminals: options.terminals,
        ..ZoneSpec::new(folder.path(), vec!["in/**".to_owned()], "/nonexistent/eisen")
    };
    let permits = Arc::new(Permits::default());
    let zone = Arc::new(Zone::compile(&spec).unwrap());
    let reach = Reach::new(Confine::Workspace, "/nonexistent/tmp");
    let bounds = options.kernel.then(|| Arc::new(Bounds::new(zone.clone(), reach).unwrap()));
    let gate = options.zoned.then(|| Gatekeeping {
        rules: watch::channel(Rules {
            zone,
            bounds,
            orchestrator_permits: options.orchestrator_permits,
            has_tools: options.has_tools,
            on_violation: options.on_violation,
            on_loop: OnLoop::Report,
        })
        .1,
        routing: routing.clone(),
        permits: Some(permits.clone()),
        conflicts: None,
    });
    let (running, vitals) = (Arc::new(LiveCalls::default()), Vitals::new());
    let tally = Tally::started();
    let proxy = Proxy {
        agent: AgentId::new("a"),
        extractor: Box::new(Words),
        tracker: tracker.clone(),
        gate,
        running: Some(running.clone()),
        vitals: vitals.clone(),
        files: None,
        account: Account::unlimited(AgentId::new("a")),
        model_calls: None,
        tally: tally.clone(),
    };
    let (agent, ours) = tokio::io::duplex(options.buffer);
    let (from_agent, to_agent) = tokio::io::split(ours);
    let (client, ours) = tokio::io::duplex(options.buffer);
    let (from_client, to_client) = tokio::io::split(ours);
    let (ended, death) = oneshot::channel();
    let streams = Streams { from_agent, to_agent, from_client, to_client };
    let (handle, relay) = proxy.start(streams, death);
    Bench {
        agent: BufReader::new(agent),
        client: BufReader::new(client),
        handle,
        ended,
        relay: task::spawn(async {
            let (relayed, streams) = relay.await;
            (relayed, Box::new(streams) as Box<dyn Send>)
        }),
        routing,
        events,
        permits,
        running,
        vitals,
        tracker,
        tally,
        folder,
    }
}

pub(super) async fn line(stream: &mut BufReader<DuplexStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    line
}

impl Bench {
    pub(super) async fn agent_says(&mut self, text: &str) {
        self.agent.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn blocked(&mut self) -> (BlockedId, BlockedStatus) {
        loop {
            if let Event::Blocked(access) = &**self.events.event().await {
                return (access.id.clone(), access.status);
            }
        }
    }

    pub(super) async fn allow(&self, id: &str) {
        let decision = Decision::Allow { scope: GrantSpan::Once, ttl: None, pattern: None };
        self.routing
            .resolve(BlockedId::new(id), decision, crate::routing::Decider::Person)
            .await
            .unwrap();
    }
}
