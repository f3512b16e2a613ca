//! Tests of agents that were added and removed over the port.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Bench, surroundings};
use crate::config::{Layered, Overlay, Source};
use crate::kept::power_cut::survives;
use crate::model::AgentId;

const FILE: &str =
    "agents = [{ id = \"ui\", command = [\"a\"] }, { id = \"api\", command = [\"b\"] }]";

fn overlay(added: &Value, removed: &[&str]) -> Overlay {
    serde_json::from_value(json!({ "added": added, "removed": removed })).unwrap()
}

fn check(file: &str, overlay: Overlay, expected: &Expect) {
    let bench = Bench::new();
    let source = Source { file: bench.path().join("eisen.toml"), text: file.to_owned() };
    let text = match Layered::compile_in(source, overlay, &surroundings()) {
        Ok(layered) => {
            let agents = layered.config.agents.iter();
            let agents = agents.map(|agent| format!("{} {:?}", agent.id, agent.command));
            let said = layered.said.iter().cloned().chain(layered.overlay.notes());
            agents.chain(said).collect::<Vec<_>>().join("\n")
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&text.replace(&bench.path().display().to_string(), "."));
}

#[test]
fn agents_are_added_behind_the_files_and_others_stay_away() {
    check(
        FILE,
        Overlay::default(),
        &expect![[r#"
            ui ["a"]
            api ["b"]"#]],
    );
    check(
        FILE,
        overlay(&json!([{ "id": "new", "command": ["./c", "${HOME}"] }]), &["ui"]),
        &expect![[r#"
            api ["b"]
            new ["./c", "/home/user"]
            agent `new` is added
            agent `ui` stays away"#]],
    );
    // Another takes its place.
    check(
        FILE,
        overlay(&json!([{ "id": "ui", "command": ["c"] }]), &["ui"]),
        &expect![[r#"
        api ["b"]
        ui ["c"]
        agent `ui` is added"#]],
    );
    // What the file sees to by itself is forgotten.
    check(
        FILE,
        overlay(&json!([{ "id": "ui", "command": ["c"] }]), &["gone"]),
        &expect![[r#"
        ui ["a"]
        api ["b"]
        agent `ui` was added over the port, and now stands in the configuration: that holds"#]],
    );
    let sections = FILE
        .replace("agents = [", "x")
        .replace('x', "[[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n# ");
    check(
        &sections,
        overlay(&json!([{ "id": "new", "command": ["c"], "zone": { "allowed": [] } }]), &[]),
        &expect![[r#"
            ui ["a"]
            new ["c"]
            agent `new` is added"#]],
    );
}

#[test]
fn a_mistake_names_the_agent_that_has_it() {
    let added = json!([
        { "id": "one", "command": ["a"], "zone": { "allowed": ["src/"] } },
        { "id": "two", "comand": ["a"], "depends_on": ["ap"] },
        { "command": ["a"], "mcp_servers": [{ "name": "x" }] },
    ]);
    check(
        FILE,
        overlay(&added, &[]),
        &expect![[r#"
            agent `one`: the pattern "src/" ends with `/`, so it matches no file (write "src/**" for all that is in the folder)
            agent `two`: this agent has neither `command` nor `profile` (write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`)
            agent `two`: unknown key `comand` in `[[agents]]` (did you mean `command`?)
            agent `two`: there is no agent "ap" (did you mean "api"?)
            the agent: this agent has no `id` (give it one, such as `id = "ui"`)
            the agent: this is not an MCP server as ACP defines it: missing field `command` (write { name, command, args = ["…"], env = [{ name, value }] }, or { type = "http", name, url, headers = [{ name, value }] })"#]],
    );
    let file = "agents = [{ id = \"ui\", command = [\"a\"] },\n { id = \"api\", command = [\"b\"], depends_on = [\"ui\"] }]";
    check(
        file,
        overlay(&json!([]), &["ui"]),
        &expect![[r#"line 2 of the configuration: there is no agent "ui" (there are `api`)"#]],
    );
    check(
        FILE,
        overlay(&json!([{ "id": "x", "env": { "A": null } }, { "id": "y", "n": u64::MAX }]), &[]),
        &expect![[r#"
            agent `x`: `env.A` is null: leave it out
            agent `y`: can't be written as a configuration: u64 value was too large"#]],
    );
    let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
    check(
        FILE,
        overlay(&json!([{ "id": "x", "command": ["a"], "mcp_servers": deep }]), &[]),
        &expect![
            "agent `x`: can't be written as a configuration: cannot recurse further; max recursion depth met"
        ],
    );
    check(
        "nonsense",
        overlay(&json!([]), &["ui"]),
        &expect![[r#"
            error: key with no value, expected `=`
             --> ./eisen.toml:1:9
              |
            1 | nonsense
              |         ^"#]],
    );
}

#[test]
fn what_was_removed_comes_back_by_its_id() {
    let mut overlay = Overlay::default();
    let table = |value: Value| serde_json::from_value(value).unwrap();
    overlay.remove(&AgentId::new("ui"), true);
    assert!(!overlay.is_empty());
    overlay.add(table(json!({ "id": "ui" })));
    assert!(overlay.is_empty());
    overlay.add(table(json!({ "id": "new", "command": ["a"] })));
    overlay.remove(&AgentId::new("new"), false);
    assert!(overlay.is_empty());
}

#[test]
fn it_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = Overlay::path(folder.path(), "shop");
    assert!(Overlay::read(&path).unwrap().is_empty());
    let kept = overlay(
        &json!([{ "id": "x", "command": ["a\u{7f}\"\\\n"], "env": { "Ä ö": "" } }]),
        &["ui"],
    );
    survives(&path, || kept.write(&path).unwrap());
    assert_eq!(Overlay::read(&path).unwrap(), kept);
    survives(&path, || Overlay::default().write(&path).unwrap());
    assert!(!path.exists());
    let large = overlay(&json!([{ "id": "x", "prompt": "p".repeat(1 << 20) }]), &[]);
    assert!(large.write(&path).unwrap_err().to_string().contains("1024 KiB"));
    std::fs::create_dir(&path).unwrap();
    assert!(Overlay::read(&path).is_err());
    std::fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(Overlay::read(&path).is_err());
}
