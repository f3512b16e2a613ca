//! Providers of a team: an agent calls a scripted provider by the endpoint, and never sees the key.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Ended, Lines, Program, Stage, Team, eventually, program, run};

const KEY: &str = "sk-CANARY-5f3a9c";

/// The provider's script: a usage with all that a vendor reports, and a limit for one model.
const SCRIPT: &str = r#"
[[on]]
model = "limited"
steps = [{ error = "rate_limit", retry_after_s = 300 }]

[[on]]
model = "busy"
steps = [{ error = "rate_limit" }]

[[on]]
model = "slow"
steps = [{ say = ["the first part", " and another one"], delay_ms = 600000 }]

[[on]]
usage = { input = 900, cache_read = 60, cache_write = 10, output = 20, reasoning = 10 }
steps = [{ say = "hi" }]
"#;

/// A scripted provider that answers requests with the key alone.
struct ScriptedProvider {
    child: Child,
    address: String,
}

impl ScriptedProvider {
    fn start(stage: &Stage) -> Self {
        stage.file("play.toml", SCRIPT);
        let mut command = stage.eisen_core(&["dev", "model-server", "--key-env", "RIGHT_KEY"]);
        command.arg(stage.path("play.toml")).env("RIGHT_KEY", KEY);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let url = Lines::of(child.stdout.take().unwrap()).next().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Self { child, address }
    }

    /// The server's own count.
    fn count(&self) -> Value {
        let answer = ask(&self.address, "GET /_count", "", "");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// A provider `main` of this server, with the key in a variable.
    fn table(&self) -> String {
        let address = &self.address;
        format!(
            "[providers.main]\nkind = \"anthropic\"\nurl = \"http://{address}\"\nkey = \"${{MAIN_KEY}}\"\n"
        )
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request, and returns the whole answer.
fn ask(address: &str, begins: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!("{begins} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}");
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The profile of the small agent.
fn profile(stage: &Stage) -> String {
    let script = stage.path("shop/agent.py").display().to_string();
    stage.file("shop/agent.py", include_str!("providers/agent.py"));
    format!(
        "[profiles.mine]\ncommand = [\"python3\", \"{script}\"]\n\
         [profiles.mine.providers.anthropic]\n\
         env = {{ MY_URL = \"{{url}}\", MY_TOKEN = \"{{token}}\", MY_MODEL = \"{{model}}\", MY_FILE = \"{{dir}}/led.sh\" }}\n\
         [profiles.mine.providers.anthropic.files]\n\"led.sh\" = \"#!/bin/sh\\necho led to {{url}}\\n\"\n"
    )
}

/// A team of one such agent, with further keys of its table.
fn team(stage: &Stage, provider: &ScriptedProvider, keys: &str) -> Team {
    team_of(stage, &provider.table(), keys)
}

fn team_of(stage: &Stage, provider: &str, keys: &str) -> Team {
    configure(stage, provider, keys);
    let mut command = stage.eisen_core(&["up", "-c", "eisen.toml"]);
    Team::of(Program::start(command.env("MAIN_KEY", KEY)), stage)
}

fn configure(stage: &Stage, provider: &str, keys: &str) {
    let agent = format!(
        "[[agents]]\nid = \"ui\"\nprofile = \"mine\"\nmodel = \"claude-sonnet-4-5\"\n{keys}\n"
    );
    let team =
        "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\ntools = false\n";
    let text = [team, &profile(stage), provider, &agent].concat();
    stage.file("eisen.toml", &text);
}

fn sum(usage: &Value) -> u64 {
    // Reasoning is output of its own in the script.
    usage.as_object().unwrap().values().map(|part| part.as_u64().unwrap()).sum()
}

/// Files below a folder in which the key is.
fn files_with_key(folder: &Path) -> Vec<String> {
    let found = program("grep").args(["-r", "-l", "-a", KEY]).arg(folder).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn what_calls_take_is_counted_and_no_agent_has_the_key() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    let team = team_of(&stage, &format!("{}record = true\n", provider.table()), "");
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "calls 3"), "200 hi\n200 hi\n200 hi");
    let agents = port.call("list_agents", &json!({})).unwrap();
    let spent = &agents[0]["sessions"][0]["spent"];
    let counted = provider.count();
    assert_eq!(counted["calls"], 3);
    assert_eq!(spent["total"], sum(&counted["usage"]));
    for (kind, of_one) in
        [("input", 900), ("cached_read", 60), ("cached_write", 10), ("output", 30)]
    {
        assert_eq!(spent[kind], of_one * 3, "{kind}");
    }
    assert_eq!(spent["incomplete"], json!(["reasoning"]), "Anthropic does not say it: {spent}");
    assert_eq!(agents[0]["provider"], "main");
    let cost = stage.run(&["cost", "--json"]);
    let cost: Value = serde_json::from_str(&cost.stdout).unwrap();
    assert_eq!(cost["total"]["total"], spent["total"]);

    // What the agent reports besides is compared, and not counted.
    port.prompt("ui", "report 77");
    let agents = port.call("list_agents", &json!({})).unwrap();
    assert_eq!(agents[0]["sessions"][0]["spent"]["total"], sum(&provider.count()["usage"]));

    // It sends its key and its token, which no record has.
    let token = port.prompt("ui", "sh echo $MY_TOKEN");
    assert_eq!(port.prompt("ui", "leak sk- CANARY -5f3a9c"), "200 hi");

    let environment = port.prompt("ui", "env");
    assert!(environment.contains("MY_TOKEN=") && !environment.contains("CANARY"), "{environment}");
    assert!(!environment.contains("MAIN_KEY"), "{environment}");
    assert!(port.prompt("ui", "sh $MY_FILE").starts_with("led to http://127.0.0.1:"));
    let own = std::fs::read(format!("/proc/{}/environ", team.program.id())).unwrap();
    assert!(!String::from_utf8_lossy(&own).contains(KEY));
    let ended = team.stop();
    let calls = stage.run(&["history", "--type", "model.call", "--json"]).stdout;
    assert_eq!(calls.matches("\"end\":\"whole\"").count(), 5, "{calls}");
    assert!(calls.contains("***, or ***") && !calls.contains(token.trim()), "{calls}");
    assert!(calls.contains("max_tokens") && calls.contains("stop_reason"), "{calls}");
    assert!(!ended.stdout.contains(KEY) && !ended.stderr.contains(KEY));
    assert_eq!(ended.stderr.matches("reports other tokens").count(), 1, "{}", ended.stderr);
    assert_eq!(files_with_key(&stage.path("")), Vec::<String>::new());
}

#[test]
fn a_call_counts_to_its_turn_and_a_turn_without_any_took_nothing() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    let team = team(&stage, &provider, "");
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "open hello"), "opened");
    assert_eq!(port.prompt("ui", "sh echo one"), "one\n");
    // The call that the first turn made ends in the third one, and the last turn makes none.
    assert_eq!(port.prompt("ui", "close it"), "closed");
    assert_eq!(port.prompt("ui", "call hello"), "200 hi");
    assert_eq!(port.prompt("ui", "sh echo two"), "two\n");
    let mut turns = Vec::new();
    eventually("the late call is counted", || {
        let cost = stage.run(&["history", "cost", "--by", "turn", "--json"]);
        let cost: Value = serde_json::from_str(&cost.stdout).unwrap();
        turns = cost["rows"].as_array().unwrap().clone();
        turns[0]["total"].as_u64() > Some(0)
    });
    let totals: Vec<_> = turns[1..].iter().map(|turn| turn["total"].as_u64()).collect();
    assert_eq!(totals, [0, 0, 1000, 0].map(Some), "{turns:?}");
    assert_eq!(turns[0]["estimated"][0], "output", "{turns:?}");
    for turn in [1, 2, 4] {
        assert_eq!(turns[turn]["incomplete"], json!([]), "{turns:?}");
    }
    team.stop();
}

