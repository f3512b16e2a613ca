//! `fork` and `rewind`: let a session go on from an earlier point, in a running team or in the
//! journal of one that is gone.

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use super::Global;
use super::journal::WhichJournal;
use super::output::{note, plain, print};
use super::team::{Which, failed, read};
use super::undo::{alone, workspace};
use crate::home;
use crate::journal::{
    self, EventType, Keep, NameError, NewEvent, Place, Point, Session, Settings, Store,
};
use crate::model::{AgentId, How};
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, MethodAnswer};
use crate::undo::UndoRequest;
use crate::wire::{
    ForkSession, ForkSessionParams, Forked, RewindSession, RewindSessionParams, Rewound,
};

/// Begin a new session at a point of an earlier one
///
/// In a running team the agent forks its own session, if it can and the point is the session's
/// head. Otherwise a new session of the agent gets the conversation up to the point in front of its
/// next prompt. The files stay as they are. Where no team runs, the fork is in the journal only.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core session fork ui/ui-s1                   go on from where a session is
  eisen-core session fork ui/ui-s1 --at 0199c0e8-7a  … from an event; `history` shows their ids
  eisen-core session fork 0199c0e8 --agent reviewer  another agent goes on
  eisen-core prompt ui --session $(eisen-core session fork ui/ui-s1 --json | jq -r .session_id) \"Go on\"

Exit codes: 0 done, 1 no such session or event, or refused, 2 wrong usage.")]
pub(super) struct ForkArgs {
    /// The session: its id in the journal, the beginning of one, or AGENT/SESSION of the wire
    session: String,
    /// The event behind which the new session begins, or the beginning of its id [default: the
    /// session's head]
    #[arg(long, value_name = "EVENT")]
    at: Option<String>,
    /// The agent that goes on [default: the session's own]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichJournal,
}

/// Set a session back to an earlier event
///
/// Later events stay in the journal, on no branch; `session fork` continues them. In a running team the next
/// prompt of the session reaches an agent that knows the conversation up to the event and no more. Files stay
/// as they are, unless --files undoes the later writes of the session's agent.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core session rewind ui/ui-s1 --to 0199c0e8-7a  forget what was said after an event
  eisen-core session rewind ui/ui-s1 --to 0199c0e8-7a --files

Exit codes: 0 done, 1 no such session or event, or refused, 2 wrong usage.")]
pub(super) struct Rewind {
    /// The session: its id in the journal, the beginning of one, or AGENT/SESSION of the wire
    session: String,
    /// The event that becomes the session's head, or the beginning of its id
    #[arg(long, value_name = "EVENT")]
    to: String,
    /// Undo what the session's agent wrote after the event, too
    #[arg(long)]
    files: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichJournal,
}

impl ForkArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let Some(mut team) = running(&self.which, global).await? else {
            return self.in_journal(global).await;
        };
        let Self { session: session_id, at, agent: agent_id, json, .. } = self;
        let params = ForkSessionParams { session_id, at, agent_id: agent_id.map(Into::into) };
        let forked = team.ask::<ForkSession>(&params).await.map_err(failed)?;
        if json {
            return print(forked);
        }
        let Forked { agent_id, session_id, how, journal_session_id, at } = read(&forked)?;
        print(forked_line([&agent_id, &session_id, how.as_str(), &journal_session_id, &at]))
    }

    async fn in_journal(&self, global: &Global) -> Result<(), Failure> {
        let (settings, session, point) =
            found(&self.which, global, &self.session, self.at.as_deref())?;
        let agent = self.agent.clone().unwrap_or_else(|| session.agent_id.clone());
        let place = Place::Fork {
            parent: point.event.clone(),
            agent: AgentId::new(agent.as_str()),
            wire_session_id: None,
        };
        let payload = json!({
            "from_session_id": session.id,
            "from_event_id": point.event,
            "how": How::Primed.as_str(),
        });
        let event = NewEvent::new(place, EventType::SESSION_FORK, &payload);
        let committed = append(settings, event).await?;
        note(
            "no such team runs: the fork is in its journal only; fork it again when the team runs",
        );
        let how = How::Primed.as_str();
        if self.json {
            return print(json!({
                "agent_id": agent,
                "session_id": null,
                "how": how,
                "journal_session_id": committed.session_id,
                "at": point.event,
            }));
        }
        let id = committed.session_id.as_deref().unwrap_or("-");
        print(forked_line([&agent, "-", how, id, &point.event]))
    }
}

