//! The ways by which a phone may reach the page of this machine: which there are here, and what to type for each.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use nix::unistd::{User, getuid};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::cli::Global;
use crate::cli::config_file::ConfigFile;
use crate::cli::output::plain;
use crate::config::{WEB_LISTEN, Web};
use crate::home;
use crate::team_file;

/// How long `tailscale` may take to answer.
const TAILSCALE_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of its answer.
const LONGEST_STATUS: u64 = 1 << 20;

/// Bytes of the name of a host.
const LONGEST_NAME: usize = 253;

/// The findings on this machine.
#[derive(Debug)]
struct PhoneWays {
    listen: SocketAddr,
    origin: Option<String>,
    tailscale: Tailscale,
    ssh: Option<SshSession>,
    user: Option<String>,
}

#[derive(Debug)]
enum Tailscale {
    /// No such program is on PATH.
    Absent,
    /// The program is there, and of no use now: why.
    Down(String),
    /// The name of this machine.
    Up(String),
}

/// The ends of the connection by which a person is here.
#[derive(PartialEq, Eq, Debug)]
struct SshSession {
    from: IpAddr,
    server: IpAddr,
    port: u16,
}

/// The part of `tailscale status --json` that says how this machine is called.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "PascalCase", default)]
struct TailscaleStatus {
    backend_state: String,
    #[serde(rename = "Self")]
    own: Option<TailscaleNode>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(default)]
struct TailscaleNode {
    #[serde(rename = "DNSName")]
    dns_name: Option<String>,
}

/// Looks for them, and says what to type.
pub(super) async fn find(global: &Global) -> String {
    let web = configured(global);
    let found = PhoneWays {
        listen: web.as_ref().map_or(WEB_LISTEN, |web| web.listen),
        origin: web.and_then(|web| web.origin),
        tailscale: tailscale().await,
        ssh: std::env::var("SSH_CONNECTION").ok().and_then(|text| session(&text)),
        user: User::from_uid(getuid()).ok().flatten().map(|user| user.name),
    };
    told(&found)
}

/// The `[web]` of the folder's team; None if there is none that can be read.
fn configured(global: &Global) -> Option<Web> {
    let eisen_dir = home::eisen_dir().ok()?;
    let file = ConfigFile::default().find_or_kept(global.cwd.clone(), &eisen_dir);
    team_file::read(&file, &eisen_dir).ok()?.config.web
}

