//! Resolves the paths that a call names, in its fields or only in its title.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::ToolKind;

use super::ToolCallState;
use crate::extract::Workspace;
use crate::extract::shell::{self, ShellCommand};
use crate::model::fold;

/// Words of a title to look up on disk.
const MOST_WORDS: usize = 32;

impl ToolCallState {
    /// The written paths, whole: some diffs have only the bare name of a file.
    pub(super) fn written(&self) -> impl Iterator<Item = &String> {
        self.written.iter().map(|path| self.whole(path))
    }

    pub(super) fn whole<'a>(&'a self, path: &'a String) -> &'a String {
        let mut named = self.locations.iter().chain(&self.paths);
        let is_it = |named: &&String| named.rsplit('/').next() == Some(path);
        if path.contains('/') { path } else { named.find(is_it).unwrap_or(path) }
    }

    /// The paths of its input, except bare names of files whose whole path another field has.
    pub(super) fn paths(
        &self,
        cwd: &Path,
        workspace: &dyn Workspace,
    ) -> impl Iterator<Item = &String> {
        let whole = self.locations.iter().chain(&self.written);
        let names: HashSet<_> = whole.filter_map(|path| Some(path.rsplit_once('/')?.1)).collect();
        self.paths
            .iter()
            .filter(move |path| !names.contains(path.as_str()) || workspace.exists(&cwd.join(path)))
    }

    /// The command line of an `execute` call, from its title if its input has none.
    pub(super) fn title_command(
        &self,
        cwd: &Path,
        workspace: &dyn Workspace,
    ) -> Vec<shell::NamedFile> {
        let Some(title) = &self.title else { return Vec::new() };
        if self.kind != Some(ToolKind::Execute) || self.has_command {
            return Vec::new();
        }
        let line = quoted(title).unwrap_or(title).trim().trim_start_matches("$ ").to_owned();
        shell::read(&ShellCommand::Line(line), &self.folder(cwd), workspace).named
    }

    /// The existing files in the title (prose) of a call that names none elsewhere.
    pub(super) fn title_files(&self, cwd: &Path, workspace: &dyn Workspace) -> Vec<PathBuf> {
        let by_kind = matches!(self.kind, Some(ToolKind::Read | ToolKind::Edit | ToolKind::Delete));
        let names = [&self.locations, &self.paths, &self.written, &self.folders];
        let Some(title) = &self.title else { return Vec::new() };
        if !by_kind || self.has_command || names.iter().any(|names| !names.is_empty()) {
            return Vec::new();
        }
        let around = |c: char| c.is_whitespace() || "`'\"()[]{}<>,;".contains(c);
        let words = title.split(around).map(|word| word.trim_end_matches(['.', ':']));
        let files = words.filter(|word| word.contains(['/', '.']) && !word.contains('\0'));
        let files = files.take(MOST_WORDS).map(|word| locate(Path::new(word), cwd, workspace));
        let is_file = |path: &PathBuf| workspace.exists(path) && !workspace.is_dir(path);
        files.map(|path| fold(&path)).filter(is_file).collect()
    }
}

/// Resolves a path of a tool call. Many tools expand `~`.
pub(super) fn absolute(path: &Path, cwd: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => cwd.join(path),
    }
}

/// Like [`absolute`], for paths that may end in line numbers.
pub(super) fn locate(path: &Path, cwd: &Path, workspace: &dyn Workspace) -> PathBuf {
    let whole = absolute(path, cwd);
    let cut = path.to_str().and_then(without_lines).map(|cut| absolute(Path::new(cut), cwd));
    let is_meant = |cut: &PathBuf| !workspace.exists(&whole) && workspace.exists(cut);
    cut.filter(is_meant).unwrap_or(whole)
}

/// The path before `:12`, `:12:3`, `:12-40` or `#L12-L40`; None without such an end.
fn without_lines(path: &str) -> Option<&str> {
    let of_lines = |c: char| c.is_ascii_digit() || matches!(c, ':' | '-' | 'L');
    let cut = path.trim_end_matches(of_lines);
    let lines = &path[cut.len()..];
    match cut.strip_suffix('#') {
        Some(cut) => lines.starts_with('L').then_some(cut),
        None => lines.starts_with(':').then_some(cut),
    }
}

/// The text between the only backticks of a title.
fn quoted(title: &str) -> Option<&str> {
    let mut parts = title.split('`');
    let (_, quoted, _) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_after_a_path_are_cut_off() {
        for (path, cut) in [
            ("a.rs:12", Some("a.rs")),
            ("a.rs:12:3", Some("a.rs")),
            ("a.rs:12-40", Some("a.rs")),
            ("a.rs#L1-L4", Some("a.rs")),
            ("a.rs", None),
            ("a-1", None),
            ("a#1", None),
            ("v1.2-3", None),
        ] {
            assert_eq!(without_lines(path), cut, "{path}");
        }
    }

    #[test]
    fn only_one_quotation_is_the_command() {
        assert_eq!(quoted("Run `cat a` now"), Some("cat a"));
        assert_eq!(quoted("`a` and `b`"), None);
        assert_eq!(quoted("cat a"), None);
    }
}
