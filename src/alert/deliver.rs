//! The ways in which a notice reaches somebody. Each has a time, and what fails is only reported.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::{Notice, Way};
use crate::process::{Command, Launcher, Stdio};

/// How long a command may run before it is killed, and an address may take to answer.
const COMMAND_TIME: Duration = Duration::from_secs(30);
const WEB_TIME: Duration = Duration::from_secs(10);

/// Waits before the tries that follow a failed one, where another may help.
const AGAIN: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// How long the outputs of a command that has ended are still read, if others hold them open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Bytes of what a command says that are repeated.
const LONGEST_WORDS: u64 = 300;

/// Delivers a notice, or says why not.
pub async fn deliver(way: &Way, notice: &Notice, launcher: &Launcher) -> Result<(), String> {
    match way {
        Way::Command(command) => run(command, notice, launcher).await,
        Way::Desktop => {
            let title = format!("eisen-core: {}", notice.team);
            let words = ["notify-send", "--app-name=eisen-core", "--", &title, &notice.message];
            let outcome = run(&words.map(str::to_owned), notice, launcher).await;
            outcome.map_err(|why| format!("{why} (notify-send comes with libnotify)"))
        }
        Way::Webhook(url) => {
            let mut waits = AGAIN.into_iter();
            loop {
                let Err(failed) = post(url, notice).await else { return Ok(()) };
                match waits.next().filter(|_| failed.may_pass) {
                    Some(wait) => sleep(wait).await,
                    None => return Err(failed.why),
                }
            }
        }
    }
}

/// Runs a command with the notice in variables, and as JSON on its standard input.
async fn run(words: &[String], notice: &Notice, launcher: &Launcher) -> Result<(), String> {
    let Some((program, args)) = words.split_first() else { return Ok(()) };
    let command = Command {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned()),
        env: variables(notice),
    };
    let (process, stdio) =
        launcher.spawn(&command).await.map_err(|error| format!("{program}: {error}"))?;
    let Stdio { mut stdin, mut stdout, mut stderr } = stdio;
    let mut json = serde_json::to_vec(notice).map_err(|error| error.to_string())?;
    json.push(b'\n');
    let mut said = Vec::new();
    let showing = async move {
        // One that does not care may have ended.
        let _ = stdin.write_all(&json).await;
    };
    let hearing = async { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await };
    let blaming = async {
        let _ = (&mut stderr).take(LONGEST_WORDS).read_to_end(&mut said).await;
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await
    };
    let running = async {
        // Its outputs may stay open longer than it runs: in what it left behind.
        let outputs = async { tokio::join!(hearing, blaming) };
        let exiting = async {
            let exit = process.wait().await;
            sleep(LAST_WORDS).await;
            exit
        };
        tokio::select! {
            exit = exiting => exit,
            _ = outputs => process.wait().await,
        }
    };
    let exit = timeout(COMMAND_TIME, async { tokio::join!(running, showing).0 }).await;
    process.kill().await;
    match exit {
        Ok(exit) if exit.success() => Ok(()),
        Ok(exit) => {
            let said = String::from_utf8_lossy(&said);
            let said = said.trim();
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            Err(format!("{program} {exit}{said}"))
        }
        Err(_) => Err(format!("{program} was killed: it ran for {} s", COMMAND_TIME.as_secs())),
    }
}

/// What of a notice is not empty, as variables.
fn variables(notice: &Notice) -> BTreeMap<String, String> {
    let optional = [
        ("EISEN_NOTIFY_AGENT_ID", Some(notice.agent_id.clone()).filter(|id| !id.is_empty())),
        ("EISEN_NOTIFY_ID", notice.id.clone()),
        ("EISEN_NOTIFY_PATH", notice.path.clone()),
        ("EISEN_NOTIFY_ACTION", notice.action.clone()),
    ];
    let always = [
        ("EISEN_NOTIFY_EVENT", notice.event.as_str().to_owned()),
        ("EISEN_NOTIFY_TEAM", notice.team.clone()),
        ("EISEN_NOTIFY_MESSAGE", notice.message.clone()),
    ];
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    // No variable can carry a NUL.
    let clean = |(name, value): (&str, String)| (name.to_owned(), value.replace('\0', ""));
    always.into_iter().chain(optional).map(clean).collect()
}

struct Failed {
    why: String,
    /// Another try may succeed.
    may_pass: bool,
}

/// Posts a notice as JSON, once.
async fn post(url: &str, notice: &Notice) -> Result<(), Failed> {
    let lasting = |why: String| Failed { why, may_pass: false };
    let body = serde_json::to_vec(notice).map_err(|error| lasting(error.to_string()))?;
    let address = url.to_owned();
    let posting = spawn_blocking(move || {
        let config = ureq::Agent::config_builder().timeout_global(Some(WEB_TIME));
        let agent: ureq::Agent = config.tls_config(trust()?).build().into();
        let sent = agent.post(&address).header("content-type", "application/json").send(&body[..]);
        sent.map(drop).map_err(|error| failed(&error))
    });
    let outcome = posting.await.map_err(|error| lasting(error.to_string()))?;
    outcome.map_err(|failed| Failed { why: format!("{url}: {}", failed.why), ..failed })
}

/// Whose certificates are believed: those of the file that `SSL_CERT_FILE` names, else the web's.
fn trust() -> Result<TlsConfig, Failed> {
    let file = std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty());
    let Some(file) = file else { return Ok(TlsConfig::default()) };
    let lasting = |why: &dyn std::fmt::Display| {
        let why = format!("SSL_CERT_FILE, {}: {why}", Path::new(&file).display());
        Failed { why, may_pass: false }
    };
    let pem = std::fs::read(&file).map_err(|error| lasting(&error))?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(lasting(&"no certificate in PEM is in it"));
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&certificates)).build())
}

/// What a failed POST means, and whether to try again.
fn failed(error: &ureq::Error) -> Failed {
    let said = error.to_string();
    // The library wraps what rustls says in an error of input and output.
    if let Some((_, why)) = said.split_once("invalid peer certificate: ") {
        let why = format!(
            "its certificate is not trusted ({why}): set SSL_CERT_FILE to a PEM file with the \
             certificate of who signed it"
        );
        return Failed { why, may_pass: false };
    }
    let may_pass = match error {
        ureq::Error::StatusCode(code) => *code >= 500 || *code == 429 || *code == 408,
        ureq::Error::BadUri(_) => false,
        _ => true,
    };
    Failed { why: said, may_pass }
}
