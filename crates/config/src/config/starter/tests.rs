#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::config::check::{Kernel, check, hints};
use crate::config::{Config, Surroundings};

/// Writes these files, and these programs on a PATH; returns the text of the starter, and what
/// `check` warns of in it.
fn started(files: &[&str], programs: &[&str]) -> (String, Vec<String>) {
    started_with(files, programs, &[])
}

/// The same, with agents that are asked for.
fn started_with(files: &[&str], programs: &[&str], agents: &[&str]) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let (workspace, bin) = (folder.path().join("shop"), folder.path().join("bin"));
    for file in files {
        let path = workspace.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if file.ends_with("ignore") { "dist\n" } else { "" }).unwrap();
    }
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::create_dir(&bin).unwrap();
    for program in programs {
        std::fs::write(bin.join(program), "").unwrap();
        std::fs::set_permissions(bin.join(program), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    let path = bin.to_str().unwrap();
    let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
    let text = match &agents[..] {
        [] => {
            let variable = |name: &str| (name == "PATH").then(|| path.to_owned());
            Starter::look(&workspace, &variable).text()
        }
        agents => Starter::divide(&workspace, path, agents).unwrap().text(),
    };
    let file = workspace.join("eisen.toml");
    std::fs::write(&file, &text).unwrap();
    let path = bin.to_str().unwrap().to_owned();
    let eisen_dir = folder.path().join("dir");
    let surroundings = Surroundings {
        variable: Box::new(move |name| (name == "PATH").then(|| path.clone())),
        program: "eisen-core".into(),
        eisen_dir: eisen_dir.clone(),
        try_out: Box::new(|_| Ok(true)),
        taken: std::collections::BTreeMap::new(),
    };
    let config = Config::compile(&file, text.clone(), &surroundings).0;
    let mut config = config.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    // The programs are not on the PATH of this process.
    for agent in &mut config.agents {
        agent.env.insert("PATH".to_owned(), bin.to_str().unwrap().to_owned());
    }
    let kernel = Kernel { holds: true, missing: Vec::new() };
    let hints = hints(&config, &eisen_dir);
    let report = check(&config, &kernel, "by looking", hints, &mut |_| {});
    (text, report.warnings().to_vec())
}

fn allowed(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("allowed = ")).collect()
}

#[test]
fn nobody_found_is_a_file_that_can_be_filled_in() {
    let (text, warnings) = started(&["src/a.rs"], &[]);
    assert!(text.contains("#profile = \"opencode\""), "{text}");
    assert_eq!(warnings, ["there is no agent: add `[[agents]]`"]);
    // With the `#` taken away the proposal is a whole agent.
    let (_, agent) = text.split_once("`command` of your own.\n").unwrap();
    let agent: Vec<&str> = agent.lines().map(|line| line.trim_start_matches('#')).collect();
    let parsed: toml::Table = agent.join("\n").parse().unwrap();
    assert!(built_in().contains_key(parsed["agents"][0]["profile"].as_str().unwrap()));
}

#[test]
fn the_agents_that_are_found_work_on_the_whole_folder_together() {
    for programs in [&["opencode"][..], &["opencode", "gemini", "claude-code-acp", "goose"]] {
        let (text, warnings) = started(&["src/a.rs", "docs/b.md", ".git/config"], programs);
        assert_eq!(warnings, [""; 0], "{text}");
        assert!(text.lines().count() <= 20, "{text}");
        assert_eq!(text.matches("[[agents]]").count(), programs.len().min(3), "{text}");
        assert_eq!(text.contains("[conflicts]"), programs.len() > 1, "{text}");
        for key in ["on_block = \"hold\"", "git = \"commit\"", "secrets = \"ask\""] {
            assert!(text.contains(key), "{text}");
        }
    }
}

