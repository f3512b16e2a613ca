//! The table of all stable methods of version 1, with params and results, as the library writes them, so
//! that they can be compared byte for byte.

use std::collections::BTreeSet;

use agent_client_protocol::v1::schema::{
    AGENT_METHOD_NAMES, AgentNotification, AgentRequest, AgentResponse, CLIENT_METHOD_NAMES,
    ClientNotification, ClientRequest, ClientResponse, PROTOCOL_LEVEL_METHOD_NAMES, SessionUpdate,
};
use agent_client_protocol::{JsonRpcMessage, JsonRpcResponse};
use serde_json::{Value, json};

/// A request, and its answer.
pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) params: Value,
    pub(super) result: Value,
}

/// A notification.
pub(super) struct Notice {
    pub(super) name: &'static str,
    pub(super) params: Value,
}

fn method(name: &'static str, params: Value, result: Value) -> Method {
    Method { name, params, result }
}

fn notice(name: &'static str, params: Value) -> Notice {
    Notice { name, params }
}

/// What clients ask their agent, in an order that makes sense, up to where the session `s` is open.
pub(super) fn opening(shop: &str) -> Vec<Method> {
    vec![
        method(
            "initialize",
            json!({
                "protocolVersion": 1,
                "clientCapabilities": {
                    "fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true, "auth": {"terminal": false},
                    "elicitation": {"form": {}, "url": {}},
                },
                "clientInfo": {"name": "kit", "version": "1"},
            }),
            json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                    "mcpCapabilities": {"http": true, "sse": false},
                    "sessionCapabilities": {
                        "list": {}, "delete": {}, "additionalDirectories": {}, "resume": {}, "close": {},
                    },
                    "auth": {"logout": {}},
                },
                "authMethods": [{"id": "key", "name": "A key"}],
                "agentInfo": {"name": "kit", "version": "2"},
                "_meta": {"future": [1.5, null]},
            }),
        ),
        method("authenticate", json!({"methodId": "key"}), json!({})),
        method("session/new", opens(shop, json!({})), json!({"sessionId": "s", "modes": modes()})),
    ]
}

/// What they ask then.
pub(super) fn asked_of_agents(shop: &str) -> Vec<Method> {
    let link = json!({"type": "resource_link", "name": "app", "uri": format!("file://{shop}src/ui/app.ts")});
    vec![
        method(
            "session/list",
            json!({"cwd": shop, "cursor": "2"}),
            json!({
                "sessions": [{"sessionId": "old", "cwd": shop, "title": "é", "updatedAt": "2026-01-02T03:04:05Z"}],
                "nextCursor": "3",
            }),
        ),
        method("session/load", opens(shop, json!({"sessionId": "old"})), json!({"modes": modes()})),
        method("session/resume", opens(shop, json!({"sessionId": "older"})), json!({})),
        method("session/set_mode", json!({"sessionId": "s", "modeId": "plan"}), json!({})),
        method(
            "session/set_config_option",
            json!({"sessionId": "s", "configId": "model", "value": "m2"}),
            json!({"configOptions": options("m2")}),
        ),
        method(
            "session/prompt",
            json!({"sessionId": "s", "prompt": [{"type": "text", "text": "do\n\u{2028}it"}, link]}),
            json!({"stopReason": "end_turn", "_meta": {"n": 1e300}}),
        ),
        method(
            "_kit.example/ask",
            json!({"sessionId": "s", "deep": [[{}]]}),
            json!({"any": "thing"}),
        ),
        method("session/close", json!({"sessionId": "older"}), json!({})),
        method("session/delete", json!({"sessionId": "old"}), json!({})),
        method("logout", json!({}), json!({})),
    ]
}

/// What agents ask their client in the session `s`.
pub(super) fn asked_of_clients(shop: &str) -> Vec<Method> {
    let file = |path: &str| format!("{shop}{path}");
    let terminal = json!({"sessionId": "s", "terminalId": "t"});
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    vec![
        method(
            "fs/read_text_file",
            json!({"sessionId": "s", "path": file("src/ui/app.ts"), "line": 1, "limit": 5}),
            json!({"content": "unsaved\r\n\u{0}"}),
        ),
        method(
            "fs/write_text_file",
            json!({"sessionId": "s", "path": file("src/ui/new.ts"), "content": "x"}),
            json!({}),
        ),
        method(
            "session/request_permission",
            json!({
                "sessionId": "s",
                "toolCall": {"toolCallId": "c", "locations": [{"path": file("src/ui/app.ts")}]},
                "options": [{"optionId": "yes", "name": "Always", "kind": "allow_always"}],
            }),
            json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
        ),
        method(
            "terminal/create",
            json!({
                "sessionId": "s", "command": "cat", "args": ["src/ui/app.ts"], "env": [{"name": "A", "value": "b"}],
                "cwd": shop.trim_end_matches('/'), "outputByteLimit": 100,
            }),
            json!({"terminalId": "t"}),
        ),
        method(
            "terminal/output",
            terminal.clone(),
            json!({"output": "o", "truncated": true, "exitStatus": {"exitCode": 0}}),
        ),
        method("terminal/wait_for_exit", terminal.clone(), json!({"signal": "SIGTERM"})),
        method("terminal/kill", terminal.clone(), json!({})),
        method("terminal/release", terminal, json!({})),
        method(
            "elicitation/create",
            json!({"mode": "form", "sessionId": "s", "message": "Who?", "requestedSchema": schema}),
            json!({"action": "accept", "content": {"name": "é"}}),
        ),
        method(
            "elicitation/create",
            json!({"mode": "url", "sessionId": "s", "message": "Log in", "elicitationId": "e", "url": "https://example.com"}),
            json!({"action": "decline"}),
        ),
        method("_kit.example/ask", json!({"sessionId": "s"}), json!({"any": "thing"})),
    ]
}

