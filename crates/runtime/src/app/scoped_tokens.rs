//! The tokens with a scope of a team, whether it runs or not.

use std::path::Path;

use anyhow::anyhow;
use serde_json::Value;
use tracing::warn;

use crate::home::environment;
use crate::home::journals::team_folder;
use crate::model::is_name;
use crate::program::Failure;
use crate::serve::{self, Handles};
use crate::tokens::ScopedTokens;

/// The tokens of a team that does not run.
#[derive(Debug)]
pub struct TokensAtRest(ScopedTokens);

impl TokensAtRest {
    /// None: no team with this name ran before.
    pub fn of(team: &str) -> Result<Option<Self>, Failure> {
        let folder = team_folder(&environment::eisen_dir().map_err(Failure::Usage)?, team);
        if !is_name(team) || !folder.is_dir() {
            return Ok(None);
        }
        let opened = ScopedTokens::open(&folder).map_err(|error| Failure::Run(error.into()))?;
        Ok(Some(Self(opened)))
    }

    /// Performs a method of the port about tokens, as the team would.
    pub fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let outcome = serve::call_about_tokens(&self.0, method, params);
        outcome.map_err(|refused| Failure::Run(anyhow!(refused.message)))
    }
}

/// Adds a team's tokens to its sources. A file that can't be read opens nothing, and is said.
pub(super) fn with_tokens(handles: Handles, eisen_dir: &Path) -> Handles {
    let Some(team) = &handles.team else { return handles };
    match ScopedTokens::open(&team_folder(eisen_dir, team)) {
        Ok(tokens) => Handles { scoped_tokens: Some(tokens), ..handles },
        Err(error) => {
            warn!(%error, "no token with a scope is good");
            handles
        }
    }
}
