//! `team`: what a person says of the places that agents are granted.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use super::output::{escape_controls, print};
use crate::config::{Trust, TrustError, TrustedPlaces};
use crate::home;
use crate::program::Failure;

/// Trust where a place of a profile leads now
///
/// A place of a profile is granted by the real path that it had when it was first used here. An agent with
/// `confine = "strict"` does not start where the name leads elsewhere, as by a link that took its place.
/// This shows where it led and where it leads, and asks whether that is right. A running team takes it with
/// `eisen-core team reload`.
#[derive(Args, Debug)]
#[command(after_help = TRUST_PLACE)]
pub(super) struct TrustPlace {
    /// The place, such as ~/.claude.json
    place: PathBuf,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

const TRUST_PLACE: &str = "\
Examples:
  eisen-core team trust-place ~/.claude.json
  eisen-core team trust-place ~/.claude.json --yes

Exit codes: 0 it is trusted, 1 it leads nowhere or the answer is no, 2 wrong usage.";

impl TrustPlace {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<u8, Failure> {
        let Self { place, yes } = self;
        if !matches!(home::team_above(), Ok(None)) {
            let why =
                anyhow!("an agent can't trust a place: a person does that, outside of the team");
            return Err(Failure::Usage(why));
        }
        if !yes && (!io::stdin().is_terminal() || !io::stdout().is_terminal()) {
            let why = anyhow!("there is no terminal to ask on: add --yes");
            return Err(Failure::Usage(why));
        }
        trust(&absolute(folder, &place)?, yes)
    }
}

fn trust(place: &Path, is_sure: bool) -> Result<u8, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let mut shown = Ok(());
    let wanted = TrustedPlaces::trust(&eisen_dir, place, |trust| {
        shown = print(said(place, trust));
        shown.is_ok() && (is_sure || is_yes("Trust it?"))
    });
    shown?;
    match wanted {
        Ok(true) => print("it is trusted; a running team takes it with `eisen-core team reload`")
            .map(|()| 0),
        Ok(false) => print("nothing is changed").map(|()| 1),
        Err(error @ TrustError::Unusable { .. }) => Err(Failure::Usage(error.into())),
        Err(error) => Err(Failure::Run(error.into())),
    }
}

/// Where a place led and leads, and what that means.
fn said(place: &Path, Trust { trusted, leads_to }: &Trust) -> String {
    let shown = |path: &Path| escape_controls(&path.display().to_string());
    let trusted = trusted.as_deref().map_or("nowhere yet".to_owned(), shown);
    let (place, leads_to) = (shown(place), shown(leads_to));
    format!(
        "{place}\n  is trusted to lead to  {trusted}\n  leads to               {leads_to}\n\
         Agents whose profile has this place get {leads_to} with everything below it."
    )
}

fn is_yes(question: &str) -> bool {
    let mut answer = String::new();
    let asked = write!(io::stderr(), "{question} [y/N] ");
    asked.and_then(|()| io::stdin().read_line(&mut answer)).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// A place as it was typed: absolute, below the home, or relative to the folder.
fn absolute(folder: Option<PathBuf>, place: &Path) -> Result<PathBuf, Failure> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let place = match (place.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => super::in_folder(folder, place),
    };
    std::path::absolute(place).map_err(|error| Failure::Usage(error.into()))
}
