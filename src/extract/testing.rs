//! A workspace that tests make up, rooted at `/w` unless told otherwise.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Workspace;
use crate::model::fold;

#[derive(Debug)]
pub(crate) struct Sample {
    root: PathBuf,
    files: HashSet<PathBuf>,
    texts: HashMap<PathBuf, String>,
}

impl Sample {
    pub(crate) fn new(files: &[&str]) -> Self {
        Self::at("/w", files)
    }

    /// `files` are relative to the root, or absolute.
    pub(crate) fn at(root: &str, files: &[&str]) -> Self {
        let root = PathBuf::from(root);
        let files = files.iter().map(|file| root.join(file)).collect();
        Self { root, files, texts: HashMap::new() }
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

    fn exists(&self, path: &Path) -> bool {
        let path = fold(path);
        self.files.contains(&path) || self.is_dir(&path)
    }

    fn is_dir(&self, path: &Path) -> bool {
        let path = fold(path);
        path == self.root || self.files.iter().any(|file| *file != path && file.starts_with(&path))
    }

    fn text(&self, path: &Path, longest: usize) -> Option<String> {
        self.texts.get(&fold(path)).filter(|text| text.len() <= longest).cloned()
    }

    fn is_ignored(&self, path: &Path) -> bool {
        path.components()
            .any(|part| [".git", "node_modules"].iter().any(|n| part.as_os_str() == *n))
    }
}
