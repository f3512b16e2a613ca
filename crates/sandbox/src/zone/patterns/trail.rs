//! Matches patterns folder by folder, to find possible matches *below* a folder; a compiled set
//! only matches single paths.
//!
//! Results err on the safe side: for patterns that deny they cover *possible* matches, for patterns
//! that allow only certain ones.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{Candidate, Error, GlobMatcher};

use super::glob::{self, Glob};
use super::{Workspace, grants};

/// Patterns split into parts. Each is absolute.
#[derive(Debug)]
pub(in crate::zone) struct Trails {
    globs: Vec<CompiledPattern>,
    /// Doubt counts as a match.
    in_doubt: bool,
}

#[derive(Debug)]
struct CompiledPattern {
    parts: Vec<TrailPart>,
    /// Its index in its list.
    index: usize,
    /// Only a walk of any depth outside the workspace can find the pattern's matches.
    searches: bool,
}

#[derive(Debug)]
enum TrailPart {
    /// Exactly this name.
    Name(Vec<u8>),
    /// Any one name: `*`.
    Any,
    /// Any number of names: `**`.
    Deep,
    /// One name. `by_text`: it cannot be matched against names that are not UTF-8.
    Glob { glob: Box<GlobMatcher>, by_text: bool },
    /// Too many braces to expand: any number of names.
    Unknown,
}

/// The state of matching a path: for each pattern the parts that remain.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(in crate::zone) struct Trail {
    /// Pairs of a pattern's index and a part's index, which may be one past the last.
    at: Vec<(usize, usize)>,
}

/// The literal start of a pattern.
#[derive(Debug)]
pub(in crate::zone) struct Start {
    /// Index of the pattern.
    pub(in crate::zone) pattern: usize,
    pub(in crate::zone) path: PathBuf,
    /// All below matches, of any depth.
    pub(in crate::zone) is_whole: bool,
    /// The pattern matches this one path.
    pub(in crate::zone) is_path: bool,
    /// Only a walk of any depth outside the workspace can find its matches.
    pub(in crate::zone) searches: bool,
}

/// The result of patterns for all paths that may ever lie below a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subtree {
    /// Every path matches.
    All,
    /// No path matches.
    None,
    /// Some paths match, or may match.
    Mixed,
}

impl Trails {
    /// Follows patterns that allow, as [`super::Patterns::granting`] reads them.
    pub(in crate::zone) fn granting(
        workspace: &Workspace,
        globs: &[String],
    ) -> Result<Self, Error> {
        let mut trails = Self { globs: Vec::new(), in_doubt: false };
        for (pattern, text) in globs.iter().enumerate() {
            for glob in grants(workspace, std::slice::from_ref(text))? {
                trails.push(workspace, &glob, pattern)?;
            }
        }
        Ok(trails)
    }

    /// Follows patterns that deny, as [`super::Patterns::denying`] reads them. Paths below a match
    /// are denied with it.
    pub(in crate::zone) fn denying(workspace: &Workspace, globs: &[String]) -> Result<Self, Error> {
        let mut trails = Self { globs: Vec::new(), in_doubt: true };
        for (pattern, text) in globs.iter().enumerate() {
            for glob in super::denials(workspace, std::slice::from_ref(text))? {
                trails.push(workspace, &glob, pattern)?;
            }
        }
        Ok(trails)
    }

    /// Whether some pattern may match at any depth below the path of `trail`.
    pub(in crate::zone) fn is_deep(&self, trail: &Trail) -> bool {
        trail.at.iter().any(|&(glob, at)| {
            let part = self.globs[glob].parts.get(at);
            matches!(part, Some(TrailPart::Deep | TrailPart::Unknown))
        })
    }

    /// The path of each pattern before its first wildcard.
    pub(in crate::zone) fn starts(&self) -> impl Iterator<Item = Start> {
        self.globs.iter().map(|glob| {
            let (path, behind) = glob.literal_prefix();
            Start {
                pattern: glob.index,
                path,
                is_whole: covers_all(behind),
                is_path: behind.is_empty(),
                searches: glob.searches,
            }
        })
    }

    /// The trail of a path.
    pub(in crate::zone) fn to(&self, path: &Path) -> Trail {
        let mut trail = Trail::default();
        for index in 0..self.globs.len() {
            self.arrive(&mut trail, index, 0);
        }
        for name in path.iter().skip(1) {
            trail = self.step(&trail, name);
        }
        trail
    }

    /// Advances `trail` to an entry of its folder.
    pub(in crate::zone) fn step(&self, trail: &Trail, name: &OsStr) -> Trail {
        let mut next = Trail::default();
        for &(glob, at) in &trail.at {
            self.advance(glob, at, name, &mut |at| self.arrive(&mut next, glob, at));
        }
        next
    }

    /// Whether an entry of the trail's folder matches or, for patterns that deny, may match or lies
    /// below a match.
    pub(in crate::zone) fn hits(&self, trail: &Trail, name: &OsStr) -> bool {
        let mut hit = false;
        for &(glob, at) in &trail.at {
            self.advance(glob, at, name, &mut |at| hit = hit || self.is_end(glob, at));
        }
        hit
    }

