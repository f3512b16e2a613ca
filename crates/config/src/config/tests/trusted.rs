//! Places of profiles, and where they lead.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use tempfile::TempDir;

use super::surroundings;
use crate::config::{Config, Surroundings, TrustError, TrustedPlaces};
use crate::kept::power_cut::survives;
use crate::model::Action;
use crate::zone::{Grant, MovedPlace, Rule};

/// A home with an agent's state, and a file that is no agent's.
struct Home {
    _folder: TempDir,
    home: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        fs::create_dir_all(home.join(".claude")).unwrap();
        fs::create_dir_all(home.join("ws")).unwrap();
        fs::write(home.join(".claude.json"), "{}").unwrap();
        fs::write(home.join("notes"), "").unwrap();
        fs::create_dir(home.join("eisen")).unwrap();
        Self { _folder: folder, home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    fn compile(&self) -> Config {
        self.compile_with("profile = \"claude-code\"")
    }

    /// With these keys of the agent.
    fn compile_with(&self, keys: &str) -> Config {
        let home = self.home.to_str().unwrap().to_owned();
        let surroundings = Surroundings {
            variable: Box::new(move |name| (name == "HOME").then(|| home.clone())),
            eisen_dir: self.path("eisen"),
            ..surroundings()
        };
        let text =
            format!("agents = [{{ id = \"a\", {keys}, zone = {{ confine = \"strict\" }} }}]");
        let file = self.path("ws/eisen.toml");
        Config::compile(&file, text, &surroundings).0.unwrap_or_else(|it| panic!("{it}"))
    }

    /// Starts the agent, as a person does. The error is the place for which it does not start.
    fn start(&self) -> Result<Config, MovedPlace> {
        let config = self.compile();
        TrustedPlaces::keep(&self.path("eisen"), config.agents.iter()).unwrap();
        match config.agents[0].bounds().unwrap().moved() {
            Some(moved) => Err(moved),
            None => Ok(config),
        }
    }

    fn may(&self, name: &str) -> bool {
        self.compile().agents[0].bounds().unwrap().judge(&self.path(name), Action::Write).is_ok()
    }

    fn replace_by_link(&self, name: &str, to: &str) {
        let _ = fs::remove_file(self.path(name));
        symlink(self.path(to), self.path(name)).unwrap();
    }

    fn trust(&self, name: &str) -> bool {
        TrustedPlaces::trust(&self.path("eisen"), &self.path(name), |_| true).unwrap()
    }
}

#[test]
fn a_place_that_becomes_a_link_is_not_granted() {
    for to in ["", "notes", "..", "gone"] {
        let home = Home::new();
        home.start().unwrap();
        // Agents save by renaming; what a place has, and what it is, does not count.
        fs::write(home.path("new"), "{1}").unwrap();
        fs::rename(home.path("new"), home.path(".claude.json")).unwrap();
        home.start().unwrap();
        home.replace_by_link(".claude.json", to);
        assert!(!home.may("notes") && !home.may("any/where"), "{to}");
        let moved = home.start().unwrap_err();
        let said = moved.to_string();
        let name = home.path(".claude.json").display().to_string();
        for part in [&*name, "eisen-core team trust-place", &*format!("`{name}` leads to `")] {
            assert!(said.contains(part), "{said}");
        }
        // Nothing but a person changes that.
        assert_eq!(home.start().unwrap_err(), moved);
        if to == "notes" {
            survives(&home.path("eisen/places.json"), || home.trust(".claude.json"));
            home.start().unwrap();
            assert!(home.may("notes"));
        }
    }
}

#[test]
fn links_that_were_there_at_first_hold_as_long_as_they_lead_there() {
    let home = Home::new();
    fs::create_dir_all(home.path("dotfiles/claude")).unwrap();
    fs::write(home.path("dotfiles/claude.json"), "{}").unwrap();
    fs::remove_dir(home.path(".claude")).unwrap();
    home.replace_by_link(".claude.json", "dotfiles/claude.json");
    home.replace_by_link(".claude", "dotfiles/claude");
    for _ in 0..2 {
        home.start().unwrap();
        assert!(home.may("dotfiles/claude/x") && home.may("dotfiles/claude.json"));
        assert!(!home.may("dotfiles/x"));
    }
    // A folder on the way that leads elsewhere is no other case.
    fs::rename(home.path("dotfiles"), home.path("older")).unwrap();
    symlink(home.path(""), home.path("dotfiles")).unwrap();
    assert!(home.start().is_err() && !home.may("claude/x"));
}

#[test]
fn a_link_to_the_home_or_above_is_never_trusted_by_a_start() {
    for to in ["", "..", "../.."] {
        let home = Home::new();
        home.replace_by_link(".claude.json", to);
        for _ in 0..2 {
            let moved = home.start().unwrap_err();
            assert_eq!(moved.place.name, home.path(".claude.json"));
            assert!(!home.may("notes"));
        }
        // As a file it is one as any other.
        fs::remove_file(home.path(".claude.json")).unwrap();
        home.start().unwrap();
        assert!(home.may(".claude.json"));
    }
    // A home that is itself a link is no reason.
    let home = Home::new();
    let link = home.home.with_file_name("link");
    symlink(&home.home, &link).unwrap();
    let linked = Home { _folder: tempfile::tempdir().unwrap(), home: link };
    linked.start().unwrap();
    assert!(
        home.compile().agents[0].confined.writable.iter().any(|it| it.real == home.path(".claude"))
    );
}

#[test]
fn what_was_not_there_at_first_is_trusted_by_its_name() {
    let home = Home::new();
    fs::remove_file(home.path(".claude.json")).unwrap();
    home.start().unwrap();
    home.replace_by_link(".claude.json", "notes");
    assert!(home.start().is_err() && !home.may("notes"));
}

#[test]
fn a_file_of_trust_that_makes_no_sense_starts_nothing() {
    for text in ["", "[]", "{\"places\":{\"x\":\"/y\"}}", "{\"places\":{}, \"more\": 1}"] {
        let home = Home::new();
        fs::write(home.path("eisen/places.json"), text).unwrap();
        let read = TrustedPlaces::read(&home.path("eisen"));
        assert!(matches!(read, Err(TrustError::Unusable { .. })), "{text}");
    }
    let home = Home::new();
    symlink(home.path("ring"), home.path("ring")).unwrap();
    let trusted = TrustedPlaces::trust(&home.path("eisen"), &home.path("ring"), |_| true);
    assert!(matches!(trusted, Err(TrustError::Nowhere(_))));
}

/// The home holds all that is the user's, and a program may lie right in it, or be found there.
#[test]
fn a_folder_of_programs_that_is_the_home_or_above_grants_the_program_alone() {
    let home = Home::new();
    let (root, above) = (home.home.display(), home.home.parent().unwrap().to_owned());
    for program in [home.path("tool"), above.join("tool")] {
        fs::write(&program, "").unwrap();
        fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    }
    symlink(&home.home, home.path("up")).unwrap();
    symlink(&above, above.join("over")).unwrap();
    fs::create_dir_all(home.path("lib")).unwrap();
    fs::write(home.path("lib/x"), "").unwrap();
    let (in_home, over) = (home.path("tool"), above.join("tool"));
    for (keys, program) in [
        (format!("command = [\"{root}/tool\"]"), Some(&in_home)),
        (format!("command = [\"{root}/up/tool\"]"), Some(&in_home)),
        (format!("command = [\"{root}/../tool\"]"), Some(&over)),
        (format!("command = [\"{root}/ws/../../over/tool\"]"), Some(&over)),
        (format!("command = [\"{root}/tool\"], env = {{ HOME = \"/srv/x\" }}"), Some(&in_home)),
        (format!("command = [\"tool\"], env = {{ PATH = \"{root}/up\" }}"), Some(&in_home)),
        (format!("command = [\"{root}/.claude\"]"), None),
        (format!("command = [\"x\"], env = {{ PATH = \"{root}:{root}/up:{root}/..:/\" }}"), None),
        (format!("command = [\"x\"], env = {{ PATH = \"{root}/../over/home/bin\" }}"), None),
    ] {
        let config = home.compile_with(&keys);
        let bounds = config.agents[0].bounds().unwrap();
        let (rules, places) = (bounds.rules(), ["notes", ".claude/x", "lib/x", "tool", "../tool"]);
        for path in places.map(|name| home.path(name).canonicalize().unwrap_or(home.path(name))) {
            let is_granted = Some(&path) == program;
            assert_eq!(bounds.judge(&path, Action::Read).is_ok(), is_granted, "{keys}: {path:?}");
            let granting = |rule: &&Rule| rule.grant >= Grant::Read && path.starts_with(&rule.path);
            assert_eq!(rules.iter().any(|rule| granting(&rule)), is_granted, "{keys}: {path:?}");
        }
        assert_eq!(bounds.moved(), None, "{keys}");
    }
}
