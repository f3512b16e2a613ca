//! Patterns followed folder by folder, to tell what may lie *below* a folder, where a compiled set
//! can only tell whether one path matches.
//!
//! What a trail tells errs to one side, by its list: of patterns that deny it tells what they
//! *may* match, of patterns that allow what they surely do.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{Candidate, Error, GlobMatcher};

use super::glob::{self, Glob};
use super::{Workspace, grants};

/// Patterns as the parts that they consist of. Each is absolute.
#[derive(Debug)]
pub(in crate::zone) struct Trails {
    globs: Vec<Parts>,
    /// Doubt counts as a match.
    in_doubt: bool,
}

#[derive(Debug)]
struct Parts {
    parts: Vec<Part>,
    /// Index of the pattern that it comes from.
    pattern: usize,
}

#[derive(Debug)]
enum Part {
    /// Exactly this name.
    Name(Vec<u8>),
    /// Any one name: `*`.
    Any,
    /// Any number of names: `**`.
    Deep,
    /// One name. `by_text`: where it is no text, whether it matches can't be told.
    Glob { glob: Box<GlobMatcher>, by_text: bool },
    /// Braces that were too many to expand: names of any number.
    Unknown,
}

/// How far each pattern has come on the way to a path: the parts that are still to be matched.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(in crate::zone) struct Trail {
    /// Indices of a pattern and of a part in it, which may be one past the last.
    at: Vec<(usize, usize)>,
}

