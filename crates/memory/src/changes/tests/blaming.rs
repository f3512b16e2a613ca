//! The author of each line.

use serde_json::json;

use super::super::*;
use super::file;
use super::selecting::Team;
use crate::journal::EventType;

/// Each line as `WHO TURN TEXT`.
fn shown(team: &Team, path: &str, now: Option<&str>) -> Vec<String> {
    let store = team.store();
    let history = follow(&store, path.as_ref()).unwrap();
    let now = now.map(|text| text.as_bytes().to_vec());
    let blame = blame(path.as_ref(), &history, &store, now).unwrap();
    let names = provenance(&store, &blame).unwrap();
    let lines = blame.iter().zip(&blame.lines).map(|((line, _), at)| {
        let name = &names[*at];
        let who = match (&name.agent_id, name.turn) {
            (Some(agent), Some(turn)) => format!("{agent} {turn}"),
            _ => name.by.to_owned(),
        };
        let contested = if name.contested.is_empty() { "" } else { " contested" };
        format!("{who}{contested} {}", String::from_utf8_lossy(line).trim_end())
    });
    lines.collect()
}

#[tokio::test]
async fn each_line_has_the_change_that_it_came_with() {
    let team = Team::new().await;
    team.append("ui/s", 0, EventType::MESSAGE_USER, json!({ "text": "Add\n a  footer" })).await;
    team.write("ui/s", 0, "a", ("1\n2\n3\n", "1\nui\n3\n")).await;
    team.write("api/s", 4, "a", ("1\nui\n3\n", "1\nui\n3\napi\n")).await;
    team.write("unknown", 0, "a", ("1\nui\n3\napi\n", "?\n1\nui\n3\napi\n")).await;
    // Something that no event has, then a change of an agent.
    team.write("ui/s", 1, "a", ("?\n1\nmissed\nui\n3\napi\n", "?\n1\nmissed\nui\n3\n4\napi\n"))
        .await;
    let now = "?\n1\nmissed\nui\n3\n4\nperson\napi\n";
    let lines = ["unknown ?", "before 1", "unknown missed", "ui 0 ui", "before 3", "ui 1 4"];
    let lines = [&lines[..], &["outside person", "api 4 api"]].concat();
    assert_eq!(shown(&team, "a", Some(now)), lines);
    assert_eq!(shown(&team, "other", Some("x\n")), ["before x"]);

    let store = team.store();
    let history = follow(&store, "a".as_ref()).unwrap();
    let blame = blame("a".as_ref(), &history, &store, None).unwrap();
    let names = provenance(&store, &blame).unwrap();
    let of_ui = names.iter().find(|name| name.turn == Some(0)).unwrap();
    assert_eq!(of_ui.prompt.as_deref(), Some("Add a footer"));
}

#[tokio::test]
async fn lines_that_come_back_are_whose_they_were() {
    let team = Team::new().await;
    let (old, agents) = ("1\n2\n", "1\nui\nui too\n2\n");
    team.write("ui/s", 0, "a", (old, agents)).await;
    // A rebase: git goes back to the version before, and makes another one with the same lines.
    team.write("outside", 0, "a", (agents, old)).await;
    team.write("outside", 0, "a", (old, "0\n1\nui\nui too\n2\n")).await;
    assert_eq!(
        shown(&team, "a", None),
        ["outside 0", "before 1", "ui 0 ui", "ui 0 ui too", "before 2"]
    );
    // An undo and a redo.
    let now = "0\n1\nui\nui too\n2\n";
    let state = |text: &str| json!([{ "path": "a", "before": file(now), "after": file(text) }]);
    let undo = json!({ "agent_id": "ui", "paths": state("0\n1\n2\n") });
    team.append("ui/s", 1, EventType::UNDO, undo).await;
    team.write("outside", 0, "b", ("", "0\n1\n2\n")).await;
    assert_eq!(shown(&team, "a", None), ["outside 0", "before 1", "before 2"]);
    // Half of a block that comes back is new.
    assert_eq!(shown(&team, "a", Some("0\n1\nui\nnew\n2\n"))[2..4], ["outside ui", "outside new"]);
}

#[tokio::test]
async fn a_tool_call_is_one_change_and_renames_are_followed() {
    let team = Team::new().await;
    team.write("ui/s", 0, "old", ("1\n2\n", "")).await;
    team.write("ui/s", 0, "old", ("", "1\n2\n3\n")).await;
    let renamed = json!({ "path": "new", "from": "old", "before": file("1\n2\n3\n"),
        "after": file("1\n2\n3\n"), "cause": "agent" });
    team.append("api/s", 0, EventType::FILE_RENAME, renamed).await;
    team.write("api/s", 1, "new", ("1\n2\n3\n", "1\n2\n3\n4\n")).await;
    // Another file under the old name.
    team.write("api/s", 1, "old", ("", "1\n")).await;
    assert_eq!(shown(&team, "new", None), ["before 1", "before 2", "ui 0 3", "api 1 4"]);
    assert_eq!(shown(&team, "old", None), ["api 1 1"]);
}

#[tokio::test]
async fn what_can_not_be_known_is_unknown() {
    let team = Team::new().await;
    let state = |text: &str, stored: bool| {
        let mut state = file(text);
        state["stored"] = stored.into();
        state
    };
    let lost = json!({ "path": "a", "before": state("lost\n", false), "after": file("1\n") });
    team.append("ui/s", 0, EventType::FILE_WRITE, lost).await;
    team.write("outside", 0, "b", ("", "1\n")).await;
    assert_eq!(shown(&team, "a", None), ["unknown 1"]);
    // Nor what was made of it, if its content is not stored.
    let over = json!({ "path": "d", "before": file("1\n"), "after": state("1\nui\n", false),
        "cause": "agent" });
    team.append("ui/s", 0, EventType::FILE_WRITE, over).await;
    assert_eq!(shown(&team, "d", Some("1\nui\n")), ["before 1", "ui 0 ui"]);
    assert_eq!(shown(&team, "d", Some("1\nui\n?\n")), ["before 1", "unknown ui", "unknown ?"]);
    let contested = json!({ "path": "c", "before": null, "after": file("1\n"), "cause": "agent",
        "contested": ["api"] });
    team.append("ui/s", 0, EventType::FILE_CREATE, contested).await;
    assert_eq!(shown(&team, "c", None), ["ui 0 contested 1"]);
    let store = team.store();
    let of =
        |path: &str| blame(path.as_ref(), &follow(&store, path.as_ref()).unwrap(), &store, None);
    assert!(matches!(of("nothing"), Err(BlameError::NoFile { .. })));
    let binary = blame("c".as_ref(), &FileHistory::default(), &store, Some(b"a\0".to_vec()));
    assert!(matches!(binary, Err(BlameError::NoLines(_))));
}
