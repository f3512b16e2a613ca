//! The gateway's answer to `session/list`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::from_client::{ClientRefusal, invalid_params};
use super::hub::Hub;

/// Sessions of one answer; `nextCursor` leads to more.
const PAGE: usize = 100;

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListParams {
    cwd: Option<String>,
    cursor: Option<String>,
}

impl Hub {
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
            let params: Value = serde_json::from_str(session.params.get()).unwrap_or_default();
            let of = params["cwd"].as_str().unwrap_or_default();
            let at = format!("at {}", session.agent);
            let title = session.title.as_ref().unwrap_or(&at);
            let meta = json!({ "eisen-core": { "agent": session.agent } });
            let shown = json!({ "sessionId": name, "cwd": of, "title": title, "_meta": meta });
            cwd.as_ref().is_none_or(|cwd| cwd == of).then_some(shown)
        });
        let page: Vec<Value> = sessions.by_ref().take(PAGE).collect();
        let more = sessions.next().is_some();
        let last = page.last().filter(|_| more).map(|last| last["sessionId"].clone());
        let mut listed = json!({ "sessions": page });
        if let Some(last) = last {
            listed["nextCursor"] = last;
        }
        Ok(listed)
    }
}
