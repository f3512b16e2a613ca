//! Connections that change their protocol: to that of an agent, or to MCP.

use std::ops::ControlFlow;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::split;

use super::Reader;
use crate::serve::command::ViewerCommand;
use crate::serve::entrance::{ClientInput, wrong_token};
use crate::serve::lines;
use crate::serve::places::Rank;
use crate::serve::{Caller, Refused, rpc, team_agent, tools};

impl<R: ClientInput> Reader<R> {
    /// Serves the tools on the connection from here on.
    pub(super) async fn serve_tools(&mut self, caller: Option<Caller>) -> ControlFlow<()> {
        let Some(caller) = caller else { return self.refuse_token(wrong_token()).await };
        if !self.running.is_empty() {
            let message = "`tools` takes the whole connection, and requests of it are under way";
            self.refuse(None, 409, message).await;
            return ControlFlow::Continue(());
        }
        self.place.set_rank(Rank::from(&caller));
        let stream = tools::serve(&self.shared, caller, self.cancel.clone());
        let (from_tools, to_tools) = split(stream);
        self.attached = Some(to_tools);
        let answer = rpc::encoded(&json!({ "tools": true }));
        let answer = lines::answer(None, answer.as_deref());
        self.send(ViewerCommand::Attach(answer, from_tools)).await;
        ControlFlow::Break(())
    }

    /// Attaches the connection to an agent. No line is read meanwhile: the bytes after the request
    /// are the agent's.
    pub(super) async fn attach(
        &mut self,
        id: &RawValue,
        params: Option<&RawValue>,
    ) -> ControlFlow<()> {
        let attached = tokio::select! {
            biased;
            attached = rpc::attach(&self.shared, self.caller.as_ref(), params) => attached,
            () = self.cancel.cancelled() => Err(Refused::new(409, "the team is stopping")),
        };
        let opened = attached.and_then(|stream| match stream {
            Some(stream) => Ok(stream),
            None => team_agent::open(&self.shared),
        });
        match opened {
            Ok(stream) => {
                let (from_agent, to_agent) = split(stream);
                self.attached = Some(to_agent);
                let answer = rpc::encoded(&json!({}));
                let answer = lines::answer(Some(id), answer.as_deref());
                self.send(ViewerCommand::Attach(answer, from_agent)).await;
                ControlFlow::Break(())
            }
            Err(error) => {
                self.send(ViewerCommand::Answer(lines::answer(Some(id), Err(&error)))).await;
                ControlFlow::Continue(())
            }
        }
    }
}
