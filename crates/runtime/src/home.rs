//! Owns what lies where in `$EISEN_DIR`, which team and configuration a folder belongs to, and what killed runs leave.

pub(crate) mod environment;
pub(crate) mod here;
pub(crate) mod journals;
pub(crate) mod leftovers;
mod parent_agent;
pub(crate) mod scratch;

pub use environment::{DepthError, cache_folder, eisen_dir, eisen_place, own_command};
pub use here::{CONFIG, config_of, journals_of, teams_of};
pub use journals::{journal_place, teams_with_journals, workspace_of};
pub use parent_agent::team_above;
pub use scratch::is_copy;
