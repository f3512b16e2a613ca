//! `blocked`: lists and follows blocked accesses.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use super::output::{self, plain, print, style};
use super::table::{Cell, Table};
use super::team::{Which, failed, rows};
use super::{Global, format};
use crate::app::Failure;
use crate::serve::client::{ClientError, Connection, Message, Target};

/// Accesses remembered; past that, those that the team no longer lists are forgotten.
const REMEMBERED: usize = 20_000;

/// Show accesses that were blocked outside a zone
///
/// Shows all accesses that wait for a decision and the last 10,000 others, oldest first. Decide
/// them with `eisen-core resolve`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core blocked --status pending      accesses that wait for a decision
  eisen-core blocked -f                    follow changes
  eisen-core blocked -f --json --status pending | while read -r access; do …; done

Exit codes: 0 done, 1 no such team or it ended, 2 wrong usage.")]
pub(super) struct BlockedArgs {
    /// Follow: print a line for each new access and each change of status
    #[arg(short, long)]
    follow: bool,
    /// Only accesses with this status; with --follow, only changes to it
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    /// Print JSON: an array, or with --follow one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Status {
    /// The agent got an error
    Denied,
    /// The request waits for a decision
    Pending,
    /// The access was allowed
    Allowed,
    /// The orchestrator supplied the content
    Answered,
    /// The turn, session or agent ended before a decision
    Expired,
    /// Detected after the access took place
    Observed,
}

/// A blocked access as sent on the port.
#[derive(Deserialize)]
pub(super) struct Blocked {
    pub(super) id: String,
    pub(super) agent_id: String,
    pub(super) session_id: String,
    pub(super) status: String,
    action: String,
    pub(super) path: String,
    #[serde(default)]
    owners: Vec<String>,
    #[serde(default)]
    via: String,
    /// The number of incidental accesses that this record stands for.
    pub(super) sweep: Option<u64>,
    /// The pattern of `denied` that matches it.
    denied_by: Option<String>,
    /// The rule of `[[routing]]` that matched it.
    rule: Option<u32>,
    decide: Option<String>,
    answered_by: Option<String>,
    tokens_saved: Option<u64>,
    /// It was denied, but its tool call reported that it completed.
    #[serde(default)]
    completed: bool,
    #[serde(default)]
    timestamp_ms: u64,
}

impl BlockedArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        if self.follow {
            return self.follow(&target).await;
        }
        let mut team = Connection::open(&target).await.map_err(failed)?;
        let status = self.status.map(Status::name);
        let list = team.call("list_blocked", &json!({ "status": status })).await.map_err(failed)?;
        if self.json { print(list) } else { print_table(&list) }
    }

    /// The stream delivers changes; the list has whatever the stream missed.
    async fn follow(&self, target: &Target) -> Result<(), Failure> {
        output::end_with_reader();
        let mut seen = SeenAccesses::default();
        let mut team = Connection::open(target).await.map_err(failed)?;
        loop {
            let error = match self.watch(&mut team, &mut seen).await {
                Ok(never) => match never {},
                Err(FollowEnd::Here(failure)) => return Err(failure),
                Err(FollowEnd::There(error)) => error,
            };
            // The team disconnects slow readers, and our output may be slow: reconnect.
            team = Connection::open(target).await.map_err(|_| failed(error))?;
        }
    }

    async fn watch(
        &self,
        team: &mut Connection,
        seen: &mut SeenAccesses,
    ) -> Result<std::convert::Infallible, FollowEnd> {
        let mut request = team.send("list_blocked", &json!({}));
        loop {
            match team.next().await.map_err(FollowEnd::There)? {
                Message::Answer { id, outcome } if id == request => {
                    let list = outcome.map_err(|refusal| FollowEnd::There(refusal.into()))?;
                    for access in list.as_array().into_iter().flatten() {
                        self.show(access, seen).map_err(FollowEnd::Here)?;
                    }
                    seen.forget(&list);
                }
                Message::Blocked(access) => {
                    self.show(&access, seen).map_err(FollowEnd::Here)?;
                }
                Message::Lagged => request = team.send("list_blocked", &json!({})),
                _ => {}
            }
        }
    }

    fn show(&self, value: &Value, seen: &mut SeenAccesses) -> Result<(), Failure> {
        let Ok(access) = Blocked::deserialize(value) else { return Ok(()) };
        if !seen.is_news(&access) || self.status.is_some_and(|only| only.name() != access.status) {
            return Ok(());
        }
        if self.json { print(value) } else { print(access.describe()) }
    }
}

