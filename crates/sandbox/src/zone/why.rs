//! Explains which rule of a zone decides about a path, consistently with [`Zone::check`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::git::GitVerdict;
use super::patterns::{PatternPath, Patterns};
use super::{Verdict, Zone};
use crate::model::Action;

/// A verdict with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    /// As the wire shows it.
    pub path: Arc<str>,
    /// None: no path leads there.
    pub real: Option<PathBuf>,
    /// Whether the zone allows the access.
    pub allowed: bool,
    /// The first rule that decides, in the order in which rules do.
    pub reason: Reason,
}

/// The rule of a zone that decides about a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The path can't be resolved, or is no text.
    NoPath,
    /// The path is, or is in, `$EISEN_DIR`.
    EisenDir,
    /// The path is the team's journal, or lies beside it.
    Journal,
    /// The git folder, judged by [`super::GitAccess`].
    Git,
    /// A pattern, as it was written, and its list: `allowed`, `shared`, `denied`, `asked` or `readable`.
    Pattern {
        /// `allowed`, `shared`, `denied`, `asked` or `readable`.
        list: &'static str,
        /// The pattern as it was written.
        pattern: String,
    },
    /// No pattern matches it.
    NoPattern,
}

impl Zone {
    /// Explains the verdict of [`Zone::check`] on an access. Compiles each pattern again: it is for
    /// people, not for requests.
    pub fn why(&self, path: &Path, action: Action) -> Why {
        let meant = self.git.meant(path);
        let path = meant.as_deref().unwrap_or(path);
        let Some((kernels, by_name)) = self.readings(path) else {
            let path = self.unresolved(path, action).path;
            return Why { path, real: None, allowed: false, reason: Reason::NoPath };
        };
        let first = self.why_real(&kernels, action);
        match by_name.map(|real| self.why_real(&real, action)) {
            Some(other) if first.allowed && !other.allowed => other,
            _ => first,
        }
    }

    /// Whether some path below a folder of the workspace is the agent's own. `folder` is as the wire
    /// shows it. Does not ask the disk.
    pub fn owns_below(&self, folder: &str) -> bool {
        let real = self.named(folder);
        self.own.matches(&self.place(&real.join("x"))) || self.is_above(&real, &self.place(&real))
    }

    /// The denied pattern that matches a path, as it was written. `path` is as the wire shows it, and
    /// taken for a real one. Does not ask the disk.
    pub fn denies(&self, path: &str) -> Option<&str> {
        let place = self.place(&self.named(path));
        if !self.denied.matches(&place) {
            return None;
        }
        let mut denied = self.spec.denied.iter();
        denied.find(|one| self.matches("denied", one, &place)).map(String::as_str)
    }

    fn why_real(&self, real: &Path, action: Action) -> Why {
        let place = self.place(real);
        Why {
            path: self.wire(real),
            real: Some(real.to_owned()),
            allowed: matches!(self.judge(real, &place, action), Verdict::Allowed),
            reason: self.reason(real, &place, action),
        }
    }

    /// The first rule that decides, in the order in which they do.
    fn reason(&self, real: &Path, place: &PatternPath, action: Action) -> Reason {
        if self.is_of_journal(real) {
            return Reason::Journal;
        }
        if self.is_closed(real) {
            return Reason::EisenDir;
        }
        if !place.is_text() {
            return Reason::NoPath;
        }
        let spec = &self.spec;
        let pattern = |list: &'static str, patterns: &[String]| {
            let pattern = patterns.iter().find(|one| self.matches(list, one, place))?;
            Some(Reason::Pattern { list, pattern: pattern.clone() })
        };
        let granted = || {
            pattern("allowed", &spec.allowed).or_else(|| pattern("shared", &spec.shared)).or_else(
                || (action == Action::Read).then(|| pattern("readable", &spec.readable))?,
            )
        };
        let closed = pattern("denied", &spec.denied).or_else(|| pattern("asked", &spec.asked));
        closed.unwrap_or_else(|| match self.git.judge(real, action) {
            GitVerdict::Denied | GitVerdict::Allowed => Reason::Git,
            GitVerdict::Defer | GitVerdict::Nothing => granted().unwrap_or(Reason::NoPattern),
        })
    }

    fn matches(&self, list: &str, pattern: &str, place: &PatternPath) -> bool {
        let one = [pattern.to_owned()];
        let compiled = match list {
            "denied" | "asked" => Patterns::denying(&self.workspace, &one),
            _ => Patterns::granting(&self.workspace, &one),
        };
        compiled.is_ok_and(|compiled| compiled.matches(place))
    }
}
