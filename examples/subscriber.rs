//! Follows the port of a running team, a line an event, and decides blocked accesses by rule.
//!
//! ```text
//! cargo run --example subscriber
//! cargo run --example subscriber -- --team demo --resolve --allow 'src/api/**' --deny
//! ```

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Parser};
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Value, json};

/// Follows the port of a running team, a line an event, and decides blocked accesses by rule.
///
/// Exit codes: 0 the team ended, 1 it can't be reached or refused the token, 2 wrong usage.
#[derive(Parser)]
#[command(
    name = "subscriber",
    group = ArgGroup::new("rule").multiple(true),
    after_help = "A blocked access is allowed by the first --allow that matches its path; else a \
    read gets the --answer; else it is denied with --deny; else it is left to others."
)]
struct Options {
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port of the team; else the run file's, `EISEN_PORT`, or 17320
    #[arg(long)]
    port: Option<u16>,
    /// Name of the team: port and token are read from `$EISEN_DIR/run/TEAM.json`
    #[arg(long)]
    team: Option<String>,
    /// Control token; else the run file's
    #[arg(long, env = "EISEN_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Decide blocked accesses
    #[arg(long, requires = "rule")]
    resolve: bool,
    /// Allow what matches
    #[arg(long, value_name = "GLOB", value_parser = glob, group = "rule", requires = "resolve")]
    allow: Vec<GlobMatcher>,
    /// What a blocked read gets for the file
    #[arg(long, value_name = "TEXT", group = "rule", requires = "resolve")]
    answer: Option<String>,
    /// Deny what nothing else decides
    #[arg(long, group = "rule", requires = "resolve")]
    deny: bool,
}

fn main() -> ExitCode {
    match follow(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("subscriber: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn follow(mut options: Options) -> Result<()> {
    let port = options.find_team()?;
    let mut connection = TcpStream::connect((options.host.as_str(), port))
        .with_context(|| format!("no team at {}:{port}", options.host))?;
    if let Some(token) = &options.token {
        send(&mut connection, &json!({"type": "auth", "token": token}))?;
    } else if options.resolve {
        bail!("--resolve needs a token: EISEN_TOKEN or --team");
    }
    let mut decided = HashSet::new();
    for line in BufReader::new(connection.try_clone()?).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        let event: Value = serde_json::from_str(&line).unwrap_or_default();
        let text = describe(&event).unwrap_or_else(|| format!("?         {line}"));
        writeln!(std::io::stdout(), "{}", clean(&text))?;
        if event["type"] == "rpc_error" && event["id"].is_null() && event["error"]["code"] == 401 {
            bail!("the team refused the token");
        }
        let id = event["id"].as_str().unwrap_or_default();
        // Decided once, when it is first seen: what follows is the decision's own echo.
        if options.resolve
            && event["type"] == "blocked"
            && decided.insert(id.to_owned())
            && let Some(mut params) = options.decision(&event)
        {
            params["id"] = json!(id);
            let method = "resolve_blocked";
            let call = json!({"type": "rpc", "id": id, "method": method, "params": params});
            send(&mut connection, &call)?;
        }
    }
    Ok(())
}

impl Options {
    /// The port of the team; fills in its token, if there is one to be found.
    fn find_team(&mut self) -> Result<u16> {
        let run_dir = std::env::var_os("EISEN_DIR")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from)
            .or_else(|| Some(std::env::home_dir()?.join(".eisen")))
            .context("neither EISEN_DIR nor HOME is set")?
            .join("run");
        if let Some(team) = &self.team {
            let (port, token) = read_run_file(&run_dir.join(format!("{team}.json")))
                .with_context(|| format!("no team `{team}` is running here"))?;
            self.token.get_or_insert(token);
            return Ok(self.port.unwrap_or(port));
        }
        let port = match (self.port, std::env::var("EISEN_PORT")) {
            (Some(port), _) => port,
            (None, Ok(port)) => port.parse().context("EISEN_PORT is no port")?,
            (None, Err(_)) => 17320,
        };
        if self.token.is_none() && self.resolve {
            let files = std::fs::read_dir(run_dir).into_iter().flatten().flatten();
            let mut runs = files.filter_map(|file| read_run_file(&file.path()).ok());
            self.token = runs.find(|run| run.0 == port).map(|run| run.1);
        }
        Ok(port)
    }

    /// What the rule says of an access; a denied one is decided for its next try.
    fn decision(&self, blocked: &Value) -> Option<Value> {
        let status = blocked["status"].as_str()?;
        if !["pending", "denied"].contains(&status) {
            return None;
        }
        if blocked["denied_by"].is_string() {
            // Only a person opens what a pattern of `denied` matches, by `--even-denied`.
            return (self.deny && status == "pending").then(|| json!({"decision": "deny"}));
        }
        let path = blocked["path"].as_str()?;
        if self.allow.iter().any(|glob| glob.is_match(path)) {
            return Some(json!({"decision": "allow"}));
        }
        let is_read = blocked["action"] == "read" && blocked["via"] == "fs";
        match &self.answer {
            Some(answer) if is_read => Some(json!({"decision": "answer", "content": answer})),
            _ => (self.deny && status == "pending").then(|| json!({"decision": "deny"})),
        }
    }
}

