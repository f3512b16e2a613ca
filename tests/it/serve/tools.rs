//! The tools of the team: agents get them in their sessions, and use them with their own token.

use serde_json::{Value, json};

use crate::harness::{EISEN_CORE, Peer, Stage, agent, eventually, program};

/// An MCP client over a process: `eisen-core mcp`, as an agent starts it.
pub(crate) struct Client {
    pub(crate) peer: Peer,
    process: std::process::Child,
}

impl Client {
    /// Starts the server that a session was given, with nothing of the team's own environment.
    pub(crate) fn of(server: &Value) -> Self {
        let mut command = program(server["command"].as_str().unwrap());
        command.args(server["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()));
        for variable in server["env"].as_array().unwrap() {
            command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
        }
        Self::start(command)
    }

    fn start(mut command: std::process::Command) -> Self {
        use std::process::Stdio;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let peer = Peer::of(process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut client = Self { peer, process };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        });
        client.ask("initialize", &params);
        client.peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.peer.send(&request);
        self.peer.expect(&json!({ "id": 1 }))["result"].clone()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    fn tools(&mut self) -> usize {
        self.ask("tools/list", &json!({}))["tools"].as_array().unwrap().len()
    }

    fn end(mut self) -> i32 {
        self.peer.close();
        self.process.wait().unwrap().code().unwrap()
    }
}

pub(crate) fn server(opened: &Value) -> Value {
    let servers = opened["mcpServers"].as_array().unwrap();
    servers.iter().find(|it| it["name"] == "eisen").unwrap_or(&Value::Null).clone()
}

fn token(server: &Value) -> String {
    let env = server["env"].as_array().unwrap();
    let token = env.iter().find(|it| it["name"] == "EISEN_TOOL_TOKEN").unwrap();
    token["value"].as_str().unwrap().to_owned()
}

#[test]
fn each_agent_uses_the_tools_with_its_own_token_and_no_other() {
    let stage = Stage::new();
    let agents = vec![
        agent("lead").puppet(),
        agent("ui").puppet(),
        agent("api").puppet().with("tools = false"),
    ];
    let [mut lead, mut first, mut second] = ["lead", "ui", "api"].map(|name| stage.puppet(name));
    let team = stage.team("[orchestrator]\nagent = \"lead\"\n", agents);
    let open = |puppet: &mut crate::harness::Puppet, session: &str| {
        puppet.serve("initialize", &json!({ "protocolVersion": 1 }));
        puppet.serve("session/new", &json!({ "sessionId": session }))
    };
    let opened = [open(&mut lead, "s-lead"), open(&mut first, "s-ui"), open(&mut second, "s-api")];
    let [lead_server, ui_server, api_server] = opened.each_ref().map(server);
    assert_eq!(api_server, Value::Null);
    let mut port = team.steer_when_ready(&["lead", "ui", "api"]);

    let mut client = Client::of(&lead_server);
    assert!(client.tools() > 0);
    let status = client.call("team_status", &json!({}))["structuredContent"].clone();
    let found: Vec<_> =
        status["agents"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(found, ["ready", "ready", "ready"]);
    let shown = port.call("list_agents", &json!({})).unwrap();
    assert_eq!(
        shown[0]["tools"],
        json!({ "connected": true, "listed": true, "seen": true, "calls": 1 })
    );
    assert_eq!(shown[1]["tools"], json!({ "connected": false, "listed": false, "calls": 0 }));
    let ps = stage.run(&["ps"]).stdout;
    assert!(ps.lines().next().unwrap().ends_with("TOOLS"), "{ps}");
    assert!(ps.lines().nth(1).unwrap().ends_with('1') && ps.lines().nth(2).unwrap().ends_with('-'));

    // A member has no tool of the orchestrator, wherever its token is used.
    let mut member = Client::of(&ui_server);
    let refused = member.call("team_status", &json!({}));
    assert_eq!(refused["isError"], true, "{refused}");

    // Neither token is good in the other's place.
    let mut watch = team.watch();
    watch.send(&json!({ "type": "auth", "token": token(&ui_server) }));
    let refused = watch.expect(&json!({ "type": "rpc_error", "id": null }));
    assert_eq!(refused["error"]["code"], 401);
    let mut forged = lead_server.clone();
    for variable in forged["env"].as_array_mut().unwrap() {
        if variable["name"] == "EISEN_TOOL_TOKEN" {
            variable["value"] = token(&ui_server).replace(".ui", ".lead").into();
        }
    }
    let mut command = program(EISEN_CORE);
    command.arg("mcp");
    for variable in forged["env"].as_array().unwrap() {
        command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
    }
    let ended = crate::harness::run(&mut command);
    assert_eq!((ended.code, &*ended.stderr), (1, "error: wrong token (code 401)\n"));

    // The entry names the command as it is now; its name of before, above, goes on working.
    assert_eq!(ui_server["args"], json!(["team", "mcp", "--agent", "ui"]));
    // A client that leaves out the entry's `env` does not lead by the user's own token.
    let args = ui_server["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    let ended = stage.run(&args.collect::<Vec<_>>());
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("no tools for `ui` without `EISEN_TOOL_TOKEN`"), "{ended:?}");

    assert_eq!(client.end(), 0);
    assert_eq!(member.end(), 0);
}

#[test]
fn check_says_what_the_last_run_saw_of_the_tools() {
    let stage = Stage::new();
    let agents =
        || vec![agent("lead").puppet(), agent("ui").puppet(), agent("api").with("tools = false")];
    let keys = "[orchestrator]\nagent = \"lead\"\n";
    stage.configure(keys, agents());
    let said = |of: &str| {
        let check = stage.run(&["check"]).stdout;
        let (_, tools) = check.split_once("\ntools of the team\n").unwrap();
        let mut lines = tools.lines().map(str::trim);
        let line = lines.find_map(|line| line.strip_prefix(of)).unwrap();
        line.trim().to_owned()
    };
    assert_eq!(said("ui"), "not seen yet");
    assert_eq!(said("api"), "not offered (`tools = false`)");
    let [mut lead, mut ui] = ["lead", "ui"].map(|name| stage.puppet(name));
    let team = stage.up();
    lead.serve("initialize", &json!({ "protocolVersion": 1 }));
    let opened = lead.serve("session/new", &json!({ "sessionId": "s-lead" }));
    ui.serve("initialize", &json!({ "protocolVersion": 1 }));
    ui.serve("session/new", &json!({ "sessionId": "s-ui" }));
    team.steer_when_ready(&["lead", "ui", "api"]);
    for calls in [1, 2] {
        let mut client = Client::of(&server(&opened));
        client.tools();
        client.call("team_status", &json!({}));
        assert_eq!(client.end(), 0);
        // Also while it runs, and over connections.
        let wanted = if calls == 1 { "1 call" } else { "2 calls" };
        eventually("the call is noted", || said("lead").contains(wanted));
    }
    // A killed run is a run, too.
    team.program.signal(nix::sys::signal::Signal::SIGKILL);
    team.program.wait();
    assert_eq!(said("lead"), "listed, 2 calls in the last run");
    let way =
        "never listed in the last run; without tools, its shell has the commands of `eisen-core`";
    assert_eq!(said("ui"), way);
}

#[test]
fn a_program_with_the_control_token_leads_but_is_no_person() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**");
    stage.file("shop/.env", "SECRET=1\n");
    let team = stage
        .team("[orchestrator]\non_block = \"hold\"\n[zones]\ndenied = [\"**/.env\"]\n", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut client = Client::start(stage.eisen_core(&["mcp", "--team", "shop"]));
    let prompt = port.begin("ui", "read .env");
    port.blocked("pending");
    let listed = client.call("list_blocked", &json!({ "status": "pending" }));
    let id = listed["structuredContent"]["blocked"][0]["id"].clone();
    let refused = client.call("resolve_blocked", &json!({ "id": id, "decision": "allow" }));
    let why = refused["content"][0]["text"].as_str().unwrap();
    assert!(why.contains("no agent can open or answer it; a person"), "{why}");
    let denied = client.call("resolve_blocked", &json!({ "id": id, "decision": "deny" }));
    assert_eq!(denied["structuredContent"]["status"], "denied", "{denied}");
    port.said(prompt);
    assert_eq!(client.end(), 0);
}

#[test]
fn an_agent_that_refuses_the_entry_gets_another_form_of_it() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    ui.serve("initialize", &json!({ "protocolVersion": 1 }));
    let mut seen = Vec::new();
    for _ in 0..2 {
        let request = ui.expect(&json!({ "method": "session/new" }));
        seen.push(server(&request["params"])["type"].clone());
        let error = json!({ "code": -32602, "message": "Invalid params" });
        ui.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
    }
    assert_eq!(seen, [Value::Null, "stdio".into()]);
    let request = ui.expect(&json!({ "method": "session/new" }));
    assert_eq!(request["params"]["mcpServers"], json!([]));
    let result = json!({ "sessionId": "s-ui" });
    ui.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    team.steer_when_ready(&["ui"]);
}

#[test]
fn an_agent_asks_for_an_access_before_it_tries() {
    let stage = Stage::new();
    stage.file("shop/src/api/cart.rs", "total\n");
    let [mut ui, mut api] = ["ui", "api"].map(|name| stage.puppet(name));
    let agents =
        vec![agent("ui").puppet().zone("src/ui/**"), agent("api").puppet().zone("src/api/**")];
    let team = stage.team("", agents);
    ui.serve("initialize", &json!({ "protocolVersion": 1 }));
    let opened = ui.serve("session/new", &json!({ "sessionId": "s-ui" }));
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut without_token = team.watch();
    without_token.agent_is("ui", "ready");
    let mut client = Client::of(&server(&opened));
    let path = "src/api/cart.rs";
    let whose = client.call("whose", &json!({ "path": path }))["structuredContent"].clone();
    assert_eq!(
        whose,
        json!({ "path": path, "owners": ["api"], "may_read": false, "may_write": false })
    );
    let read = json!({ "sessionId": "s-ui", "path": stage.in_shop(path) });
    assert!(ui.call("fs/read_text_file", &read)["error"].is_object());

    let arguments = json!({ "path": path, "action": "read", "reason": "I need the total" });
    let request = json!({ "name": "request_access", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": request });
    client.peer.send(&call);
    let blocked = port.expect(&json!({ "type": "blocked", "via": "request", "status": "pending" }));
    assert_eq!((&blocked["path"], &blocked["reason"]), (&json!(path), &json!("I need the total")));
    // An agent's words take a token.
    let known = json!({ "type": "blocked", "id": blocked["id"] });
    assert_eq!(without_token.expect(&known)["reason"], Value::Null);
    let listed = without_token.call("list_blocked", &json!({ "status": "pending" })).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["reason"]), (&blocked["id"], &Value::Null));
    let listed = port.call("list_blocked", &json!({ "status": "pending" })).unwrap();
    assert_eq!(listed[0]["reason"], "I need the total");
    port.resolve(&blocked, &json!({ "decision": "allow" })).unwrap();
    let answer = client.peer.expect(&json!({ "id": 7 }))["result"]["structuredContent"].clone();
    assert_eq!(answer["state"], "allowed", "{answer}");
    assert_eq!(ui.call("fs/read_text_file", &read)["result"]["content"], "total\n");
    assert!(ui.call("fs/read_text_file", &read)["error"].is_object());

    // An owner is asked in a session of its own.
    let question = json!({ "path": path, "question": "What does it hold?" });
    let request = json!({ "name": "ask_owner", "arguments": question.clone() });
    let call = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": request });
    client.peer.send(&call);
    api.serve("session/new", &json!({ "sessionId": "s-beside" }));
    let (prompt, text) = api.prompted();
    assert!(text.contains("`ui`") && text.contains("What does it hold?"), "{text}");
    api.say("s-beside", "The total.");
    api.end_turn(&prompt);
    let answer = client.peer.expect(&json!({ "id": 8 }))["result"]["structuredContent"].clone();
    assert_eq!((&answer["state"], &answer["content"]), (&json!("answered"), &json!("The total.")));
    // The same question about the same content costs it no turn.
    let answer = client.call("ask_owner", &question)["structuredContent"].clone();
    assert_eq!((&answer["state"], &answer["content"]), (&json!("answered"), &json!("The total.")));
    assert!(answer["message"].as_str().unwrap().starts_with("kept"), "{answer}");

    client.call("report", &json!({ "text": "half of it\nis done" }));
    assert_eq!(client.end(), 0);
    let console = team.stop().stdout;
    assert!(console.contains("reports: half of it is done"), "{console}");
}

#[test]
fn a_permission_for_a_tool_of_the_team_is_granted_by_its_name_alone() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet().with("permissions = \"deny\"")]);
    ui.connect("s-ui");
    let mut port = team.steer_when_ready(&["ui"]);
    let id = port.ask("prompt", &json!({ "agent_id": "ui", "text": "go on" }));
    let (prompt, _) = ui.prompted();
    let options = json!([
        { "optionId": "yes", "kind": "allow_once", "name": "Yes" },
        { "optionId": "no", "kind": "reject_once", "name": "No" },
    ]);
    let mut ask = |call: &str, tool: &str, title: &str, kind: &str| {
        let input = if call == "c1" { json!({ "path": "/etc/hosts" }) } else { json!({}) };
        let update = json!({
            "sessionUpdate": "tool_call", "toolCallId": call, "title": title, "kind": kind,
            "status": "pending", "rawInput": input,
            "_meta": { "claudeCode": { "toolName": tool } },
        });
        let params = json!({ "sessionId": "s-ui", "update": update });
        ui.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        let tool_call = json!({ "toolCallId": call, "title": title });
        let params = json!({ "sessionId": "s-ui", "toolCall": tool_call, "options": options });
        let answer = ui.call("session/request_permission", &params);
        answer["result"]["outcome"]["optionId"].as_str().unwrap_or("none").to_owned()
    };
    assert_eq!(ask("c1", "mcp__eisen__whose", "whose", "other"), "yes");
    assert_eq!(ask("c2", "mcp__other__whose", "mcp__eisen__whose", "other"), "no");
    assert_eq!(ask("c3", "mcp__eisen__whose", "rm", "execute"), "no");
    // A server of another name, whose tool looks as if it were one of ours.
    assert_eq!(ask("c4", "mcp__eisen__x__run", "run", "other"), "no");
    ui.end_turn(&prompt);
    port.answer(id).unwrap();
    // What the tool is told of is no access.
    assert_eq!(port.call("list_blocked", &json!({})).unwrap(), json!([]));
}
