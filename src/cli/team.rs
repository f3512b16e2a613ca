//! `--team`: selects the running team of a command, and connects to it.

use clap::Args;

use super::Global;
use crate::app::{self, Failure};
use crate::serve::client::{ClientError, Connection, Environment, Target};

/// Selects one of the running teams.
#[derive(Args, Clone, Debug)]
pub(super) struct Which {
    /// The team, if several run [default: `EISEN_TEAM`, or the only running team]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
}

impl Which {
    pub(super) fn find(&self, global: &Global) -> Result<Target, Failure> {
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let environment = Environment::of_process();
        Target::find(&environment, &eisen_dir, self.team.as_deref(), global.port).map_err(failed)
    }

    pub(super) async fn connect(&self, global: &Global) -> Result<Connection, Failure> {
        Connection::open(&self.find(global)?).await.map_err(failed)
    }
}

pub(super) fn failed(error: ClientError) -> Failure {
    Failure::Run(error.into())
}
