//! Patterns that count their matches, to find those without any. Access is judged by the zone.

use globset::{Candidate, GlobSet, GlobSetBuilder};

use crate::zone::compile_glob;

/// A list of patterns, each with the number of files it matched.
#[derive(Debug)]
pub(super) struct Patterns {
    set: GlobSet,
    pub(super) used: Vec<PatternUse>,
    /// A pattern that matches a folder also covers its content.
    deep: bool,
    /// Kept between files, so that a walk allocates nothing.
    matched: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct PatternUse {
    pub(super) pattern: String,
    pub(super) files: u64,
    /// The pattern matched entries that are not counted: ignored files, or a folder with its content.
    uncounted: bool,
    /// The pattern matches a folder, and nothing in it.
    pub(super) folder: bool,
}

impl Patterns {
    /// Compiles patterns that were checked when the configuration was read. If they are too many
    /// for one set, none matches, which the report shows.
    pub(super) fn granting(patterns: &[String]) -> Self {
        Self::new(patterns, false)
    }

    /// Like [`Patterns::granting`], for patterns that deny: those cover everything below a match.
    pub(super) fn denying(patterns: &[String]) -> Self {
        Self::new(patterns, true)
    }

    fn new(patterns: &[String], deep: bool) -> Self {
        let mut set = GlobSetBuilder::new();
        let mut used = Vec::new();
        for pattern in patterns {
            if let Ok(glob) = compile_glob(pattern) {
                set.add(glob);
                used.push(PatternUse::new(pattern));
            }
        }
        Self { set: set.build().unwrap_or_default(), used, deep, matched: Vec::new() }
    }

    /// Counts a file for every pattern that matches it; returns the first of them.
    pub(super) fn count(&mut self, file: &Candidate<'_>) -> Option<usize> {
        self.set.matches_candidate_into(file, &mut self.matched);
        for index in &self.matched {
            self.used[*index].files += 1;
        }
        self.matched.first().copied()
    }

    /// Records an ignored file for every pattern that matches it.
    pub(super) fn note_ignored(&mut self, file: &Candidate<'_>) {
        self.set.matches_candidate_into(file, &mut self.matched);
        for index in &self.matched {
            self.used[*index].uncounted = true;
        }
    }

    /// Records a folder for every pattern that matches it.
    pub(super) fn note_folder(&mut self, folder: &Candidate<'_>) {
        self.set.matches_candidate_into(folder, &mut self.matched);
        for index in &self.matched {
            let used = &mut self.used[*index];
            used.uncounted |= self.deep;
            used.folder |= !used.pattern.ends_with('*');
        }
    }

    /// Whether a pattern for files of the workspace has no match.
    pub(super) fn any_idle(&self) -> bool {
        self.used.iter().any(PatternUse::idle)
    }
}

impl PatternUse {
    fn new(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), files: 0, uncounted: false, folder: false }
    }

    /// Absolute patterns match places outside, where no walk goes.
    pub(super) fn idle(&self) -> bool {
        self.files == 0 && !self.uncounted && !self.pattern.starts_with('/')
    }
}
