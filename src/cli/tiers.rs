//! `tiers`: the tiers of the configuration, and which agent each would take now.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::output::{note, plain, print};
use super::run::folder;
use super::table::{Cell, Table};
use crate::failover;
use crate::home;
use crate::program::Failure;
use crate::team_file;
use crate::tiers::{Cooldowns, TierNow, tiers_now};

/// Show the tiers, and which agent each would take now
///
/// A tier is a list of agents that can stand in for one another: `eisen-core run --tier NAME` takes the
/// first one that can work. The list stands in `$EISEN_DIR/config.toml`, with the `eisen.toml` of the
/// current folder, or else of its git repository, laid over it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core runs tiers
  eisen-core runs tiers --json | jq -r '.[] | select(.taken == null) | .name'

Exit codes: 0 done, 2 wrong usage or configuration.")]
pub(super) struct TiersArgs {
    /// Print them as a JSON array
    #[arg(long)]
    json: bool,
}

impl TiersArgs {
    pub(super) fn run(self, cwd: Option<&Path>) -> Result<(), Failure> {
        let folder = folder(cwd).map_err(Failure::Usage)?;
        let shared = team_file::shared_config(&folder)?;
        let kept = Cooldowns::new(&home::eisen_dir().map_err(Failure::Usage)?);
        let (tiers, trouble) = tiers_now(&shared, &kept);
        if let Some(error) = trouble {
            note(format_args!("cannot read the cool-downs, so none counts: {error}"));
        }
        if self.json {
            return print(Value::from(tiers.iter().map(json).collect::<Vec<_>>()));
        }
        if tiers.is_empty() {
            note("there are no tiers: write `[[tiers]]` into $EISEN_DIR/config.toml");
            return Ok(());
        }
        let mut table = Table::new(&["TIER", "CANDIDATE", "NOW"]);
        for tier in &tiers {
            for (at, it) in tier.candidates.iter().enumerate() {
                let now = match &it.hindrance {
                    Some(hindrance) => match hindrance.until {
                        Some(until) => {
                            format!("{} until {}", hindrance.what, failover::clock(until))
                        }
                        None => hindrance.what.clone(),
                    },
                    None if tier.taken() == Some(at) => "would be taken".to_owned(),
                    None => "ready".to_owned(),
                };
                let login = if it.seems_logged_out { ", no login found" } else { "" };
                let name = if at == 0 { tier.name.clone() } else { String::new() };
                table.row(vec![
                    Cell::from(name),
                    plain(&it.candidate.to_string()).into(),
                    plain(&format!("{now}{login}")).into(),
                ]);
            }
        }
        print(table.lines(None).join("\n"))
    }
}

fn json(tier: &TierNow) -> Value {
    let candidates = tier.candidates.iter().map(|it| {
        json!({
            "profile": it.candidate.profile,
            "model": it.candidate.model,
            "thinking": it.candidate.thinking,
            "login_found": !it.seems_logged_out,
            "reason": it.hindrance.as_ref().map(|it| &it.what),
            "until_ms": it.hindrance.as_ref().and_then(|it| it.until),
        })
    });
    let candidates: Vec<_> = candidates.collect();
    let taken = tier.taken().map(|at| candidates[at].clone());
    json!({ "name": tier.name, "pick": tier.pick, "candidates": candidates, "taken": taken })
}
