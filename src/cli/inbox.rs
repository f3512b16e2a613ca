//! `inbox`: what waits for a decision, and the decisions.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;

use super::Global;
use super::blocked::{self, BlockedArgs};
use super::conflicts::{self, ConflictsArgs};
use super::output::{note, print};
use super::reasons::Reasons;
use super::resolve::{AllowArgs, AnswerArgs, DecideArgs, Decision, DenyArgs, Resolve};
use super::team::{failed, read, rows};
use crate::model::BlockedStatus;
use crate::program::Failure;
use crate::serve::client::Connection;
use crate::wire::{Exact, ListBlocked, ListBlockedParams};

/// Show what waits for a decision, and decide it
///
/// Shows the accesses that were blocked outside a zone and wait for a decision, each with what its agent said and
/// did before and a command that allows what it needs, and below them the writes that wait since another agent has
/// the file locked; oldest first.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  eisen-core inbox                    what waits for a decision
  eisen-core inbox allow b3 --scope session
  eisen-core inbox deny b3 --message \"ask api\"
  eisen-core inbox --all              also what was decided, the last 10,000 accesses
  eisen-core inbox -f                 follow what comes to wait
  eisen-core inbox conflicts --locks  the locks that are held

Exit codes: 0 done, 1 no such team or it ended, 2 wrong usage."
)]
pub(super) struct InboxArgs {
    #[command(subcommand)]
    decision: Option<InboxPart>,
    /// All blocked accesses, also those that wait no longer
    #[arg(short, long, conflicts_with = "status")]
    all: bool,
    #[command(flatten)]
    list: BlockedArgs,
}

#[derive(Subcommand, Debug)]
enum InboxPart {
    /// Allow a blocked access, or a write in conflict
    ///
    /// If the access was denied already, the agent may retry it. The decision also applies to pending
    /// accesses of the same agent to the same path with the same action. No agent can allow a path that
    /// matches a pattern of `denied`. A person can, with --even-denied.
    #[command(after_help = "\
Examples:
  eisen-core inbox allow b1                  for this tool call
  eisen-core inbox allow b1 --scope session  for this path, until the session ends
  eisen-core inbox allow b1 --scope session --match 'test/**'
  eisen-core inbox allow b1 --scope team     until `team grants revoke`, also in later runs
  eisen-core inbox allow --match 'src/api/**' --agent ui
  eisen-core inbox allow c2                  let a write in conflict go on

Exit codes: 0 decided, 1 refused or no such team, 2 wrong usage.")]
    Allow {
        #[command(flatten)]
        about: DecideArgs,
        #[command(flatten)]
        how: AllowArgs,
    },
    /// Deny a blocked access, or a write in conflict
    #[command(after_help = "\
Examples:
  eisen-core inbox deny b2 --message \"ask api\"
  eisen-core inbox deny --all  everything that waits for a decision

Exit codes: 0 decided, 1 refused or no such team, 2 wrong usage.")]
    Deny {
        #[command(flatten)]
        about: DecideArgs,
        #[command(flatten)]
        how: DenyArgs,
    },
    /// Answer a read with content of your own
    #[command(after_help = "\
Examples:
  eisen-core inbox answer b1 \"total() includes the discount\"
  eisen-core inbox answer b1 --file total.txt

Exit codes: 0 decided, 1 refused or no such team, 2 wrong usage.")]
    Answer {
        #[command(flatten)]
        about: DecideArgs,
        /// The content; `-` reads standard input
        text: Option<String>,
        /// A file with the content
        #[arg(long, value_name = "PATH", conflicts_with = "text")]
        file: Option<PathBuf>,
        /// Even if a pattern of `denied` matches; only a person can use this
        #[arg(long)]
        even_denied: bool,
    },
    Conflicts(ConflictsArgs),
}

impl InboxArgs {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        match self.decision {
            None => list(self.list, self.all, global).await.map(|()| 0),
            Some(InboxPart::Conflicts(conflicts)) => conflicts.run(global).await.map(|()| 0),
            Some(InboxPart::Allow { about, how }) => {
                about.check(true)?;
                match conflict(&about) {
                    Some(_) if how.is_more() || about.has_pattern() => {
                        let why = "a write in conflict is allowed once: give no more than its id";
                        Err(Failure::Usage(anyhow!(why)))
                    }
                    Some(id) => decide(ConflictsArgs::allowing(id, about), global).await,
                    None => Resolve { about, decision: Decision::Allow(how) }.run(global).await,
                }
            }
            Some(InboxPart::Deny { about, how }) => {
                about.check(false)?;
                match conflict(&about) {
                    Some(id) => {
                        decide(ConflictsArgs::denying(id, how.message, about), global).await
                    }
                    None => Resolve { about, decision: Decision::Deny(how) }.run(global).await,
                }
            }
            Some(InboxPart::Answer { mut about, mut text, file, even_denied }) => {
                // With --all or --match there is no id, and the only word is the content.
                if about.is_several() && text.is_none() {
                    text = about.id.take();
                }
                if text.is_none() && file.is_none() {
                    let why = "say what the answer is: a text, `-`, or --file PATH";
                    return Err(Failure::Usage(anyhow!(why)));
                }
                let answer = AnswerArgs { text, file, even_denied };
                Resolve { about, decision: Decision::Answer(answer) }.run(global).await
            }
        }
    }
}

async fn list(mut list: BlockedArgs, all: bool, global: &Global) -> Result<(), Failure> {
    if all || list.status.is_some() {
        return list.run(global).await;
    }
    if list.follow {
        list.status = Some(blocked::Status::Pending);
        return list.run(global).await;
    }
    let target = list.which.find(global)?;
    let mut team = Connection::open(&target).await.map_err(failed)?;
    let pending = ListBlockedParams { status: Some(Exact(BlockedStatus::Pending)) };
    let accesses = team.ask::<ListBlocked>(&pending).await.map_err(failed)?;
    let listed = rows(&accesses);
    let program = list.which.program("eisen-core", global);
    let reasons = Reasons::of(&mut team, &listed, program).await?;
    let writes = conflicts::pending(&mut team).await?;
    let writes = writes.as_ref().map(read).transpose()?.map(|writes| writes.conflicts);
    let writes = writes.unwrap_or_default();
    if list.json {
        return print(json!({ "blocked": reasons.add(&accesses.json), "conflicts": writes }));
    }
    if !listed.is_empty() {
        let mut lines = blocked::table(&listed).lines(None).into_iter();
        lines.next().map(print).transpose()?;
        for (access, line) in listed.iter().zip(lines) {
            print(line)?;
            reasons.lines(access).iter().try_for_each(|line| print(format_args!("    {line}")))?;
        }
    }
    if !writes.is_empty() {
        print(conflicts::of(&writes).lines(None).join("\n"))?;
    } else if listed.is_empty() {
        note("nothing waits for a decision");
    }
    Ok(())
}

/// The conflict that is named in the place of an access, such as `c3`, or `HOST/c3` at a hub.
fn conflict(about: &DecideArgs) -> Option<String> {
    let id = about.id.as_deref()?;
    let number = id.rsplit('/').next()?.strip_prefix('c')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| id.to_owned())
}

async fn decide(conflicts: ConflictsArgs, global: &Global) -> Result<u8, Failure> {
    conflicts.run(global).await.map(|()| 0)
}
