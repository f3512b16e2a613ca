#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn fold(view: &mut TeamView, line: &Value) -> LineEffect {
    view.line(line["type"].as_str().unwrap(), line.to_string().as_bytes())
}

fn access(id: &str, agent: &str, status: &str) -> Value {
    json!({
        "type": "blocked", "id": id, "agent_id": agent, "session_id": "s", "action": "read",
        "path": "core/a.rs", "status": status, "via": "fs", "timestamp_ms": 1,
    })
}

fn agent(id: &str, state: &str) -> Value {
    json!({ "type": "agent", "agent_id": id, "state": state, "reason": null, "timestamp_ms": 1 })
}

fn names(view: &TeamView) -> Vec<(&str, usize)> {
    let agents = view.agents().into_iter();
    agents.map(|(agent, waits)| (&*agent.status.agent_id, waits)).collect()
}

#[test]
fn the_agents_that_need_a_person_come_first() {
    let mut view = TeamView::default();
    for id in ["api", "docs", "ui"] {
        assert_eq!(fold(&mut view, &agent(id, "ready")), LineEffect::Agents);
    }
    assert_eq!(names(&view), [("api", 0), ("docs", 0), ("ui", 0)]);
    fold(&mut view, &agent("docs", "error"));
    fold(&mut view, &access("b1", "ui", "pending"));
    assert_eq!(names(&view), [("ui", 1), ("docs", 0), ("api", 0)]);
    // A stalled one has a reason.
    let mut stalled = agent("api", "ready");
    stalled["reason"] = "no update for 10 min".into();
    fold(&mut view, &stalled);
    assert_eq!(names(&view), [("ui", 1), ("api", 0), ("docs", 0)]);
    // Figures that only `list_agents` has stay over a change of state.
    view.set_agents(&json!([{ "agent_id": "ui", "state": "ready", "memory_bytes": 7 }]));
    fold(&mut view, &agent("ui", "stopped"));
    let (ui, waits) = view.agents()[0];
    assert_eq!((ui.memory_bytes, ui.status.state.as_str(), waits), (Some(7), "stopped", 1));
    fold(&mut view, &json!({ "type": "budget", "agent_id": "ui", "state": "exceeded" }));
    assert_eq!(names(&view)[0], ("ui", 2));
    assert_eq!(view.budget(Some("ui")).unwrap().state, BudgetState::Exceeded);
}

#[test]
fn what_waits_is_there_until_somebody_decides() {
    let mut view = TeamView::default();
    let pending = |view: &TeamView| view.waiting().map(|it| it.id().to_owned()).collect::<Vec<_>>();
    fold(&mut view, &access("b1", "ui", "pending"));
    fold(&mut view, &access("b2", "ui", "denied"));
    fold(&mut view, &access("b3", "api", "pending"));
    fold(&mut view, &access("b1", "ui", "pending"));
    assert_eq!(pending(&view), ["b1", "b3"]);
    fold(&mut view, &access("b1", "ui", "allowed"));
    assert_eq!(pending(&view), ["b3"]);
    // After a gap it follows anew, and what was decided meanwhile does not.
    assert_eq!(fold(&mut view, &json!({ "type": "lagged", "missed": 9 })), LineEffect::Agents);
    assert!(pending(&view).is_empty());
    let said: Vec<_> = view.log().entries().iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(said[0], "b1 pending: read core/a.rs");
    assert_eq!(said.last(), Some(&"9 lines of the team were missed: this view was too slow"));
}

#[test]
fn conflicts_and_budgets_wait_beside_accesses() {
    let mut view = TeamView::default();
    let conflict = |id: &str, status: &str| {
        json!({ "type": "conflict", "id": id, "agents": ["ui", "api"], "path": "a", "kind": "held",
                "status": status, "message": "`api` has it locked", "timestamp_ms": 1 })
    };
    let budget = |agent: Option<&str>, state: &str| json!({ "type": "budget", "agent_id": agent, "state": state });
    let waiting = |view: &TeamView| -> Vec<(CardKind, String, String)> {
        view.waiting().map(|it| (it.kind(), it.id().to_owned(), it.agent().to_owned())).collect()
    };
    view.joined();
    fold(&mut view, &agent("ui", "ready"));
    fold(&mut view, &conflict("c1", "allowed"));
    view.set_conflicts(
        &json!({ "conflicts": [conflict("c1", "pending"), conflict("c2", "pending")] }),
    );
    fold(&mut view, &budget(None, "exceeded"));
    fold(&mut view, &budget(Some("ui"), "warned"));
    fold(&mut view, &access("b1", "ui", "pending"));
    let wanted = [
        (CardKind::Access, "b1".into(), "ui".into()),
        (CardKind::Conflict, "c2".into(), "ui".into()),
        (CardKind::Budget, String::new(), String::new()),
    ];
    assert_eq!(waiting(&view), wanted);
    assert_eq!(names(&view), [("ui", 2)]);
    // A decision and a new total take them away.
    fold(&mut view, &conflict("c2", "denied"));
    fold(&mut view, &budget(None, "open"));
    assert_eq!(waiting(&view), wanted[..1]);
    // A team that looks for no conflicts has none.
    view.set_conflicts(&json!({ "strategy": null, "conflicts": [] }));
    assert_eq!(waiting(&view), wanted[..1]);
}

