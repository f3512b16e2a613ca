//! Workspaces, and what is confined to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use eisen_core::confine::{Attempt, Confinement, Doorkeeper};
use eisen_core::model::Action;
use eisen_core::zone::{Bounds, Confine, GitAccess, Reach, Zone, ZoneSpec};
use tempfile::TempDir;
use tokio::sync::oneshot;

pub(crate) struct Place {
    /// Holds the workspace, and beside it what a supervisor keeps.
    folder: TempDir,
    workspace: PathBuf,
}

/// Lets nothing through that the bounds do not.
struct Keeper(Arc<Bounds>);

impl Doorkeeper for Keeper {
    fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.0)
    }

    fn passed(&self, path: Arc<str>, _: Action) {
        std::hint::black_box(path);
    }

    fn blocked(&self, _: Attempt, _: oneshot::Sender<bool>) {}
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        for name in ["workspace", "eisen", "private"] {
            fs::create_dir(real.join(name)).unwrap();
        }
        Self { folder, workspace: real.join("workspace") }
    }

    /// A tree of folders of twenty files each.
    pub(crate) fn with_files(count: usize) -> Self {
        let place = Self::new();
        for file in place.named(count) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("// {}\n", file.display()).repeat(20)).unwrap();
        }
        place
    }

    pub(crate) fn with_crate() -> Self {
        let place = Self::new();
        let manifest =
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        fs::write(place.workspace.join("Cargo.toml"), manifest).unwrap();
        fs::create_dir(place.workspace.join("src")).unwrap();
        let main =
            "fn main() {\n    println!(\"{:?}\", std::env::args().collect::<Vec<_>>());\n}\n";
        fs::write(place.workspace.join("src/main.rs"), main).unwrap();
        place
    }

    pub(crate) fn commit_all(&self) {
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "all"]] {
            let mut git = Command::new("git");
            let status = git.current_dir(&self.workspace).args(who).args(args).status().unwrap();
            assert!(status.success());
        }
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let private = self.workspace.with_file_name("private");
        [("TMPDIR".to_owned(), private.display().to_string())].into()
    }

    pub(crate) fn confinement(&self) -> Arc<Confinement> {
        self.walled(&Arc::new(bounds(&self.workspace)))
    }

    /// Builds the wall of bounds, as each start of an agent does: they come with its configuration.
    pub(crate) fn walled(&self, bounds: &Arc<Bounds>) -> Arc<Confinement> {
        let keeper = Arc::new(Keeper(Arc::clone(bounds)));
        Arc::new(Confinement::build(bounds, &self.outside(), keeper).unwrap())
    }

    /// One in whose workspace no rule grants anything: the doorbell opens each file.
    pub(crate) fn confinement_without_rules(&self) -> Arc<Confinement> {
        let bounds = Arc::new(bounds(&self.workspace));
        let mut rules = bounds.rules();
        rules.retain(|rule| !rule.path.starts_with(&self.workspace));
        let keeper = Arc::new(Keeper(bounds));
        Arc::new(Confinement::behind(&rules, &self.outside(), keeper).unwrap())
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("eisen")
    }

    fn named(&self, count: usize) -> impl Iterator<Item = PathBuf> {
        (0..count).map(|number| {
            let folder = number / 20;
            self.workspace.join(format!("src/room_{}/part_{folder}/{number}.rs", folder % 10))
        })
    }
}

/// Everything in the workspace but what is usually kept from agents.
pub(crate) fn bounds(workspace: &Path) -> Bounds {
    let beside = |name| workspace.with_file_name(name);
    let zone = Zone::compile(&ZoneSpec {
        workspace: workspace.to_owned(),
        allowed: vec!["**".to_owned()],
        shared: Vec::new(),
        denied: vec!["**/.env".to_owned()],
        readable: Vec::new(),
        git: GitAccess::Commit,
        terminals: true,
        eisen_dir: beside("eisen"),
        sealed: Vec::new(),
        journals: Vec::new(),
    });
    let reach = Reach {
        confine: Confine::Workspace,
        private: beside("private"),
        privates: None,
        readable: Vec::new(),
        writable: Vec::new(),
        sockets: Vec::new(),
    };
    Bounds::new(Arc::new(zone.unwrap()), reach).unwrap()
}

/// The files of a workspace, in no order that a disk has them in.
pub(crate) fn files(workspace: &Path) -> Vec<PathBuf> {
    let (mut files, mut pending) = (Vec::new(), vec![workspace.join("src")]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let into = if entry.file_type().unwrap().is_dir() { &mut pending } else { &mut files };
            into.push(entry.path());
        }
    }
    files
}
