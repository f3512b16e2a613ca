//! The prompt of `up --prompt`: for the first agent that is ready.

use std::future::pending;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::json;
use tokio::sync::watch;

use crate::app::team::Supervised;
use crate::client_host::Said;
use crate::model::{DecidedBy, one_line};
use crate::serve::{Prompt, Team as _};

/// Sends the prompt, if there is one; ends with the team.
pub(super) async fn send(team: Arc<Supervised>, text: Option<String>) {
    if let Some(text) = text
        && let Err(why) = prompt(&team, &text).await
    {
        tracing::warn!("the prompt of `up` was not carried out: {}", one_line(&why));
    }
    pending::<()>().await;
}

async fn prompt(team: &Supervised, text: &str) -> Result<(), String> {
    let agents = team.roster.statuses().into_iter().map(|status| status.agent);
    let mut starting: FuturesUnordered<_> =
        agents.map(async |agent| team.ready(agent.clone()).await.map(|()| agent)).collect();
    let mut why = "the team has no agent".to_owned();
    let agent = loop {
        match starting.next().await {
            Some(Ok(agent)) => break agent,
            Some(Err(refused)) => why = refused.message,
            None => return Err(why),
        }
    };
    drop(starting);
    let (said, _) = watch::channel(Said::default());
    let blocks = vec![json!({ "type": "text", "text": text })];
    let by = Some(DecidedBy::Person);
    let prompt = Prompt { agent, session: None, blocks, by_orchestrator: false, by, said };
    team.prompt(prompt).await.map(drop).map_err(|refused| refused.message)
}
