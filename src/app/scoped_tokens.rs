//! The tokens with a scope of a running team.

use std::path::Path;

use tracing::warn;

use super::journaling::team_folder;
use crate::serve::Handles;
use crate::tokens::ScopedTokens;

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
