//! Compiled patterns, and paths in the form that they match. Knows no actions and no verdicts.

mod cover;
mod glob;
mod trail;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{Candidate, Error, GlobSet, GlobSetBuilder};

pub use self::cover::{cut, uncovered};
use self::glob::Glob;
pub use self::glob::{compile as compile_glob, pattern_of};
pub use self::trail::Subtree;
pub(super) use self::trail::{Start, Trail, Trails};
use super::real::real;
use crate::model::within;

/// The workspace, by its real path and by its configured spelling: an absolute pattern may use
/// either.
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) real: PathBuf,
    pub(super) spelled: PathBuf,
}

/// A list of patterns. A path is matched with and without a trailing slash.
#[derive(Debug)]
pub(super) struct Patterns {
    relative: GlobSet,
    absolute: GlobSet,
}

/// A real path as patterns see it.
#[derive(Debug)]
pub(super) struct PatternPath {
    /// Absolute, with a trailing slash.
    slashed: Vec<u8>,
    /// Where the part relative to the workspace begins.
    relative: Option<usize>,
}

impl Patterns {
    /// Patterns that allow something. One that climbs out of the workspace by `..` allows nothing:
    /// only an absolute one names a place outside.
    pub(super) fn granting(workspace: &Workspace, globs: &[String]) -> Result<Self, Error> {
        Self::build(&grants(workspace, globs)?)
    }

    /// Patterns that match the folders above the paths that `writable` and `readable` allow. Of
    /// `readable`, only the folders that it names: with `**/.gitignore`, any folder would match.
    pub(super) fn above(
        workspace: &Workspace,
        writable: &[String],
        readable: &[String],
    ) -> Result<Self, Error> {
        let mut above: Vec<_> = grants(workspace, writable)?.iter().flat_map(Glob::above).collect();
        let named = grants(workspace, readable)?;
        above.extend(named.iter().flat_map(Glob::above).filter(Glob::is_literal));
        Self::build(&above)
    }

    /// Patterns that deny: each with everything below its matches, and with the real place of the
    /// folder it names if that is reached by a link.
    pub(super) fn denying(workspace: &Workspace, globs: &[String]) -> Result<Self, Error> {
        let mut denials = denials(workspace, globs)?;
        let below: Vec<_> = denials.iter().map(Glob::below).collect();
        denials.extend(below);
        Self::build(&denials)
    }

    pub(super) fn matches(&self, place: &PatternPath) -> bool {
        place.relative().is_some_and(|forms| any_matches(&self.relative, forms))
            || any_matches(&self.absolute, place.absolute())
    }

    /// Whether some pattern reaches out of the workspace.
    pub(super) fn reach_outside(&self) -> bool {
        !self.absolute.is_empty()
    }

    /// Whether some pattern reaches into the workspace.
    pub(super) fn reach_inside(&self) -> bool {
        !self.relative.is_empty()
    }

    fn build(globs: &[Glob]) -> Result<Self, Error> {
        let [mut relative, mut absolute] = [GlobSetBuilder::new(), GlobSetBuilder::new()];
        for glob in globs {
            let set = if glob.is_absolute() { &mut absolute } else { &mut relative };
            set.add(glob::compile(&glob.text())?);
        }
        Ok(Self { relative: relative.build()?, absolute: absolute.build()? })
    }
}

/// Patterns for paths as on the wire: relative to the workspace, or absolute outside.
#[derive(Debug)]
pub struct WirePatterns {
    matching: Patterns,
    /// The literal beginnings of the patterns, with a brace of each of its alternatives.
    beginnings: Vec<String>,
}

impl WirePatterns {
    /// Relative patterns match in the workspace only. With `deep` each matches all below it, too.
    pub fn compile(written: &[String], deep: bool) -> Result<Self, Error> {
        let mut globs = Glob::parse_all(written)?;
        let beginnings = globs.iter().map(Glob::beginning).collect();
        if deep {
            let below: Vec<_> = globs.iter().map(Glob::below).collect();
            globs.extend(below);
        }
        Ok(Self { matching: Patterns::build(&globs)?, beginnings })
    }

