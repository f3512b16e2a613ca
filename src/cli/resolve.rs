//! `resolve`: decides blocked accesses.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};

use super::Global;
use super::blocked::describe;
use super::many::{Many, about};
use super::output::print;
use super::team::{Which, failed, read};
use crate::program::Failure;
use crate::wire::{DecisionParam, GrantScope, ResolveBlocked};

/// Decide a blocked access
///
/// The decision also applies to pending accesses of the same agent to the same path with the same
/// action.
#[derive(Args, Debug)]
#[command(
    subcommand_value_name = "allow|deny|answer",
    after_help = "\
Examples:
  eisen-core inbox                           accesses that wait for a decision
  eisen-core inbox allow b1                  for this tool call
  eisen-core inbox allow b1 --scope session  for this path, until the session ends
  eisen-core inbox answer b1 \"total() includes the discount\"
  eisen-core inbox deny b2 --message \"ask api\"
  eisen-core inbox deny --all                everything that waits for a decision
  eisen-core inbox allow --match 'src/api/**' --agent ui
  eisen-core inbox allow b1 --scope team --match 'test/**'

No agent can allow a path that matches a pattern of `denied`. A person can, with --even-denied.

Exit codes: 0 decided, 1 refused or no such team, 2 wrong usage."
)]
pub(super) struct Resolve {
    #[command(flatten)]
    pub(super) about: DecideArgs,
    #[command(subcommand)]
    pub(super) decision: Decision,
}

/// Selects what is decided.
#[derive(Args, Debug)]
pub(super) struct DecideArgs {
    /// Id of the blocked access, for example b3
    pub(super) id: Option<String>,
    #[command(flatten)]
    many: Many,
    /// Print the access as JSON; several as an array
    #[arg(long, global = true)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) which: Which,
}

impl DecideArgs {
    /// Checks that it names one, or several.
    pub(super) fn check(&self, allows: bool) -> Result<(), Failure> {
        self.many.check(self.id.as_deref(), allows).map_err(Failure::Usage)
    }

    /// Whether it gives a pattern.
    pub(super) fn has_pattern(&self) -> bool {
        self.many.pattern().is_some()
    }

    /// Whether it names no single access.
    pub(super) fn is_several(&self) -> bool {
        self.many.is_several()
    }
}

#[derive(Subcommand, Debug)]
pub(super) enum Decision {
    /// Allow the access; if it was denied already, the agent may retry it
    Allow(AllowArgs),
    /// Deny the access
    Deny(DenyArgs),
    /// Answer a read with content of your own
    Answer(AnswerArgs),
}

/// How an access is allowed.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct AllowArgs {
    /// For how long: this tool call, this path until the session ends, or until a person revokes it by `team
    /// grants revoke`. With an id and --match all that matches
    #[arg(long, visible_alias = "for", default_value = "once")]
    scope: ScopeArg,
    /// Seconds until the permission expires
    #[arg(long, value_name = "S", value_parser = seconds)]
    ttl: Option<f64>,
    /// Even if a pattern of `denied` matches; only a person can use this
    #[arg(long)]
    even_denied: bool,
    /// If the agent no longer waits: tell it with its next prompt to try again
    #[arg(long)]
    tell: bool,
}

impl AllowArgs {
    /// Whether it says more than that the access may take place.
    pub(super) fn is_more(&self) -> bool {
        self.scope != ScopeArg::Once || self.ttl.is_some() || self.even_denied || self.tell
    }
}

/// How an access is denied.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct DenyArgs {
    /// Message to the agent
    #[arg(long, value_name = "TEXT")]
    pub(super) message: Option<String>,
}

/// The answer to a read.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct AnswerArgs {
    /// The content; `-` reads standard input
    #[arg(required_unless_present = "file")]
    pub(super) text: Option<String>,
    /// A file with the content
    #[arg(long, value_name = "PATH", conflicts_with = "text")]
    pub(super) file: Option<PathBuf>,
    /// Even if a pattern of `denied` matches; only a person can use this
    #[arg(long)]
    pub(super) even_denied: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum ScopeArg {
    /// This tool call
    Once,
    /// Until the session ends
    Session,
    /// Until it is revoked, also in later runs of the team; only a person can use this
    Team,
}

