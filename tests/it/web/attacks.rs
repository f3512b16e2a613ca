//! Attacks on the web server, by other sites and by the team's own agents.

use std::net::TcpStream;

use serde_json::json;

use super::client::Site;
use super::{WEB, team};
use crate::harness::{EISEN_CORE, Stage, agent, eventually};

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

#[test]
fn a_token_that_leaked_takes_no_connection_of_others() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let tokens: Vec<_> = (0..4)
        .map(|_| stage.run(&["web", "token", "--scope", "read"]).stdout.trim().to_owned())
        .collect();
    // WebSockets count as well.
    let bearer = format!("Bearer {}", tokens[0]);
    let sockets: Vec<_> = (0..64)
        .map(|_| {
            let mut socket = site.socket(&[("authorization", &bearer)]).unwrap();
            assert_eq!(socket.auth(&tokens[0]), "read");
            socket
        })
        .collect();
    assert_eq!(site.socket(&[("authorization", &bearer)]).err(), Some(503));
    let mut held = Vec::new();
    for token in &tokens[1..3] {
        let bearer = format!("Authorization: Bearer {token}");
        for _ in 0..64 {
            let (status, stream) = site.keep("/icon.svg", &[&bearer]);
            assert_eq!(status, 200);
            held.push(stream);
        }
        assert_eq!(site.keep("/icon.svg", &[&bearer]).0, 503);
    }
    // Tokens that control nothing have taken all that they may; a person has not lost the page.
    let last = format!("Authorization: Bearer {}", tokens[3]);
    assert_eq!(site.keep("/icon.svg", &[&last]).0, 503);
    assert_eq!(site.get("/", &[&browser.cookie]).status, 200);
    assert_eq!(site.page(&browser).auth(&browser.token), "control");
    drop((sockets, held));
    eventually("places are free again", || site.keep("/icon.svg", &[&last]).0 == 200);
}

#[test]
fn many_who_show_nothing_keep_nobody_out() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let mut page = site.page(&browser);
    let _idle: Vec<_> = (0..600).map(|_| TcpStream::connect(&site.host).unwrap()).collect();
    assert_eq!(site.get("/", &[&browser.cookie]).status, 200);
    assert_eq!(page.auth(&browser.token), "control", "it was there before");
}

#[test]
fn guesses_on_the_socket_are_failed_attempts_as_well() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (site, path) = Site::of(&stage, &[]);
    let browser = site.enter(&path);
    let mut answers = Vec::new();
    while answers.len() < 21 {
        let mut socket = site.page(&browser);
        answers.extend((0..3).map(|_| socket.auth("a guess")));
    }
    let refused = vec![json!(401); 20];
    assert_eq!((&answers[..20], &answers[20]), (&refused[..], &json!(429)));
    assert_eq!(site.get("/", &["Authorization: Bearer x"]).status, 429);
    assert_eq!(site.page(&browser).auth(&browser.token), "control");
}

#[test]
fn a_link_that_a_script_asks_for_is_no_longer_good() {
    let stage = Stage::new();
    let _team = team(&stage);
    let same = "Sec-Fetch-Site: same-origin";
    for (mode, dest) in [("navigate", "empty"), ("cors", "empty"), ("no-cors", "script")] {
        let (site, path) = Site::of(&stage, &[]);
        let (mode, dest) = (format!("Sec-Fetch-Mode: {mode}"), format!("Sec-Fetch-Dest: {dest}"));
        let refused = site.get(&path, &[same, &mode, &dest]);
        assert_eq!((refused.status, refused.field("set-cookie")), (403, None), "{refused:?}");
        assert!(refused.body.contains("service worker"), "{refused:?}");
        assert_eq!(site.get(&path, &[]).status, 401, "the link is used up");
    }
    let (site, path) = Site::of(&stage, &[]);
    let person = ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    let entered = site.get(&path, &person);
    assert_eq!(entered.field("clear-site-data"), Some("\"cache\", \"storage\""), "{entered:?}");
}
