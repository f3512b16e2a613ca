//! The port, with nothing behind it but one session.

use std::sync::Arc;
use std::time::Duration;

use eisen_core::bus::{Backlog, Bus, Rendered};
use eisen_core::model::{
    AgentId, AgentStatus, BlockedAccess, BlockedId, BlockedStatus, Delta, Event, FileNode,
    SessionId, SessionKey, SessionMode, Snapshot, Touch, UsageReport,
};
use eisen_core::routing::{Decider, Decision, ResolveError};
use eisen_core::serve::{
    AgentDetails, BoxFuture, Gateway, Limits, Server, Sources, Team, Tokens, bind, encode,
};
use eisen_core::session::{Answer, Registry, RegistryError, RegistryRequest};
use eisen_core::tracker::Snapshots;
use eisen_core::watch::GraphState;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::Publisher;

pub(crate) struct Ours {
    port: u16,
    pub(crate) bus: Bus,
    #[allow(dead_code, reason = "only one of the benches that share this wants it")]
    pub(crate) gateway: Gateway,
}

impl Ours {
    pub(crate) fn start(runtime: &Runtime) -> Self {
        let listener = bind("127.0.0.1:0".parse().unwrap(), "/nowhere".as_ref());
        let listener = runtime.block_on(listener).unwrap();
        let port = listener.local_addr().unwrap().port();
        let bus = Bus::encoding(Backlog { events: 4096, bytes: 32 << 20 }, encode);
        let limits = Limits {
            max_connections: 1024,
            max_line_bytes: 4 << 20,
            write_deadline: Duration::from_secs(3_600),
        };
        let (nothing, tokens) = (Arc::new(Nothing(bus.clone())), Tokens::generate(None).unwrap());
        let (sources, team): (Arc<dyn Sources>, Arc<dyn Team>) = (nothing.clone(), nothing);
        let server = Server::new(listener, bus.clone(), sources, team, tokens, limits).unwrap();
        let gateway = server.gateway();
        runtime.spawn(server.run(CancellationToken::new()));
        Self { port, bus, gateway }
    }
}

impl Publisher for Ours {
    fn publish(&mut self, seq: u64) {
        self.bus.publish(Event::Delta(delta(seq)));
    }

    fn port(&self) -> u16 {
        self.port
    }
}

/// A delta whose line has 400 bytes.
pub(crate) fn delta(seq: u64) -> Delta {
    Delta {
        key: key(),
        mode: SessionMode::SingleAgent,
        seq,
        updates: vec![FileNode {
            path: PATH.into(),
            heat: 0.5,
            in_context: true,
            last_action: Touch::Read,
            turn_accessed: 7,
            timestamp_ms: 1_760_000_000_000,
            symbols: None,
            origin: None,
        }],
        removed: Vec::new(),
    }
}

const PATH: &str = "src/a/path/of/the/length/that/makes/a/line/of/four/hundred/bytes/with/all/that/stands/beside/it/in/the/line/of/a/delta/that/has/one/node/and/no/more/than/that/and/t.rs";

fn key() -> SessionKey {
    SessionKey::new(AgentId::new("ui"), SessionId::new("s-1"))
}

struct Nothing(Bus);

impl Sources for Nothing {
    fn journal(&self) -> Option<eisen_core::journal::Journal> {
        None
    }

    fn snapshots(&self) -> BoxFuture<'_, Snapshots> {
        let (key, mode, nodes) = (key(), SessionMode::SingleAgent, Vec::new());
        let seq = 1_000_000_000 + self.0.position() - 1;
        let snapshot = Snapshot { key, mode, seq, nodes, omitted: 0 };
        let sessions = vec![Arc::new(Rendered::new(snapshot))];
        Box::pin(async move { Snapshots { as_of: self.0.position(), sessions } })
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(async { Vec::new() })
    }

    fn blocked(&self, _: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        Box::pin(async { Vec::new() })
    }

    fn resolve(
        &self,
        id: BlockedId,
        _: Decision,
        _: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(async { Err(ResolveError::Unknown(id)) })
    }

    fn graph(&self, _: bool) -> BoxFuture<'_, GraphState> {
        Box::pin(async { GraphState::Off })
    }

    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>> {
        Box::pin(async { Registry::default().answer(request, 0) })
    }
}

impl Team for Nothing {
    fn keeps(&self, _: &AgentId) -> bool {
        false
    }

    fn agents(&self) -> Vec<AgentStatus> {
        Vec::new()
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        Box::pin(async { Vec::new() })
    }
}
