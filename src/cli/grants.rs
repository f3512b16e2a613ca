//! `team grants`: lists what persons allowed for the team, and revokes it.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;

use super::Global;
use super::output::{plain, print};
use super::table::Table;
use super::team::{Which, environment, failed, read, rows};
use crate::access::grants;
use crate::home;
use crate::model::is_name;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, Target};
use crate::serve::grant_row;
use crate::wire::{Empty, GrantRow, ListGrants, RevokeGrant, RevokeGrantParams};

/// Show what persons allowed for the team, and revoke it
///
/// `inbox allow … --scope team` allows so. It outlasts the team: a grant ends when it is revoked. The team need
/// not run.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  eisen-core team grants
  eisen-core team grants revoke g1

Exit codes: 0 done, 1 refused or no such team, 2 wrong usage."
)]
pub(super) struct GrantsArgs {
    #[command(subcommand)]
    action: Option<GrantsAction>,
    /// Print the grants as JSON, on one line
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Subcommand, Debug)]
enum GrantsAction {
    /// End a grant: what it allowed is outside the zone again, at once
    #[command(after_help = "\
Examples:
  eisen-core team grants revoke g1

Exit codes: 0 ended, 1 refused or no such grant, 2 wrong usage.")]
    Revoke {
        /// Its id, such as g1
        id: String,
    },
}

/// Where the grants are.
enum GrantsPlace {
    Running(Connection),
    /// In the file of this team.
    Kept(String),
}

impl GrantsArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let place = self.place(global).await?;
        match &self.action {
            Some(GrantsAction::Revoke { id }) => self.revoke(place, id, global).await,
            None => self.list(place, global).await,
        }
    }

    async fn list(&self, place: GrantsPlace, global: &Global) -> Result<(), Failure> {
        let (grants, kept);
        let list: Vec<GrantRow<'_>> = match place {
            GrantsPlace::Running(mut team) => {
                grants = team.ask::<ListGrants>(&Empty {}).await.map_err(failed)?;
                if self.json {
                    return print(grants);
                }
                rows(&grants)
            }
            GrantsPlace::Kept(team) => {
                let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
                let folder = global.cwd.clone().unwrap_or_default();
                kept = grants::of_team(&eisen_dir, &team, &folder).map_err(Failure::Run)?;
                kept.iter().map(grant_row).collect()
            }
        };
        if self.json {
            return print(json!(list));
        }
        if list.is_empty() {
            return print(
                "Nothing is allowed for the team: `inbox allow ID --scope team` does that.",
            );
        }
        print(table(&list).lines(None).join("\n"))
    }

    async fn revoke(&self, place: GrantsPlace, id: &str, global: &Global) -> Result<(), Failure> {
        let team = match place {
            GrantsPlace::Running(team) => return self.revoke_running(team, id).await,
            GrantsPlace::Kept(team) => team,
        };
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let revoked = grants::revoke(&eisen_dir, &team, id).map_err(Failure::Run)?;
        // It may have started meanwhile, with what it read before.
        if let GrantsPlace::Running(mut team) = self.place(global).await? {
            let params = RevokeGrantParams { id: id.to_owned().into() };
            match team.ask::<RevokeGrant>(&params).await {
                Ok(_) | Err(ClientError::Refused { code: 404, .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let none = || anyhow!("the team `{}` has no grant {}", plain(&team), plain(id));
        let revoked = revoked.ok_or_else(|| Failure::Run(none()))?;
        self.tell(&grant_row(&revoked))
    }

    async fn revoke_running(&self, mut team: Connection, id: &str) -> Result<(), Failure> {
        let params = RevokeGrantParams { id: id.to_owned().into() };
        let revoked = team.ask::<RevokeGrant>(&params).await.map_err(failed)?;
        self.tell(&read(&revoked)?)
    }

    fn tell(&self, revoked: &GrantRow<'_>) -> Result<(), Failure> {
        if self.json {
            return print(json!(revoked));
        }
        print(format!(
            "{}: revoked: {} may no longer {} {}",
            plain(&revoked.id),
            plain(&revoked.agent_id),
            plain(revoked.action.as_str()),
            plain(opened(revoked)),
        ))
    }

    async fn place(&self, global: &Global) -> Result<GrantsPlace, Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let (environment, team) = (environment(global, &eisen_dir), self.which.team.as_deref());
        match Target::find(&environment, &eisen_dir, team, global.port) {
            Ok(target) => Connection::open(&target).await.map_err(failed).map(GrantsPlace::Running),
            Err(ClientError::NotRunning { wanted, .. }) if is_name(&wanted) => {
                Ok(GrantsPlace::Kept(wanted))
            }
            Err(ClientError::NotHere { here, running }) => match <[String; 1]>::try_from(here) {
                Ok([team]) => Ok(GrantsPlace::Kept(team)),
                Err(here) => Err(failed(ClientError::NotHere { here, running })),
            },
            Err(error) => Err(failed(error)),
        }
    }
}

fn opened<'a>(grant: &'a GrantRow<'_>) -> &'a str {
    grant.pattern.as_deref().unwrap_or(&grant.path)
}

fn table(rows: &[GrantRow<'_>]) -> Table {
    let mut table = Table::new(&["ID", "AGENT", "ACTION", "BY", "ALLOWED"]);
    for row in rows {
        let mut notes = Vec::new();
        notes.extend(row.pattern.as_ref().map(|_| format!("asked for {}", plain(&row.path))));
        notes.extend(row.even_denied.then(|| "though it is denied".to_owned()));
        notes.extend(row.workspace.as_ref().map(|it| format!("of {}, not here", plain(it))));
        let is_gone = !row.applies && row.workspace.is_none();
        notes.extend(is_gone.then(|| "the team has no such agent of its own".to_owned()));
        let notes =
            if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        table.row(vec![
            plain(&row.id).into(),
            plain(&row.agent_id).into(),
            plain(row.action.as_str()).into(),
            plain(&row.decided_by).into(),
            format!("{}{notes}", plain(opened(row))).into(),
        ]);
    }
    table
}
