//! The gateway's answer to `session/list`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::actor::GatewayActor;
use super::from_client::{ClientRefusal, invalid_params};
use crate::line::{lenient, or_default};

/// Sessions of one answer; `nextCursor` leads to more.
const PAGE: usize = 100;

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListParams {
    cwd: Option<String>,
    cursor: Option<String>,
}

/// The folder of a session, in the params with which it was opened.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenParams {
    #[serde(deserialize_with = "lenient")]
    cwd: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionPage<'a> {
    sessions: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

impl GatewayActor {
    /// The sessions that can be loaded, the newest first.
    pub(super) fn listed(&self, params: Option<&RawValue>) -> Result<Value, ClientRefusal> {
        let ListParams { cwd, cursor } = match params.map(RawValue::get) {
            None | Some("null") => ListParams::default(),
            Some(params) => {
                serde_json::from_str(params).map_err(|error| invalid_params(error.to_string()))?
            }
        };
        // Ids rise with time. So a cursor is good when its session is forgotten, too.
        let behind = |name: &&String| cursor.as_ref().is_none_or(|cursor| *name < cursor);
        let mut sessions = self.order.iter().rev().filter(behind).filter_map(|name| {
            let session = self.sessions.get(name)?;
            let of = or_default::<OpenParams>(session.params.get()).cwd;
            let at = format!("at {}", session.agent);
            let title = session.title.as_ref().unwrap_or(&at);
            let meta = json!({ "eisen-core": { "agent": session.agent } });
            let shown = json!({ "sessionId": name, "cwd": of, "title": title, "_meta": meta });
            cwd.as_ref().is_none_or(|cwd| *cwd == of).then_some((name, shown))
        });
        let (names, page): (Vec<_>, Vec<_>) = sessions.by_ref().take(PAGE).unzip();
        let more = sessions.next().is_some();
        let next_cursor = names.last().filter(|_| more).map(|name| name.as_str());
        Ok(json!(SessionPage { sessions: page, next_cursor }))
    }
}
