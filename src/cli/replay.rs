//! `replay`: serves a port that shows an earlier run, or sends a session to a stream of a running team.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::Global;
use super::output::{plain, print};
use super::team::{Which, failed};
use crate::app::{self, ReplayOptions};
use crate::home;
use crate::program::Failure;
use crate::replay::Speed;
use crate::wire::{ReplayToStream, ReplayToStreamParams, ReplayedToStream};

/// Show an earlier run on a port, as if it happened now
///
/// Clients get the lines of a running team, each with `"replay": true`: maps, agents, turns, usage,
/// blocked accesses, and with the token what agents said and did. It begins a second after the
/// first client has joined.
/// Pauses of more than 5 s are cut to that. At the end the last map stays, until Ctrl-C.
///
/// With --to, a session of a running team is delivered to one of its streams once more; each event says
/// that by its `origin`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core session replay shop                    the journal of a team
  eisen-core session replay shop.ndjson --speed 10  an export, ten times as fast
  eisen-core session replay shop --session ui/ui-s1 --speed max --port 0

  eisen-core session replay ui/ui-s1 --to audit    a session, to a stream of the running team

Follow it with `eisen-core agent watch --port N`.

Exit codes: 0 stopped by a signal, or delivered, 1 no such journal, session or stream, or the
port is taken, 2 wrong usage.")]
pub(super) struct Replay {
    /// A team, running or gone; a journal, or an export of one. With --to a session, as for --session
    #[arg(value_name = "FILE|TEAM|SESSION")]
    what: PathBuf,
    /// Only this session: its id in the journal, the beginning of one, or AGENT/SESSION of the wire
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// So many times as fast as it was, from 0.01 to 1000; `max`: without pauses
    #[arg(long, value_name = "N|max", default_value = "1")]
    speed: Speed,
    /// Deliver the session to this stream
    #[arg(long, value_name = "STREAM", conflicts_with_all = ["session", "speed"])]
    to: Option<String>,
    #[command(flatten)]
    which: Which,
}

impl Replay {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        if let Some(stream) = &self.to {
            return self.deliver(global, stream).await;
        }
        let file = self.file(global)?;
        let Self { session, speed, .. } = self;
        app::replay(ReplayOptions { file, session, speed, port: global.port }).await
    }

    async fn deliver(&self, global: &Global, stream: &str) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        let (session_id, stream) = (self.what.to_string_lossy().into(), stream.to_owned());
        let params = ReplayToStreamParams { session_id, stream };
        let done = team.call::<ReplayToStream>(&params).await.map_err(failed)?;
        let ReplayedToStream { events, dead, replay_id, .. } = done;
        let dead = if dead > 0 { format!(", {dead} refused") } else { String::new() };
        print(format_args!("{events} events delivered{dead}: replay_id {}", plain(&replay_id)))
    }

    /// A file of that name comes before a team.
    fn file(&self, global: &Global) -> Result<PathBuf, Failure> {
        let file = global.cwd.clone().unwrap_or_default().join(&self.what);
        if file.is_file() {
            return Ok(file);
        }
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let team = self.what.to_str().filter(|team| crate::config::is_name(team));
        let journal = team.map(|team| home::journal_place(&eisen_dir, team));
        journal.filter(|journal| journal.is_file()).ok_or_else(|| {
            let teams = home::teams_with_journals(&eisen_dir).join(", ");
            let known = if teams.is_empty() { "none has one".to_owned() } else { teams };
            let what = self.what.display();
            let why =
                format!("there is no file and no team with a journal `{what}`; teams: {known}");
            Failure::Run(anyhow!(why))
        })
    }
}