/// What patterns hold of all that may ever lie below a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subtree {
    All,
    None,
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

    /// Follows patterns that deny, as [`super::Patterns::denying`] reads them. What lies below a
    /// match is denied with it.
    pub(in crate::zone) fn denying(workspace: &Workspace, globs: &[String]) -> Result<Self, Error> {
        let mut trails = Self { globs: Vec::new(), in_doubt: true };
        for (pattern, text) in globs.iter().enumerate() {
            for glob in super::denials(workspace, std::slice::from_ref(text))? {
                trails.push(workspace, &glob, pattern)?;
            }
        }
        Ok(trails)
    }

    /// Leaves out the patterns that only a walk through all that is below some folder outside the
    /// workspace could find.
    pub(in crate::zone) fn without_searches(mut self, workspace: &Workspace) -> Self {
        self.globs.retain(|glob| !glob.searches(&workspace.real));
        self
    }

    /// Whether a pattern of the list goes any depth outside the workspace before it names
    /// something.
    pub(in crate::zone) fn searches(&self, workspace: &Workspace, pattern: usize) -> bool {
        let mut of_pattern = self.globs.iter().filter(|glob| glob.pattern == pattern);
        of_pattern.any(|glob| glob.searches(&workspace.real))
    }

    /// The folders or files that the patterns name before their first wildcard, each with the
    /// index of its pattern, and whether all below it matches.
    pub(in crate::zone) fn starts(
        &self,
    ) -> impl Iterator<Item = (usize, std::path::PathBuf, bool)> {
        self.globs.iter().map(|glob| {
            let names = glob.parts.iter().map_while(|part| match part {
                Part::Name(name) => Some(OsStr::from_bytes(name)),
                _ => None,
            });
            let mut start = std::path::PathBuf::from("/");
            start.extend(names);
            let named = start.components().count() - 1;
            (glob.pattern, start, covers_all(&glob.parts[named..]))
        })
    }

    /// The trail that has come to a path.
    pub(in crate::zone) fn to(&self, path: &Path) -> Trail {
        let mut trail = self.start();
        for name in path.iter().skip(1) {
            trail = self.step(&trail, name);
        }
        trail
    }

    fn start(&self) -> Trail {
        let mut trail = Trail::default();
        for (glob, _) in self.globs.iter().enumerate() {
            self.arrive(&mut trail, glob, 0);
        }
        trail
    }

    /// Goes on to an entry of the folder that `trail` has come to.
    pub(in crate::zone) fn step(&self, trail: &Trail, name: &OsStr) -> Trail {
        let mut next = Trail::default();
        for &(glob, at) in &trail.at {
            self.advance(glob, at, name, &mut |at| self.arrive(&mut next, glob, at));
        }
        next
    }

    /// Whether an entry of the folder that `trail` has come to matches, or for patterns that deny
    /// may match, or lies below what does.
    pub(in crate::zone) fn hits(&self, trail: &Trail, name: &OsStr) -> bool {
        let mut hit = false;
        for &(glob, at) in &trail.at {
            self.advance(glob, at, name, &mut |at| hit = hit || self.is_end(glob, at));
        }
        hit
    }

    /// Whether the path that `trail` has come to matches.
    pub(in crate::zone) fn matched(&self, trail: &Trail) -> bool {
        trail.at.iter().any(|&(glob, at)| self.is_end(glob, at))
    }

    /// What holds below the path that `trail` has come to.
    pub(in crate::zone) fn below(&self, trail: &Trail) -> Subtree {
        let all = |&(glob, at): &(usize, usize)| covers_all(&self.globs[glob].parts[at..]);
        if trail.at.iter().any(all) || self.in_doubt && self.matched(trail) {
            return Subtree::All;
        }
        let live = |&(glob, at): &(usize, usize)| at < self.globs[glob].parts.len();
        if trail.at.iter().any(live) { Subtree::Mixed } else { Subtree::None }
    }

    /// The patterns that may match something below the path that `trail` has come to.
    pub(in crate::zone) fn live(&self, trail: &Trail) -> impl Iterator<Item = usize> {
        let live = trail.at.iter().filter(|&&(glob, at)| at < self.globs[glob].parts.len());
        live.map(|&(glob, _)| self.globs[glob].pattern)
    }

    fn push(&mut self, workspace: &Workspace, glob: &Glob, pattern: usize) -> Result<(), Error> {
        let mut parts = Vec::new();
        if !glob.is_absolute() {
            let names = workspace.real.iter().skip(1);
            parts.extend(names.map(|name| Part::Name(name.as_bytes().to_owned())));
        }
        for text in glob.parts() {
            parts.push(match text {
                "*" => Part::Any,
                "**" => Part::Deep,
                text => match glob::literal(text) {
                    Some(name) => Part::Name(name.into_bytes()),
                    None if text.contains('{') => Part::Unknown,
                    None => Part::Glob {
                        glob: Box::new(glob::compile(text)?.compile_matcher()),
                        by_text: text.contains(['?', '[']),
                    },
                },
            });
        }
        self.globs.push(Parts { parts, pattern });
        Ok(())
    }

    /// Tells `arrive` each part that follows once one is matched by a name.
    fn advance(&self, glob: usize, at: usize, name: &OsStr, arrive: &mut dyn FnMut(usize)) {
        let Some(part) = self.globs[glob].parts.get(at) else {
            if self.in_doubt {
                // What lies below what is denied.
                arrive(at);
            }
            return;
        };
        match part {
            Part::Name(wanted) if wanted == name.as_bytes() => arrive(at + 1),
            Part::Name(_) => {}
            Part::Any => arrive(at + 1),
            Part::Deep => arrive(at),
            Part::Glob { glob, by_text } => {
                let matches = if *by_text && name.to_str().is_none() {
                    self.in_doubt
                } else {
                    glob.is_match_candidate(&Candidate::from_bytes(name.as_bytes()))
                };
                if matches {
                    arrive(at + 1);
                }
            }
            Part::Unknown => {
                arrive(at);
                if self.in_doubt {
                    arrive(at + 1);
                }
            }
        }
    }

    /// Adds a place in a pattern, and those behind each `**` there, which may stand for nothing.
    fn arrive(&self, trail: &mut Trail, glob: usize, mut at: usize) {
        loop {
            if !trail.at.contains(&(glob, at)) {
                trail.at.push((glob, at));
            }
            match self.globs[glob].parts.get(at) {
                Some(Part::Deep) => at += 1,
                _ => return,
            }
        }
    }

    fn is_end(&self, glob: usize, at: usize) -> bool {
        match &self.globs[glob].parts[at..] {
            [] => true,
            // Paths are also tried with a slash behind them, and then `*` stands for nothing.
            [Part::Any] => self.in_doubt,
            [Part::Glob { glob, .. }] => self.in_doubt && glob.is_match(""),
            [Part::Unknown, ..] => self.in_doubt,
            rest => rest.iter().all(|part| matches!(part, Part::Deep)),
        }
    }
}

impl Parts {
    /// Whether it goes any depth outside the workspace before it names something.
    fn searches(&self, workspace: &Path) -> bool {
        let deep = self.parts.iter().position(|part| matches!(part, Part::Deep | Part::Unknown));
        let Some(deep) = deep else { return false };
        let inside = || {
            let names = self.parts.iter().map_while(|part| match part {
                Part::Name(name) => Some(OsStr::from_bytes(name)),
                _ => None,
            });
            Path::new("/").join(names.collect::<std::path::PathBuf>()).starts_with(workspace)
        };
        !covers_all(&self.parts[deep..]) && !inside()
    }
}

/// Whether parts match every path that has at least one more name.
fn covers_all(parts: &[Part]) -> bool {
    let names = parts.iter().filter(|part| matches!(part, Part::Any)).count();
    let deep = parts.iter().filter(|part| matches!(part, Part::Deep)).count();
    names + deep == parts.len() && deep > 0 && names <= 1
}
