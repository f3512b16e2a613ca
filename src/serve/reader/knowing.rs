//! How a connection gets to know its client: challenges, tokens, and their end.

use std::future::pending;
use std::ops::ControlFlow;

use serde_json::json;

use super::{Reader, WRONG_TOKENS, end_if};
use crate::serve::command::ViewerCommand;
use crate::serve::entrance::{ClientInput, Entrance};
use crate::serve::lines;
use crate::serve::places::Rank;
use crate::serve::web_access::OpenedOnWeb;
use crate::serve::{Caller, rpc, token};
use crate::wire::RpcError;

impl<R: ClientInput> Reader<R> {
    pub(super) async fn challenge(&mut self) {
        self.challenge = token::challenge().ok();
        let answer = rpc::encoded(&json!({ "challenge": self.challenge }));
        self.send(ViewerCommand::Answer(lines::answer(None, answer.as_deref()))).await;
    }

    pub(super) async fn authenticate(
        &mut self,
        caller: Result<Caller, RpcError>,
    ) -> ControlFlow<()> {
        let caller = match caller {
            Ok(caller) => caller,
            Err(error) => return self.refuse_token(error).await,
        };
        self.place.set_rank(Rank::from(&caller));
        self.caller = Some(caller.clone());
        let mut result = json!({ "authenticated": true });
        if let Entrance::Web { shown: Some(OpenedOnWeb::Scope(scope)), .. } = &self.entrance {
            result["scope"] = json!(scope.as_str());
        }
        if self.entrance.is_web() {
            result["team"] = json!(self.shared.sources.team());
        }
        if let Caller::Holder(holder) = &caller {
            rpc::record_use(&self.shared, holder, "auth", None, None).await;
            result["owner"] = json!(holder.owner);
            result["may"] = json!(holder.rights());
        }
        let result = rpc::encoded(&result);
        self.send(ViewerCommand::Answer(lines::answer(None, result.as_deref()))).await;
        self.send(ViewerCommand::Known(caller)).await;
        ControlFlow::Continue(())
    }

    pub(super) async fn refuse_token(&mut self, error: RpcError) -> ControlFlow<()> {
        self.send(ViewerCommand::Answer(lines::answer(None, Err(&error)))).await;
        self.wrong_tokens += 1;
        end_if(self.wrong_tokens == WRONG_TOKENS)
    }
}

/// Waits until the token that a client showed is no longer good; others are for as long as the team runs.
pub(super) async fn ended(caller: Option<&Caller>) {
    match caller {
        Some(Caller::Holder(holder)) => holder.ended().await,
        _ => pending().await,
    }
}
