//! The cost of a tool of the team: `team_status` of 20 agents by `eisen-core team mcp`, from the request of an
//! MCP client to its result, against a tool of a bare `rmcp` server that answers with the same text. Both are
//! processes on standard input and output, and take turns, so that the machine cancels out of the ratio.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::team::{PortClient, RunningTeam};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

const AGENTS: usize = 20;

/// Turns of each server, the first of which warms up, and calls in a turn.
const TURNS: usize = 30;
const CALLS: usize = 200;

pub(crate) fn run() {
    let args: Vec<String> = crate::arguments();
    if let [first] = &args[..]
        && first == "bare"
    {
        return bare();
    }
    let team = Team::up();
    let mut ours = Client::of(
        Command::new(env!("CARGO_BIN_EXE_eisen-core"))
            .args(["mcp", "--team", "bench"])
            .env("EISEN_DIR", team.folder.path().join("eisen")),
    );
    let arguments = ours.call("team_status", &json!({}));
    let length = arguments.to_string().len();
    let mut same = Client::of(crate::part("tools").arg("bare"));
    let mut short = Client::of(crate::part("tools").arg("bare"));
    let (mut times, no_text) = ([Vec::new(), Vec::new(), Vec::new()], json!({ "text": "hello" }));
    for turn in 0..TURNS {
        let all = [
            ours.time("team_status", &json!({})),
            same.time("echo", &arguments),
            short.time("echo", &no_text),
        ];
        if turn > 0 {
            times.iter_mut().zip(all).for_each(|(times, of_turn)| times.extend(of_turn));
        }
    }
    let [ours, same, short] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        [times[times.len() / 2], times[times.len() * 9 / 10]]
    });
    println!("{:<34} {:>12} {:>10} {:>8}", "", "median, µs", "p90, µs", "ratio");
    for (name, [median, p90]) in [
        (format!("team_status, {AGENTS} agents, {length} B"), ours),
        (format!("bare echo of {length} B"), same),
        ("bare echo of 5 B".to_owned(), short),
    ] {
        println!("{name:<34} {median:>12.1} {p90:>10.1} {:>8.2}", ours[0] / median);
    }
}

/// Serves one tool that repeats its arguments, text and structure, as the team's tools do.
fn bare() {
    let serving = async {
        let running = rmcp::serve_server(Echo, (tokio::io::stdin(), tokio::io::stdout())).await;
        running.unwrap().waiting().await.unwrap();
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(serving);
}

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let mut shown = CallToolResult::success(vec![ContentBlock::text(arguments.to_string())]);
        shown.structured_content = Some(arguments);
        Ok(shown.into())
    }
}

/// An MCP client of a server that is a process.
struct Client {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn of(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut client = Self { process, input, output, line: String::new() };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        client.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(client.input, "{begun}").unwrap();
        client
    }

    fn ask(&mut self, request: &Value) {
        let request = format!("{request}\n");
        self.input.write_all(request.as_bytes()).unwrap();
        self.line.clear();
        assert!(self.output.read_line(&mut self.line).unwrap() > 0, "the server has ended");
    }

    /// The structured result of a call.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        let answer: Value = serde_json::from_str(&self.line).unwrap();
        let result = answer["result"]["structuredContent"].clone();
        assert!(result.is_object(), "{answer}");
        result
    }

    /// The times of the calls of a turn, in microseconds.
    fn time(&mut self, tool: &str, arguments: &Value) -> Vec<f64> {
        self.call(tool, arguments);
        let params = json!({ "name": tool, "arguments": arguments });
        let request =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let timed = |_| {
            let begun = Instant::now();
            self.ask(&request);
            begun.elapsed().as_secs_f64() * 1e6
        };
        (0..CALLS).map(timed).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A team of agents that stand ready.
struct Team {
    _program: RunningTeam,
    folder: tempfile::TempDir,
}

impl Team {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let program = env!("CARGO_BIN_EXE_eisen-core");
        std::fs::write(at("script.toml"), "[agent]\nname = \"idle\"\n").unwrap();
        let mut config =
            "[team]\nname = \"bench\"\nworkspace = \"work\"\nlisten = \"127.0.0.1:0\"\n\
                          tools = false\n"
                .to_owned();
        for n in 0..AGENTS {
            let command = json!([program, "scripted-agent", at("script.toml")]);
            writeln!(config, "[[agents]]\nid = \"agent-{n}\"\ncommand = {command}").unwrap();
        }
        std::fs::create_dir(at("work")).unwrap();
        std::fs::write(at("eisen.toml"), config).unwrap();
        let (program, number) = RunningTeam::on_a_port(folder.path());
        let mut ready = std::collections::HashSet::new();
        PortClient::connect(number).expect(|line| {
            if line["type"] == "agent" && line["state"] == "ready" {
                ready.insert(line["agent_id"].to_string());
            }
            ready.len() == AGENTS
        });
        Self { _program: program, folder }
    }
}
