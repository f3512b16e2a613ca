//! `eisen-core resolve`: decides a blocked access from the command line.

use serde_json::{Value, json};

use super::{ClientError, Target, call};

/// What is decided.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    Allow {
        /// For the rest of the session, and not only once.
        session: bool,
        ttl_s: Option<f64>,
    },
    Deny {
        message: Option<String>,
    },
    /// The content that the agent reads in place of the file's.
    Answer {
        content: String,
    },
}

/// Decides the blocked access `id`; returns a sentence that says how it stands now.
pub async fn resolve(target: &Target, id: &str, verdict: Verdict) -> Result<String, ClientError> {
    let mut params = match verdict {
        Verdict::Allow { session, ttl_s } => {
            let scope = if session { "session" } else { "once" };
            let mut params = json!({ "decision": "allow", "scope": scope });
            if let Some(ttl_s) = ttl_s {
                params["ttl_s"] = json!(ttl_s);
            }
            params
        }
        Verdict::Deny { message: Some(message) } => {
            json!({ "decision": "deny", "message": message })
        }
        Verdict::Deny { message: None } => json!({ "decision": "deny" }),
        Verdict::Answer { content } => json!({ "decision": "answer", "content": content }),
    };
    params["id"] = json!(id);
    Ok(describe(&call(target, "resolve_blocked", &params).await?))
}

/// Returns e.g. `b3: allowed: read core/app.ts by ui`.
fn describe(access: &Value) -> String {
    let field = |name: &str| access[name].as_str().unwrap_or("?");
    format!(
        "{}: {}: {} {} by {}",
        field("id"),
        field("status"),
        field("action"),
        field("path"),
        field("agent_id"),
    )
}
