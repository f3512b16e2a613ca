//! The web server: who may use it, and who may not.

mod acp;
mod acp_http;
mod attacks;
mod browser;
mod client;
mod eyes;
mod holders;
mod hub;
mod keys;
mod looks;
mod page;
mod pictures;
mod prompting;
mod served;
mod several;
mod squatter;
mod states;
mod watching;

use serde_json::{Value, json};
use tungstenite::Message;

use self::client::Site;
use crate::harness::{Stage, Team, agent, eventually};

const WEB: &str = "[web]\nlisten = \"127.0.0.1:0\"\n[orchestrator]\non_block = \"hold\"";

fn team(stage: &Stage) -> Team {
    stage.team(WEB, vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")])
}

#[test]
fn a_link_opens_the_page_once_and_nothing_else_opens_it() {
    let stage = Stage::new();
    let team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    // Nothing without a credential, whatever it is, but that the server is there.
    assert_eq!(site.get("/healthz", &[]).body, "");
    for route in [
        "GET /",
        "GET /index.html",
        "GET /enter.js",
        "GET /ws",
        "GET /acp",
        "GET /schema.json",
        "GET /nothing",
        "POST /leave",
        "GET /enter",
        "GET /enter?link=",
    ] {
        let answer = site.ask(route, &[]);
        assert_eq!(answer.status, 401, "{route}: {answer:?}");
        assert!(answer.body.contains("eisen-core web"), "{answer:?}");
    }
    let browser = site.enter(&path);
    assert_eq!(site.get(&path, &[]).status, 401, "a stolen link is used up");
    let page = site.get("/", &[&browser.cookie]);
    assert_eq!((page.status, page.field("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(site.get("/schema.json", &[&browser.cookie]).status, 200);
    assert_eq!(site.get("/nothing", &[&browser.cookie]).status, 404);
    for climbs in ["/../web.rs", "/%2e%2e/web.rs", "//etc/passwd", "/../../../../etc/passwd"] {
        assert_eq!(site.get(climbs, &[&browser.cookie]).status, 404, "{climbs}");
    }
    // The cookie is the browser's alone, and goes with no request of another site.
    let (_, path) = Site::of(&stage, &[]);
    let set = site.get(&path, &[]).field("set-cookie").unwrap().to_owned();
    for wanted in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        assert!(set.contains(wanted), "{set}");
    }
    // A second team of this machine has another cookie.
    let other = Stage::new();
    let _others = self::team(&other);
    let (others, path) = Site::of(&other, &[]);
    let set_by_other = others.get(&path, &[]).field("set-cookie").unwrap().to_owned();
    assert_ne!(set.split('=').next(), set_by_other.split('=').next());
    assert_eq!(others.get("/", &[&browser.cookie]).status, 401);
    drop(team);
}

#[test]
fn every_answer_has_the_headers_that_keep_other_sites_out() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    for answer in [site.get("/", &[&browser.cookie]), site.get("/", &[]), site.get("/healthz", &[])]
    {
        let policy = answer.field("content-security-policy").unwrap();
        for wanted in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        {
            assert!(policy.contains(wanted), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.field("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.field("cache-control"), Some("no-store"));
        assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "{answer:?}");
    }
}

#[test]
fn the_socket_carries_the_lines_of_the_port() {
    let stage = Stage::new();
    let team = team(&stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let (site, path) = Site::of(&stage, &[]);
    let mut socket = site.page(&site.enter(&path));
    // Nothing comes before the token.
    assert_eq!(socket.auth("x"), json!(401));
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let mut socket = site.page(&browser);
    assert_eq!(socket.auth(&browser.token), "control");
    let first: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
    assert_eq!(first["type"], "snapshot");
    let agents = socket.call("list_agents", &json!({})).unwrap();
    assert_eq!(agents, port.call("list_agents", &json!({})).unwrap());
    // A person decides what waits.
    let turn = port.begin("ui", "read src/api/cart.rs");
    let blocked = loop {
        let line: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
        if line["type"] == "blocked" {
            break line;
        }
    };
    let decision = json!({ "id": blocked["id"], "decision": "allow" });
    assert_eq!(socket.call("resolve_blocked", &decision).unwrap()["status"], "allowed");
    assert_eq!(port.said(turn), "got api\n");
    assert_eq!(socket.call("resolve_blocked", &decision), Err(json!(409)));
    // A frame is one line, however it is written.
    socket.send_raw(Message::text("{\"type\":\"rpc\",\n\"id\":1,\"method\":\"list_budgets\"}\n"));
    eventually("the line is answered", || {
        let line: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
        line["type"] == "rpc_result" && line["id"] == 1
    });
    socket.send_raw(Message::binary(b"{}".as_slice()));
    while socket.next().is_some() {}
}

#[test]
fn a_scope_holds_whatever_is_asked() {
    let stage = Stage::new();
    let team = team(&stage);
    let _port = team.steer_when_ready(&["ui", "api"]);
    for (scope, decides, steers) in [("read", 403, 403), ("decide", 404, 403), ("control", 404, 0)]
    {
        let token = stage.run(&["web", "token", "--scope", scope]).stdout.trim().to_owned();
        let (site, path) = Site::of(&stage, &["--scope", scope]);
        let bearer = format!("Bearer {token}");
        let mut of_program = site.socket(&[("authorization", &bearer)]).unwrap();
        assert_eq!(of_program.auth(&token), scope);
        let browser = site.enter(&path);
        let mut of_page = site.page(&browser);
        assert_eq!(of_page.auth(&browser.token), scope);
        for socket in [&mut of_program, &mut of_page] {
            socket.call("list_agents", &json!({})).unwrap();
            socket.call("search_events", &json!({ "query": "cart" })).unwrap();
            let code = |answer: Result<Value, Value>| answer.err().unwrap_or_default();
            // What agents were given is seen as well; taking it off the list is more.
            let task = json!({ "id": "t99" });
            assert_eq!(code(socket.call("task_result", &task)), 404, "{scope}");
            let given_up = json!({ "id": "t99", "ack": true });
            let refused = if scope == "control" { 404 } else { 403 };
            assert_eq!(code(socket.call("task_result", &given_up)), refused, "{scope}");
            let tasks = json!({ "ids": ["t99"] });
            assert_eq!(code(socket.call("wait_for_tasks", &tasks)), 404, "{scope}");
            let shown = if scope == "read" { 403 } else { 404 };
            assert_eq!(
                code(socket.call("show_blocked", &json!({ "id": "b99" }))),
                shown,
                "{scope}"
            );
            let decision = json!({ "id": "b99", "decision": "deny" });
            assert_eq!(code(socket.call("resolve_blocked", &decision)), decides, "{scope}");
            let prompted = code(socket.call("cancel", &json!({ "agent_id": "ui" })));
            assert_eq!(prompted, if steers == 0 { Value::Null } else { json!(steers) }, "{scope}");
            // Nobody gets more from here than there was.
            for method in ["web_link", "web_token", "web_revoke", "attach"] {
                let params = json!({ "scope": "control", "agent_id": "ui" });
                assert_eq!(code(socket.call(method, &params)), 403, "{scope} {method}");
            }
            // What a zone denies takes more than deciding.
            let beyond = json!({ "id": "b99", "decision": "allow", "even_denied": true });
            let refused = if scope == "control" { 404 } else { 403 };
            assert_eq!(code(socket.call("resolve_blocked", &beyond)), refused, "{scope}");
            // A wrong token changes nothing of it.
            assert_eq!(
                socket_code(socket.call("reload", &json!({}))),
                if scope == "control" { 0 } else { 403 }
            );
        }
    }
}

fn socket_code(answer: Result<Value, Value>) -> u64 {
    answer.err().and_then(|code| code.as_u64()).unwrap_or_default()
}

#[test]
fn a_revoked_credential_is_cut_off_at_once() {
    let stage = Stage::new();
    let team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let mut of_page = site.page(&browser);
    of_page.auth(&browser.token);
    let made = stage.run(&["web", "token", "--scope", "read", "--json"]).stdout;
    let made: Value = serde_json::from_str(&made).unwrap();
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(site.get("/schema.json", &[&bearer]).status, 200);
    assert!(!stage.read("home/teams/shop/web.json").contains(token), "only its hash is kept");
    let other = stage.run(&["web", "token", "--scope", "read"]).stdout.trim().to_owned();
    assert_eq!(site.ask("POST /leave", &[&bearer]).status, 403, "only browsers leave");
    assert_eq!(site.get("/schema.json", &[&bearer]).status, 200);
    assert_eq!(stage.run(&["web", "revoke", id]).stdout, "revoked 1 credential\n");
    assert_eq!(site.get("/schema.json", &[&bearer]).status, 401);
    assert_eq!(stage.run(&["web", "revoke", id]).code, 1);
    // A token outlasts its team.
    drop(of_page);
    team.stop();
    let team = stage.up();
    let (site, path) = Site::of(&stage, &[]);
    let bearer = format!("Authorization: Bearer {other}");
    assert_eq!(site.get("/schema.json", &[&bearer]).status, 200);
    assert_eq!(site.get("/", &[&browser.cookie]).status, 401, "a browser's credential does not");
    let browser = site.enter(&path);
    let mut of_page = site.page(&browser);
    of_page.auth(&browser.token);
    let (_, unused) = Site::of(&stage, &[]);
    assert_eq!(stage.run(&["web", "revoke"]).stdout, "revoked 3 credentials\n");
    while of_page.next().is_some() {}
    assert_eq!(site.get("/schema.json", &[&bearer]).status, 401);
    assert_eq!(site.get("/", &[&browser.cookie]).status, 401);
    assert_eq!(site.get(&unused, &[]).status, 401);
    drop(team);
}

#[test]
fn failed_attempts_are_slowed_down_and_a_valid_credential_is_not() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let attempts = ["/schema.json", "/enter?link=x"].into_iter().cycle().take(20);
    for path in attempts {
        assert_eq!(site.get(path, &["Authorization: Bearer x"]).status, 401);
    }
    for path in ["/", "/enter?link=y"] {
        assert_eq!(site.get(path, &["Authorization: Bearer x"]).status, 429);
    }
    assert_eq!(site.get("/", &["Cookie: eisen-00000000=x", &browser.cookie]).status, 200);
    // Of our own name, too, and beside what a proxy asks for.
    let name = browser.cookie.split('=').next().unwrap();
    let tossed = format!("{name}=x; ").repeat(20).replace("; Cookie: ", "; ");
    let tossed = format!("{tossed}{}", browser.cookie.strip_prefix("Cookie: ").unwrap());
    assert_eq!(site.get("/", &[&tossed, "Authorization: Basic eA=="]).status, 200);
    let (_, path) = Site::of(&stage, &[]);
    site.enter(&path);
}

#[test]
fn a_page_that_other_machines_reach_needs_tls_or_a_proxy() {
    let stage = Stage::new();
    let refused = |keys: &str, wanted: &str| {
        stage.configure(&format!("[web]\n{keys}"), vec![agent("ui")]);
        let ended = stage.run(&["check"]);
        assert_eq!(ended.code, 2, "{keys}");
        assert!(ended.stderr.contains(wanted), "{keys}: {}", ended.stderr);
    };
    refused("listen = \"0.0.0.0:17321\"\norigin = \"http://x\"", "the page would come without TLS");
    refused("listen = \"192.0.2.1:17321\"", "the page would come without TLS");
    refused("listen = \"[::]:0\"\ntrusted_proxy = \"10.0.0.2\"", "needs `origin`");
    refused("listen = \"0.0.0.0:0\"\ncert = \"c\"\nkey = \"k\"", "`origin` is needed");
    refused("cert = \"c\"", "`cert` needs `key`");
    refused("origin = \"https://a/b\"", "is not an origin");
    refused("trusted_proxy = \"10.0.0.2\"\norigin = \"http://a\"", "its origin does not say so");
    // By the command line, too.
    stage.configure("", vec![agent("ui")]);
    let ended = stage.run(&["up", "--web=0.0.0.0:0"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("the web page would come without TLS"), "{}", ended.stderr);
}

#[test]
fn only_the_proxy_that_is_named_connects() {
    let stage = Stage::new();
    let web =
        "[web]\nlisten = \"127.0.0.1:0\"\norigin = \"https://team.example\"\ntrusted_proxy = ";
    let team = stage.team(&format!("{web}\"127.0.0.1\""), vec![agent("ui")]);
    let link = stage.run(&["web"]).stdout.trim().to_owned();
    let path = link.strip_prefix("https://team.example").unwrap();
    let site = Site { host: served_at(&team) };
    assert_eq!(site.get("/healthz", &[]).status, 421);
    let answer = site.get(path, &["Host: team.example"]);
    assert!(answer.field("set-cookie").unwrap().contains("; Secure"), "{answer:?}");
}

/// Where a team listens beside its port: what another process can see of it.
fn served_at(team: &Team) -> String {
    let listening =
        std::fs::read_to_string(format!("/proc/{}/net/tcp", team.program.id())).unwrap();
    let inodes: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", team.program.id()))
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
        .map(|link| link.display().to_string())
        .collect();
    let port = team.run_file["port"].as_u64().unwrap();
    let of_team = listening.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ports =
        of_team.filter(|line| line[3] == "0A" && inodes.contains(&format!("socket:[{}]", line[9])));
    let ports: Vec<u64> = ports
        .map(|line| u64::from_str_radix(line[1].split(':').nth(1).unwrap(), 16).unwrap())
        .filter(|it| *it != port)
        .collect();
    let is_ours =
        |port: &&u64| Site { host: format!("127.0.0.1:{port}") }.get("/healthz", &[]).status == 421;
    format!("127.0.0.1:{}", ports.iter().find(is_ours).unwrap())
}
