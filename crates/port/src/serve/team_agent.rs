//! The team as one ACP agent: the port's methods and the attachments to agents behind the gateway, which
//! starts when somebody asks for it.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::progress::Progress;
use super::rpc;
use super::shared::Shared;
use super::{BoxFuture, Caller, Refused};
use crate::gateway::{GatewayHandle, GatewayTeam};
use crate::model::AgentId;

/// Takes a client of the gateway in, which speaks ACP over the stream.
pub(super) fn open(shared: &Arc<Shared>) -> Result<DuplexStream, Refused> {
    let team = || Arc::new(PortTeam(Arc::downgrade(shared)));
    let gateway = shared.gateway.get_or_init(|| GatewayHandle::start(team()));
    let busy = || Refused::new(409, "too many clients of the gateway arrive at once");
    gateway.open().ok_or_else(busy)
}

/// The team, as long as its port is served.
struct PortTeam(Weak<Shared>);

impl PortTeam {
    fn shared(&self) -> Result<Arc<Shared>, String> {
        self.0.upgrade().ok_or_else(|| "the team has ended".to_owned())
    }
}

impl GatewayTeam for PortTeam {
    fn name(&self) -> String {
        let shared = self.shared().ok();
        shared.and_then(|it| it.sources.team().map(str::to_owned)).unwrap_or_default()
    }

    fn default_agent(&self) -> Option<String> {
        let shared = self.shared().ok()?;
        let agents = shared.team.agents();
        let configured = [shared.sources.default_agent(), shared.sources.lead()];
        // One of them may have left the team.
        let is_there = |id: &AgentId| agents.iter().any(|status| status.agent == *id);
        let found = configured.into_iter().flatten().find(is_there);
        found.or_else(|| Some(agents.first()?.agent.clone())).map(|id| id.to_string())
    }

    fn attach(&self, agent: String) -> BoxFuture<'_, Result<DuplexStream, String>> {
        Box::pin(async move {
            let team = Arc::clone(&self.shared()?.team);
            let agent = AgentId::new(agent);
            team.ready(agent.clone()).await.map_err(|refused| refused.message)?;
            team.attach(agent).await.map_err(|refused| refused.message)
        })
    }

    fn history(&self, agent: String, session: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let shared = self.shared()?;
            rpc::conversation(&shared, &agent, &session).await.map_err(|error| error.message)
        })
    }

    fn call(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            let shared = self.shared()?;
            let params = to_raw_value(&params).map_err(|error| error.to_string())?;
            // Lines of progress have no reader here.
            let progress = Progress::new(Box::default(), mpsc::channel(1).0);
            let caller = Some(&Caller::Person);
            let call = rpc::call(&shared, caller, method, Some(&params), &progress);
            let result = AssertUnwindSafe(call)
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err(Refused::new(500, "the request failed; see the log")));
            let result = result.map_err(|error| error.message)?;
            serde_json::from_str(result.get()).map_err(|error| error.to_string())
        })
    }
}
