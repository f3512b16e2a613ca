use crate::agent::{AgentError, AgentHandle, Order};
use crate::client_host::{HostError, PromptOutcome};
use crate::model::{AgentId, AgentStatus, SessionId};
use crate::serve::{self, BoxFuture, Prompt, Refused, Team};
use crate::supervisor::Roster;

/// The agents of `up`, as the port asks for them.
pub(super) struct Supervised(pub(super) Roster);

impl Supervised {
    fn agent(&self, id: &AgentId) -> Result<AgentHandle, Refused> {
        self.0.get(id).cloned().ok_or_else(|| {
            let known: Vec<_> =
                self.0.statuses().iter().map(|status| status.agent.to_string()).collect();
            let known = known.join(", ");
            Refused { code: 404, message: format!("there is no agent `{id}`; there are: {known}") }
        })
    }
}

impl Team for Supervised {
    fn agents(&self) -> Vec<AgentStatus> {
        self.0.statuses()
    }

    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<PromptOutcome, Refused>> {
        Box::pin(async move {
            let agent = self.agent(&prompt.agent)?;
            let turn = agent.prompt(prompt.session, prompt.blocks, prompt.by_orchestrator);
            turn.await.map_err(|error| refused(&error))
        })
    }

    fn cancel(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
    ) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            self.agent(&agent)?.cancel(session).await.map_err(|error| refused(&error))
        })
    }

    fn new_session(&self, agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        Box::pin(
            async move { self.agent(&agent)?.new_session().await.map_err(|error| refused(&error)) },
        )
    }

    fn order(
        &self,
        agent: AgentId,
        order: serve::Order,
    ) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        let order = match order {
            serve::Order::Start => Order::Start,
            serve::Order::Stop => Order::Stop,
            serve::Order::Restart => Order::Restart,
        };
        Box::pin(
            async move { self.agent(&agent)?.order(order).await.map_err(|error| refused(&error)) },
        )
    }
}

fn refused(error: &AgentError) -> Refused {
    let code = match error {
        AgentError::Host(HostError::UnknownSession(_)) => 404,
        AgentError::NotReady { .. }
        | AgentError::Host(HostError::Withdrawn)
        | AgentError::Stopping => 409,
        // Nothing the client could have done better: the agent failed.
        AgentError::Host(_) => 500,
    };
    Refused { code, message: error.to_string() }
}

/// The one agent of `observe`: its editor is its client, and nobody else's prompts reach it.
pub(super) struct Observed(pub(super) tokio::sync::watch::Receiver<AgentStatus>);

impl Observed {
    fn refuse<T: Send + 'static>() -> BoxFuture<'static, Result<T, Refused>> {
        Box::pin(std::future::ready(Err(Refused {
            code: 409,
            message: "this agent belongs to the editor that started `eisen-core observe`; only \
                      agents of `eisen-core up` can be steered over the port"
                .to_owned(),
        })))
    }
}

impl Team for Observed {
    fn agents(&self) -> Vec<AgentStatus> {
        vec![self.0.borrow().clone()]
    }

    fn prompt(&self, _: Prompt) -> BoxFuture<'_, Result<PromptOutcome, Refused>> {
        Self::refuse()
    }

    fn cancel(&self, _: AgentId, _: Option<SessionId>) -> BoxFuture<'_, Result<(), Refused>> {
        Self::refuse()
    }

    fn new_session(&self, _: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        Self::refuse()
    }

    fn order(&self, _: AgentId, _: serve::Order) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Self::refuse()
    }
}
