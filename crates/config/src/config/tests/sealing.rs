use std::path::{Path, PathBuf};

use super::Bench;

/// The settings that are sealed for each agent of a file.
fn sealed(text: &str) -> Vec<(String, Vec<PathBuf>)> {
    let agents = Bench::new().compile(text).unwrap().agents.into_iter();
    agents.map(|agent| (agent.id.to_string(), agent.confined.sealed.to_vec())).collect()
}

/// Hermes makes `hooks` and `SOUL.md` at each start, and opens no session if it can't.
#[test]
fn hermes_has_what_it_makes_at_its_start() {
    let config = Bench::new()
        .compile(
            "[[agents]]\nid = \"a\"\nprofile = \"hermes\"\nenv = { HERMES_HOME = \"/h\" }\n\
             [[agents]]\nid = \"b\"\nprofile = \"mine\"\n\
             [profiles.mine]\nbase = \"hermes\"\nmade_settings = []\n",
        )
        .unwrap();
    let made = |at: usize| {
        let made = config.agents[at].confined.made.iter();
        made.map(|place| place.real.clone()).collect::<Vec<_>>()
    };
    assert_eq!(made(0), [Path::new("/home/user/.hermes/hooks"), Path::new("/h/hooks")]);
    assert!(made(1).is_empty());
    let sealed = &config.agents[0].confined.sealed;
    assert!(sealed.contains(&PathBuf::from("/h/hooks")));
    assert!(!sealed.contains(&PathBuf::from("/h/SOUL.md")));
    for wrong in ["~/x", "../x", "/x"] {
        let text = format!("[profiles.mine]\nbase = \"hermes\"\nmade_settings = [\"{wrong}\"]\n");
        let error = Bench::new().compile(&text).unwrap_err().to_string();
        assert!(error.contains("is not a relative path"), "{error}");
    }
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