fn read_run_file(path: &Path) -> Result<(u16, String)> {
    let run: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let port = run["port"].as_u64().and_then(|port| port.try_into().ok());
    let token = run["token"].as_str().map(str::to_owned);
    port.zip(token).with_context(|| format!("{} is no run file", path.display()))
}

fn send(connection: &mut TcpStream, message: &Value) -> Result<()> {
    Ok(connection.write_all(format!("{message}\n").as_bytes())?)
}

fn glob(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    Ok(GlobBuilder::new(pattern).literal_separator(true).build()?.compile_matcher())
}

/// One readable line; None for what is no event. A type not known here is shown as it came.
fn describe(event: &Value) -> Option<String> {
    let kind = event["type"].as_str()?;
    let text = |key: &str| event[key].as_str().unwrap_or_default();
    let who = format!("{}/{}", text("agent_id"), text("session_id"));
    let line = match kind {
        "snapshot" => {
            let nodes = event["nodes"].as_object()?;
            let hot = nodes.values().filter(|node| node["in_context"] == true).count();
            format!("{who}  #{}  {} files, {hot} in context", event["seq"], nodes.len())
        }
        "delta" => {
            let updates = event["updates"].as_array()?.iter().map(|node| {
                let (path, action) = (node["path"].as_str(), node["last_action"].as_str());
                let heat = node["heat"].as_f64().unwrap_or_default();
                format!("{} {} {heat:.2}", path.unwrap_or_default(), action.unwrap_or_default())
            });
            let removed = event["removed"].as_array()?.iter();
            let removed = removed.map(|path| format!("-{}", path.as_str().unwrap_or_default()));
            let mut parts: Vec<_> = updates.chain(removed).collect();
            let more = parts.len().saturating_sub(6);
            parts.truncate(6);
            let mut line = format!("{who}  #{}  {}", event["seq"], parts.join(", "));
            if more > 0 {
                write!(line, ", and {more} more").ok()?;
            }
            line
        }
        "usage" => {
            let cost = event["cost"].as_object();
            let cost = cost.map_or_else(String::new, |cost| {
                format!(", {} {}", cost["amount"], cost["currency"].as_str().unwrap_or_default())
            });
            format!("{who}  {} of {} tokens{cost}", event["used"], event["size"])
        }
        "blocked" => {
            let owners = event["owners"].as_array()?.iter().filter_map(Value::as_str);
            let owners = owners.collect::<Vec<_>>().join(", ");
            let owners = if owners.is_empty() { "nobody" } else { &owners };
            format!(
                "{} {}  {} {} {}  (by {}, owned by {owners})",
                text("id"),
                text("status"),
                text("agent_id"),
                text("action"),
                text("path"),
                text("via"),
            )
        }
        "agent" => {
            let pid = event["pid"].as_u64().map_or_else(String::new, |pid| format!("  pid {pid}"));
            format!("{}  {}{pid}  {}", text("agent_id"), text("state"), text("reason"))
        }
        "turn" => {
            let (stop, reason) = (text("stop_reason"), text("reason"));
            format!("{who}  turn {}  {stop}  {reason}", event["turn"])
        }
        "lagged" => format!("{} events were missed", event["missed"]),
        "rpc_error" => {
            let error = &event["error"];
            let message = error["message"].as_str().unwrap_or_default();
            format!("{}  {} {message}", event["id"], error["code"])
        }
        _ => event.to_string(),
    };
    Some(format!("{kind:<9} {}", line.trim_end()))
}

/// Paths and messages come from agents: nothing of them may steer the terminal.
fn clean(text: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}