#[test]
fn agents_that_are_logged_in_come_first() {
    let folder = tempfile::tempdir().unwrap();
    for program in ["claude-code-acp", "gemini", "goose", "opencode"] {
        let path = folder.path().join(program);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let variable = |name: &str| match name {
        "PATH" => Some(folder.path().display().to_string()),
        "HOME" => Some("/nonexistent".to_owned()),
        "GEMINI_API_KEY" => Some("key".to_owned()),
        _ => None,
    };
    let starter = Starter::look(folder.path(), &variable);
    assert_eq!(starter.agents[0].id, "gemini");
    assert_eq!((starter.agents.len(), starter.further.len()), (3, 1));
    let named = Starter::of(folder.path(), &variable, &["opencode".to_owned()]).unwrap();
    assert_eq!(named.agents[0].id, "opencode");
    assert_eq!(named.further, ["claude-code", "gemini", "goose"]);
    let error = Starter::of(folder.path(), &variable, &["kimi".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("installed: claude-code, gemini"), "{error}");
}

#[test]
fn every_agent_that_is_looked_for_says_how_it_is_had() {
    for known in crate::config::installed::known_agents() {
        assert!(!known.title.is_empty() && !known.programs.is_empty(), "{known:?}");
        assert!(!known.install.is_empty(), "{known:?}");
    }
}

#[test]
fn agents_that_are_asked_for_get_a_folder_each() {
    let files = ["src/ui/a", "src/api/b", "docs/c", "Makefile"];
    let (text, warnings) = started_with(&files, &["opencode"], &["ui", "api"]);
    assert_eq!(allowed(&text), [r#"["src/ui/**"]"#, r#"["src/api/**"]"#]);
    assert_eq!(text.matches("profile = \"opencode\"").count(), 2, "{text}");
    assert!(text.contains("id = \"ui\"") && text.contains("#agent = \"ui\""), "{text}");
    assert_eq!(warnings, [""; 0]);
    let (text, _) = started_with(&files, &["opencode", "goose"], &["x=docs", "ui"]);
    assert_eq!(allowed(&text), [r#"["docs/**"]"#, r#"["src/ui/**"]"#]);
    assert!(text.contains("profile = \"goose\"") && text.contains("profile = \"opencode\""));
}

#[test]
fn agents_that_can_t_be_divided_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["src/ui", "src/api", "docs"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("x"), "").unwrap();
    }
    for (agents, why) in [
        (&["web"][..], "there is no folder `web`; the folders are docs, src, src/api, src/ui"),
        (&["ui", "ui"], "two agents are named `ui`"),
        (&["src", "ui"], "src and src/ui would overlap"),
        (&["a=../x"], "`../x` is not a folder of the workspace"),
        (&["a="], "`` is not a folder"),
        (&["a=nothing"], "`nothing` is not a folder"),
        (&[""], "`` is not an agent id"),
        (&["orchestrator=docs"], "`orchestrator` is not an agent id"),
        (&["a b=docs"], "`a b` is not an agent id"),
    ] {
        let agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
        let error = Starter::divide(folder.path(), "", &agents).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }
}

#[test]
fn what_builds_need_is_written() {
    for (files, parts) in [
        (
            &["Cargo.toml", ".cargo/config.toml"][..],
            &[
                "build = [\"target\"]",
                "shared = [\"Cargo.lock*\"]",
                "\".cargo/**\", \"**/Cargo.toml\", \"**/*.rs\"",
            ][..],
        ),
        (
            &["package.json", "pnpm-lock.yaml"],
            &["build = [\"node_modules\"]", "shared = [\"pnpm-lock.yaml*\"]"],
        ),
        (&["package.json"], &["shared = [\"package-lock.json*\"]"]),
        (
            &["pyproject.toml", "poetry.lock", "go.mod"],
            &[
                "build = [\".venv\", \".pytest_cache\"]",
                "shared = [\"poetry.lock*\", \"go.sum*\"]",
                "by Python, Go read",
            ],
        ),
        (&["settings.gradle.kts"], &["build = [\".gradle\", \"build\"]"]),
        (&["pom.xml"], &["build = [\"target\"]", "**/pom.xml"]),
        (&["Makefile", "CMakeLists.txt"], &["build = [\"build\"]", "CMakeLists.txt"]),
    ] {
        let files: Vec<&str> = files.iter().copied().chain(["ui/x", "api/y"]).collect();
        let (text, warnings) = started_with(&files, &["opencode"], &["ui", "api"]);
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(warnings, [""; 0], "{text}");
    }
    // Who may write everything needs nothing.
    let (text, _) = started(&["Cargo.toml", "src/a.rs"], &["opencode"]);
    assert!(!text.contains("build = "), "{text}");
}

#[test]
fn an_agent_without_its_adapter_is_named() {
    let parts = ["a", "b"];
    let (text, _) = started_with(&["a/x", "b/y"], &["claude", "codex", "opencode"], &parts);
    for part in ["Claude Code is here", "Codex is here", "npm install"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let (text, _) = started_with(&["a/x", "b/y"], &["claude", "claude-code-acp"], &parts);
    assert!(!text.contains("is here"), "{text}");
}