/// Why following ended: a failure on this side, or of the connection.
enum FollowEnd {
    Here(Failure),
    There(ClientError),
}

/// The last state shown of each access: stage, count of a sweep, completed.
#[derive(Default)]
pub(super) struct SeenAccesses(HashMap<String, (u8, u64, bool)>);

/// The id of an access of `list_blocked`.
#[derive(Deserialize)]
struct ListedAccess {
    id: String,
}

impl SeenAccesses {
    /// Whether an access has advanced, or its sweep has grown, since it was shown last. List and
    /// stream may repeat a state, or deliver an older one after a newer one.
    pub(super) fn is_news(&mut self, access: &Blocked) -> bool {
        let stage = match access.status.as_str() {
            "pending" => 1,
            "denied" => 2,
            _ => 3,
        };
        let swept = access.sweep.unwrap_or(0);
        let (known, counted, completed) = self.0.entry(access.id.clone()).or_default();
        let is_news = *known < stage || *counted < swept || !*completed && access.completed;
        *known = stage.max(*known);
        *counted = swept.max(*counted);
        *completed |= access.completed;
        is_news
    }

    fn forget(&mut self, list: &Value) {
        if self.0.len() > REMEMBERED {
            let listed: Vec<ListedAccess> = rows(list);
            let listed: std::collections::HashSet<_> = listed.into_iter().map(|it| it.id).collect();
            self.0.retain(|id, _| listed.contains(id));
        }
    }
}

impl Blocked {
    pub(super) fn read(access: &Value) -> Result<Self, Failure> {
        Self::deserialize(access).map_err(|error| Failure::Run(error.into()))
    }

    fn status(&self) -> String {
        let completed = if self.completed { ", completed anyway" } else { "" };
        format!("{}{completed}", plain(&self.status))
    }

    /// The pattern of `denied` that only a person can override.
    fn pattern(&self) -> Option<String> {
        self.denied_by.as_deref().map(|pattern| format!("denied by {}", plain(pattern)))
    }

    /// The rule of `[[routing]]`, with the owner that answered by it.
    fn by_rule(&self) -> Option<String> {
        let mut text = format!("rule {}: {}", self.rule?, plain(self.decide.as_deref()?));
        if let Some(owner) = &self.answered_by {
            let _ = write!(text, " {}", plain(owner));
        }
        if let Some(tokens) = self.tokens_saved {
            let _ = write!(text, ", kept: {tokens} tokens saved");
        }
        Some(text)
    }

    /// Returns e.g. `b3: pending: read core/app.ts by ui (via fs, owned by core)`.
    pub(super) fn describe(&self) -> String {
        let color = style(&self.status);
        let owners = match self.owners.as_slice() {
            [] => String::new(),
            owners => format!(", owned by {}", plain(&owners.join(", "))),
        };
        let sweep = match self.sweep {
            Some(count) => format!(" (swept {})", times(count)),
            None => String::new(),
        };
        let pattern = self.pattern().into_iter().chain(self.by_rule());
        let pattern: String = pattern.flat_map(|part| [", ".to_owned(), part]).collect();
        format!(
            "{}: {color}{}{color:#}: {} {}{sweep} by {} (via {}{owners}{pattern})",
            plain(&self.id),
            self.status(),
            plain(&self.action),
            plain(&self.path),
            plain(&self.agent_id),
            plain(&self.via),
        )
    }
}

