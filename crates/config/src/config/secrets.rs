//! `[zones] secrets`: the files in which keys and logins usually lie, and what becomes of an access.

use super::profiles::Profile;
use crate::model::{Decide, RuleSpec, named};

named! {
    /// The restriction of an access to a secret that the zone would allow.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Secrets {
        /// Nothing: no list is used.
        Allow = "allow",
        /// In the workspace a person is asked; outside it is denied.
        Ask = "ask",
        Deny = "deny",
    }
}

/// In the workspace. Neither `*.pem`, which package managers bring, nor names that source code has.
const IN_WORKSPACE: [&str; 6] = [
    "**/.env",
    "**/.env.{local,development,production,staging,test}",
    "**/.netrc",
    "**/.git-credentials",
    "**/{id_rsa,id_dsa,id_ecdsa,id_ed25519}",
    "**/*.{key,p12,pfx,keystore}",
];

/// Outside, closed to each agent whose own profile does not name the place.
pub const OUTSIDE: [&str; 8] = [
    "~/.ssh/**",
    "~/.gnupg/**",
    "~/.aws/**",
    "~/.kube/**",
    "~/.docker/config.json",
    "~/.config/{gh,gcloud}/**",
    "~/.netrc",
    "~/.git-credentials",
];

impl Secrets {
    /// The patterns whose accesses are asked for.
    pub fn asked(self) -> Vec<String> {
        if self == Self::Ask { IN_WORKSPACE.map(str::to_owned).to_vec() } else { Vec::new() }
    }

    /// The patterns that are denied to an agent of this profile. Without a home there is nothing below it.
    pub(super) fn denied(self, profile: &Profile, home: Option<&str>) -> Vec<String> {
        let inside = if self == Self::Deny { &IN_WORKSPACE[..] } else { &[] };
        let outside = if self == Self::Allow { &[][..] } else { &OUTSIDE };
        let outside = outside.iter().filter(|secret| !is_of(profile, secret));
        let home = home.filter(|home| home.starts_with('/')).map(globset::escape);
        let below = |home: &String| {
            let home = home.trim_end_matches('/');
            outside.map(|secret| secret.replacen('~', home, 1)).collect::<Vec<_>>()
        };
        let inside = inside.iter().map(|&secret| secret.to_owned());
        inside.chain(home.as_ref().map(below).unwrap_or_default()).collect()
    }

    /// The last rule: an access that is asked for waits for a person.
    pub fn rule(self) -> Option<RuleSpec> {
        let rule = RuleSpec {
            paths: self.asked(),
            agents: Vec::new(),
            via: Vec::new(),
            action: None,
            decide: Decide::Person,
        };
        (self == Self::Ask).then_some(rule)
    }
}

/// Whether a place of a profile lies where a pattern matches.
fn is_of(profile: &Profile, secret: &str) -> bool {
    let top = secret.trim_end_matches("/**");
    let tops = match top
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        None => vec![top.to_owned()],
        Some((before, (names, after))) => {
            names.split(',').map(|name| format!("{before}{name}{after}")).collect()
        }
    };
    let places = || profile.readable.iter().chain(&profile.writable);
    tops.iter().any(|top| places().any(|place| std::path::Path::new(place).starts_with(top)))
}
