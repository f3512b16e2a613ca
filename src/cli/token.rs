//! `token`: makes, lists and revokes tokens with a scope.

use std::fmt::Write as _;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::Global;
use super::history::span_ms;
use super::output::{note, plain, print};
use super::table::{Cell, Table};
use super::team::{Which, failed, read};
use crate::app::{self, Failure, TokensAtRest};
use crate::serve::client::{ClientError, Connection};
use crate::wire::{NewScopedToken, ShownToken};

/// Make, list and revoke tokens that open a part of a team
///
/// A token has an owner, rights, and where asked for agents and an end. docs/tokens.md has what each right
/// opens. For a team that does not run, name it by --team.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core token create --owner ada --may read,prompt --agents ui,api --expires 30d
  EISEN_PORT=17320 EISEN_TOKEN=eisen_… eisen-core prompt ui \"Add a footer\"
  eisen-core token list
  eisen-core token revoke 3fa9c1d2

Exit codes: 0 done, 1 no such team or token, or not permitted, 2 wrong usage.")]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
    #[command(flatten)]
    which: Which,
}

#[derive(Subcommand, Debug)]
enum TokenCommand {
    /// Print a new token, this once: the team keeps only its hash
    #[command(after_help = "\
Examples:
  eisen-core token create --owner ci --may prompt --agents ui --expires 12h
  eisen-core token create --owner ada --may read,decide --json | jq -r .token

Exit codes: 0 done, 1 no such team, or not permitted, 2 wrong usage.")]
    Create {
        /// Who acts by it
        #[arg(long, value_name = "NAME")]
        owner: String,
        /// What it opens
        #[arg(long, value_name = "RIGHTS", value_enum, value_delimiter = ',', required = true)]
        may: Vec<RightName>,
        /// The agents that it is for [default: all]
        #[arg(long, value_name = "AGENTS", value_delimiter = ',')]
        agents: Option<Vec<String>>,
        /// How long it is good, such as 90m, 12h or 30d [default: until it is revoked]
        #[arg(long, value_name = "SPAN", value_parser = span)]
        expires: Option<u64>,
        /// Print token and id as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the tokens, without what opens
    #[command(after_help = "\
Examples:
  eisen-core token list
  eisen-core token list --json | jq '.[] | select(.expired)'

Exit codes: 0 done, 1 no such team, or not permitted, 2 wrong usage.")]
    List {
        /// Print them as a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; its connections end at once
    #[command(after_help = "\
Examples:
  eisen-core token revoke 3fa9c1d2

Exit codes: 0 done, 1 no such team or token, or not permitted, 2 wrong usage.")]
    Revoke {
        /// The token's id
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// The rights, as on the wire.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RightName {
    /// See what the team did and does
    Read,
    /// Give agents work, and cancel it
    Prompt,
    /// Decide what waits for a person
    Decide,
    /// Steer the team
    Control,
}

impl RightName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Prompt => "prompt",
            Self::Decide => "decide",
            Self::Control => "control",
        }
    }
}

/// Reads a span as seconds.
fn span(text: &str) -> Result<u64, String> {
    let wrong = || "write a span such as 90m, 12h or 30d".to_owned();
    let seconds = span_ms(text).ok_or_else(wrong)? / 1000;
    if seconds == 0 { Err(wrong()) } else { Ok(seconds) }
}

/// Who changes a team's tokens.
enum TokenKeeper {
    /// The team, which runs.
    Team(Connection),
    /// This process.
    Own(TokensAtRest),
}

impl TokenKeeper {
    async fn of(which: &Which, global: &Global) -> Result<Self, Failure> {
        let failure = match which.connect(global).await {
            Ok(team) => return Ok(Self::Team(team)),
            Err(failure) => failure,
        };
        let (Some(team), Some(ClientError::NotRunning { .. })) =
            (&which.team, failure.error().downcast_ref())
        else {
            return Err(failure);
        };
        let tokens = TokensAtRest::of(team)?.ok_or(failure)?;
        note(format_args!("the team `{}` does not run: its next start knows this", plain(team)));
        Ok(Self::Own(tokens))
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        match self {
            Self::Team(team) => team.call(method, &params).await.map_err(failed),
            Self::Own(tokens) => tokens.call(method, params),
        }
    }
}

impl TokenArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut keeper = TokenKeeper::of(&self.which, global).await?;
        let mut call = async |method: &str, params: Value| keeper.call(method, params).await;
        match self.command {
            TokenCommand::Create { owner, may, agents, expires, json } => {
                let may: Vec<_> = may.into_iter().map(RightName::as_str).collect();
                let params =
                    json!({ "owner": owner, "may": may, "agents": agents, "expires_s": expires });
                let made = call("token_create", params).await?;
                if json {
                    return print(made);
                }
                let NewScopedToken { token, shown } = read(&made)?;
                print(plain(&token))?;
                let id = plain(&shown.id);
                note(format_args!(
                    "the token's id is {id}: `eisen-core token revoke {id}` ends it"
                ));
            }
            TokenCommand::List { json } => {
                let all = call("token_list", json!({})).await?;
                if json {
                    return print(all);
                }
                let all: Vec<ShownToken> = read(&all)?;
                if all.is_empty() {
                    note("there are no tokens with a scope");
                    return Ok(());
                }
                let mut table = Table::new(&["TOKEN", "OWNER", "MAY", "AGENTS", "EXPIRES"]);
                for token in &all {
                    table.row(row(token));
                }
                print(table.lines(None).join("\n"))?;
            }
            TokenCommand::Revoke { id } => {
                let revoked = call("token_revoke", json!({ "id": id })).await?;
                let owner = plain(&read::<ShownToken>(&revoked)?.owner);
                print(format_args!("revoked a token of {owner}"))?;
            }
        }
        Ok(())
    }
}

fn row(token: &ShownToken) -> Vec<Cell> {
    let mut expires = token.expires_ms.map_or_else(|| "never".to_owned(), app::clock);
    if token.expired {
        let _ = write!(expires, " (expired)");
    }
    let agents = token.agents.as_ref().map(|agents| plain(&agents.join(", ")));
    vec![
        plain(&token.id).into(),
        plain(&token.owner).into(),
        plain(&token.may.join(", ")).into(),
        agents.unwrap_or_else(|| "all".to_owned()).into(),
        expires.into(),
    ]
}
