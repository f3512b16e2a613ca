//! Build systems: how a workspace shows that it uses one, and which paths its builds need beyond
//! the zones of the agents.

use std::path::Path;

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

struct System {
    name: &'static str,
    /// Files at the top that identify it; any of them is enough.
    signs: &'static [&'static str],
    build: &'static [&'static str],
    shared: &'static [&'static str],
    readable: &'static [&'static str],
}

const SYSTEMS: [System; 7] = [
    System {
        name: "cargo",
        signs: &["Cargo.toml"],
        build: &["target"],
        shared: &["Cargo.lock*"],
        readable: &[".cargo/**", "**/Cargo.toml", "**/*.rs"],
    },
    System {
        name: "npm, pnpm or yarn",
        signs: &["package.json"],
        build: &["node_modules"],
        // Including temporary files that are renamed over them.
        shared: &["package-lock.json*", "pnpm-lock.yaml*", "yarn.lock*", "bun.lock*"],
        readable: &[
            ".npmrc",
            ".yarnrc*",
            ".yarn/**",
            "**/{package,tsconfig,tsconfig.*}.json",
            "**/*.{js,mjs,cjs,jsx,ts,mts,cts,tsx,vue,svelte,css,scss}",
            "**/dist/**",
            "**/node_modules/**",
        ],
    },
    System {
        name: "Python",
        signs: &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "uv.lock"],
        build: &[".venv", ".pytest_cache"],
        shared: &["uv.lock*", "poetry.lock*", "pdm.lock*", "Pipfile.lock*"],
        readable: &[
            ".python-version",
            "**/*.{py,pyi,toml,cfg}",
            "**/requirements*.txt",
            "**/*.egg-info/**",
        ],
    },
    System {
        name: "Go",
        signs: &["go.mod", "go.work"],
        build: &[],
        shared: &["go.sum*", "go.work.sum*"],
        readable: &["vendor/**", "**/go.{mod,sum,work}", "**/*.{go,s,h}"],
    },
    System {
        name: "Gradle",
        signs: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        build: &[".gradle", "build"],
        shared: &["gradle.lockfile*"],
        readable: &[
            "gradle/**",
            "buildSrc/**",
            "**/*.{gradle,kts,properties,java,kt}",
            "**/build/**",
        ],
    },
    System {
        name: "Maven",
        signs: &["pom.xml"],
        build: &["target"],
        shared: &[],
        readable: &[".mvn/**", "**/pom.xml", "**/*.{java,kt,properties}", "**/target/**"],
    },
    System {
        name: "make or CMake",
        signs: &["Makefile", "makefile", "GNUmakefile", "CMakeLists.txt"],
        build: &["build"],
        shared: &[],
        readable: &[
            "**/{Makefile,makefile,GNUmakefile,CMakeLists.txt}",
            "**/*.{mk,cmake,c,cc,cpp,cxx,h,hh,hpp,hxx,inc}",
        ],
    },
];

impl Builds {
    /// Reads the top of a workspace.
    pub(super) fn look(workspace: &Path) -> Self {
        let mut builds = Self::default();
        let add = |list: &mut Vec<String>, more: &[&str]| {
            for one in more {
                if !list.iter().any(|known| known == one) {
                    list.push((*one).to_owned());
                }
            }
        };
        let is_there_now = |pattern: &str| {
            let name = pattern.trim_end_matches("/**").trim_end_matches('*');
            workspace.join(name).exists()
        };
        let is_there =
            |system: &&System| system.signs.iter().any(|sign| workspace.join(sign).is_file());
        for system in SYSTEMS.iter().filter(is_there) {
            builds.systems.push(system.name);
            add(&mut builds.build, system.build);
            // The lock file identifies the package manager; without one it is the first.
            let locks = || system.shared.iter().filter(|lock| is_there_now(lock)).copied();
            let locks: Vec<&str> = match locks().next() {
                Some(_) => locks().collect(),
                None => system.shared.iter().take(1).copied().collect(),
            };
            add(&mut builds.shared, &locks);
            let needed = |pattern: &&&str| pattern.starts_with("**/") || is_there_now(pattern);
            add(
                &mut builds.readable,
                &system.readable.iter().filter(needed).copied().collect::<Vec<_>>(),
            );
        }
        // A file of that name does not belong to a build.
        builds.build.retain(|folder| !workspace.join(folder).is_file());
        builds
    }
}
