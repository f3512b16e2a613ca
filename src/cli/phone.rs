//! `web --phone`: a link for a phone, as a QR code, of a token that ends by itself.

mod code;
mod ways;

use std::net::IpAddr;

use anyhow::{anyhow, bail};
use nix::unistd::{User, getuid};
use serde::Serialize;

use super::Global;
use super::output::{is_terminal, note, plain, print};
use super::team::{Which, failed};
use crate::config::normal_origin;
use crate::failover;
use crate::model::is_name;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, Target};
use crate::wire::{
    AskedRight, AskedScope, CreateToken, MakeWebLink, NewScopedToken, NewWebLink, RevokeToken,
    ShownToken, TokenCreateParams, TokenRevokeParams, WebLinkParams,
};

/// How long the token of a phone is good.
const LASTS_S: u64 = 12 * 60 * 60;

/// Bytes of an address.
const LONGEST_ADDRESS: usize = 300;

/// A link for a phone, for `--json`.
#[derive(Serialize, Debug)]
struct PhoneLink<'a> {
    url: &'a str,
    /// Seconds that the link is good, once.
    expires_s: u64,
    token: &'a ShownToken,
}

/// Makes a token for a phone, and shows a link of it below `address`. Without an address it says which ones there may be,
/// and what to type.
pub(super) async fn open(
    address: Option<&str>,
    which: &Which,
    global: &Global,
    json: bool,
) -> Result<(), Failure> {
    let Some(address) = address else {
        print(ways::find(global).await)?;
        let why = "say by which address the phone reaches the page: `eisen-core web --phone URL`";
        return Err(Failure::Usage(anyhow!(why)));
    };
    let origin = origin_of(address).map_err(Failure::Usage)?;
    let target = which.find(global)?;
    let mut team = Connection::open(&target).await.map_err(failed)?;
    let served = served_origin(&mut team).await?;
    if served != origin {
        return Err(Failure::Usage(anyhow!(other_origin(&origin, &served))));
    }
    let params = TokenCreateParams {
        owner: owner(),
        may: vec![AskedRight::Read, AskedRight::Decide],
        agents: None,
        expires_s: Some(LASTS_S),
        browser: true,
    };
    let made = team.call::<CreateToken>(&params).await.map_err(failed)?;
    let NewScopedToken { token, shown } = made;
    let link = match link_of_holder(&target.with_token(&token)).await {
        Ok(link) => link,
        Err(error) => {
            // Nobody has it.
            let _ = team.call::<RevokeToken>(&TokenRevokeParams { id: shown.id.into() }).await;
            return Err(failed(error));
        }
    };
    let NewWebLink { url, expires_s } = link;
    if json {
        let link = PhoneLink { url: &url, expires_s, token: &shown };
        let json = serde_json::to_string(&link);
        return print(json.map_err(|error| Failure::Run(error.into()))?);
    }
    print(plain(&url))?;
    let (owner, minutes) = (plain(&shown.owner), expires_s / 60);
    let end = shown.expires_ms.map_or_else(|| "its end".to_owned(), failover::clock);
    note(format_args!("scan it, or open the link: it is good once, for {minutes} minutes"));
    note(format_args!(
        "whoever opens it sees the team and decides what waits, as {owner}, until {end}, or until the team ends"
    ));
    let program = which.program("eisen-core team token revoke", global);
    note(format_args!("`{program} {}` ends that at once", plain(&shown.id)));
    // It comes last: a terminal of 24 lines then has all of it on the screen.
    if is_terminal() { show_code(&url) } else { Ok(()) }
}

fn show_code(url: &str) -> Result<(), Failure> {
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    match code::drawn(url) {
        Some(drawn) if columns.is_none_or(|columns| drawn.columns <= columns) => print(drawn.text),
        Some(drawn) => {
            note(format_args!("the QR code takes a terminal of {} columns", drawn.columns));
            Ok(())
        }
        None => Ok(()),
    }
}

/// The owner of the token: who calls, by the name of the login.
fn owner() -> String {
    let user = User::from_uid(getuid()).ok().flatten().map(|user| user.name);
    user.filter(|name| is_name(name)).unwrap_or_else(|| "phone".to_owned())
}

