//! Attacks on the web server, by other sites and by the team's own agents.

use serde_json::json;

use super::client::Site;
use super::{WEB, team};
use crate::harness::{EISEN_CORE, Stage, agent};

#[test]
fn another_host_or_origin_gets_nothing_with_the_credential() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let port = site.host.split(':').nth(1).unwrap();
    let hosts = [
        "Host: evil.example",
        "Host: localhost",
        "Host: 127.0.0.1",
        "Host: 127.0.0.1:1",
        "Host:",
        &format!("Host: localhost:{port}"),
        &format!("Host: 127.0.0.1.evil.example:{port}"),
        &format!("Host: {}\r\nHost: {}", site.host, site.host),
    ];
    for host in hosts {
        for path in ["/healthz", "/", "/ws", &path] {
            let status = site.get(path, &[host, &browser.cookie]).status;
            // A request without a host is none.
            assert!(status == 421 || host == "Host:" && status == 400, "{host} {path}: {status}");
        }
    }
    let absolute = format!("GET http://evil.example:{port}/");
    assert_eq!(site.ask(&absolute, &[&browser.cookie]).status, 421);
    let origins = [
        "null",
        "https://127.0.0.1",
        &format!("https://{}", site.host),
        "http://127.0.0.1",
        &format!("http://localhost:{port}"),
        "http://127.0.0.1:1",
        &format!("http://{}.evil", site.host),
    ];
    for origin in origins {
        let line = format!("Origin: {origin}");
        for path in ["/", "/schema.json", "/ws"] {
            assert_eq!(site.get(path, &[&line, &browser.cookie]).status, 403, "{origin} {path}");
        }
        let cookie = browser.cookie.strip_prefix("Cookie: ").unwrap();
        assert_eq!(site.socket(&[("cookie", cookie), ("origin", origin)]).err(), Some(403));
    }
    // A page on another port is of the same site, so that its requests have the cookie.
    let embeds = ["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"];
    assert_eq!(site.get("/enter.js", &[&embeds[..], &[&browser.cookie]].concat()).status, 403);
    let frames =
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"];
    assert_eq!(site.get("/", &[&frames[..], &[&browser.cookie]].concat()).status, 403);
    let links =
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    assert_eq!(site.get("/", &[&links[..], &[&browser.cookie]].concat()).status, 200);
}

#[test]
fn a_cookie_that_went_to_another_port_shows_and_steers_no_team() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let origin = format!("http://{}", site.host);
    let cookie = browser.cookie.strip_prefix("Cookie: ").unwrap();
    // No page of ours sends it without an origin.
    assert_eq!(site.socket(&[("cookie", cookie)]).err(), Some(403));
    // An agent can forge an origin, and lacks the token.
    let mut socket = site.socket(&[("cookie", cookie), ("origin", &origin)]).unwrap();
    assert_eq!(socket.call("list_agents", &json!({})), Err(json!(401)));
    for wrong in ["", "x", &cookie[cookie.len() - 64..]] {
        assert_eq!(socket.auth(wrong), json!(401));
    }
    assert_eq!(socket.next(), None, "three wrong tokens end the connection");
    for lines in [&[][..], &["x-eisen-token: x"]] {
        let origin = format!("Origin: {origin}");
        let lines = [lines, &[&origin, &browser.cookie]].concat();
        assert_eq!(site.ask("POST /leave", &lines).status, 401);
    }
    let token = format!("x-eisen-token: {}", browser.token);
    assert_eq!(site.ask("POST /leave", &[&token, &browser.cookie]).status, 403);
    let origin = format!("Origin: {origin}");
    assert_eq!(site.ask("POST /leave", &[&token, &origin, &browser.cookie]).status, 204);
    assert_eq!(site.get("/", &[&browser.cookie]).status, 401, "the browser has left");
}

#[test]
fn the_tokens_of_the_port_open_nothing_of_the_web() {
    let stage = Stage::new();
    let keys = format!("{WEB}\nagent = \"lead\"");
    let team = stage.team(&keys, vec![agent("lead"), agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let of_lead = port.prompt("lead", "run printf %s \"$EISEN_TOKEN\"");
    assert_eq!(of_lead.split('.').nth(1), Some("lead"));
    for token in [&of_lead, team.token()] {
        let bearer = format!("Authorization: Bearer {token}");
        assert_eq!(site.get("/", &[&bearer]).status, 401);
        assert_eq!(site.page(&browser).auth(token), json!(401));
    }
    // And the orchestrator gets no link by them.
    let mut of_port = team.watch();
    of_port.auth(&of_lead);
    for method in ["web_link", "web_token", "web_revoke"] {
        let refused = of_port.call(method, &json!({ "scope": "read" })).unwrap_err();
        assert_eq!(refused["code"], 403, "{refused}");
    }
}

#[test]
fn an_agent_that_looks_for_a_credential_finds_none() {
    let stage = Stage::new();
    let keys = "[web]\nlisten = \"127.0.0.1:0\"";
    let team = stage.team(keys, vec![agent("ui").zone("src/ui/**"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let mut page = site.page(&browser);
    page.auth(&browser.token);
    let (_, unused) = Site::of(&stage, &[]);
    let of_program = stage.run(&["web", "token", "--scope", "control"]).stdout.trim().to_owned();
    // Environments and arguments of all processes, the team's files and its logs, what it serves, and
    // the command itself.
    let home = stage.path("home").display().to_string();
    let look = format!(
        "(for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline $(find {home} -type f); do\n\
         timeout 1 cat $file; done; {EISEN_CORE} web; {EISEN_CORE} web token --scope read\n\
         curl -sm 2 http://{}/metrics) 2>&1 </dev/null | tr '\\0' '\\n' | grep -aoE '[0-9a-f]{{64}}' \
         | sort -u; echo looked",
        site.host
    );
    stage.file("shop/src/ui/look.sh", &look);
    let found = port.prompt("ui", "run sh src/ui/look.sh");
    assert!(found.contains("looked"), "{found}");
    let secret = |text: &str| text.rsplit('=').next().unwrap().to_owned();
    for secret in [secret(&browser.cookie), browser.token, secret(&unused), of_program] {
        assert_eq!(secret.len(), 64);
        assert!(!found.contains(&secret), "{secret}: {found}");
    }
}
