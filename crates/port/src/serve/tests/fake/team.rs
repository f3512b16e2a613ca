//! The team of the fake: its agents answer at once, each in its own way.

use std::time::Duration;

use eisen_base::task;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

use super::super::samples;
use super::Fake;
use crate::client_host::{
    Cancelled, Continuation, HostError, PromptOutcome, SessionChoices, WaitingPrompt,
};
use crate::model::{
    AgentId, AgentState, AgentStatus, BlockedId, BudgetLimits, BudgetReport, Event, How, Order,
    SessionId, StreamReplay, StreamReport, StreamState, WebScope,
};
use crate::serve::{
    AgentDetails, BoxFuture, Fork, OpenedOnWeb, Prompt, Refused, ReviewRequest, Rewind, Team,
    WebLink, WebToken,
};
use crate::undo;
use crate::wire::{
    BranchList, BranchReview, CheckedBranch, HunkDecision, MergeBranchParams, MergedBranch,
    OpenPullRequestParams, PullRequest, Reloaded, TeamReport,
};

impl Team for Fake {
    fn agents(&self) -> Vec<AgentStatus> {
        self.agents.lock().unwrap().clone()
    }

    fn keeps(&self, agent: &AgentId) -> bool {
        self.known(agent).is_ok()
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        let agents = self.agents();
        Box::pin(async move { agents.into_iter().map(samples::details).collect() })
    }

    fn budgets(&self) -> Vec<BudgetReport> {
        self.budgets.lock().unwrap().clone()
    }

