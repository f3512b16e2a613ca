//! Knows which crate a room is in: log filters name all of them by the program's own name.

/// The program's name in a log filter.
const PROGRAM: &str = "eisen_core";

/// The crates below the program, with their rooms.
const CRATES: [(&str, &[&str]); 16] = [
    ("eisen_agents", &["agent", "client_host", "proxy", "slots", "supervisor"]),
    ("eisen_base", &["acp", "bus", "ignored", "kept", "line", "model", "task"]),
    ("eisen_config", &["config", "learn"]),
    ("eisen_export", &["alert", "metrics", "otlp", "post", "streams", "telemetry"]),
    ("eisen_graph", &["graph", "watch"]),
    ("eisen_memory", &["changes", "folder", "journal", "session", "undo"]),
    ("eisen_port", &["gateway", "mcp", "replay", "serve"]),
    ("eisen_protocols", &["extract", "plugin", "remote", "scripted"]),
    ("eisen_providers", &["counting", "endpoint", "model_server", "provider"]),
    (
        "eisen_runtime",
        &[
            "access",
            "app",
            "branches",
            "care",
            "console",
            "failover",
            "helpers",
            "home",
            "jobs",
            "kernel",
            "learned_zones",
            "notes",
            "program",
            "providers",
            "team_file",
            "team_state",
            "tiers",
            "turn",
        ],
    ),
    ("eisen_sandbox", &["confine", "process", "sandbox", "zone"]),
    ("eisen_scripts", &["script"]),
    ("eisen_team", &["budget", "capture", "conflicts", "routing", "preview", "tasks", "tracker"]),
    ("eisen_trees", &["landing", "lifecycle", "recovery", "repository", "review", "tree"]),
    ("eisen_web", &["hub", "web"]),
    ("eisen_wire", &["runs", "tokens", "view", "wire"]),
];

/// Rooms that had another name: filters with the old one go on working.
const RENAMED: [(&str, &str); 1] = [("showing", "preview")];

/// Puts the names of crates into a log filter: `eisen_core` stands for all, and `eisen_core::ROOM` for the
/// one that has the room.
pub(super) fn log_filter(filter: &str) -> String {
    let directives = filter.split(',').flat_map(|directive| {
        let end = directive.find(['=', '[']).unwrap_or(directive.len());
        let (target, rest) = directive.split_at(end);
        let mut targets = vec![target.to_owned()];
        if let Some(path) = target.trim().strip_prefix(PROGRAM) {
            match path.strip_prefix("::") {
                Some(path) => targets = vec![of_room(path)],
                None if path.is_empty() => targets.extend(CRATES.map(|(name, _)| name.to_owned())),
                None => {}
            }
        }
        targets.into_iter().map(move |target| target + rest)
    });
    directives.collect::<Vec<_>>().join(",")
}

fn of_room(path: &str) -> String {
    // The rooms beside it were parts of `app`.
    if path == "app" {
        return "eisen_runtime".to_owned();
    }
    let room = room_of(path);
    let below = &path[room.len()..];
    let room = RENAMED.iter().find(|(old, _)| *old == room).map_or(room, |(_, new)| *new);
    format!("{}::{room}{below}", crate_of(room).unwrap_or(PROGRAM))
}

fn room_of(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}

fn crate_of(room: &str) -> Option<&'static str> {
    CRATES.iter().find(|(_, rooms)| rooms.contains(&room)).map(|(name, _)| *name)
}

/// The rooms that a log filter names and that are not there.
pub(super) fn unknown_rooms(filter: &str) -> Vec<&str> {
    let targets = filter.split(',').map(|it| it.split(['=', '[']).next().unwrap_or_default());
    let paths = targets.filter_map(|it| it.trim().strip_prefix(PROGRAM)?.strip_prefix("::"));
    let is_known = |room: &str| {
        room == "cli" || crate_of(room).is_some() || RENAMED.iter().any(|(old, _)| *old == room)
    };
    paths.map(room_of).filter(|room| !is_known(room)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_filter_by_the_programs_name_is_for_all_crates() {
        let of = |filter: &str| log_filter(filter);
        assert_eq!(of("debug"), "debug");
        assert_eq!(of("warn,notify=error"), "warn,notify=error");
        assert_eq!(of("eisen_core::zone=trace"), "eisen_sandbox::zone=trace");
        assert_eq!(of("eisen_core::proxy::relay"), "eisen_agents::proxy::relay");
        assert_eq!(of("eisen_core::app=info"), "eisen_runtime=info");
        assert_eq!(of("eisen_core::app::up"), "eisen_runtime::app::up");
        assert_eq!(of("eisen_core::showing::wanted=trace"), "eisen_team::preview::wanted=trace");
        assert_eq!(of("eisen_core::cli"), "eisen_core::cli");
        assert_eq!(of("eisen_core::bus[span]=info"), "eisen_base::bus[span]=info");
        let all: Vec<_> = CRATES.iter().map(|(name, _)| format!(",{name}=info")).collect();
        assert_eq!(of("eisen_core=info"), format!("eisen_core=info{}", all.concat()));
        assert_eq!(of("eisen_corer=info"), "eisen_corer=info");
    }

    #[test]
    fn a_room_that_is_not_there_is_named() {
        assert_eq!(
            unknown_rooms("warn,eisen_core::zoen=debug, eisen_core::x::y[s]"),
            ["zoen", "x"]
        );
        let known = "eisen_core=info,eisen_core::cli,eisen_core::zone::open=trace,eisen_core::app,eisen_core::showing,hyper::x";
        assert!(unknown_rooms(known).is_empty());
    }

    #[test]
    fn each_room_of_a_crate_is_known() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/crates");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let lib = std::fs::read_to_string(format!("{folder}/{name}/src/lib.rs")).unwrap();
            for room in lib.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
                let room = room.trim_end_matches(';');
                let of_room = of_room(&format!("{room}::x"));
                assert_eq!(of_room, format!("eisen_{name}::{room}::x"));
            }
        }
    }
}
