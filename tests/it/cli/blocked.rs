//! `blocked`, and what `resolve` does to it.

use serde_json::Value;

use super::{Running, assert_ended};
use crate::harness::{Stage, agent};

#[test]
fn blocked_accesses_are_listed_and_followed() {
    let stage = Stage::new();
    let agents = vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")];
    let team = stage.team("[orchestrator]\non_block = \"hold\"", agents);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let (following, lines) = Running::read(&stage, &["blocked", "-f"]);
    let (pending, pending_lines) =
        Running::read(&stage, &["blocked", "-f", "--json", "--status", "pending"]);
    let prompt = port.begin("ui", "read src/api/cart.rs");
    let first = "b1: pending: read src/api/cart.rs by ui (via fs, owned by api)";
    assert_eq!(lines.next().unwrap(), first);
    let json: Value = serde_json::from_str(&pending_lines.next().unwrap()).unwrap();
    let mut reported = port.blocked("pending");
    reported.as_object_mut().unwrap().remove("type");
    assert_eq!(json, reported);

    let list = stage.run(&["blocked"]);
    let rows: Vec<Vec<_>> =
        list.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "AGE", "AGENT", "ACTION", "STATUS", "VIA", "OWNERS", "PATH"]);
    assert_eq!(
        (rows[1][0], rows[1][2..].join(" ")),
        ("b1", "ui read pending fs api src/api/cart.rs".to_owned())
    );

    for ttl in ["--ttl=inf", "--ttl=nan", "--ttl=0", "--ttl=-1", "--ttl=soon"] {
        let endless = stage.run(&["resolve", "b1", "allow", ttl]);
        assert_eq!(endless.code, 2, "{endless:?}");
    }
    let resolved = stage.run(&["resolve", "b1", "allow", "--ttl", "60"]);
    let allowed = "b1: allowed: read src/api/cart.rs by ui (via fs, owned by api)";
    assert_ended(&resolved, 0, &format!("{allowed}\n"), "");
    assert_eq!(port.said(prompt), "got api\n");
    assert_eq!(lines.next().unwrap(), allowed);
    assert_eq!(stage.run(&["blocked", "--status", "pending", "--json"]).stdout, "[]\n");
    // Who comes late gets the list first.
    let (late, late_lines) = Running::read(&stage, &["blocked", "-f"]);
    assert_eq!(late_lines.next().unwrap(), allowed);

    let wrong = stage.run(&["blocked", "--status", "weird"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("denied, pending"), "{wrong:?}");
    team.stop();
    for command in [following, pending, late] {
        let (code, stderr) = command.end();
        assert_eq!(code, Some(1));
        assert!(stderr.starts_with("error: the team closed the connection"), "{stderr}");
    }
    assert_eq!(lines.rest(), Vec::<String>::new());
    assert_eq!(pending_lines.rest(), Vec::<String>::new());
}