fn forked_line(parts: [&str; 5]) -> String {
    let [agent, session, how, id, at] = parts.map(plain);
    format!("{agent}/{session}  {how}  {id}  at {at}")
}

impl Rewind {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let (session_id, to) = (self.session.clone(), self.to.clone());
        let params = RewindSessionParams { session_id, to, files: Some(self.files) };
        let rewound = match running(&self.which, global).await? {
            Some(mut team) => team.ask::<RewindSession>(&params).await.map_err(failed)?,
            None => MethodAnswer::new(json!(self.in_journal(global).await?)),
        };
        if self.json {
            return print(rewound);
        }
        let Rewound { agent_id, session_id, head_event_id, .. } = read(&rewound)?;
        let (agent, session) = (plain(&agent_id), plain(session_id.as_deref().unwrap_or("-")));
        print(format_args!("{agent}/{session}  set back to {}", plain(&head_event_id)))
    }

    async fn in_journal(&self, global: &Global) -> Result<Rewound, Failure> {
        let (settings, session, point) = found(&self.which, global, &self.session, Some(&self.to))?;
        if point.behind.is_none() {
            let why = format!(
                "a rewind left the event {} behind: `session fork` continues it",
                point.event
            );
            return Err(Failure::Run(anyhow!(why)));
        }
        if self.files {
            let workspace = workspace(global, &settings.team)?;
            let request = UndoRequest::of_rewind(&session, &point.event);
            let undone = alone(&settings.team, &settings.path, &workspace, request).await;
            undone.map_err(|error| Failure::Run(error.into()))?;
        } else {
            append(settings, NewEvent::rewind(&session, &point.event, false)).await?;
        }
        Ok(Rewound {
            agent_id: session.agent_id.into(),
            session_id: session.wire_session_id,
            journal_session_id: session.id,
            head_event_id: point.event,
            how: None,
        })
    }
}

/// Connects to the selected team; None if it does not run.
async fn running(which: &WhichJournal, global: &Global) -> Result<Option<Connection>, Failure> {
    if which.is_file() {
        return Ok(None);
    }
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let team = Which { team: which.named(&eisen_dir).map_err(Failure::Run)? };
    match team.connect(global).await {
        Ok(team) => Ok(Some(team)),
        Err(failure) => match failure.error().downcast_ref::<ClientError>() {
            Some(
                ClientError::NoTeam | ClientError::NotHere { .. } | ClientError::NotRunning { .. },
            ) => Ok(None),
            _ => Err(failure),
        },
    }
}

/// The selected session and point, in the journal of a team that is gone.
fn found(
    which: &WhichJournal,
    global: &Global,
    session: &str,
    event: Option<&str>,
) -> Result<(Settings, Session, Point), Failure> {
    let path = which.path(global)?;
    let store = Store::open(&path).map_err(|error| Failure::Run(error.into()))?;
    let find = || -> Result<_, NameError> {
        let team = store.meta("team")?.unwrap_or_default();
        let session = store.session_named(session, None)?;
        let point = store.point(&session, event)?;
        Ok((team, session, point))
    };
    let (team, session, point) = find().map_err(|error| Failure::Run(error.into()))?;
    Ok((Settings { team, path, keep: Keep::default(), quotas: None }, session, point))
}

async fn append(settings: Settings, event: NewEvent) -> Result<journal::Committed, Failure> {
    let append = async {
        let journal = journal::open(settings).await?;
        let committed = journal.append(event).await?;
        journal.close().await;
        Ok::<_, journal::AppendError>(committed)
    };
    append.await.map_err(|error| Failure::Run(error.into()))
}
