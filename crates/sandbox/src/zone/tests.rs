#![allow(clippy::unwrap_used)]

mod bounds;
mod cwd;
mod evasions;
mod git;
mod journals;
mod open;
mod own_tree;
mod patterns;
mod properties;
mod search;
mod wall;
mod wall_properties;
mod why;

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// A temporary folder `@` with a workspace `@/ws`, and `@/eisen` for `$EISEN_DIR`.
struct Bed {
    _dir: TempDir,
    root: PathBuf,
}

impl Bed {
    /// Entries below `@`: `folder/`, `file`, `link -> target`, `file = content`. The folders above
    /// an entry are made, `@` in targets and contents stands for the temporary folder.
    fn new(entries: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let bed = Self { _dir: dir, root };
        bed.add(&["ws/", "eisen/run/team.json"]);
        bed.add(entries);
        bed
    }

    fn add(&self, entries: &[&str]) {
        for entry in entries {
            let (name, link) = entry.split_once(" -> ").unwrap_or((entry, ""));
            let (name, content) = name.split_once(" = ").unwrap_or((name, ""));
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !link.is_empty() {
                symlink(self.expand(link), path).unwrap();
            } else if name.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::write(path, self.expand(content)).unwrap();
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn expand(&self, text: &str) -> String {
        text.replace('@', self.root.to_str().unwrap())
    }

    fn shorten(&self, text: &str) -> String {
        text.replace(self.root.to_str().unwrap(), "@")
    }

    /// A zone with `allowed`, and nothing else.
    fn spec(&self, allowed: &[&str]) -> ZoneSpec {
        ZoneSpec::new(self.path("ws"), self.globs(allowed), self.path("eisen"))
    }

    fn globs(&self, globs: &[&str]) -> Vec<String> {
        globs.iter().map(|glob| self.expand(glob)).collect()
    }

    fn zone(&self, allowed: &[&str]) -> Zone {
        Zone::compile(&self.spec(allowed)).unwrap()
    }

    /// A line a path: what reading and writing it comes to.
    fn verdicts(&self, zone: &Zone, paths: &[&str]) -> String {
        let mut table = String::new();
        for path in paths {
            let full = self.expand(path);
            let [read, write] = [Action::Read, Action::Write]
                .map(|action| self.verdict(&zone.check(Path::new(&full), action)));
            let both = if read == write { read } else { format!("read {read}, write {write}") };
            writeln!(table, "{path:?} {both}").unwrap();
        }
        table
    }

    fn verdict(&self, verdict: &Result<Permit, Denied>) -> String {
        let (word, path) = match verdict {
            Ok(permit) => ("→", permit.real.to_str().unwrap()),
            Err(denied) => ("DENIED", &*denied.path),
        };
        let path = path.replace(self.root.to_str().unwrap(), "@");
        format!("{word} {}", path.escape_debug())
    }
}