async fn tailscale() -> Tailscale {
    let mut command = Command::new("tailscale");
    command.args(["status", "--json", "--peers=false"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(mut child) = command.spawn() else { return Tailscale::Absent };
    let mut status = Vec::new();
    let reading = async {
        let stdout = child.stdout.take()?;
        stdout.take(LONGEST_STATUS).read_to_end(&mut status).await.ok()
    };
    if timeout(TAILSCALE_TIMEOUT, reading).await.is_ok() {
        return named(&status);
    }
    let seconds = TAILSCALE_TIMEOUT.as_secs();
    Tailscale::Down(format!("it does not answer within {seconds} s"))
}

/// The name of this machine in the answer of `tailscale status --json`.
fn named(status: &[u8]) -> Tailscale {
    let Ok(status) = serde_json::from_slice::<TailscaleStatus>(status) else {
        return Tailscale::Down("its answer can't be read; is `tailscaled` running?".to_owned());
    };
    if status.backend_state != "Running" {
        return Tailscale::Down("this machine is not connected: `tailscale up`".to_owned());
    }
    let name = status.own.and_then(|own| own.dns_name).unwrap_or_default();
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
        return Tailscale::Down("this machine has no name: turn MagicDNS on".to_owned());
    }
    Tailscale::Up(name)
}

/// Reads `SSH_CONNECTION`: the address and port of the client, then those of the server.
fn session(text: &str) -> Option<SshSession> {
    let [from, _, server, port] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
    let (from, server) = (from.parse().ok()?, server.parse().ok()?);
    Some(SshSession { from, server, port: port.parse().ok()? })
}

fn told(found: &PhoneWays) -> String {
    let PhoneWays { listen, origin, tailscale, ssh, .. } = found;
    let port = match listen.port() {
        0 => "PORT".to_owned(),
        port => port.to_string(),
    };
    let mut told =
        "A phone takes an address that leads to the page. What is found here, and what to type:\n"
            .to_owned();
    let mut absent = Vec::new();
    match tailscale {
        Tailscale::Up(name) => {
            let address = format!("https://{name}");
            let _ = writeln!(told, "\ntailscale: this machine is {name}");
            let _ = writeln!(told, "  tailscale serve --bg {port}");
            if origin.as_ref() != Some(&address) {
                let _ = writeln!(
                    told,
                    "  write `origin = \"{address}\"` below `[web]` in eisen.toml, and start the team again"
                );
            }
            let _ = writeln!(told, "  eisen-core web --phone {address}");
        }
        Tailscale::Down(why) => {
            let _ = writeln!(told, "\ntailscale: it is installed, but {why}");
        }
        Tailscale::Absent => absent.push("no `tailscale` on PATH"),
    }
    match origin {
        Some(origin) => {
            let origin = plain(origin);
            let _ = writeln!(told, "\n`[web] origin`: a proxy leads {origin} to the page");
            let _ = writeln!(told, "  eisen-core web --phone {origin}");
        }
        None => absent.push("no `[web] origin` in the configuration"),
    }
    match ssh {
        Some(session) => told.push_str(&told_of_ssh(session, found, &port)),
        None => absent.push("no session of ssh"),
    }
    if !absent.is_empty() {
        let _ = writeln!(told, "\nNot found: {}.", absent.join(", "));
    }
    told.push_str("\ndocs/guides/phone.md has a part for each.");
    told
}

fn told_of_ssh(session: &SshSession, found: &PhoneWays, port: &str) -> String {
    let SshSession { from, server, port: ssh_port } = session;
    let host = match found.listen.ip() {
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    let user = found.user.as_deref().map(|user| format!("{}@", plain(user))).unwrap_or_default();
    let option = if *ssh_port == 22 { String::new() } else { format!(" -p {ssh_port}") };
    let mut told = format!("\nssh: you are here from {from}\n");
    if found.origin.is_some() {
        told.push_str("  leave `origin` out of `[web]` in eisen.toml, and start the team again\n");
    }
    let _ = writeln!(
        told,
        "  in an app for ssh on the phone: ssh{option} -L {port}:{host}:{port} {user}{server}"
    );
    let _ = writeln!(told, "  eisen-core web --phone http://{host}:{port}");
    told
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_way_says_what_to_type() {
        let found = PhoneWays {
            listen: WEB_LISTEN,
            origin: Some("https://team.example".to_owned()),
            tailscale: Tailscale::Up("laptop.tail1234.ts.net".to_owned()),
            ssh: session("10.0.0.5 51000 10.0.0.9 2222"),
            user: Some("ada".to_owned()),
        };
        expect![[r#"
            A phone takes an address that leads to the page. What is found here, and what to type:

            tailscale: this machine is laptop.tail1234.ts.net
              tailscale serve --bg 17321
              write `origin = "https://laptop.tail1234.ts.net"` below `[web]` in eisen.toml, and start the team again
              eisen-core web --phone https://laptop.tail1234.ts.net

            `[web] origin`: a proxy leads https://team.example to the page
              eisen-core web --phone https://team.example

            ssh: you are here from 10.0.0.5
              leave `origin` out of `[web]` in eisen.toml, and start the team again
              in an app for ssh on the phone: ssh -p 2222 -L 17321:127.0.0.1:17321 ada@10.0.0.9
              eisen-core web --phone http://127.0.0.1:17321

            docs/guides/phone.md has a part for each."#]]
        .assert_eq(&told(&found));
        let none = PhoneWays { origin: None, tailscale: Tailscale::Absent, ssh: None, ..found };
        let told = told(&none);
        assert!(told.contains("Not found: no `tailscale` on PATH, no `[web] origin`"), "{told}");
    }

    #[test]
    fn the_name_of_the_machine_is_taken_from_the_status() {
        let name = |status: &str| match named(status.as_bytes()) {
            Tailscale::Up(name) => name,
            Tailscale::Down(why) => format!("down: {why}"),
            Tailscale::Absent => unreachable!(),
        };
        let status = |state: &str, name: &str| {
            format!(r#"{{"Version":"1.80","BackendState":"{state}","Self":{{"DNSName":{name}}}}}"#)
        };
        assert_eq!(
            name(&status("Running", "\"Laptop.tail1234.ts.net.\"")),
            "laptop.tail1234.ts.net"
        );
        assert!(name(&status("Stopped", "\"x.\"")).contains("`tailscale up`"));
        assert!(name(&status("Running", "\"a b\\u001b\"")).contains("MagicDNS"));
        assert!(name(&status("Running", "null")).contains("MagicDNS"));
        assert!(name("not json").contains("can't be read"));
    }

    #[test]
    fn only_a_whole_session_of_ssh_counts() {
        assert!(session("fe80::1 1 fe80::2 22").is_some());
        for odd in ["", "10.0.0.5 51000 10.0.0.9", "a b c d", "10.0.0.5 1 10.0.0.9 99999"] {
            assert_eq!(session(odd), None, "{odd}");
        }
    }
}