pub(super) fn notices_to_agents() -> Vec<Notice> {
    vec![
        notice("session/cancel", json!({"sessionId": "s"})),
        notice("_kit.example/tell", json!({"sessionId": "s", "x": null})),
        notice("_kit.example/tell", json!({})),
    ]
}

pub(super) fn notices_to_clients() -> Vec<Notice> {
    let mut notified: Vec<_> = updates()
        .into_iter()
        .map(|update| notice("session/update", json!({"sessionId": "s", "update": update})))
        .collect();
    notified.extend([
        notice("elicitation/complete", json!({"elicitationId": "e"})),
        notice("_kit.example/tell", json!({"sessionId": "s", "x": null})),
        notice("_kit.example/tell", json!({})),
    ]);
    notified
}

/// An update of each kind.
pub(super) fn updates() -> Vec<Value> {
    let text = json!({"type": "text", "text": "é"});
    vec![
        json!({"sessionUpdate": "user_message_chunk", "content": text}),
        json!({"sessionUpdate": "agent_message_chunk", "content": text, "messageId": "m"}),
        json!({"sessionUpdate": "agent_thought_chunk", "content": text}),
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Run", "kind": "execute",
            "content": [{"type": "terminal", "terminalId": "t"}], "rawInput": {"command": "ls"},
        }),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}),
        json!({"sessionUpdate": "plan", "entries": [{"content": "a", "priority": "low", "status": "pending"}]}),
        json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "fix", "description": "d"}]}),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}),
        json!({"sessionUpdate": "config_option_update", "configOptions": options("m1")}),
        json!({"sessionUpdate": "session_info_update", "title": "A title"}),
        json!({"sessionUpdate": "usage_update", "used": 5, "size": 100, "cost": {"amount": 0.25, "currency": "USD"}}),
        json!({"sessionUpdate": "notice", "severity": "info", "title": "Heads up"}),
        json!({"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"}),
        json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text}),
    ]
}

/// Params of what opens a session, with these of its own.
fn opens(shop: &str, mut params: Value) -> Value {
    params["cwd"] = json!(shop);
    params["additionalDirectories"] = json!([format!("{shop}types")]);
    params["mcpServers"] = json!([{"name": "m", "command": "/bin/m", "args": ["-v"], "env": []}]);
    params
}

fn modes() -> Value {
    json!({"currentModeId": "code", "availableModes": [{"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan"}]})
}

fn options(current: &str) -> Value {
    let values = json!([{"value": "m1", "name": "One"}, {"value": "m2", "name": "Two"}]);
    json!([{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": current, "options": values}])
}

#[test]
fn the_table_has_every_stable_method() {
    let names = [
        serde_json::to_value(AGENT_METHOD_NAMES).unwrap(),
        serde_json::to_value(CLIENT_METHOD_NAMES).unwrap(),
        serde_json::to_value(PROTOCOL_LEVEL_METHOD_NAMES).unwrap(),
    ];
    let names = names.iter().flat_map(|names| names.as_object().unwrap().values());
    let stable: BTreeSet<_> = names.map(|name| name.as_str().unwrap()).collect();
    let methods = [opening("/"), asked_of_agents("/"), asked_of_clients("/")];
    let notices = [notices_to_agents(), notices_to_clients()];
    let methods = methods.iter().flatten().map(|method| method.name);
    let all = methods.chain(notices.iter().flatten().map(|notice| notice.name));
    // Which has tests of its own.
    let all = all.chain(["$/cancel_request"]).filter(|name| !name.starts_with('_'));
    assert_eq!(all.collect::<BTreeSet<_>>(), stable);
}

#[test]
fn the_table_has_every_kind_of_update() {
    let unknown = serde_json::from_value::<SessionUpdate>(json!({"sessionUpdate": "?"}));
    let complaint = unknown.unwrap_err().to_string();
    // What it expected instead, each between backticks.
    let kinds: BTreeSet<_> = complaint.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    let kind = |update: Value| update["sessionUpdate"].as_str().unwrap().to_owned();
    assert_eq!(updates().into_iter().map(kind).collect::<BTreeSet<_>>(), kinds, "{complaint}");
}

#[test]
fn the_table_is_as_the_library_writes_it() {
    fn assert_message<M: JsonRpcMessage>(name: &str, params: &Value) {
        let message = M::parse_message(name, params).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let written = message.to_untyped_message().unwrap().into_parts();
        assert_eq!(written, (name.to_owned(), params.clone()));
    }
    fn assert_result<R: JsonRpcResponse>(name: &str, result: &Value) {
        let read = R::from_json(name, result.clone()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(read.into_json(name).unwrap(), *result, "{name}");
    }
    for method in opening("/w/").iter().chain(&asked_of_agents("/w/")) {
        assert_message::<ClientRequest>(method.name, &method.params);
        assert_result::<AgentResponse>(method.name, &method.result);
    }
    for method in asked_of_clients("/w/") {
        assert_message::<AgentRequest>(method.name, &method.params);
        assert_result::<ClientResponse>(method.name, &method.result);
    }
    for notice in notices_to_agents() {
        assert_message::<ClientNotification>(notice.name, &notice.params);
    }
    for notice in notices_to_clients() {
        assert_message::<AgentNotification>(notice.name, &notice.params);
    }
}
