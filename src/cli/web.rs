//! `web`: links to the web page of a running team, and tokens for programs.

use std::path::Path;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand, ValueEnum};

use super::Global;
use super::output::{note, plain, print};
use super::phone;
use super::team::{Which, failed, read};
use crate::home;
use crate::kept::{KeptFile, Volatile};
use crate::program::Failure;
use crate::wire::{
    AskedScope, MakeWebLink, MakeWebToken, NewWebLink, NewWebToken, RevokeWeb, WebLinkParams,
    WebRevokeParams, WebRevoked, WebTokenParams,
};

/// Open the web page of a running team
///
/// Prints a link to the page, which is good once and for five minutes: whoever opens it can steer the
/// team from that browser, until the team ends or `web revoke`. The page is served from then on, also
/// if the team was started without `--web`. With a token of `eisen-core team token` in `EISEN_TOKEN`, the link
/// opens what that opens, in the name of its owner, while it is good; that takes the right `read`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  eisen-core web --open              the page, in the browser
  eisen-core web                     a link that opens the page
  eisen-core web --phone https://laptop.tail1234.ts.net
                                     for a phone: a QR code, good for 12 hours
  eisen-core web --phone             by which address a phone gets here, and what to type
  eisen-core web --scope decide      for a browser that only decides what waits
  eisen-core web token --scope read  for Prometheus and scripts
  eisen-core web revoke              all browsers and all tokens, at once
  EISEN_PORT=17320 EISEN_TOKEN=eisen_… eisen-core web
                                     the page, as the holder of a token with a scope

Exit codes: 0 done, 1 no such team, or not permitted, 2 wrong usage."
)]
pub(super) struct WebArgs {
    #[command(subcommand)]
    command: Option<WebCommand>,
    /// The scope of the link [default: control, or all that the token in `EISEN_TOKEN` opens]
    #[arg(long, value_enum, value_name = "SCOPE")]
    scope: Option<ScopeName>,
    /// Make a token for a phone, which for 12 hours sees the team and decides what waits, and show a link of it below URL, the
    /// address by which the phone reaches the page, as a QR code; without URL, say which there may be
    #[arg(long, value_name = "URL", num_args = 0..=1, conflicts_with_all = ["scope", "open"])]
    #[expect(clippy::option_option, reason = "clap reads an option with or without a value so")]
    phone: Option<Option<String>>,
    /// Open the link in the system's browser; it goes there in a file that agents can't read
    #[arg(long)]
    open: bool,
    /// Print link and lifetime as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Subcommand, Debug)]
enum WebCommand {
    /// Print a token for programs, which lasts until it is revoked
    ///
    /// Programs send it as `Authorization: Bearer TOKEN`. It is printed once: the team keeps only its
    /// hash. Its id, by which it is revoked, is printed on standard error.
    #[command(after_help = "\
Examples:
  eisen-core web token --scope read > ~/.eisen/scrape.token
  printf 'header = \"Authorization: Bearer %s\"' \"$(cat ~/.eisen/scrape.token)\" |
    curl -K - http://127.0.0.1:17321/metrics

Agents that are confined can't read `~/.eisen`, but most other files of yours, and the arguments of
all processes.

Exit codes: 0 done, 1 no such team, or not permitted, 2 wrong usage.")]
    Token {
        /// The scope of the token
        #[arg(long, value_enum, value_name = "SCOPE")]
        scope: ScopeName,
        /// Print token, id and address as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token by its id, or all tokens, browsers and links; their connections end at once
    #[command(after_help = "\
Examples:
  eisen-core web revoke           everything
  eisen-core web revoke 3fa9c1d2  one token

Exit codes: 0 done, 1 no such team or id, or not permitted, 2 wrong usage.")]
    Revoke {
        /// The token's id
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
}

/// The scopes, as on the wire.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeName {
    /// See everything, and change nothing
    Read,
    /// Also decide what waits for a person
    Decide,
    /// All that a person may
    Control,
}

impl ScopeName {
    fn asked(self) -> AskedScope {
        match self {
            Self::Read => AskedScope::Read,
            Self::Decide => AskedScope::Decide,
            Self::Control => AskedScope::Control,
        }
    }
}

impl WebArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        if let Some(address) = &self.phone {
            return phone::open(address.as_deref(), &self.which, global, self.json).await;
        }
        let mut team = self.which.connect(global).await?;
        match self.command {
            None => {
                let params = WebLinkParams { scope: self.scope.map(ScopeName::asked) };
                let link = team.ask::<MakeWebLink>(&params).await.map_err(failed)?;
                let NewWebLink { url, expires_s } = read(&link)?;
                if self.json {
                    print(link)?;
                } else {
                    print(plain(&url))?;
                }
                if self.open {
                    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
                    open_browser(&url, &eisen_dir).map_err(Failure::Run)?;
                    note(
                        "a browser that can't read that file (a snap, a flatpak) takes the link by hand",
                    );
                }
                if !self.json {
                    let minutes = expires_s / 60;
                    note(format_args!(
                        "the link is good once, for {minutes} minutes; keep it to yourself"
                    ));
                }
            }
            Some(WebCommand::Token { scope, json }) => {
                let params = WebTokenParams { scope: scope.asked() };
                let made = team.ask::<MakeWebToken>(&params).await.map_err(failed)?;
                if json {
                    return print(made);
                }
                let NewWebToken { id, token, url } = read(&made)?;
                print(plain(&token))?;
                let id = plain(&id);
                match url {
                    Some(url) => note(format_args!("it is good at {}", plain(&url))),
                    None => note("the web server does not run yet: `eisen-core web` starts it"),
                }
                note(format_args!("the token's id is {id}: `eisen-core web revoke {id}` ends it"));
            }
            Some(WebCommand::Revoke { id }) => {
                let revoked =
                    team.call::<RevokeWeb>(&WebRevokeParams { id: id.map(Into::into) }).await;
                let WebRevoked { revoked: number } = revoked.map_err(failed)?;
                let what = if number == 1 { "credential" } else { "credentials" };
                print(format_args!("revoked {number} {what}"))?;
            }
        }
        Ok(())
    }
}

/// Opens a link in the system's browser. A browser's arguments can be read by all processes: the link
/// is in a file, and only its path is an argument.
fn open_browser(url: &str, eisen_dir: &Path) -> anyhow::Result<()> {
    let page = leading_page(url)?;
    let file = eisen_dir.join("web-link.html");
    let kept = KeptFile::<Volatile>::new(&file, page.len() as u64);
    kept.replace(page.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    open::that_detached(&file)
        .context("cannot start a browser: paste the link into the address bar of one")
}

/// A page that leads to a link.
fn leading_page(url: &str) -> anyhow::Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?[]@=%".contains(c);
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    ensure!(is_web && url.chars().all(is_plain), "the team's answer is no link to a web page");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>eisen-core</title>\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n\
         <a href=\"{url}\">The page of the team</a></html>\n"
    ))
}
