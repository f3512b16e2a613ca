//! Build systems: how a workspace shows that it uses one, and which paths its builds need beyond
//! the zones of the agents.

use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

/// The needs of a workspace's builds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Builds {
    /// The names of the systems.
    pub(super) systems: Vec<&'static str>,
    /// Folders that builds create.
    pub(super) build: Vec<String>,
    /// Patterns of files that builds write.
    pub(super) shared: Vec<String>,
    /// Patterns of files that builds read.
    pub(super) readable: Vec<String>,
}

/// The table of build systems, `builds.toml`, which documents each field.
#[derive(Deserialize)]
struct SystemTable {
    systems: Vec<System>,
}

#[derive(Deserialize)]
struct System {
    name: String,
    signs: Vec<String>,
    build: Vec<String>,
    shared: Vec<String>,
    readable: Vec<String>,
}

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test reads it")]
static TABLE: LazyLock<SystemTable> =
    LazyLock::new(|| toml::from_str(include_str!("builds.toml")).expect("builds.toml is valid"));

/// The names of the folders that builds of any known system create.
pub fn build_folders() -> Vec<String> {
    let mut all: Vec<_> = TABLE.systems.iter().flat_map(|system| &system.build).cloned().collect();
    all.sort();
    all.dedup();
    all
}

impl Builds {
    /// Reads the top of a workspace.
    pub(super) fn look(workspace: &Path) -> Self {
        let mut builds = Self::default();
        let is_there_now = |pattern: &str| {
            let name = pattern.trim_end_matches("/**").trim_end_matches('*');
            workspace.join(name).exists()
        };
        let is_there =
            |system: &&System| system.signs.iter().any(|sign| workspace.join(sign).is_file());
        for system in TABLE.systems.iter().filter(is_there) {
            builds.systems.push(&system.name);
            add(&mut builds.build, &system.build);
            // The lock file identifies the package manager; without one it is the first.
            let locks: Vec<_> = system.shared.iter().filter(|lock| is_there_now(lock)).collect();
            let first = system.shared.first().filter(|_| locks.is_empty());
            add(&mut builds.shared, locks.into_iter().chain(first));
            let needed = |pattern: &&String| pattern.starts_with("**/") || is_there_now(pattern);
            add(&mut builds.readable, system.readable.iter().filter(needed));
        }
        // A file of that name does not belong to a build.
        builds.build.retain(|folder| !workspace.join(folder).is_file());
        builds
    }
}

fn add<'a>(list: &mut Vec<String>, more: impl IntoIterator<Item = &'a String>) {
    for one in more {
        if !list.contains(one) {
            list.push(one.clone());
        }
    }
}
