//! `token`: makes, lists and revokes tokens with a scope.

use std::fmt::Write as _;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::Global;
use super::history::span_ms;
use super::output::{note, plain, print};
use super::table::{Cell, Table};
use super::team::{Which, failed, read};
use crate::app::TokensAtRest;
use crate::failover;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, MethodAnswer};
use crate::wire::{
    AskedRight, CreateToken, Empty, ListTokens, Method, NewScopedToken, RevokeToken, ShownToken,
    TokenCreateParams, TokenRevokeParams,
};

/// Make, list and revoke tokens that open a part of a team
///
/// A token has an owner, rights, and where asked for agents and an end. docs/tokens.md has what each right
/// opens. For a team that does not run, name it by --team.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team token create --owner ada --may read,prompt --agents ui,api --expires 30d
  EISEN_PORT=17320 EISEN_TOKEN=eisen_… eisen-core prompt ui \"Add a footer\"
  eisen-core team token list
  eisen-core team token revoke 3fa9c1d2

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
  eisen-core team token create --owner ci --may prompt --agents ui --expires 12h
  eisen-core team token create --owner ada --may read,decide --json | jq -r .token

Exit codes: 0 done, 1 no such team, or not permitted, 2 wrong usage.")]
    Create {
        /// The person or program that acts by it
        #[arg(long, value_name = "NAME")]
        owner: String,
        /// The rights that it has
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
  eisen-core team token list
  eisen-core team token list --json | jq '.[] | select(.expired)'

Exit codes: 0 done, 1 no such team, or not permitted, 2 wrong usage.")]
    List {
        /// Print them as a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; its connections end at once
    #[command(after_help = "\
Examples:
  eisen-core team token revoke 3fa9c1d2

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
    fn asked(self) -> AskedRight {
        match self {
            Self::Read => AskedRight::Read,
            Self::Prompt => AskedRight::Prompt,
            Self::Decide => AskedRight::Decide,
            Self::Control => AskedRight::Control,
        }
    }
}

/// Reads a span as seconds.
fn span(text: &str) -> Result<u64, String> {
    let wrong = || "write a span such as 90m, 12h or 30d".to_owned();
    let seconds = span_ms(text).ok_or_else(wrong)? / 1000;
    if seconds == 0 { Err(wrong()) } else { Ok(seconds) }
}

/// The process that changes a team's tokens.
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

    async fn ask<M: Method>(&mut self, params: &M::Params) -> Result<MethodAnswer<M>, Failure> {
        match self {
            Self::Team(team) => team.ask(params).await.map_err(failed),
            Self::Own(tokens) => tokens.call(M::FACTS.name, json!(params)).map(MethodAnswer::new),
        }
    }
}

impl TokenArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut keeper = TokenKeeper::of(&self.which, global).await?;
        match self.command {
            TokenCommand::Create { owner, may, agents, expires, json } => {
                let may = may.into_iter().map(RightName::asked).collect();
                let (expires_s, browser) = (expires, false);
                let params = TokenCreateParams { owner, may, agents, expires_s, browser };
                let made = keeper.ask::<CreateToken>(&params).await?;
                if json {
                    return print(made);
                }
                let NewScopedToken { token, shown } = read(&made)?;
                print(plain(&token))?;
                let id = plain(&shown.id);
                note(format_args!(
                    "the token's id is {id}: `eisen-core team token revoke {id}` ends it"
                ));
            }
            TokenCommand::List { json } => {
                let all = keeper.ask::<ListTokens>(&Empty {}).await?;
                if json {
                    return print(all);
                }
                let all = read(&all)?;
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
                let revoked =
                    keeper.ask::<RevokeToken>(&TokenRevokeParams { id: id.into() }).await?;
                let owner = plain(&read(&revoked)?.owner);
                print(format_args!("revoked a token of {owner}"))?;
            }
        }
        Ok(())
    }
}

fn row(token: &ShownToken) -> Vec<Cell> {
    let mut expires = token.expires_ms.map_or_else(|| "never".to_owned(), failover::clock);
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
