//! `blocked`: lists and follows blocked accesses.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize as _;
use serde_json::Value;

use super::output::{self, plain, print, style};
use super::table::{Cell, Table};
use super::team::{Which, failed, readable, rows};
use super::{Global, format};
use crate::model::BlockedStatus;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, Message, MethodAnswer, Target};
use crate::wire::{Blocked, Exact, ListBlocked, ListBlockedParams};

/// Accesses remembered; past that, those that the team no longer lists are forgotten.
const REMEMBERED: usize = 20_000;

/// Show accesses that were blocked outside a zone
///
/// Shows all accesses that wait for a decision and the last 10,000 others, oldest first. Decide
/// them with `eisen-core inbox`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core inbox     accesses that wait for a decision
  eisen-core inbox -f  follow changes
  eisen-core inbox -f --json | while read -r access; do …; done

Exit codes: 0 done, 1 no such team or it ended, 2 wrong usage.")]
pub(super) struct BlockedArgs {
    /// Follow: print a line for each new access and each change of status
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only accesses with this status; with --follow, only changes to it
    #[arg(long, value_name = "STATUS")]
    pub(super) status: Option<Status>,
    /// Print JSON: an array, or with --follow one object per line
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) which: Which,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Status {
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

impl BlockedArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        if self.follow {
            return self.follow(&target).await;
        }
        let mut team = Connection::open(&target).await.map_err(failed)?;
        let params = ListBlockedParams { status: self.status.map(|it| Exact(it.known())) };
        let list = team.ask::<ListBlocked>(&params).await.map_err(failed)?;
        if self.json { print(list) } else { print_table(&rows(&list)) }
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
        let all = ListBlockedParams { status: None };
        let mut request = team.send::<ListBlocked>(&all);
        loop {
            match team.next().await.map_err(FollowEnd::There)? {
                Message::Answer { id, outcome } if id == request => {
                    let list = outcome.map_err(|refusal| FollowEnd::There(refusal.into()))?;
                    for access in list.as_array().into_iter().flatten() {
                        self.show(access, seen).map_err(FollowEnd::Here)?;
                    }
                    seen.forget(&MethodAnswer::new(list));
                }
                Message::Blocked(access) => {
                    self.show(&access, seen).map_err(FollowEnd::Here)?;
                }
                Message::Lagged => request = team.send::<ListBlocked>(&all),
                _ => {}
            }
        }
    }

    fn show(&self, value: &Value, seen: &mut SeenAccesses) -> Result<(), Failure> {
        let Some(access) = readable(value, Blocked::deserialize(value)) else { return Ok(()) };
        if !seen.is_news(&access) || self.status.is_some_and(|only| access.status != only.known()) {
            return Ok(());
        }
        if self.json { print(value) } else { print(describe(&access)) }
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

impl SeenAccesses {
    /// Whether an access has advanced, or its sweep has grown, since it was shown last. List and
    /// stream may repeat a state, or deliver an older one after a newer one.
    pub(super) fn is_news(&mut self, access: &Blocked<'_>) -> bool {
        let stage = match access.status.known() {
            Some(BlockedStatus::Pending) => 1,
            Some(BlockedStatus::Denied) => 2,
            // A person may allow also what has expired.
            Some(BlockedStatus::Allowed | BlockedStatus::Answered) => 4,
            _ => 3,
        };
        let swept = access.sweep.unwrap_or(0);
        let (known, counted, completed) = self.0.entry(access.id.to_string()).or_default();
        // Nobody waits for the number of what does no harm.
        let has_grown = *counted < swept && !access.harmless;
        let is_news = *known < stage || has_grown || !*completed && access.completed;
        *known = stage.max(*known);
        *counted = swept.max(*counted);
        *completed |= access.completed;
        is_news
    }

    fn forget(&mut self, list: &MethodAnswer<ListBlocked>) {
        if self.0.len() > REMEMBERED {
            let listed: HashSet<_> = rows(list).into_iter().map(|it| it.id).collect();
            self.0.retain(|id, _| listed.contains(id.as_str()));
        }
    }
}

fn status_of(access: &Blocked<'_>) -> String {
    let completed = if access.completed { ", completed anyway" } else { "" };
    format!("{}{completed}", plain(access.shown_status()))
}

/// The rest that a person needs to know: the pattern of `denied` that only a person can override, and the rule of
/// `[[routing]]`, with the owner that answered by it.
fn notes(access: &Blocked<'_>) -> Vec<String> {
    let pattern = access.denied_by.as_deref();
    let pattern = pattern.map(|pattern| format!("denied by {}", plain(pattern)));
    let by_rule = access.rule.zip(access.decide.as_ref()).map(|(rule, decide)| {
        let mut text = format!("rule {rule}: {}", plain(decide.as_str()));
        if let Some(owner) = &access.answered_by {
            let _ = write!(text, " {}", plain(owner));
        }
        if let Some(tokens) = access.tokens_saved {
            let _ = write!(text, ", kept: {tokens} tokens saved");
        }
        text
    });
    let ended = access.ended.as_deref().map(|why| match access.status.known() {
        Some(BlockedStatus::Expired) => format!("too late: {}", plain(why)),
        _ => plain(why),
    });
    pattern.into_iter().chain(by_rule).chain(ended).collect()
}

/// The command by which whoever reads of an access goes on; None: there is nothing to decide.
pub(super) fn way_out(access: &Blocked<'_>, program: &str) -> Option<String> {
    let id = plain(&access.id);
    let even_denied = if access.denied_by.is_some() { " --even-denied" } else { "" };
    Some(match access.status.known()? {
        _ if access.harmless => return None,
        _ if access.sweep.is_some() => {
            let agent = plain(&access.session.agent_id);
            format!("{program} why {agent} {}", plain(&access.path))
        }
        BlockedStatus::Pending => format!("{program} inbox allow|deny {id}"),
        BlockedStatus::Denied => {
            format!("{program} inbox allow {id}{even_denied} lets the next try pass")
        }
        BlockedStatus::Expired => format!("{program} inbox allow {id}{even_denied} --tell"),
        _ => return None,
    })
}

/// Returns e.g. `b3: pending: read core/app.ts by ui (via fs, owned by core)`.
pub(super) fn describe(access: &Blocked<'_>) -> String {
    let color = style(access.shown_status());
    let owners = match access.owners.as_slice() {
        [] => String::new(),
        owners => format!(", owned by {}", plain(&owners.join(", "))),
    };
    let sweep = match access.sweep {
        Some(count) => format!(" (swept {})", times(count)),
        None => String::new(),
    };
    let notes: String =
        notes(access).into_iter().flat_map(|part| [", ".to_owned(), part]).collect();
    format!(
        "{}: {color}{}{color:#}: {} {}{sweep} by {} (via {}{owners}{notes})",
        plain(&access.id),
        status_of(access),
        plain(access.action.as_str()),
        plain(&access.path),
        plain(&access.session.agent_id),
        plain(access.via.as_str()),
    )
}

fn print_table(list: &[Blocked<'_>]) -> Result<(), Failure> {
    // Paths are never truncated.
    print(table(list).lines(None).join("\n"))
}

pub(super) fn table(list: &[Blocked<'_>]) -> Table {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut table =
        Table::new(&["ID", ">AGE", "AGENT", "ACTION", "STATUS", "VIA", "OWNERS", "PATH"]);
    for access in list {
        let age = now.saturating_sub(Duration::from_millis(access.timestamp_ms));
        let path = match access.sweep {
            Some(count) => format!("{} (swept {})", plain(&access.path), times(count)),
            None => plain(&access.path),
        };
        let notes = notes(access);
        let path = if notes.is_empty() { path } else { format!("{path} ({})", notes.join("; ")) };
        let owners = if access.owners.is_empty() { "-".into() } else { access.owners.join(",") };
        table.row(vec![
            plain(&access.id).into(),
            format::duration(age).into(),
            plain(&access.session.agent_id).into(),
            plain(access.action.as_str()).into(),
            Cell::styled(&status_of(access), style(access.shown_status())),
            plain(access.via.as_str()).into(),
            plain(&owners).into(),
            path.into(),
        ]);
    }
    table
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

impl Status {
    fn known(self) -> BlockedStatus {
        match self {
            Self::Denied => BlockedStatus::Denied,
            Self::Pending => BlockedStatus::Pending,
            Self::Allowed => BlockedStatus::Allowed,
            Self::Answered => BlockedStatus::Answered,
            Self::Expired => BlockedStatus::Expired,
            Self::Observed => BlockedStatus::Observed,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn access(id: &str, status: &str) -> Blocked<'static> {
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
            ("b5", "expired", true),
            ("b5", "allowed", true),
            ("b5", "expired", false),
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
        let harmless =
            |count| Blocked { harmless: true, sweep: Some(count), ..access("b2", "denied") };
        assert!(seen.is_news(&harmless(1)) && !seen.is_news(&harmless(2)));
    }

    #[test]
    fn a_denied_call_that_completed_is_news_and_is_marked() {
        let mut seen = SeenAccesses::default();
        assert!(seen.is_news(&access("b1", "denied")));
        let completed = Blocked { completed: true, ..access("b1", "denied") };
        assert!(seen.is_news(&completed) && !seen.is_news(&completed));
        let line = anstream::adapter::strip_str(&describe(&completed)).to_string();
        assert!(line.starts_with("b1: denied, completed anyway: read a b by ui"), "{line}");
    }

    #[test]
    fn accesses_that_the_team_has_forgotten_are_forgotten() {
        let mut seen = SeenAccesses::default();
        for n in 0..=REMEMBERED {
            seen.is_news(&access(&n.to_string(), "denied"));
        }
        let kept = json!({
            "id": "7", "agent_id": "ui", "session_id": "s", "status": "denied", "action": "read",
            "path": "a",
        });
        seen.forget(&MethodAnswer::new(json!([kept])));
        assert_eq!(seen.0.len(), 1);
        assert!(!seen.is_news(&access("7", "denied")));
    }

    #[test]
    fn a_line_names_agent_and_path_without_control_sequences() {
        let line = anstream::adapter::strip_str(&describe(&access("b1", "denied"))).to_string();
        assert_eq!(line, "b1: denied: read a b by ui (via fs, owned by api, db)");
        let denied = Blocked { denied_by: Some("**/.env".into()), ..access("b1", "pending") };
        let line = anstream::adapter::strip_str(&describe(&denied)).to_string();
        assert!(line.ends_with("(via fs, owned by api, db, denied by **/.env)"), "{line}");
        let sweep = Blocked { sweep: Some(12), ..access("b1", "denied") };
        let line = anstream::adapter::strip_str(&describe(&sweep)).to_string();
        assert_eq!(line, "b1: denied: read a b (swept 12 times) by ui (via fs, owned by api, db)");
        let harmless = Blocked { harmless: true, ..sweep };
        let line = anstream::adapter::strip_str(&describe(&harmless)).to_string();
        assert!(line.starts_with("b1: harmless: read a b (swept 12 times) by ui"), "{line}");
        assert_eq!(way_out(&harmless, "eisen-core"), None);
    }
}
