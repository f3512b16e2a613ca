//! The work of a candidate, from the journal of the run, and its undo.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use eisen_base::task;
use serde::Deserialize;

use crate::changes::{self, Asked, SelectError};
use crate::failover::handover::{Done, PastWork, TakenBack};
use crate::home::journals::journal_place;
use crate::journal::{self, CallPayload, Filter, Keep, OpenError, Settings, Store};
use crate::line::lenient;
use crate::undo::{Aim, Outcome, UndoError, UndoRequest, Undoer};

/// Events of tool calls that are read, and their bytes: the last ones.
const MOST_EVENTS: usize = 2000;
const MOST_BYTES: usize = 8 << 20;

/// Bytes of a diff that are read.
const LONGEST_DIFF: usize = 256 << 10;

/// Characters of a command.
const LONGEST_COMMAND: usize = 300;

/// The input of an agent's tool that carries out a command, if it is like that of most.
#[derive(Deserialize)]
struct CommandInput {
    #[serde(default, deserialize_with = "lenient")]
    command: Option<String>,
}

/// Takes back the files that an agent of a team that has ended wrote.
pub(crate) async fn take_back(
    eisen_dir: &Path,
    team: &str,
    workspace: &Path,
    agent: &str,
) -> TakenBack {
    match undo(&journal_place(eisen_dir, team), team, workspace, agent).await {
        Ok(outcome) => {
            let mut stays = outcome.staying;
            if outcome.of_git > 0 {
                stays.push(format!("{} changes in .git", outcome.of_git));
            }
            if outcome.outside > 0 {
                stays.push(format!("{} changes outside the workspace", outcome.outside));
            }
            TakenBack { files: outcome.paths.into_iter().map(|it| it.path.path).collect(), stays }
        }
        Err(error) => {
            TakenBack { files: Vec::new(), stays: vec![format!("all that it wrote ({error})")] }
        }
    }
}

async fn undo(
    path: &Path,
    team: &str,
    workspace: &Path,
    agent: &str,
) -> Result<Outcome, UndoError> {
    let (team, path) = (team.to_owned(), path.to_owned());
    let settings = Settings { team, path, keep: Keep::default(), quotas: None };
    let journal = journal::open(settings).await.map_err(UndoError::Journal)?;
    let agent = agent.to_owned();
    let aim = Aim::Agent { agent, session: None, turn: None, since: None };
    let request = UndoRequest { aim, force: false, dry_run: false, outside: false, rewind: None };
    let outcome = Undoer::alone(journal.clone(), workspace).run(request).await;
    journal.close().await;
    outcome
}

/// Reads what a candidate did in a run.
pub(crate) async fn look(eisen_dir: &Path, team: &str, past: &PastWork) -> Done {
    look_at(journal_place(eisen_dir, team), past.agent.clone(), None).await
}

/// Reads what an agent did, in one of its sessions if that is named.
pub(crate) async fn look_at(journal: PathBuf, agent: String, session: Option<String>) -> Done {
    let read = task::spawn_blocking(move || read(&journal, &agent, session.as_deref())).await;
    let trouble = match read {
        Ok(Ok(done)) => return done,
        Ok(Err(error)) => error,
        Err(error) => error.to_string(),
    };
    Done { trouble: Some(trouble), ..Done::default() }
}

fn read(journal: &Path, agent: &str, session: Option<&str>) -> Result<Done, String> {
    let unread = |error: OpenError| error.to_string();
    let store = Store::open(journal).map_err(unread)?;
    let mut sessions = store.sessions().map_err(unread)?;
    sessions.retain(|row| {
        let is_meant = session.is_none() || row.wire_session_id.as_deref() == session;
        row.agent_id == agent && is_meant
    });
    let own = sessions.last().filter(|_| session.is_some()).map(|row| row.id.clone());
    let commands = commands(&store, agent, own.clone()).map_err(unread)?;
    let mut done = Done { commands, ..Done::default() };
    if let Some(session) = sessions.last() {
        let document = store.conversation(&session.head_event_id).map_err(unread)?;
        messages(&document.unwrap_or_default()).clone_into(&mut done.conversation);
    }
    if let Err(error) = files(&store, agent, own, &mut done) {
        done.trouble = Some(error.to_string());
    }
    Ok(done)
}

/// A conversation without what is told around it.
fn messages(document: &str) -> &str {
    let from = document.find("\n## ").map_or(document.len(), |at| at + 1);
    let messages = &document[from..];
    messages.rfind("\n---\n").map_or(messages, |end| &messages[..end])
}

fn files(
    store: &Store,
    agent: &str,
    session: Option<String>,
    done: &mut Done,
) -> Result<(), SelectError> {
    let asked = Asked { agent: Some(agent.to_owned()), session, ..Asked::default() };
    // It left nothing in the journal.
    let Ok(scope) = asked.scope(store) else { return Ok(()) };
    let changes = changes::select(store, &scope)?;
    let mut net = changes::net(&changes, store);
    net.leave_ignored_out();
    for file in net.files.iter().filter(|file| !file.to.is_absolute()) {
        done.files.push(file.to.to_string_lossy().into_owned());
        if done.diff.len() > LONGEST_DIFF {
            continue;
        }
        if let Ok(patch) = changes::patch(file, store) {
            for (_, line) in patch.lines.iter() {
                done.diff.push_str(&String::from_utf8_lossy(line));
            }
        }
    }
    Ok(())
}

/// The commands that an agent reported, in order, each with its outcome.
fn commands(
    store: &Store,
    agent: &str,
    session_id: Option<String>,
) -> Result<Vec<String>, OpenError> {
    let filter = Filter {
        session_id,
        agent_id: Some(agent.to_owned()),
        types: vec!["tool.call".to_owned(), "tool.result".to_owned()],
        last: true,
        limit: MOST_EVENTS,
        bytes: MOST_BYTES,
        ..Filter::default()
    };
    let mut commands: Vec<(String, &str)> = Vec::new();
    let mut by_call: HashMap<String, usize> = HashMap::new();
    for event in store.events(&filter)?.events {
        let payload: CallPayload = event.read();
        if payload.kind.as_deref() != Some("execute") {
            continue;
        }
        let id = payload.tool_call_id.unwrap_or_default();
        let at = *by_call.entry(id).or_insert_with(|| {
            commands.push((String::new(), "no result"));
            commands.len() - 1
        });
        let input = payload.input.and_then(|input| CommandInput::deserialize(input).ok());
        let command = input.and_then(|it| it.command).or(payload.title.flatten());
        if let Some(command) = command.filter(|it| !it.is_empty()) {
            commands[at].0 = command.chars().take(LONGEST_COMMAND).collect();
        }
        commands[at].1 = match payload.status.as_deref() {
            Some("completed") => "completed",
            Some("failed") => "failed",
            Some("cancelled") => "cancelled",
            Some(_) => "unfinished",
            None => commands[at].1,
        };
    }
    Ok(commands.into_iter().map(|(command, status)| format!("{command} ({status})")).collect())
}
