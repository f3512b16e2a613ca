//! Tokens of the team with a scope, on the web.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::browser::Driver;
use super::{Site, WEB};
use crate::harness::{Ended, Stage, agent, eventually, run};

/// Makes a token; returns it with its id.
pub(super) fn make(stage: &Stage, args: &[&str]) -> (String, String) {
    let made = stage.run(&[&["token", "create", "--json", "--owner", "ada"], args].concat());
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

/// Asks for a link as the holder of a token.
fn ask_for_link(stage: &Stage, run_file: &Value, token: &str, args: &[&str]) -> Ended {
    let mut command = stage.eisen_core(&[&["web"], args].concat());
    let port = run_file["port"].to_string();
    run(command.env("EISEN_TOKEN", token).env("EISEN_PORT", port))
}

/// The site, with the path of a link that the holder of a token got.
pub(super) fn link(stage: &Stage, run_file: &Value, token: &str) -> (Site, String) {
    let ended = ask_for_link(stage, run_file, token, &[]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let link = ended.stdout.trim().strip_prefix("http://").unwrap();
    let (host, path) = link.split_once('/').unwrap();
    (Site { host: host.to_owned() }, format!("/{path}"))
}

#[test]
fn a_token_with_a_scope_is_good_here_too_until_it_is_revoked() {
    let stage = Stage::new();
    let team = stage.team("[web]\nlisten = \"127.0.0.1:0\"", vec![agent("ui"), agent("api")]);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let (site, _) = Site::of(&stage, &[]);
    let make = |args: &[&str]| make(&stage, args);
    let metrics =
        |token: &str| site.get("/metrics", &[&format!("Authorization: Bearer {token}")]).status;
    let (reads, _) = make(&["--may", "read"]);
    let (prompts, _) = make(&["--may", "prompt"]);
    let (limited, id) = make(&["--may", "read,prompt", "--agents", "ui"]);
    assert_eq!([&reads, &prompts, &limited].map(|token| metrics(token)), [200, 403, 403]);
    assert_eq!(metrics(&limited[1..]), 401);

    let bearer = format!("Bearer {limited}");
    let mut socket = site.socket(&[("authorization", &bearer)]).unwrap();
    socket.send(&json!({ "type": "auth", "token": limited }));
    let answer: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
    assert_eq!(
        (&answer["result"]["owner"], &answer["result"]["team"]),
        (&json!("ada"), &json!("shop"))
    );
    socket.call("cancel", &json!({ "agent_id": "ui" })).unwrap();
    for (method, params) in [
        ("cancel", json!({ "agent_id": "api" })),
        ("stop_agent", json!({ "agent_id": "ui" })),
        ("web_token", json!({ "scope": "control" })),
        ("token_list", json!({})),
    ] {
        assert_eq!(socket.call(method, &params), Err(json!(403)), "{method}");
    }
    assert_eq!(stage.run(&["token", "revoke", &id]).code, 0);
    while socket.next().is_some() {}
    assert_eq!(site.socket(&[("authorization", &bearer)]).err(), Some(401));
    let uses = stage.run(&["history", "--type", "token", "--json"]).stdout;
    assert!(uses.contains("/metrics") && uses.contains("/ws"), "{uses}");
}

#[test]
fn a_browser_of_a_holder_may_what_the_token_may_and_no_more() {
    let stage = Stage::new();
    let team = stage.team(WEB, vec![agent("ui"), agent("api")]);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let (token, id) = make(&stage, &["--may", "read,prompt", "--agents", "ui"]);
    let (blind, _) = make(&stage, &["--may", "prompt,control"]);
    let refused = ask_for_link(&stage, &team.run_file, &blind, &[]);
    assert!(refused.code == 1 && refused.stderr.contains("right `read`"), "{refused:?}");
    let more = ask_for_link(&stage, &team.run_file, &token, &["--scope", "control"]);
    assert!(more.code == 1 && more.stderr.contains("leave `scope` out"), "{more:?}");

    let (site, path) = link(&stage, &team.run_file, &token);
    let browser = site.enter(&path);
    assert_eq!(site.get("/app.js", &[&browser.cookie]).status, 200);
    assert_eq!(site.get("/metrics", &[&browser.cookie]).status, 403, "it has all agents");
    let mut socket = site.page(&browser);
    socket.send(&json!({ "type": "auth", "token": browser.token }));
    let answer: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
    let result = json!({
        "authenticated": true, "team": "shop", "owner": "ada", "may": ["read", "prompt"],
    });
    assert_eq!(answer["result"], result);
    let agents = socket.call("list_agents", &json!({})).unwrap();
    assert_eq!((agents.as_array().unwrap().len(), &agents[0]["agent_id"]), (1, &json!("ui")));
    socket.call("cancel", &json!({ "agent_id": "ui" })).unwrap();
    for (method, params) in [
        ("cancel", json!({ "agent_id": "api" })),
        ("stop_agent", json!({ "agent_id": "ui" })),
        ("search_events", json!({ "query": "x" })),
        // Nobody gets more from here than there was.
        ("web_link", json!({})),
        ("web_token", json!({ "scope": "read" })),
        ("token_list", json!({})),
    ] {
        assert_eq!(socket.call(method, &params), Err(json!(403)), "{method}");
    }
    // The cookie alone, or the token itself, opens no socket of a page.
    let mut other = site.page(&browser);
    assert_eq!(other.auth(&token), json!(401));

    // Its end is that of the token, and the browser's own end is not.
    let (_, unused) = link(&stage, &team.run_file, &token);
    let (_, second) = link(&stage, &team.run_file, &token);
    let left = site.enter(&second);
    let origin = format!("Origin: http://{}", site.host);
    let shown = format!("x-eisen-token: {}", left.token);
    let lines = [&*left.cookie, &origin, &shown];
    assert_eq!(site.ask("POST /leave", &lines).status, 204);
    assert_eq!(site.get("/", &[&left.cookie]).status, 401);
    socket.call("list_agents", &json!({})).unwrap();
    assert_eq!(stage.run(&["token", "revoke", &id]).code, 0);
    while socket.next().is_some() {}
    assert_eq!(site.get("/", &[&browser.cookie]).status, 401);
    assert_eq!(site.get(&unused, &[]).status, 401);

    let uses = stage.run(&["history", "--type", "token", "--json"]).stdout;
    for used in ["web_link", "/enter", "/ws", "/leave", "list_agents"] {
        assert!(uses.contains(&format!("\"{used}\"")), "{used} in {uses}");
    }
    assert!(!uses.contains("app.js"), "{uses}");
}

#[test]
fn a_holder_of_control_is_the_holder_on_the_page_too() {
    let stage = Stage::new();
    let team = stage.team(WEB, vec![agent("ui")]);
    let _port = team.steer_when_ready(&["ui"]);
    let (token, _) = make(&stage, &["--may", "read,prompt,decide,control"]);
    let (site, path) = link(&stage, &team.run_file, &token);
    let browser = site.enter(&path);
    assert_eq!(site.get("/metrics", &[&browser.cookie]).status, 200);
    let mut socket = site.page(&browser);
    assert_eq!(socket.auth(&browser.token), Value::Null, "a holder has rights, and no scope");
    socket.call("restart_agent", &json!({ "agent_id": "ui" })).unwrap();
    assert_eq!(socket.call("web_revoke", &json!({})), Err(json!(403)));
    let uses = stage.run(&["history", "--type", "token.use", "--json"]).stdout;
    assert!(uses.contains("\"restart_agent\"") && uses.contains("\"ada\""), "{uses}");
    // A person ends the browsers of holders, and their tokens stay.
    assert_eq!(stage.run(&["web", "revoke"]).stdout, "revoked 1 credential\n");
    while socket.next().is_some() {}
    assert_eq!(site.get("/", &[&browser.cookie]).status, 401);
    link(&stage, &team.run_file, &token);
}

#[test]
fn the_page_shows_a_holder_what_the_token_opens_until_it_is_revoked() {
    let Some(driver) = Driver::shared() else { return };
    let stage = Stage::new();
    let team =
        stage.team(WEB, vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.prompt("ui", "said before");
    let (token, id) = make(&stage, &["--may", "read,prompt", "--agents", "ui"]);
    let (site, path) = link(&stage, &team.run_file, &token);
    let browser = driver.open(&stage, "holder", (1280, 860));
    browser.goto(&format!("http://{}{path}", site.host));
    browser.shows("live");
    browser.shows("ada: read, prompt");
    browser.click("#team a, #team button", "ui");
    browser.shows("Cancel turn");
    browser.shows("said before");
    browser.keys("p");
    browser.keys("write src/ui/app.ts better");
    browser.click("button", "Send");
    browser.shows("written");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "better");
    let text = browser.text();
    for hidden in ["api", "Stop", "Restart"] {
        assert!(!text.contains(hidden), "{hidden:?} in {text}");
    }
    browser.picture("holder.png");
    browser.click("a", "Changes");
    browser.shows("@@ -1 +1 @@");
    assert!(!browser.text().contains("Undo"), "{}", browser.text());
    // What waits is shown, and decided by others.
    port.begin("api", "read src/ui/app.ts");
    port.begin("ui", "read src/api/cart.rs");
    browser.keys("i");
    browser.shows("src/api/cart.rs");
    let inbox = browser.run("return document.querySelector('#inbox').innerText");
    let inbox = inbox.as_str().unwrap();
    assert!(!inbox.contains("Deny") && !inbox.contains("app.ts"), "{inbox}");
    browser.keys("3");
    browser.comes("document.querySelector('#map canvas')");
    browser.shows("app.ts");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(stage.run(&["token", "revoke", &id]).code, 0);
    browser.shows("a token of ada has ended");
}

#[test]
fn a_phone_gets_a_link_of_a_token_that_ends_by_itself() {
    let stage = Stage::new();
    let team = stage.team(WEB, vec![agent("ui"), agent("api")]);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let (site, _) = Site::of(&stage, &[]);
    let tokens = || -> Vec<Value> {
        serde_json::from_str(&stage.run(&["token", "list", "--json"]).stdout).unwrap()
    };
    // A host that the page refuses: no token is made, and the error says what to write.
    let refused = stage.run(&["web", "--phone", "https://team.example/"]);
    let told = "\n[web]\norigin = \"https://team.example\"\n";
    assert!(refused.code == 2 && refused.stderr.contains(told), "{refused:?}");
    let wrong = stage.run(&["web", "--phone", "team.example"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("`https://team.example`"), "{wrong:?}");
    assert_eq!(tokens(), Vec::<Value>::new());

    let address = format!("http://{}", site.host);
    let made = stage.run(&["web", "--phone", &address]);
    assert_eq!(made.code, 0, "{made:?}");
    let path = made.stdout.trim_end().strip_prefix(&*address).unwrap();
    assert!(path.starts_with("/enter?link=") && !path.contains('\n'), "{made:?}");
    let [token] = &tokens()[..] else { panic!("{:?}", tokens()) };
    let lasts = token["expires_ms"].as_u64().unwrap() - token["created_ms"].as_u64().unwrap();
    assert_eq!((lasts, &token["agents"]), (12 * 60 * 60 * 1000, &Value::Null));
    let id = token["id"].as_str().unwrap();
    assert!(made.stderr.contains(&format!("`eisen-core team token revoke {id}`")), "{made:?}");

    let browser = site.enter(path);
    assert_eq!(site.get(path, &[]).status, 401, "it is good once");
    let mut socket = site.page(&browser);
    socket.send(&json!({ "type": "auth", "token": browser.token }));
    let answer: Value = serde_json::from_str(&socket.next().unwrap()).unwrap();
    assert_eq!(answer["result"]["may"], json!(["read", "decide"]));
    assert_eq!(answer["result"]["owner"], token["owner"]);
    assert_eq!(socket.call("cancel", &json!({ "agent_id": "ui" })), Err(json!(403)));
    socket.call("list_blocked", &json!({})).unwrap();
    assert_eq!(stage.run(&["token", "revoke", id]).code, 0);
    while socket.next().is_some() {}
    assert_eq!(site.get("/", &[&browser.cookie]).status, 401);

    let made = stage.run(&["web", "--phone", &address, "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    let made_id = made["token"]["id"].as_str().unwrap();
    assert!(tokens().iter().any(|token| token["id"] == made_id));
    assert_eq!((&made["expires_s"], &made["token"]["may"]), (&json!(300), &token["may"]));
    let (holder, _) = make(&stage, &["--may", "read,decide"]);
    let more = ask_for_link(&stage, &team.run_file, &holder, &["--phone", &address]);
    assert!(more.code == 1 && more.stderr.contains("without EISEN_TOKEN"), "{more:?}");

    // One tap ends the access, and the token with it, which nothing else has.
    let Some(driver) = Driver::shared() else { return };
    let browser = driver.open(&stage, "phone", (390, 844));
    browser.goto(made["url"].as_str().unwrap());
    browser.shows("live");
    browser.comes("document.querySelector('#scope').innerText.endsWith(': read, decide')");
    browser.picture("phone-head.png");
    // What could not be ended is said, and can be tried again.
    let lock = stage.path("home/teams/shop/tokens.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    browser.press("#leave", "End access");
    browser.shows("the access was not ended");
    assert!(tokens().iter().any(|token| token["id"] == made_id));
    std::fs::remove_dir(&lock).unwrap();
    browser.press("#leave", "End access");
    browser.shows("`eisen-core web`");
    eventually("the token is gone", || tokens().iter().all(|token| token["id"] != made_id));
    assert_eq!(site.get("/metrics", &[&format!("Authorization: Bearer {holder}")]).status, 200);
}

#[test]
fn a_phone_without_an_address_is_told_of_those_that_there_may_be() {
    let stage = Stage::new();
    let folder = stage.path("bin");
    std::fs::create_dir(&folder).unwrap();
    stage.file(
        "bin/tailscale",
        "#!/bin/sh\necho '{\"BackendState\":\"Running\",\"Self\":{\"DNSName\":\"a.ts.net.\"}}'\n",
    );
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.join("tailscale"), runs).unwrap();
    stage.configure("[web]\norigin = \"https://team.example\"", vec![agent("ui")]);
    let mut command = stage.eisen_core(&["web", "--phone"]);
    command.env("PATH", &folder).env("SSH_CONNECTION", "10.0.0.5 51000 10.0.0.9 22");
    let told = run(&mut command);
    assert_eq!(told.code, 2, "{told:?}");
    for way in ["https://a.ts.net", "https://team.example", "http://127.0.0.1:17321"] {
        let line = format!("\n  eisen-core web --phone {way}\n");
        assert!(told.stdout.contains(&line), "{way}: {told:?}");
    }
    assert!(told.stderr.contains("`eisen-core web --phone URL`"), "{told:?}");
    let mut command = stage.eisen_core(&["web", "--phone"]);
    let told = run(command.env("PATH", stage.path("none")).env_remove("SSH_CONNECTION"));
    assert!(told.code == 2 && told.stdout.contains("Not found: no `tailscale`"), "{told:?}");
}
