//! Owns the patterns by which a decision opens more than the path that was asked for: what they may
//! be, and what of it they open beside a zone.

use std::sync::Arc;

use super::git::GitVerdict;
use super::{Class, WirePatterns, Zone};
use crate::model::{Action, quoted};

/// Bytes of a pattern.
pub const LONGEST_PATTERN: usize = 1024;

/// A pattern of paths in the workspace that a decision opens.
#[derive(Debug)]
pub struct GrantPattern {
    text: Arc<str>,
    matching: WirePatterns,
}

impl GrantPattern {
    /// The error is a sentence with the pattern and what to write.
    pub fn compile(written: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("the pattern {} {why}", quoted(written)));
        if written.len() > LONGEST_PATTERN {
            return Err(format!("the pattern is longer than {LONGEST_PATTERN} bytes"));
        }
        if written.trim().is_empty() {
            return wrong("is empty: write one such as \"test/**\", or leave it out");
        }
        if written.starts_with(['/', '~']) {
            return wrong(
                "is absolute: write it relative to the workspace; a place outside is opened by its own \
                 path alone",
            );
        }
        if written.starts_with('!') {
            return wrong("starts with `!`, which takes nothing out");
        }
        if written.split('/').any(|part| part == "..") {
            return wrong("contains `..`: write it relative to the workspace without");
        }
        match WirePatterns::inside(written) {
            Ok(Some(matching)) => Ok(Self { text: written.into(), matching }),
            Ok(None) => wrong("leaves the workspace: write it without `..`"),
            Err(error) => wrong(&format!("can't be read: {}", error.kind())),
        }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Whether it matches a path, as the wire shows it.
    pub fn matches(&self, path: &str) -> bool {
        !path.starts_with('/') && self.matching.matches(path)
    }
}

impl PartialEq for GrantPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Zone {
    /// Whether a pattern opens a path beside this zone. It opens what it would as one of `allowed`: neither
    /// what is denied or asked for, nor what git folders keep. `path` is as the wire shows it, and taken
    /// for a real one. Does not ask the disk.
    pub fn widens(&self, pattern: &GrantPattern, path: &str, action: Action) -> bool {
        pattern.matches(path) && self.may_widen(path, action)
    }

    /// Whether a pattern lets a missing folder be made, as it opens something in it.
    pub fn widens_above(&self, pattern: &GrantPattern, folder: &str) -> bool {
        pattern.matching.leads_through(folder) && self.may_widen(folder, Action::Write)
    }

    /// Whether a pattern can open a path: nothing but the lists that allow keeps it closed.
    pub fn may_widen(&self, path: &str, action: Action) -> bool {
        let real = self.named(path);
        let place = self.place(&real);
        place.is_inside()
            && self.is_grantable(path, action)
            && !self.denied.matches(&place)
            && self.git.judge(&real, action) != GitVerdict::Denied
    }

    /// Whether a decision can open a path, by itself or by a pattern. `path` is as the wire shows it, and taken for a
    /// real one. Does not ask the disk.
    pub fn is_grantable(&self, path: &str, action: Action) -> bool {
        let real = self.named(path);
        !(self.is_closed(&real) || action == Action::Write && self.is_sealed(&real))
    }

    /// Whether nothing in a folder of the workspace is open. `folder` is as the wire shows it. Does not ask
    /// the disk.
    pub fn is_apart(&self, folder: &str) -> bool {
        let real = self.named(folder);
        self.class(folder) == Class::Outside
            && self.class(&format!("{folder}/x")) == Class::Outside
            && !self.is_above(&real, &self.place(&real))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::zone::pattern_of;

    #[test]
    fn the_pattern_of_a_path_matches_that_path_alone() {
        for (path, other) in [
            (r"test\a", "testa"),
            (r"a\*", "a*"),
            ("!x", "x"),
            ("~a", "a"),
            ("app/[id].ts", "app/i.ts"),
            ("a{b,c}", "ab"),
        ] {
            let pattern = GrantPattern::compile(&pattern_of(path)).unwrap();
            assert!(
                pattern.matches(path) && !pattern.matches(other),
                "{path}: {:?}",
                pattern.text()
            );
        }
    }

    #[test]
    fn the_folders_of_each_alternative_may_be_made() {
        for (pattern, folder, leads) in [
            ("{new,other/deep}/**", "new", true),
            ("{new,other/deep}/**", "other", true),
            ("{new,other/deep}/**", "other/deep", true),
            ("{new,other/deep}/**", "deep", false),
            ("{new,other/deep}/**", "new/a", false),
            ("a/{b/c,d}/*.rs", "a/b/c", true),
            (r"a/\{b/**", "a/{b", true),
            ("{a,*}/**", "b", false),
            ("**", "a", false),
        ] {
            let compiled = GrantPattern::compile(pattern).unwrap();
            assert_eq!(compiled.matching.leads_through(folder), leads, "{pattern}: {folder}");
        }
    }

    #[test]
    fn a_search_may_find_what_an_absolute_pattern_names() {
        for (pattern, folder, may) in [
            ("/**", "/etc", true),
            ("/**", "src", false),
            ("{/etc,src}/**", "/etc/ssh", true),
            ("{/etc,src}/**", "src", true),
            ("{/etc,src}/**", "lib", false),
        ] {
            let compiled = WirePatterns::compile(&[pattern.to_owned()], false).unwrap();
            assert_eq!(compiled.may_match_below(folder), may, "{pattern}: {folder}");
        }
    }
}
