use std::path::{Path, PathBuf};

use super::Bench;

/// The settings that are sealed for each agent of a file.
fn sealed(text: &str) -> Vec<(String, Vec<PathBuf>)> {
    let agents = Bench::new().compile(text).unwrap().agents.into_iter();
    agents.map(|agent| (agent.id.to_string(), agent.confined.sealed.to_vec())).collect()
}

#[test]
fn settings_are_sealed_for_all_but_who_has_to_write_them() {
    let agents = sealed(
        "[[agents]]\nid = \"claude\"\nprofile = \"claude-code\"\nenv = { CLAUDE_CONFIG_DIR = \"/c\" }\n\
         [[agents]]\nid = \"other\"\nprofile = \"mine\"\n\
         [[agents]]\nid = \"bare\"\ncommand = [\"bare\"]\n\
         [profiles.mine]\nbase = \"codex\"\nsettings = [\"x\"]\nown_settings = [\"~/y\"]\n",
    );
    let sealed_for = |place: &str| {
        let has = |(id, sealed): &(String, Vec<PathBuf>)| {
            sealed.iter().any(|path| path == Path::new(place)).then(|| id.clone())
        };
        agents.iter().filter_map(has).collect::<Vec<_>>()
    };
    for place in [
        "/home/user/.gitconfig",
        "/home/user/.claude/settings.json",
        "/c/settings.json",
        "/home/user/.codex/AGENTS.md",
        "/home/user/.codex/x",
        "/home/user/.config/opencode/opencode.json",
    ] {
        assert_eq!(sealed_for(place), ["claude", "other", "bare"], "{place}");
    }
    for place in ["/home/user/.claude.json", "/c/.claude.json", "/home/user/.claude/plugins"] {
        assert_eq!(sealed_for(place), ["other", "bare"], "{place}");
    }
    assert_eq!(sealed_for("/home/user/y"), ["claude", "bare"]);
    // State and logins, and what is a file.
    for place in [
        "/home/user/.claude",
        "/home/user/.claude/.credentials.json",
        "/home/user/.claude.json/settings.json",
    ] {
        assert!(sealed_for(place).is_empty(), "{place}");
    }
}