impl Resolve {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let DecideArgs { id, many, json, which } = self.about;
        let allows = matches!(self.decision, Decision::Allow(_));
        many.check(id.as_deref(), allows).map_err(Failure::Usage)?;
        let folder = global.cwd.clone().unwrap_or_default();
        if id.is_none() && self.decision.is_for_team() {
            let why = "`--scope team` needs the id of an access; --match beside it says what else it opens";
            return Err(Failure::Usage(anyhow!(why)));
        }
        let pattern = id.as_ref().and_then(|_| many.pattern());
        let decision = self.decision.verdict(&folder, pattern).map_err(Failure::Usage)?;
        let mut team = which.connect(global).await?;
        let Some(id) = id else { return many.decide(team, &decision, json).await };
        let access = team.ask::<ResolveBlocked>(&about(&decision, &id)).await.map_err(failed)?;
        if json { print(access) } else { print(describe(&read(&access)?)) }?;
        Ok(0)
    }
}

impl Decision {
    fn is_for_team(&self) -> bool {
        matches!(self, Self::Allow(AllowArgs { scope: ScopeArg::Team, .. }))
    }

    /// `pattern`: of all that is allowed with one access.
    fn verdict(self, folder: &Path, pattern: Option<String>) -> anyhow::Result<DecisionParam> {
        Ok(match self {
            Self::Allow(AllowArgs { scope, ttl, even_denied, tell }) => {
                let scope = Some(match scope {
                    ScopeArg::Once => GrantScope::Once,
                    ScopeArg::Session => GrantScope::Session,
                    ScopeArg::Team => GrantScope::Team,
                });
                DecisionParam::Allow { scope, ttl_s: ttl, pattern, even_denied, tell }
            }
            Self::Deny(DenyArgs { message }) => DecisionParam::Deny { message },
            Self::Answer(AnswerArgs { text, file, even_denied }) => {
                let content = content(text, file.map(|file| folder.join(file)))?;
                DecisionParam::Answer { content, even_denied }
            }
        })
    }
}

/// Parses a positive, finite number of seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && f64::is_finite(seconds) => Ok(seconds),
        _ => Err("expected a number of seconds above 0".to_owned()),
    }
}

fn content(text: Option<String>, file: Option<PathBuf>) -> anyhow::Result<String> {
    match (text, file) {
        (_, Some(file)) => std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read the content from {}", file.display())),
        (Some(text), None) if text != "-" => Ok(text),
        _ => {
            let mut content = String::new();
            std::io::stdin()
                .read_to_string(&mut content)
                .context("cannot read the content from standard input")?;
            Ok(content)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser as _;
    use serde_json::{json, to_value};

    use crate::cli::{Cli, Command};

    #[test]
    fn a_decision_becomes_params() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("content"), "of a file\n").unwrap();
        for (args, params) in [
            (
                &["allow"][..],
                json!({ "decision": "allow", "scope": "once", "ttl_s": null, "even_denied": false }),
            ),
            (
                &["allow", "--scope", "session", "--ttl", "1.5"],
                json!({ "decision": "allow", "scope": "session", "ttl_s": 1.5, "even_denied": false }),
            ),
            (
                &["allow", "--even-denied"],
                json!({
                    "decision": "allow", "scope": "once", "ttl_s": null, "even_denied": true,
                }),
            ),
            (&["deny"], json!({ "decision": "deny", "message": null })),
            (&["deny", "--message", "no"], json!({ "decision": "deny", "message": "no" })),
            (
                &["answer", "text"],
                json!({ "decision": "answer", "content": "text", "even_denied": false }),
            ),
            (
                &["answer", "--file", "content"],
                json!({ "decision": "answer", "content": "of a file\n", "even_denied": false }),
            ),
        ] {
            let line = ["eisen-core", "resolve", "b1"].iter().chain(args);
            let Command::Resolve(resolve) = Cli::try_parse_from(line).unwrap().command else {
                panic!("{args:?}");
            };
            let verdict = resolve.decision.verdict(folder.path(), None).unwrap();
            assert_eq!(to_value(verdict).unwrap(), params);
        }
    }
}
