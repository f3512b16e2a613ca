//! How a connection gets to know its client: challenges, tokens, and their end.

use std::future::pending;
use std::ops::ControlFlow;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Reader, WRONG_TOKENS, end_if};
use crate::serve::command::ViewerCommand;
use crate::serve::entrance::{ClientInput, Entrance};
use crate::serve::lines;
use crate::serve::places::Rank;
use crate::serve::web_access::OpenedOnWeb;
use crate::serve::{Caller, Refused, rpc, token};

/// The answer to `auth`.
#[derive(Default, Serialize)]
struct AuthAnswer {
    authenticated: bool,
    /// On the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<Value>,
    /// The owner of a token with a scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may: Option<Value>,
}

impl<R: ClientInput> Reader<R> {
    pub(super) async fn challenge(&mut self) {
        self.challenge = token::challenge().ok();
        let answer = rpc::encoded(&json!({ "challenge": self.challenge }));
        self.send(ViewerCommand::Answer(lines::answer(None, answer.as_deref()))).await;
    }

    pub(super) async fn authenticate(
        &mut self,
        caller: Result<Caller, Refused>,
    ) -> ControlFlow<()> {
        let caller = match caller {
            Ok(caller) => caller,
            Err(error) => return self.refuse_token(error).await,
        };
        self.place.set_rank(Rank::from(&caller));
        self.caller = Some(caller.clone());
        let mut result = AuthAnswer { authenticated: true, ..AuthAnswer::default() };
        if let Entrance::Web { shown: Some(OpenedOnWeb::Scope(scope)), .. } = &self.entrance {
            result.scope = Some(scope.as_str());
        }
        if self.entrance.is_web() {
            result.team = Some(json!(self.shared.sources.team()));
        }
        if let Caller::Holder(holder) = &caller {
            rpc::record_use(&self.shared, holder, "auth", None, None).await;
            result.owner = Some(json!(holder.owner));
            result.may = Some(json!(holder.rights()));
        }
        let result = rpc::encoded(&result);
        self.send(ViewerCommand::Answer(lines::answer(None, result.as_deref()))).await;
        self.send(ViewerCommand::Known(caller)).await;
        ControlFlow::Continue(())
    }

    pub(super) async fn refuse_token(&mut self, error: Refused) -> ControlFlow<()> {
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
