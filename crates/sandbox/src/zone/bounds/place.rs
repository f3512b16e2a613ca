//! Places outside the workspace that strict bounds grant: each by a real path that was settled before.

use std::fmt;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use nix::fcntl::open;
use nix::sys::stat::Mode;

use super::{Bounds, Confine};
use crate::model::{Action, within};
use crate::zone::open::{FOLDER, make_folder};
use crate::zone::real::real;

/// A path outside the workspace that a process needs, with everything below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantedPlace {
    /// As it is spelled: absolute.
    pub name: PathBuf,
    /// The real path that is granted. The confined side may replace the name, and gains nothing by that.
    pub real: PathBuf,
}

/// A place whose name does not lead to what is granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovedPlace {
    /// The place as it is granted, by the real path that is trusted.
    pub place: GrantedPlace,
    /// Where the name leads; None: nowhere.
    pub leads_to: Option<PathBuf>,
}

impl GrantedPlace {
    /// A place by where its name leads now; None if that can't be resolved.
    pub fn now(name: &Path) -> Option<Self> {
        Some(Self { real: real(name)?, name: name.to_owned() })
    }

    /// Whether its name leads into a workspace, or through it by links: there the zone alone decides, and agents
    /// replace names.
    pub(super) fn passes(&self, workspace: &Path) -> bool {
        let is_inside = |real: &Path| within(workspace, real).is_some();
        let above = || self.name.ancestors().filter_map(real);
        is_inside(&self.real) || self.name != self.real && above().any(|above| is_inside(&above))
    }

    /// Whether it is taken for a folder: its name has no extension.
    pub fn is_folder(&self) -> bool {
        self.name.extension().is_none()
    }

    /// A path in this folder.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        Self { name: self.name.join(path), real: self.real.join(path) }
    }

    /// Makes the folder that is granted, with those above it, for its owner alone. Follows no link.
    pub fn make(&self) -> io::Result<()> {
        let root = open("/", FOLDER, Mode::empty())?;
        let below = self.real.strip_prefix("/").unwrap_or(&self.real);
        make_folder(root.as_fd(), below, Mode::S_IRWXU)?;
        Ok(())
    }
}

/// The places that a process asks for and that another one has, too: each asked place that is below one of
/// the other's, and each of the other's that is below an asked one.
pub fn common(asked: &[GrantedPlace], of_other: &[GrantedPlace]) -> Vec<GrantedPlace> {
    let mut common: Vec<GrantedPlace> = Vec::new();
    for place in asked {
        if of_other.iter().any(|other| within(&other.real, &place.real).is_some()) {
            common.push(place.clone());
        } else {
            let narrower = of_other.iter().filter(|it| within(&place.real, &it.real).is_some());
            common.extend(narrower.cloned());
        }
    }
    common
}

impl Bounds {
    /// The first place of strict bounds whose name does not lead to what they grant. A name to read by leads
    /// elsewhere without harm where all is read anyway.
    pub fn moved(&self) -> Option<MovedPlace> {
        if self.reach.confine != Confine::Strict {
            return None;
        }
        let moved = |place: &GrantedPlace, is_read: bool| {
            let leads_to = real(&place.name);
            let is_harmless = || {
                let there = leads_to.as_deref().filter(|_| is_read);
                there.is_some_and(|there| self.judge(there, Action::Read).is_ok())
            };
            let is_as_it_was = leads_to.as_ref() == Some(&place.real) || is_harmless();
            (!is_as_it_was).then(|| MovedPlace { place: place.clone(), leads_to })
        };
        let mut written = self.reach.writable.iter().filter_map(|place| moved(place, false));
        let mut read = self.reach.readable.iter().filter_map(|place| moved(place, true));
        written.next().or_else(|| read.next())
    }
}

impl fmt::Display for MovedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: GrantedPlace { name, real }, leads_to } = self;
        let (name, real) = (name.display(), real.display());
        write!(f, "a place that it needs leads elsewhere: `{name}` leads ")?;
        match leads_to {
            Some(there) => write!(f, "to `{}`", there.display())?,
            None => write!(f, "nowhere")?,
        }
        write!(
            f,
            ", and `{real}` is trusted. Put it back, or trust where it leads by `eisen-core team trust-place {name}`"
        )
    }
}