    /// Whether the path of `trail` matches.
    pub(in crate::zone) fn matched(&self, trail: &Trail) -> bool {
        trail.at.iter().any(|&(glob, at)| self.is_end(glob, at))
    }

    /// The result below the path of `trail`.
    pub(in crate::zone) fn below(&self, trail: &Trail) -> Subtree {
        let all = |&(glob, at): &(usize, usize)| covers_all(&self.globs[glob].parts[at..]);
        if trail.at.iter().any(all) || self.in_doubt && self.matched(trail) {
            return Subtree::All;
        }
        let live = |&(glob, at): &(usize, usize)| at < self.globs[glob].parts.len();
        if trail.at.iter().any(live) { Subtree::Mixed } else { Subtree::None }
    }

    /// The patterns that may match a path below that of `trail`.
    pub(in crate::zone) fn live(&self, trail: &Trail) -> impl Iterator<Item = usize> {
        let live = trail.at.iter().filter(|&&(glob, at)| at < self.globs[glob].parts.len());
        live.map(|&(glob, _)| self.globs[glob].index)
    }

    fn push(&mut self, workspace: &Workspace, glob: &Glob, pattern: usize) -> Result<(), Error> {
        let mut parts = Vec::new();
        if !glob.is_absolute() {
            let names = workspace.real.iter().skip(1);
            parts.extend(names.map(|name| TrailPart::Name(name.as_bytes().to_owned())));
        }
        for text in glob.parts() {
            parts.push(match text {
                "*" => TrailPart::Any,
                "**" => TrailPart::Deep,
                text => match glob::literal(text) {
                    Some(name) => TrailPart::Name(name.into_bytes()),
                    None if text.contains('{') => TrailPart::Unknown,
                    None => TrailPart::Glob {
                        glob: Box::new(glob::compile(text)?.compile_matcher()),
                        by_text: text.contains(['?', '[']),
                    },
                },
            });
        }
        let mut parts = CompiledPattern { parts, index: pattern, searches: false };
        parts.searches = parts.do_search(&workspace.real);
        self.globs.push(parts);
        Ok(())
    }

    /// Calls `arrive` with each part that follows once a name matches one.
    fn advance(&self, glob: usize, at: usize, name: &OsStr, arrive: &mut dyn FnMut(usize)) {
        let Some(part) = self.globs[glob].parts.get(at) else {
            if self.in_doubt {
                // Paths below a denied one are denied, too.
                arrive(at);
            }
            return;
        };
        match part {
            TrailPart::Name(wanted) if wanted == name.as_bytes() => arrive(at + 1),
            TrailPart::Name(_) => {}
            TrailPart::Any => arrive(at + 1),
            TrailPart::Deep => arrive(at),
            TrailPart::Glob { glob, by_text } => {
                let matches = if *by_text && name.to_str().is_none() {
                    self.in_doubt
                } else {
                    glob.is_match_candidate(&Candidate::from_bytes(name.as_bytes()))
                };
                if matches {
                    arrive(at + 1);
                }
            }
            TrailPart::Unknown => {
                arrive(at);
                if self.in_doubt {
                    arrive(at + 1);
                }
            }
        }
    }

    /// Adds a position in a pattern, and those behind each `**` there, which may match nothing.
    fn arrive(&self, trail: &mut Trail, glob: usize, mut at: usize) {
        loop {
            if !trail.at.contains(&(glob, at)) {
                trail.at.push((glob, at));
            }
            match self.globs[glob].parts.get(at) {
                Some(TrailPart::Deep) => at += 1,
                _ => return,
            }
        }
    }

    fn is_end(&self, glob: usize, at: usize) -> bool {
        match &self.globs[glob].parts[at..] {
            [] => true,
            // Paths are also tried with a slash behind them, and then `*` stands for nothing.
            [TrailPart::Any] | [TrailPart::Unknown, ..] => self.in_doubt,
            [TrailPart::Glob { glob, .. }] => self.in_doubt && glob.is_match(""),
            rest => rest.iter().all(|part| matches!(part, TrailPart::Deep)),
        }
    }
}

impl CompiledPattern {
    fn do_search(&self, workspace: &Path) -> bool {
        let (prefix, behind) = self.literal_prefix();
        let deep =
            behind.iter().position(|part| matches!(part, TrailPart::Deep | TrailPart::Unknown));
        deep.is_some_and(|deep| !covers_all(&behind[deep..])) && !prefix.starts_with(workspace)
    }

    /// The path before its first wildcard, and the parts behind that.
    fn literal_prefix(&self) -> (PathBuf, &[TrailPart]) {
        let names = self.parts.iter().map_while(|part| match part {
            TrailPart::Name(name) => Some(OsStr::from_bytes(name)),
            _ => None,
        });
        let names: Vec<_> = names.collect();
        let mut prefix = PathBuf::from("/");
        prefix.extend(&names);
        (prefix, &self.parts[names.len()..])
    }
}

/// Whether parts match every path that has at least one more name.
fn covers_all(parts: &[TrailPart]) -> bool {
    let names = parts.iter().filter(|part| matches!(part, TrailPart::Any)).count();
    let deep = parts.iter().filter(|part| matches!(part, TrailPart::Deep)).count();
    names + deep == parts.len() && deep > 0 && names <= 1
}
