//! The code graph, while a team is up.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Port, Stage, Team, agent, has, program};

/// The graph as a client knows it, from the lines that it got.
struct Graph {
    port: Port,
    seq: u64,
    nodes: serde_json::Map<String, Value>,
    calls: Vec<Value>,
}

impl Graph {
    fn of(mut port: Port) -> Self {
        port.send(&json!({"type": "subscribe", "topics": ["graph"]}));
        let graph = port.expect(&json!({"type": "graph"}));
        Self {
            port,
            seq: graph["seq"].as_u64().unwrap(),
            nodes: graph["nodes"].as_object().unwrap().clone(),
            calls: graph["calls"].as_array().unwrap().clone(),
        }
    }

    /// Takes in the next delta, and returns it.
    fn next(&mut self) -> Value {
        let delta = self.port.expect(&json!({"type": "graph_delta"}));
        self.seq += 1;
        assert_eq!(delta["seq"], self.seq);
        for id in delta["removed"]["nodes"].as_array().unwrap() {
            self.nodes.remove(id.as_str().unwrap()).unwrap_or_else(|| panic!("no {id}: {delta}"));
        }
        for call in delta["removed"]["calls"].as_array().unwrap() {
            let known = self.calls.len();
            self.calls.retain(|other| other != call);
            assert_eq!(self.calls.len(), known - 1, "{delta}");
        }
        for (kind, known) in [("changed", true), ("added", false)] {
            for (id, node) in delta[kind]["nodes"].as_object().unwrap() {
                let before = self.nodes.insert(id.clone(), node.clone());
                assert_eq!(before.is_some(), known, "{id}: {delta}");
            }
        }
        self.calls.extend(delta["added"]["calls"].as_array().unwrap().iter().cloned());
        delta
    }

    /// Takes in deltas until it is so.
    fn until(&mut self, is_it: impl Fn(&Self) -> bool) {
        while !is_it(self) {
            self.next();
        }
    }

    fn has(&self, id: &str) -> bool {
        self.nodes.contains_key(id)
    }

    fn calls(&self, from: &str, to: &str) -> bool {
        self.calls.contains(&json!({"from": from, "to": to}))
    }

    fn assert_is_the_servers(&mut self) {
        let graph = self.port.call("get_graph", &json!({})).unwrap();
        // Deltas may come between what was awaited and the answer.
        let seq = graph["seq"].as_u64().unwrap();
        self.until(|known| known.seq >= seq);
        assert_eq!(self.seq, seq, "an older graph than the deltas before it");
        self.calls.sort_by_key(ToString::to_string);
        let mut calls = graph["calls"].as_array().unwrap().clone();
        calls.sort_by_key(ToString::to_string);
        assert_eq!(graph["nodes"], Value::Object(self.nodes.clone()));
        assert_eq!(Value::Array(calls), Value::Array(self.calls.clone()));
    }
}

fn team(stage: &Stage) -> Team {
    stage
        .file("shop/src/api/cart.rs", "pub fn total() {\n    price_of();\n}\n\nfn price_of() {}\n");
    stage.team("", vec![agent("api").with("[agents.zone]\nallowed = [\"src/**\"]")])
}

#[test]
fn what_changes_on_the_disk_changes_in_the_graph() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut graph = Graph::of(team.watch());
    graph.until(|graph| graph.has("src/api/cart.rs::total"));
    assert!(graph.calls("src/api/cart.rs::total", "src/api/cart.rs::price_of"));

    stage.file("shop/src/api/cart.rs", "pub fn total() {\n    sum_up();\n}\n\nfn sum_up() {}\n");
    graph.until(|graph| graph.has("src/api/cart.rs::sum_up"));
    assert!(graph.calls("src/api/cart.rs::total", "src/api/cart.rs::sum_up"));
    assert!(!graph.has("src/api/cart.rs::price_of"));

    // A folder in a folder that is new: neither was watched when the file came.
    stage.file("shop/lib/deep/er/tool.py", "def work():\n    pass\n");
    graph.until(|graph| graph.has("lib/deep/er/tool.py::work"));
    stage.file("shop/lib/deep/er/tool.py", "def rest():\n    pass\n");
    graph.until(|graph| graph.has("lib/deep/er/tool.py::rest"));

    fs::rename(stage.path("shop/lib"), stage.path("shop/tools")).unwrap();
    graph.until(|graph| graph.has("tools/deep/er/tool.py") && !graph.has("lib"));
    stage.file("shop/tools/deep/er/tool.py", "def walk():\n    pass\n");
    graph.until(|graph| graph.has("tools/deep/er/tool.py::walk"));

    stage.file("shop/.gitignore", "tools\n");
    graph.until(|graph| !graph.has("tools"));
    fs::remove_dir_all(stage.path("shop/src")).unwrap();
    graph.until(|graph| !graph.has("src"));
    graph.assert_is_the_servers();
}

#[test]
fn a_checkout_of_a_thousand_files_is_one_delta() {
    let stage = Stage::new();
    let git = |args: &[&str]| {
        let mut git = program("git");
        git.current_dir(stage.path("shop")).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let done = git.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "nothing"]);
    git(&["checkout", "-q", "-b", "many"]);
    for number in 0..1_000 {
        let text = format!("def number_{number}():\n    pass\n");
        stage.file(&format!("shop/many/of/{}/f{number}.py", number % 7), &text);
    }
    git(&["add", "many"]);
    git(&["commit", "-q", "-m", "many"]);
    git(&["checkout", "-q", "main"]);
    let team = team(&stage);
    let mut graph = Graph::of(team.watch());
    git(&["checkout", "-q", "many"]);
    let delta = graph.next();
    let added = delta["added"]["nodes"].as_object().unwrap().len();
    assert_eq!(added, 2 + 7 + 2 * 1_000, "folders, files and functions");
    graph.assert_is_the_servers();
}

