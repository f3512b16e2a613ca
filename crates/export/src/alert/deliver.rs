//! Delivers a notice by a command, a webhook, a chat or the desktop. Each has a timeout; failures are
//! returned, without the secrets of chats.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{sleep, timeout};

use super::chat::{ChatMessage, advice};
use super::{Cause, Notice, Way};
use crate::model::{ChatService, ChatTarget};
use crate::post::{Post, PostFailed};
use crate::process::{Command, Launcher, Stdio};

/// How long a command may run before it is killed.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a webhook may take to respond.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Redirects of a webhook that are followed.
const MOST_REDIRECTS: u32 = 10;

/// Delays before the retries of a webhook.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// The longest delay that a server may ask for.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// How long the outputs of an exited command are still read, if other processes hold them open.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Maximum bytes of a command's standard error that are shown.
const LONGEST_STDERR: u64 = 300;

/// Delivers a notice; returns the reason of a failure.
pub async fn deliver(way: &Way, notice: &Notice, launcher: &Launcher) -> Result<(), String> {
    match way {
        Way::Command(command) => run(command, notice, launcher).await,
        Way::Desktop => {
            let title = format!("eisen-core: {}", notice.team);
            let message = notice.for_people();
            let argv = ["notify-send", "--app-name=eisen-core", "--", &title, &message];
            let outcome = run(&argv.map(str::to_owned), notice, launcher).await;
            outcome.map_err(|why| format!("{why} (notify-send comes with libnotify)"))
        }
        Way::Webhook(url) => {
            let body = serde_json::to_vec(notice).map_err(|error| error.to_string())?;
            let headers = vec![json_type()];
            post(Posted { url: url.clone(), headers, body, redirects: MOST_REDIRECTS })
                .await
                .map_err(|failed| format!("{url}: {}", failed.why))
        }
        Way::Ntfy(url) => {
            let (headers, body) = (ntfy_headers(notice), notice.for_people().into_bytes());
            post(Posted { url: url.clone(), headers, body, redirects: MOST_REDIRECTS })
                .await
                .map_err(|failed| format!("{url}: {}", failed.why))
        }
        Way::Chat(chat) => {
            let ChatMessage { url, body } = ChatMessage::of(chat, notice);
            let (headers, body) = (vec![json_type()], body.to_string().into_bytes());
            // The address is a secret, and no other server is to get it.
            post(Posted { url, headers, body, redirects: 0 })
                .await
                .map_err(|failed| failure(chat, &failed))
        }
    }
}

/// Says why a chat did not get a notice, without the chat's secrets.
fn failure(chat: &ChatTarget, failed: &PostFailed) -> String {
    let secrets = match &chat.service {
        ChatService::Slack(url) | ChatService::Discord(url) => [url, url],
        ChatService::Telegram { server, token, .. } => [token, server],
    };
    let why = secrets.iter().fold(failed.why.clone(), |why, secret| {
        let secret = secret.reveal();
        if secret.is_empty() { why } else { why.replace(secret, "***") }
    });
    format!("{}: {why}{}", chat.describe(), advice(&chat.service, failed.status))
}

/// Runs a command with the notice in environment variables, and as JSON on its standard input.
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
    let mut errors = Vec::new();
    let writing = async move {
        // Fails if the command ends without reading.
        let _ = stdin.write_all(&json).await;
    };
    let draining_stdout = async { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await };
    let reading_stderr = async {
        let _ = (&mut stderr).take(LONGEST_STDERR).read_to_end(&mut errors).await;
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await
    };
    let running = async {
        // Descendants may hold its outputs open after its exit.
        let outputs = async { tokio::join!(draining_stdout, reading_stderr) };
        let exiting = async {
            let exit = process.wait().await;
            sleep(OUTPUT_GRACE).await;
            exit
        };
        tokio::select! {
            exit = exiting => exit,
            _ = outputs => process.wait().await,
        }
    };
    let exit = timeout(COMMAND_TIMEOUT, async { tokio::join!(running, writing).0 }).await;
    process.kill().await;
    match exit {
        Ok(exit) if exit.success() => Ok(()),
        Ok(exit) => {
            let errors = String::from_utf8_lossy(&errors);
            let errors = errors.trim();
            let errors = if errors.is_empty() { String::new() } else { format!(": {errors}") };
            Err(format!("{program} {exit}{errors}"))
        }
        Err(_) => Err(format!("{program} was killed: it ran for {} s", COMMAND_TIMEOUT.as_secs())),
    }
}

/// The environment variables of a notice, without empty ones.
fn variables(notice: &Notice) -> BTreeMap<String, String> {
    let optional = [
        ("EISEN_NOTIFY_AGENT_ID", Some(notice.agent_id.clone()).filter(|id| !id.is_empty())),
        ("EISEN_NOTIFY_ID", notice.id.clone()),
        ("EISEN_NOTIFY_PATH", notice.path.clone()),
        ("EISEN_NOTIFY_ACTION", notice.action.clone()),
        ("EISEN_NOTIFY_OWNERS", Some(notice.owners.join(",")).filter(|owners| !owners.is_empty())),
        ("EISEN_NOTIFY_UNTIL_MS", notice.until_ms.map(|until| until.to_string())),
        ("EISEN_NOTIFY_WHY", notice.why.clone()),
    ];
    let always = [
        ("EISEN_NOTIFY_EVENT", notice.event.as_str().to_owned()),
        ("EISEN_NOTIFY_TEAM", notice.team.clone()),
        ("EISEN_NOTIFY_MESSAGE", notice.message.clone()),
    ];
    let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    // A variable can't contain a NUL.
    let clean = |(name, value): (&str, String)| (name.to_owned(), value.replace('\0', ""));
    always.into_iter().chain(optional).map(clean).collect()
}

/// A request that is tried again while that may help.
struct Posted {
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    redirects: u32,
}

async fn post(posted: Posted) -> Result<(), PostFailed> {
    let posted = Arc::new(posted);
    let mut delays = RETRY_DELAYS.into_iter();
    loop {
        let Err(failed) = post_once(Arc::clone(&posted)).await else { return Ok(()) };
        let Some(delay) = delays.next().filter(|_| failed.is_transient) else {
            return Err(failed);
        };
        let asked = failed.retry_after.unwrap_or_default().min(LONGEST_DELAY);
        sleep(delay.max(asked)).await;
    }
}

async fn post_once(posted: Arc<Posted>) -> Result<(), PostFailed> {
    let posting = task::spawn_blocking(move || {
        let Posted { url, headers, body, redirects } = &*posted;
        let (timeout, redirects) = (WEBHOOK_TIMEOUT, *redirects);
        Post { url, headers, body, timeout, redirects }.send().map(drop)
    });
    posting.await.map_err(|error| PostFailed::for_good(error.to_string()))?
}

fn json_type() -> (String, String) {
    ("content-type".to_owned(), "application/json".to_owned())
}

/// The headers of ntfy: who speaks, about what, and how urgent it is.
fn ntfy_headers(notice: &Notice) -> Vec<(String, String)> {
    let is_urgent = matches!(notice.event, Cause::Pending | Cause::Error);
    let priority = if is_urgent { "high" } else { "default" };
    // Headers are of ASCII.
    let team = notice.team.replace(|c: char| !c.is_ascii_graphic(), "_");
    vec![
        ("title".to_owned(), format!("eisen-core: {team}")),
        ("tags".to_owned(), notice.event.as_str().to_owned()),
        ("priority".to_owned(), priority.to_owned()),
    ]
}