fn print_table(list: &Value) -> Result<(), Failure> {
    let list = Vec::<Blocked>::deserialize(list).map_err(|error| Failure::Run(error.into()))?;
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut table =
        Table::new(&["ID", ">AGE", "AGENT", "ACTION", "STATUS", "VIA", "OWNERS", "PATH"]);
    for access in &list {
        let age = now.saturating_sub(Duration::from_millis(access.timestamp_ms));
        let path = match access.sweep {
            Some(count) => format!("{} (swept {})", plain(&access.path), times(count)),
            None => plain(&access.path),
        };
        let notes: Vec<_> = access.pattern().into_iter().chain(access.by_rule()).collect();
        let path = if notes.is_empty() { path } else { format!("{path} ({})", notes.join("; ")) };
        let owners = if access.owners.is_empty() { "-".into() } else { access.owners.join(",") };
        table.row(vec![
            plain(&access.id).into(),
            format::duration(age).into(),
            plain(&access.agent_id).into(),
            plain(&access.action).into(),
            Cell::styled(&access.status(), style(&access.status)),
            plain(&access.via).into(),
            plain(&owners).into(),
            path.into(),
        ]);
    }
    // Paths are never truncated.
    print(table.lines(None).join("\n"))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Pending => "pending",
            Self::Allowed => "allowed",
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Observed => "observed",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn access(id: &str, status: &str) -> Blocked {
        let access = json!({
            "id": id, "agent_id": "ui", "session_id": "s", "status": status, "action": "read",
            "path": "a\u{1b}b", "owners": ["api", "db"], "via": "fs",
        });
        Blocked::deserialize(access).unwrap()
    }

    #[test]
    fn repeated_and_outdated_states_are_not_news() {
        let mut seen = SeenAccesses::default();
        for (id, status, is_news) in [
            ("b1", "pending", true),
            ("b1", "pending", false),
            ("b1", "allowed", true),
            // From an older list.
            ("b1", "pending", false),
            ("b2", "denied", true),
            ("b2", "pending", false),
            ("b2", "answered", true),
            ("b3", "observed", true),
            ("b3", "observed", false),
            ("b4", "a status of a later version", true),
        ] {
            assert_eq!(seen.is_news(&access(id, status)), is_news, "{id} {status}");
        }
    }

    #[test]
    fn a_sweep_that_grows_is_news() {
        let mut seen = SeenAccesses::default();
        for (count, is_news) in [(1, true), (1, false), (40, true), (39, false)] {
            let access = Blocked { sweep: Some(count), ..access("b1", "denied") };
            assert_eq!(seen.is_news(&access), is_news, "{count}");
        }
    }

    #[test]
    fn a_denied_call_that_completed_is_news_and_is_marked() {
        let mut seen = SeenAccesses::default();
        assert!(seen.is_news(&access("b1", "denied")));
        let completed = Blocked { completed: true, ..access("b1", "denied") };
        assert!(seen.is_news(&completed) && !seen.is_news(&completed));
        let line = anstream::adapter::strip_str(&completed.describe()).to_string();
        assert!(line.starts_with("b1: denied, completed anyway: read a b by ui"), "{line}");
    }

    #[test]
    fn accesses_that_the_team_has_forgotten_are_forgotten() {
        let mut seen = SeenAccesses::default();
        for n in 0..=REMEMBERED {
            seen.is_news(&access(&n.to_string(), "denied"));
        }
        seen.forget(&json!([{ "id": "7" }]));
        assert_eq!(seen.0.len(), 1);
        assert!(!seen.is_news(&access("7", "denied")));
    }

    #[test]
    fn a_line_names_agent_and_path_without_control_sequences() {
        let line = anstream::adapter::strip_str(&access("b1", "denied").describe()).to_string();
        assert_eq!(line, "b1: denied: read a b by ui (via fs, owned by api, db)");
        let denied = Blocked { denied_by: Some("**/.env".into()), ..access("b1", "pending") };
        let line = anstream::adapter::strip_str(&denied.describe()).to_string();
        assert!(line.ends_with("(via fs, owned by api, db, denied by **/.env)"), "{line}");
        let sweep = Blocked { sweep: Some(12), ..access("b1", "denied") };
        let line = anstream::adapter::strip_str(&sweep.describe()).to_string();
        assert_eq!(line, "b1: denied: read a b (swept 12 times) by ui (via fs, owned by api, db)");
    }
}