/// The origin of an address that a person gives.
fn origin_of(address: &str) -> anyhow::Result<String> {
    let text = address.trim();
    if text.len() > LONGEST_ADDRESS {
        bail!("the address is longer than {LONGEST_ADDRESS} bytes");
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        bail!("write the address with its scheme, such as `https://{}`", plain(text));
    };
    let rest = rest.trim_end_matches('/');
    if rest.contains(['/', '?', '#']) {
        bail!("the page is at the root of its host: leave out what stands behind the host");
    }
    normal_origin(&format!("{scheme}://{rest}")).ok_or_else(|| {
        anyhow!("`{}` is no web address: write one such as https://team.example.org", plain(text))
    })
}

/// The origin under which the page is served, from now on if it was not yet. The link that says it is never shown, and
/// lapses.
async fn served_origin(team: &mut Connection) -> Result<String, Failure> {
    let params = WebLinkParams { scope: Some(AskedScope::Read) };
    let link = team.call::<MakeWebLink>(&params).await.map_err(|error| match error {
        ClientError::Refused { code: 401 | 403, .. } => Failure::Run(anyhow!(
            "a phone's token takes the control token: call this as a person, without EISEN_TOKEN"
        )),
        error => failed(error),
    })?;
    let rest = link.url.find("://").map_or(0, |at| at + 3);
    let end = link.url[rest..].find('/').map_or(link.url.len(), |at| rest + at);
    Ok(link.url[..end].to_owned())
}

async fn link_of_holder(target: &Target) -> Result<NewWebLink, ClientError> {
    let mut holder = Connection::open(target).await?;
    holder.call::<MakeWebLink>(&WebLinkParams { scope: None }).await
}

/// Whether an origin leads to the machine itself, as the end of a forwarded port does.
fn is_on_this_machine(origin: &str) -> bool {
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Why the page does not answer under an address, and what to do.
fn other_origin(asked: &str, served: &str) -> String {
    let (asked, served) = (plain(asked), plain(served));
    let told = format!("the page is served as {served}, and refuses requests for other hosts");
    if is_on_this_machine(&asked) && is_on_this_machine(&served) {
        let port = served.rsplit(':').next().unwrap_or_default();
        return format!(
            "{told}: forward the same port (`ssh -L {port}:127.0.0.1:{port} …`), and type `eisen-core web --phone {served}`"
        );
    }
    let other = format!("\nOr type the address that it has: `eisen-core web --phone {served}`");
    let other = if is_on_this_machine(&served) { "" } else { &*other };
    if is_on_this_machine(&asked) {
        return format!(
            "{told}. For a forwarded port leave `origin` out of `[web]` in eisen.toml, and start the team again{other}"
        );
    }
    format!(
        "{told}. Write into eisen.toml, and start the team again:\n\n[web]\norigin = \"{asked}\"\n\n\
         From then on the browsers of this machine take that address, too. If the proxy runs on another machine, it \
         takes `listen` and `trusted_proxy` besides: docs/guides/phone.md{other}"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_address_is_taken_as_its_origin() {
        let of = |address: &str| origin_of(address).map_err(|error| error.to_string());
        assert_eq!(of(" https://Team.Example.org:443/ ").unwrap(), "https://team.example.org");
        assert_eq!(of("http://127.0.0.1:17321").unwrap(), "http://127.0.0.1:17321");
        for (wrong, told) in [
            ("team.example.org", "`https://team.example.org`"),
            ("https://team.example.org/eisen", "leave out what stands behind the host"),
            ("https://", "is no web address"),
            ("ftp://team.example.org", "is no web address"),
            ("https://me@team.example.org", "is no web address"),
        ] {
            assert!(of(wrong).unwrap_err().contains(told), "{wrong}: {:?}", of(wrong));
        }
        assert!(of(&format!("https://{}", "a".repeat(300))).unwrap_err().contains("longer than"));
    }

    #[test]
    fn an_address_that_is_not_served_says_what_to_write() {
        let told = other_origin("https://team.example", "http://127.0.0.1:17321");
        assert!(told.contains("\n[web]\norigin = \"https://team.example\"\n"), "{told}");
        assert!(!told.contains("Or type"), "{told}");
        let told = other_origin("http://localhost:17321", "http://127.0.0.1:4000");
        assert!(told.contains("ssh -L 4000:127.0.0.1:4000"), "{told}");
        assert!(told.contains("--phone http://127.0.0.1:4000`"), "{told}");
        let told = other_origin("http://127.0.0.1:17321", "https://b.example");
        assert!(told.contains("leave `origin` out of `[web]`"), "{told}");
        let told = other_origin("https://a.example", "https://b.example");
        assert!(told.ends_with("`eisen-core web --phone https://b.example`"), "{told}");
    }
}