#[test]
fn a_budget_refuses_a_call_before_it_is_sent() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    let team = team(&stage, &provider, "[agents.budget]\ntokens = 1500\non_exceed = \"pause\"");
    let mut port = team.steer_when_ready(&["ui"]);
    let said = port.prompt("ui", "calls 4");
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[..2], ["200 hi", "200 hi"]);
    for refused in &said[2..] {
        let words = "400 Your credit balance is too low to access the Anthropic API. eisen-core: the budget of `ui`";
        assert!(refused.starts_with(words), "{refused}");
    }
    assert_eq!(provider.count()["calls"], 2, "the others were not sent");
    team.stop();
}

#[test]
fn a_token_opens_nothing_to_another_process() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    let team = team(&stage, &provider, "");
    let mut port = team.steer_when_ready(&["ui"]);
    let led = port.prompt("ui", "sh echo $MY_TOKEN $MY_URL");
    let (token, url) = led.trim().split_once(' ').unwrap();
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = json!({ "model": "m", "max_tokens": 9, "messages": [] }).to_string();
    let begins = format!("POST /{path}/v1/messages");
    let of_nobody = ask(address, &begins, &format!("x-api-key: {token}\r\n"), &body);
    assert!(of_nobody.starts_with("HTTP/1.1 401 "), "{of_nobody}");
    assert_eq!(provider.count()["calls"], 0);
    // The agent's own programs may call.
    let curl = "sh curl -s -o /dev/null -w '%{http_code}' -H \"x-api-key: $MY_TOKEN\" -d \
                '{\"model\":\"m\",\"max_tokens\":9,\"messages\":[]}' $MY_URL/v1/messages";
    if program("curl").arg("--version").output().is_ok() {
        assert_eq!(port.prompt("ui", curl), "200");
    }
    let ended = team.stop();
    assert!(ended.stderr.contains("not the agent's showed the agent's token"), "{}", ended.stderr);
}