#[test]
fn the_log_says_who_decided() {
    let mut view = TeamView::default();
    for by in ["person", "web", "token:ada", "rule", "agent:api"] {
        let mut line = access("b1", "ui", "denied");
        line["decided_by"] = by.into();
        fold(&mut view, &line);
    }
    let said: Vec<_> = view.log().entries().iter().map(|entry| entry.text.as_str()).collect();
    expect_test::expect![[r#"
        b1 denied by a person: read core/a.rs
        b1 denied by a person on the web: read core/a.rs
        b1 denied by ada: read core/a.rs
        b1 denied by a rule: read core/a.rs
        b1 denied by api: read core/a.rs"#]]
    .assert_eq(&said.join("\n"));
}

#[test]
fn a_list_that_is_older_than_the_stream_brings_nothing_back() {
    let mut view = TeamView::default();
    let pending = |view: &TeamView| view.waiting().map(|it| it.id().to_owned()).collect::<Vec<_>>();
    view.joined();
    fold(&mut view, &access("b1", "ui", "allowed"));
    fold(&mut view, &access("b3", "ui", "pending"));
    view.set_pending(&json!([access("b1", "ui", "pending"), access("b2", "ui", "pending")]));
    assert_eq!(pending(&view), ["b2", "b3"]);
    view.set_budgets(&json!([{ "agent_id": null, "state": "open" }]));
    assert!(view.budget(None).is_some());
    // The same happens anew with another connection; what happened stays.
    view.joined();
    assert!(pending(&view).is_empty() && view.budget(None).is_none());
    assert_eq!(view.log().len(), 2);
}

#[test]
fn the_hottest_files_of_all_sessions_are_joined() {
    let node = |path: &str, heat: f32, at: u64, action: &str| {
        json!({
            "path": path, "heat": heat, "in_context": heat > 0.5, "last_action": action,
            "turn_accessed": 0, "timestamp_ms": at,
        })
    };
    let map = |kind: &str, agent: &str, mode: &str| json!({ "type": kind, "agent_id": agent, "session_id": "s", "session_mode": mode, "seq": 1 });
    let mut view = TeamView::default();
    let mut line = map("snapshot", "ui", "single_agent");
    line["nodes"] = json!({ "a": node("a", 0.25, 5, "write"), "b": node("b", 0.5, 1, "read") });
    assert_eq!(fold(&mut view, &line), LineEffect::Shown);
    let mut line = map("delta", "api", "single_agent");
    line["updates"] = json!([node("a", 1.0, 3, "read"), node("c", 0.1, 1, "read")]);
    line["removed"] = json!([]);
    fold(&mut view, &line);
    let mut merged = map("snapshot", "lead", "orchestrator");
    merged["nodes"] = json!({ "z": node("z", 1.0, 9, "write") });
    assert_eq!(fold(&mut view, &merged), LineEffect::Nothing);
    let hottest = view.hottest(2);
    assert_eq!(hottest.iter().map(|file| file.path).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((hottest[0].heat, hottest[0].action), (1.0, "write"));
    assert_eq!(hottest[0].agents, [("api", true), ("ui", false)]);
    line["updates"] = json!([]);
    line["removed"] = json!(["a", "c"]);
    fold(&mut view, &line);
    assert_eq!(view.hottest(9)[0].path, "b");
    assert_eq!(view.hottest(9).len(), 2);
}

#[test]
fn the_log_says_what_happened_in_plain_lines_and_is_bounded() {
    let mut view = TeamView::default();
    for line in [
        agent("ui", "ready"),
        agent("ui", "ready"),
        json!({ "type": "turn", "agent_id": "ui", "session_id": "s", "turn": 2,
                "stop_reason": "error", "reason": "exit\u{1b}[31m status 1" }),
        json!({ "type": "task", "id": "t-1", "by": "lead", "agent_id": "ui", "state": "done" }),
        json!({ "type": "budget", "agent_id": "ui", "state": "open" }),
        json!({ "type": "usage", "agent_id": "ui", "session_id": "s", "size": 0 }),
        json!({ "type": "report", "agent_id": "ui", "text": "half\nway" }),
        json!({ "type": "loop", "agent_id": "ui", "session_id": "s", "kind": "call", "times": 5, "calls": ["npm test"] }),
    ] {
        fold(&mut view, &line);
    }
    let said: Vec<_> = view.log().entries().iter().map(|entry| entry.text.as_str()).collect();
    expect_test::expect![[r#"
        ready
        third turn ended: error: exit [31m status 1
        task t-1 of lead: done
        reports: half way
        a loop: 5 times the same call: npm test"#]]
    .assert_eq(&said.join("\n"));
    for n in 0..2000 {
        fold(&mut view, &json!({ "type": "report", "agent_id": "ui", "text": n.to_string() }));
    }
    assert_eq!((view.log().len(), view.log().first()), (1000, 2005));
    assert_eq!(view.log().entries()[0].text, "reports: 1000");
}

#[test]
fn lines_of_another_version_or_torn_change_nothing() {
    let mut view = TeamView::default();
    for (kind, line) in [
        ("agent", &b"[]"[..]),
        ("agent", b"{\"agent_id\": null}"),
        ("snapshot", b"{\"nodes\": 3}"),
        ("delta", b"null"),
        ("unheard of", b"{}"),
    ] {
        assert_eq!(view.line(kind, line), LineEffect::Nothing, "{kind}");
    }
    assert!(view.agents().is_empty() && view.waiting().count() == 0 && view.log().is_empty());
}

#[test]
fn what_a_person_decides_and_cannot_be_read_is_said() {
    let mut view = TeamView::default();
    let line = b"{\"type\":\"blocked\",\"id\":7}";
    assert_eq!(view.line("blocked", line), LineEffect::Shown);
    view.set_pending(&json!([{ "id": 7 }, access("b1", "ui", "pending")]));
    assert_eq!(view.waiting().count(), 1);
    view.set_conflicts(&json!(null));
    let said: Vec<_> = view.log().entries().iter().map(|entry| entry.text.as_str()).collect();
    assert!(said[0].starts_with("a line `blocked` of the team cannot be read"), "{said:?}");
    assert!(said[1].starts_with("an access of the team cannot be read"), "{said:?}");
    assert!(said[2].starts_with("the list of conflicts of the team cannot be read"), "{said:?}");
}

#[test]
fn a_team_of_an_earlier_version_is_shown() {
    // What came later is missing.
    let mut view = TeamView::default();
    view.set_agents(&json!([{ "agent_id": "ui", "state": "ready" }]));
    let early = json!({ "id": "b1", "agent_id": "ui", "session_id": "s", "action": "read",
        "path": "a", "status": "pending" });
    view.set_pending(&json!([early]));
    let conflict = json!({ "id": "c1", "agents": ["ui"], "path": "a", "kind": "held",
        "status": "pending", "message": "held" });
    view.set_conflicts(&json!({ "conflicts": [conflict] }));
    view.set_budgets(&json!([{ "state": "exceeded" }]));
    assert_eq!((names(&view), view.waiting().count()), (vec![("ui", 2)], 3));
    assert!(view.log().is_empty());
}

#[test]
fn what_agents_try_by_themselves_is_one_line_with_its_number() {
    let mut view = TeamView::default();
    let sweep = |id: &str, session: &str, path: &str, count: u64, harmless: bool| {
        json!({
            "type": "blocked", "id": id, "agent_id": "ui", "session_id": session, "action": "write",
            "path": path, "status": "denied", "via": "kernel", "timestamp_ms": 1, "sweep": count,
            "harmless": harmless,
        })
    };
    fold(&mut view, &sweep("b1", "", ".git/opencode", 1, true));
    fold(&mut view, &sweep("b2", "", "/home/ada/.npmrc", 1, false));
    fold(&mut view, &sweep("b2", "", "/home/ada", 4, false));
    fold(&mut view, &sweep("b3", "", ".git/index", 1, false));
    fold(&mut view, &sweep("b4", "", "src", 2, false));
    fold(&mut view, &sweep("b5", "s", ".git/index", 3, false));
    let shown = |view: &TeamView, all| {
        let log = view.log();
        log.shown(log.len(), all).iter().map(|(_, text)| text.to_string()).collect::<Vec<_>>()
    };
    let last = ["b4 denied: write src (2 times)", "b5 denied: write .git/index (3 times)"];
    let folded = "6 refusals in passing: harmless, outside the workspace or in .git";
    assert_eq!(shown(&view, false), [&[folded], &last[..]].concat());
    let each = [
        "b1 harmless: write .git/opencode (1 times)",
        "b2 denied: write /home/ada (4 times)",
        "b3 denied: write .git/index (1 times)",
    ];
    assert_eq!(shown(&view, true), [&each, &last[..]].concat());
}