    fn web_link(&self, opens: OpenedOnWeb) -> BoxFuture<'_, Result<WebLink, Refused>> {
        self.ask(match opens {
            OpenedOnWeb::Scope(scope) => format!("link {}", scope.as_str()),
            OpenedOnWeb::Holder(holder) => format!("link of {}", holder.owner),
        });
        let url = "http://127.0.0.1:17321/enter?link=SECRET".to_owned();
        Box::pin(async { Ok(WebLink { url, lasts: Duration::from_secs(300) }) })
    }

    fn web_token(&self, scope: WebScope) -> BoxFuture<'_, Result<WebToken, Refused>> {
        self.ask(format!("token {}", scope.as_str()));
        let (token, id) = ("SECRET".to_owned(), "3fa9c1d2".to_owned());
        Box::pin(async {
            Ok(WebToken { token, id, url: Some("http://127.0.0.1:17321".to_owned()) })
        })
    }

    fn web_revoke(&self, id: Option<String>) -> BoxFuture<'_, Result<usize, Refused>> {
        self.ask(format!("revoke {id:?}"));
        Box::pin(async { Ok(1) })
    }

    fn raise_budget(
        &self,
        agent: Option<&AgentId>,
        totals: BudgetLimits,
    ) -> Result<BudgetReport, Refused> {
        agent.map(|agent| self.known(agent)).transpose()?;
        self.ask(format!("raise {agent:?} {totals:?}"));
        let raised = samples::raised_budget();
        self.budgets.lock().unwrap().push(raised.clone());
        Ok(raised)
    }

    fn streams(&self) -> Vec<StreamReport> {
        vec![samples::stream()]
    }

    fn attach_stream(
        &self,
        config: serde_json::Map<String, serde_json::Value>,
    ) -> BoxFuture<'_, Result<StreamReport, Refused>> {
        let name = config.get("name").and_then(serde_json::Value::as_str).unwrap_or_default();
        let new = StreamReport {
            name: name.into(),
            state: StreamState::Ok,
            reason: None,
            failures: 0,
            delivered: 0,
            position: None,
            ..samples::stream()
        };
        Box::pin(async { Ok(new) })
    }

    fn detach_stream(&self, name: String) -> BoxFuture<'_, Result<StreamReport, Refused>> {
        let message = format!("there is no stream `{name}`; there are: audit");
        Box::pin(async { Err(Refused::new(404, message)) })
    }

    fn replay_to_stream(
        &self,
        _: String,
        _: String,
    ) -> BoxFuture<'_, Result<StreamReplay, Refused>> {
        let replay_id = "019a0c1e-0000-7000-8000-000000000001".into();
        let session = "0199c0e8-0000-7000-8000-00000000000a".to_owned();
        Box::pin(async { Ok(StreamReplay { replay_id, session, events: 4, dead: 0 }) })
    }

    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<PromptOutcome, Refused>> {
        Box::pin(async move {
            let Prompt { agent, session, blocks, by_orchestrator, .. } = &prompt;
            self.ask(format!(
                "prompt {agent} {session:?} {blocks:?} by_orchestrator: {by_orchestrator}"
            ));
            match prompt.agent.as_str() {
                "slow" => {
                    let _dropped = Dropped(&self.slow);
                    let _ = self.slow.send("began");
                    self.release.notified().await;
                }
                "broken" => panic!("a bug in the team"),
                _ => drop(self.known(&prompt.agent)?),
            }
            let session = prompt.session.unwrap_or_else(|| SessionId::new("s-ui"));
            prompt.said.send_modify(|said| said.session = Some(session.clone()));
            prompt.said.send_modify(|said| said.text.push_str("Done."));
            self.touch(1, "src/ui/app.ts");
            self.bus.publish(Event::Turn(samples::turn(None)));
            Ok(PromptOutcome {
                session,
                stop_reason: "end_turn".to_owned(),
                reason: None,
                text: "Done.".to_owned(),
                last_message_at: 0,
                blocked: vec![BlockedId::new("b1")],
                refused: Vec::new(),
            })
        })
    }

    fn cancel(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
        queued: bool,
    ) -> BoxFuture<'_, Result<Cancelled, Refused>> {
        Box::pin(async move {
            self.ask(format!("cancel {agent} {session:?} queued: {queued}"));
            self.known(&agent).map(|_| Cancelled { turns: 1, prompts: 2 })
        })
    }

    fn waiting(
        &self,
        agent: AgentId,
        _: Option<SessionId>,
    ) -> BoxFuture<'_, Result<Vec<WaitingPrompt>, Refused>> {
        Box::pin(async move { self.known(&agent).map(|_| vec![samples::waiting("Add a footer")]) })
    }

    fn edit_prompt(
        &self,
        agent: AgentId,
        id: String,
        text: String,
    ) -> BoxFuture<'_, Result<WaitingPrompt, Refused>> {
        Box::pin(async move {
            self.known(&agent)?;
            waits(&id).map(|()| samples::waiting(&text))
        })
    }

    fn withdraw_prompt(
        &self,
        agent: AgentId,
        id: String,
    ) -> BoxFuture<'_, Result<WaitingPrompt, Refused>> {
        Box::pin(async move {
            self.known(&agent)?;
            waits(&id).map(|()| samples::waiting("Add a footer"))
        })
    }

    fn session_options(
        &self,
        agent: AgentId,
        _: Option<SessionId>,
    ) -> BoxFuture<'_, Result<SessionChoices, Refused>> {
        Box::pin(async move { self.known(&agent).map(|_| samples::choices()) })
    }

    fn set_session_option(
        &self,
        agent: AgentId,
        _: Option<SessionId>,
        option: String,
        value: String,
    ) -> BoxFuture<'_, Result<SessionChoices, Refused>> {
        Box::pin(async move {
            self.known(&agent)?;
            let mut choices = samples::choices();
            for it in choices.options.iter_mut().filter(|it| it.id == option) {
                it.current = Some(value.clone());
            }
            Ok(choices)
        })
    }

    fn new_session(&self, agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        Box::pin(async move { self.known(&agent).map(|_| SessionId::new("s-ui-2")) })
    }

    fn session_beside(&self, agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        Box::pin(async move { self.known(&agent).map(|_| SessionId::new("s-beside")) })
    }

    fn fork(&self, fork: Fork) -> BoxFuture<'_, Result<(SessionId, How), Refused>> {
        Box::pin(async move {
            self.known(&fork.agent)?;
            self.ask(format!("{fork:?}"));
            let forking = fork.forking;
            let how = if forking.source.is_some() { How::Forked } else { How::Primed };
            Ok((SessionId::new("s-ui-2"), how))
        })
    }

    fn rewind(&self, rewind: Rewind) -> BoxFuture<'_, Result<bool, Refused>> {
        Box::pin(async move {
            self.ask(format!("rewind {:?} {:?}", rewind.key, rewind.continuation));
            rewind.commit.await?;
            Ok(matches!(rewind.continuation, Continuation::Anew(_)))
        })
    }

    fn attach(&self, agent: AgentId) -> BoxFuture<'_, Result<DuplexStream, Refused>> {
        Box::pin(async move {
            self.known(&agent)?;
            let (near, far) = tokio::io::duplex(16);
            // An agent that repeats what it hears.
            task::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
            Ok(near)
        })
    }

    fn order(&self, agent: AgentId, order: Order) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(async move {
            let status = self.known(&agent)?;
            let state = match order {
                Order::Start => AgentState::Connecting,
                Order::Stop => AgentState::Stopped,
                Order::Restart => AgentState::Restarting,
            };
            Ok(AgentStatus { state, ..status })
        })
    }

    fn reload(&self) -> BoxFuture<'_, Result<Reloaded, Refused>> {
        Box::pin(async { Ok(samples::reloaded()) })
    }

    fn add_agent(
        &self,
        config: serde_json::Map<String, serde_json::Value>,
    ) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(async move {
            let id = config.get("id").and_then(serde_json::Value::as_str).unwrap_or_default();
            let status = samples::agent(id);
            Ok(AgentStatus { state: AgentState::Connecting, ..status })
        })
    }

    fn review(&self, request: ReviewRequest) -> BoxFuture<'_, Result<BranchReview, Refused>> {
        let (is_accepted, text) = match request {
            ReviewRequest::Look(_) => (false, None),
            ReviewRequest::Decide(call) => (call.decision == HunkDecision::Accept, None),
            ReviewRequest::Comment(call) => (false, call.text),
        };
        Box::pin(async move { Ok(samples::review(is_accepted, text)) })
    }

    fn branches<'a>(&'a self, _: TeamReport<'a>) -> BoxFuture<'a, Result<BranchList, Refused>> {
        Box::pin(async { Ok(samples::branches()) })
    }

    fn merge_branch(
        &self,
        params: MergeBranchParams,
    ) -> BoxFuture<'_, Result<MergedBranch, Refused>> {
        Box::pin(async move { samples::merged(params) })
    }

    fn check_branch(&self, _: String) -> BoxFuture<'_, Result<CheckedBranch, Refused>> {
        Box::pin(async { Ok(samples::checked()) })
    }

    fn open_pull_request(
        &self,
        params: OpenPullRequestParams,
    ) -> BoxFuture<'_, Result<PullRequest, Refused>> {
        Box::pin(async { Ok(samples::pull_request(params)) })
    }

    fn undo(&self, request: undo::UndoRequest) -> BoxFuture<'_, Result<undo::Outcome, Refused>> {
        Box::pin(async move {
            if let undo::Aim::Agent { agent, .. } = &request.aim {
                self.known(&AgentId::new(agent.as_str()))?;
            }
            Ok(samples::undone(&request))
        })
    }

    fn remove_agent(&self, agent: AgentId) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(async move {
            let reason = Some("it was removed from the team".to_owned());
            let state = AgentState::Stopped;
            Ok(AgentStatus { state, pid: None, reason, ..self.known(&agent)? })
        })
    }
}

fn waits(id: &str) -> Result<(), Refused> {
    let error = || Refused::new(409, HostError::NotWaiting(id.to_owned()).to_string());
    (id == samples::waiting("").draft.id()).then_some(()).ok_or_else(error)
}

struct Dropped<'a>(&'a mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}
