//! Owns the check of a token with a scope: the right that a method takes of it, and what holds a token for
//! some agents to these.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tracing::warn;

use super::encoded;
use crate::journal::{EventType, NewEvent, Place};
use crate::model::AgentId;
use crate::serve::shared::Shared;
use crate::serve::{Refused, RemoteTeams};
use crate::tokens::{TokenHolder, TokenRight};
use crate::wire::{Facts, Limit, Opening};

/// Characters of a name that stand in the journal.
const LONGEST_NAME: usize = 200;

/// Lets a call of a holder pass, or says why not; both stand in the journal before anything is done.
pub(super) async fn admit(
    shared: &Shared,
    holder: &TokenHolder,
    facts: &Facts,
    params: Option<&RawValue>,
) -> Result<(), Refused> {
    let params = CallParams::of(params);
    let agent = params.as_ref().ok().and_then(CallParams::agent);
    let outcome = match &params {
        Ok(params) => permitted(shared, holder, facts, params).await,
        Err(error) => Err(error.clone()),
    };
    record_use(shared, holder, facts.name, agent, outcome.as_ref().err().map(|error| error.code))
        .await;
    outcome
}

/// The payload of `token.use`.
#[derive(Serialize)]
struct TokenUse<'a> {
    token_id: Value,
    owner: Value,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<u16>,
}

/// Records a use of a token.
pub(in crate::serve) async fn record_use(
    shared: &Shared,
    holder: &TokenHolder,
    method: &str,
    agent: Option<String>,
    refused: Option<u16>,
) {
    let shown = |name: String| name[..name.floor_char_boundary(LONGEST_NAME)].to_owned();
    let payload = TokenUse {
        token_id: json!(holder.id),
        owner: json!(holder.owner),
        method,
        agent_id: agent.map(shown),
        refused,
    };
    record(shared, EventType::TOKEN_USE, &json!(payload)).await;
}

/// Adds an event of the whole team to the journal, if one is kept.
pub(super) async fn record(shared: &Shared, kind: EventType, payload: &Value) {
    let Some(journal) = shared.sources.journal() else { return };
    if let Err(error) = journal.append(NewEvent::new(Place::Team, kind, payload)).await {
        warn!(%error, event = kind.as_str(), "an event of the team is not in the journal");
    }
}

async fn permitted(
    shared: &Shared,
    holder: &TokenHolder,
    facts: &Facts,
    named: &CallParams,
) -> Result<(), Refused> {
    if !holder.is_good() {
        return Err(Refused::new(401, ENDED));
    }
    let name = facts.name;
    let Opening { right: Some(right), limit } = facts.token else {
        let message = format!("`{name}` takes the control token of a person");
        return Err(Refused::new(403, message));
    };
    takes(holder, name, right)?;
    if named.is("even_denied") {
        takes(holder, "even_denied", TokenRight::Control)?;
    }
    if named.is("ack") {
        takes(holder, "ack", TokenRight::Prompt)?;
    }
    if !holder.is_limited() {
        return Ok(());
    }
    let agent = match limit {
        Limit::Answer | Limit::Token => return Ok(()),
        Limit::Named(field) => named.text(field).map(AgentId::new).ok_or_else(|| {
            let agents = holder.agents();
            let message = format!("this token is for {agents}: name one of them in `{field}`");
            Refused::new(403, message)
        })?,
        // A team elsewhere holds it to its agents itself.
        Limit::Access if shared.sources.elsewhere().is_some_and(RemoteTeams::is_hub) => {
            return Ok(());
        }
        Limit::Access => {
            let id = named.text("id").unwrap_or_default();
            let all = shared.sources.blocked(None).await;
            match all.into_iter().find(|access| access.id.as_str() == id) {
                Some(access) => access.key.agent,
                None => return Err(Refused::new(404, "there is no such blocked access")),
            }
        }
        Limit::Team => {
            let agents = holder.agents();
            let message =
                format!("`{name}` is about the whole team, and this token is for {agents}");
            return Err(Refused::new(403, message));
        }
    };
    if holder.covers(&agent) {
        return Ok(());
    }
    let message = format!("this token is for {}, not for `{agent}`", holder.agents());
    Err(Refused::new(403, message))
}

/// The message to a connection whose token is no longer good.
pub(in crate::serve) const ENDED: &str = "the token was revoked, or has expired";

/// Checks that a token has a right.
pub(in crate::serve) fn takes(
    holder: &TokenHolder,
    what: &str,
    right: TokenRight,
) -> Result<(), Refused> {
    if holder.may(right) {
        return Ok(());
    }
    let has = holder.rights().join(", ");
    let right = right.as_str();
    let message = format!("`{what}` takes the right `{right}`, and this token has {has}");
    Err(Refused::new(403, message))
}

/// Leaves of an answer what a holder may see.
pub(super) fn held(
    holder: &TokenHolder,
    facts: &Facts,
    answer: Box<RawValue>,
) -> Result<Box<RawValue>, Refused> {
    if !holder.is_limited() || facts.token.limit != Limit::Answer {
        return Ok(answer);
    }
    let Ok(mut entries) = serde_json::from_str::<Vec<Value>>(answer.get()) else {
        return Err(Refused::new(500, "the answer is no list, so it can't be held to some agents"));
    };
    entries.retain(|entry| {
        let agent = entry.get("agent_id").and_then(Value::as_str);
        agent.is_some_and(|agent| holder.covers(&AgentId::new(agent)))
    });
    encoded(&entries)
}

/// The parameters of a call, as far as they say what it is about. What can't be read is refused:
/// a method that reads it otherwise could do more.
#[derive(Default, Deserialize)]
struct CallParams(Map<String, Value>);

impl CallParams {
    fn of(params: Option<&RawValue>) -> Result<Self, Refused> {
        let Some(params) = params else { return Ok(Self::default()) };
        let read = serde_json::from_str(params.get());
        read.map_err(|error| Refused::wrong(format!("cannot read `params`: {error}")))
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field)?.as_str()
    }

    /// Whether a flag is set, or is none.
    fn is(&self, field: &str) -> bool {
        self.0.get(field).is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null))
    }

    fn agent(&self) -> Option<String> {
        self.text("agent_id").or_else(|| self.text("agent")).map(str::to_owned)
    }
}