    /// One pattern of paths in the workspace; None if it names others, or nothing.
    pub(super) fn inside(written: &str) -> Result<Option<Self>, Error> {
        let written = [written.to_owned()];
        let globs = Glob::parse_all(&written)?;
        if globs.is_empty() || globs.iter().any(|glob| glob.is_absolute() || glob.climbs()) {
            return Ok(None);
        }
        Self::compile(&written, false).map(Some)
    }

    /// Whether what the patterns name literally lies in a folder.
    pub(super) fn leads_through(&self, folder: &str) -> bool {
        !folder.is_empty() && self.beginnings.iter().any(|it| is_at_or_below(it, folder))
    }

    /// Whether some pattern matches a path in the wire's form.
    pub fn matches(&self, path: &str) -> bool {
        let Patterns { relative, absolute } = &self.matching;
        let set = if path.starts_with('/') { absolute } else { relative };
        let slashed = format!("{path}/");
        any_matches(set, [path.as_bytes(), slashed.as_bytes()])
    }

    /// Whether something below a folder may match. In doubt it may.
    pub fn may_match_below(&self, folder: &str) -> bool {
        let folder = folder.trim_end_matches('/');
        let is_above = |beginning: &String| {
            folder.is_empty() && !beginning.starts_with('/')
                || beginning.is_empty() && !folder.starts_with('/')
                || is_at_or_below(beginning, folder)
                || is_at_or_below(folder, beginning.trim_end_matches('/'))
                    && folder.starts_with('/') == beginning.starts_with('/')
        };
        self.beginnings.iter().any(is_above)
    }
}

fn is_at_or_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl PatternPath {
    /// `real` must be free of links, `.` and `..`.
    pub(super) fn new(workspace: &Workspace, real: &Path) -> Self {
        let mut slashed = real.as_os_str().as_bytes().to_vec();
        let inside = within(&workspace.real, real);
        let relative = inside.map(|inside| slashed.len() - inside.as_os_str().len());
        if !slashed.ends_with(b"/") {
            slashed.push(b'/');
        }
        Self { slashed, relative }
    }

    pub(super) fn is_inside(&self) -> bool {
        self.relative.is_some()
    }

    pub(super) fn is_workspace(&self) -> bool {
        self.relative().is_some_and(|[plain, _]| plain.is_empty())
    }

    /// Whether the matched text is UTF-8, as globs are: on other bytes `?` and classes match single
    /// bytes.
    pub(super) fn is_text(&self) -> bool {
        let [plain, _] = self.relative().unwrap_or_else(|| self.absolute());
        std::str::from_utf8(plain).is_ok()
    }

    /// The path relative to the workspace, without and with a trailing slash.
    fn relative(&self) -> Option<[&[u8]; 2]> {
        let slashed = &self.slashed[self.relative?..];
        match slashed.split_last() {
            None | Some((_, [])) => Some([b"", b""]),
            Some((_, plain)) => Some([plain, slashed]),
        }
    }

    fn absolute(&self) -> [&[u8]; 2] {
        let plain = self.slashed.strip_suffix(b"/").filter(|plain| !plain.is_empty());
        [plain.unwrap_or(&self.slashed), &self.slashed]
    }
}

fn grants(workspace: &Workspace, globs: &[String]) -> Result<Vec<Glob>, Error> {
    let globs = Glob::parse_all(globs)?.into_iter();
    Ok(globs.filter(|glob| !glob.climbs()).map(|glob| glob.within(workspace)).collect())
}

fn denials(workspace: &Workspace, globs: &[String]) -> Result<Vec<Glob>, Error> {
    let mut denials = Vec::new();
    for glob in Glob::parse_all(globs)? {
        let glob = glob.climbed(workspace).within(workspace);
        denials.extend(glob.relocated(workspace, real).map(|moved| moved.within(workspace)));
        denials.push(glob);
    }
    Ok(denials)
}

fn any_matches(set: &GlobSet, forms: [&[u8]; 2]) -> bool {
    !set.is_empty() && forms.iter().any(|form| set.is_match_candidate(&Candidate::from_bytes(form)))
}