/// A repository, and a user's file with a tier whose first candidate meets a limit.
fn with_tier(stage: &Stage, provider: &ScriptedProvider, key: &str) {
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    let provider = provider.table().replace("key = \"${MAIN_KEY}\"", key);
    let tier = "[[tiers]]\nname = \"smart\"\ncandidates = [\n\
                { profile = \"mine\", model = \"limited\", provider = \"main\" },\n\
                { profile = \"mine\", model = \"small\", provider = \"other\" }]\n";
    // A limit is one of the account: another provider may be free of it. There the model has another name.
    let other = provider.replace("providers.main", "providers.other");
    let other = format!("{other}models = {{ \"small\" = \"free\" }}\n");
    let text = [&profile(stage), &provider, &other, tier, Stage::ANY_MEMORY].concat();
    stage.file("home/config.toml", &text);
}

fn in_shop(stage: &Stage, args: &[&str]) -> Command {
    let mut command = stage.eisen_core(args);
    command.current_dir(stage.path("shop"));
    command
}

#[test]
fn a_limit_that_the_endpoint_sees_moves_on_to_the_next_candidate() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    let command = format!("key_command = [\"sh\", \"-c\", \"echo {KEY}; echo more\"]");
    with_tier(&stage, &provider, &command);
    let tried = |prompt: &str| {
        let ended: Ended = run(&mut in_shop(&stage, &["run", "--json", "--tier", "smart", prompt]));
        assert_eq!(ended.code, 0, "{} {}", ended.stdout, ended.stderr);
        let end: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(end["text"], "200 hi");
        assert_eq!(end["tokens"], 1000);
        let failed = &end["attempts"][0];
        assert!(failed.to_string().contains("rate limited"), "{failed}");
        std::fs::remove_dir_all(stage.path("home/cooldowns")).unwrap();
    };
    tried("call hello");
    // One that says nothing, and would wait: the second refusal in a row is the setback.
    let user = stage.read("home/config.toml");
    stage.file("home/config.toml", &user.replace("\"limited\"", "\"busy\""));
    tried("persist hello");
    let models: Vec<_> =
        provider.count()["list"].as_array().unwrap().iter().map(|it| it["model"].clone()).collect();
    assert_eq!(models, ["limited", "free", "busy", "busy", "free"]);
}

#[test]
fn a_team_in_the_background_has_the_key_and_its_environment_does_not() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    configure(&stage, &provider.table(), "");
    let up = ["up", "-d", "-c", "eisen.toml"];
    let ended =
        run(stage.eisen_core(&up).env("MAIN_KEY", KEY).env("HTTP_PROXY", "http://127.0.0.1:1"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let said = stage.run(&["prompt", "ui", "call hello"]);
    assert_eq!(said.stdout, "200 hi\n", "{}", said.stderr);
    let pid = stage.run_file("shop").unwrap()["pid"].clone();
    let own = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&own).contains(KEY));
    assert_eq!(stage.run(&["down"]).code, 0);
}

#[test]
fn a_detached_run_gets_the_key_and_its_agent_does_not() {
    let stage = Stage::new();
    let provider = ScriptedProvider::start(&stage);
    with_tier(&stage, &provider, "key = \"${MAIN_KEY}\"");
    let run_of = |words: &[&str]| run(in_shop(&stage, words).env("MAIN_KEY", KEY));
    let args = ["run", "--detach", "--tier", "smart"];
    let started = run_of(&[&args[..], &["call hello"]].concat());
    let id = started.stdout.trim();
    assert_eq!(started.code, 0, "{}", started.stderr);
    let ended = run_of(&["runs", "wait", id]);
    assert_eq!(ended.code, 0, "{} {}", ended.stdout, ended.stderr);
    let shown = run_of(&["runs", "show", id]);
    assert!(shown.stdout.contains("200 hi"), "{}", shown.stdout);
    let args = ["run", "--tier", "smart", "env"];
    let environment = run_of(&args).stdout;
    assert!(environment.contains("MY_TOKEN=") && !environment.contains("CANARY"), "{environment}");
    assert_eq!(files_with_key(&stage.path("")), Vec::<String>::new());
}
