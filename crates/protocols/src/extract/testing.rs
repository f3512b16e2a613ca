//! A made-up workspace for tests, rooted at `/w` by default.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{Entry, Workspace};
use crate::model::fold;

#[derive(Debug)]
pub(crate) struct Sample {
    root: PathBuf,
    files: HashSet<PathBuf>,
    texts: HashMap<PathBuf, String>,
    missing: HashSet<PathBuf>,
}

impl Sample {
    pub(crate) fn new(files: &[&str]) -> Self {
        Self::at("/w", files)
    }

    /// `files` are relative to the root, or absolute.
    pub(crate) fn at(root: &str, files: &[&str]) -> Self {
        let root = PathBuf::from(root);
        let files = files.iter().map(|file| root.join(file)).collect();
        Self { root, files, texts: HashMap::new(), missing: HashSet::new() }
    }

    pub(crate) fn without(mut self, file: &str) -> Self {
        self.missing.insert(self.root.join(file));
        self
    }

    pub(crate) fn with_text(mut self, file: &str, text: &str) -> Self {
        self.texts.insert(self.root.join(file), text.to_owned());
        self
    }
}

impl Workspace for Sample {
    fn root(&self) -> &Path {
        &self.root
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let path = fold(path);
        let is_above = |file: &PathBuf| *file != path && file.starts_with(&path);
        if path == self.root || self.files.iter().any(is_above) {
            return Some(Entry::Folder);
        }
        self.files.contains(&path).then_some(Entry::File)
    }

    /// Files that agents say they have read are there, unless a test says that they are not.
    fn is_file(&self, path: &Path) -> bool {
        let path = fold(path);
        self.entry(&path) != Some(Entry::Folder) && !self.missing.contains(&path)
    }

    fn text(&self, path: &Path, longest: usize) -> Option<String> {
        self.texts.get(&fold(path)).filter(|text| text.len() <= longest).cloned()
    }

    fn is_ignored(&self, path: &Path) -> bool {
        path.components()
            .any(|part| [".git", "node_modules"].iter().any(|n| part.as_os_str() == *n))
    }
}