#[test]
fn what_an_agent_wrote_is_marked() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["api"]);
    let mut graph = Graph::of(team.watch());
    port.prompt("api", "write src/api/cart.rs fn sum_up() {}");
    graph.until(|graph| graph.nodes["src/api/cart.rs"]["changed"] == true);
    assert!(graph.nodes["src/api/cart.rs"]["lastWrite"].is_u64(), "{:?}", graph.nodes);
    graph.until(|graph| graph.has("src/api/cart.rs::sum_up"));
    assert_eq!(graph.nodes["src/api/cart.rs::sum_up"]["changed"], true);
    assert!(graph.nodes["src/api/order.rs"].get("changed").is_none());
    graph.assert_is_the_servers();
}

#[test]
fn the_map_shows_symbols_and_overlaps() {
    let stage = Stage::new();
    stage.file("shop/src/ui/a.ts", "export function total() { return 1 }");
    let caller = "import { total } from './a'\n\nexport function order() {\n  return total()\n}\n";
    stage.file("shop/src/ui/b.ts", caller);
    let team = stage.team("", vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.send(&json!({"type": "subscribe", "topics": ["overlap"]}));
    Graph::of(team.watch()).until(|graph| graph.calls("src/ui/b.ts::order", "src/ui/a.ts::total"));

    port.prompt("api", "read src/ui/a.ts");
    port.prompt("api", "read src/ui/b.ts");
    port.prompt("ui", "write src/ui/a.ts export function total() { return 2 }");
    let of = |agent: &str| json!({"agent_id": agent, "session_id": format!("{agent}-s1")});
    let (symbol, path) = ("src/ui/a.ts::total", "src/ui/a.ts");
    // While the graph still reads the file, the overlap is of all of it.
    let overlap = port.expect(&json!({"type": "overlap", "symbol": symbol}));
    assert_eq!(overlap["kind"], "context");
    assert_eq!(overlap["agents"], json!([of("ui"), of("api")]));
    assert_eq!((&overlap["symbol"], &overlap["path"]), (&json!(symbol), &json!(path)));
    let caller = json!({"symbol": "src/ui/b.ts::order", "agent_id": "api", "session_id": "api-s1"});
    assert_eq!(overlap["callers"], json!([caller]));
    let wrote = json!({"type": "delta", "session_id": "ui-s1"});
    let delta = port.expect_that("the write", |line| {
        has(line, &wrote) && line["updates"][0]["symbols"].is_array()
    });
    assert_eq!(delta["updates"][0]["symbols"], json!([symbol]));
}

#[test]
fn what_the_disk_shows_and_nobody_claims_is_observed() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["api"]);
    Graph::of(team.watch()).until(|graph| graph.has("src/api/cart.rs"));
    stage.file("shop/src/api/cart.rs", "fn by_hand() {}\n");
    let node = |line: &Value| {
        line["updates"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|node| node["path"] == "src/api/cart.rs")
            .cloned()
    };
    let delta = port.expect_that("the write", |line| {
        line["session_mode"] == "orchestrator" && node(line).is_some()
    });
    let node = node(&delta).unwrap();
    assert_eq!((&node["origin"], &node["in_context"]), (&json!("observed"), &json!(false)));
}

#[test]
fn it_can_be_switched_off() {
    let stage = Stage::new();
    let team = stage.team("[graph]\nenabled = false", vec![agent("api")]);
    let mut port = team.watch();
    let refused = port.call("get_graph", &json!({})).unwrap_err();
    assert_eq!(refused["code"], 404);
    assert!(refused["message"].as_str().unwrap().contains("graph.enabled"), "{refused}");
}

#[test]
fn files_stay_in_their_places_while_others_come() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut graph = Graph::of(team.watch());
    graph.until(|graph| graph.has("src/api/cart.rs"));
    let mut port = team.watch();
    let before = port.call("get_layout", &json!({})).unwrap();
    assert_eq!(before["whole"], true);
    let place = |layout: &Value, path: &str| {
        let files = layout["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).cloned()
    };
    let cart = place(&before, "src/api/cart.rs");
    assert!(cart.is_some(), "{before}");
    stage.file("shop/src/api/new.rs", "pub fn new() {}\n");
    graph.until(|graph| graph.has("src/api/new.rs"));
    let since = port.call("get_layout", &json!({ "since": before["seq"] })).unwrap();
    assert!(since["whole"] == false && place(&since, "src/api/new.rs").is_some(), "{since}");
    let after = port.call("get_layout", &json!({})).unwrap();
    assert_eq!(place(&after, "src/api/cart.rs"), cart, "{after}");
    fs::remove_file(stage.path("shop/src/api/new.rs")).unwrap();
    graph.until(|graph| !graph.has("src/api/new.rs"));
    let since = port.call("get_layout", &json!({ "since": after["seq"] })).unwrap();
    assert_eq!(since["removed"], json!(["src/api/new.rs"]), "{since}");
}
