//! `undo` and `redo`: take back an agent's changes of files, in a team that runs or is gone.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use clap::Args;
use eisen_base::task;
use serde_json::json;

use super::Global;
use super::format::counted;
use super::journal::WhichJournal;
use super::output::{escape_controls, is_terminal, note, plain, print, write};
use super::team::{environment, failed};
use crate::home;
use crate::journal::{self, Settings, Store};
use crate::program::Failure;
use crate::serve::client::{Connection, MethodAnswer, Target};
use crate::undo::{self, Aim, UndoError, UndoRequest, Undoer};
use crate::wire::{self, RedoParams, UndoParams, Undone};

/// Paths that are listed.
const MOST_LISTED: usize = 200;

/// Take back what an agent wrote
///
/// Contents, modes, symlinks and empty folders are as before then. A file that anybody changed since
/// is merged; if one can't be merged, nothing is touched. What is there is kept in the journal
/// before, and `redo` brings it back. Git's own files are never touched, and files outside the
/// workspace only with --outside. A turn that was undone counts no more, so a repeated undo goes
/// further back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core undo ui --dry-run            show what would change, as a diff
  eisen-core undo ui                      all that `ui` wrote
  eisen-core undo ui --turn 3             what it wrote in the fourth turn of its first session
  eisen-core undo ui --since 0192f3a1     what it wrote behind this event
  eisen-core undo ui --force              also where others changed the same lines since

On a terminal it shows the diff and asks. It is refused while the agent is in a turn, and while a
process of an agent has one of the files open for writing.

Exit codes: 0 done, or nothing to do; 1 refused, nothing was changed; 2 wrong usage.")]
pub(super) struct Undo {
    /// Id of the agent
    agent: String,
    /// Only what it wrote in this session: its id in the journal, the beginning of one, or its id
    /// on the wire
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Only what it wrote in this turn, of its first session since the team's last start unless --session names
    /// another; turns count from 0: `--turn 3` is the fourth turn
    #[arg(long, value_name = "N", conflicts_with = "since")]
    turn: Option<u64>,
    /// Only what it wrote behind the event with this id, or the beginning of one
    #[arg(long, value_name = "EVENT")]
    since: Option<String>,
    /// Also what it wrote outside the workspace: its own settings, caches and sessions, for the
    /// most part
    #[arg(long)]
    outside: bool,
    #[command(flatten)]
    how: UndoOptions,
}

/// Take an undo back
///
/// Brings back what the last undo took away, on the same terms. A repeated redo takes back the undo
/// before.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core redo                 the last undo
  eisen-core redo ui --dry-run    show what the last undo of `ui` took back, as a diff

Exit codes: 0 done; 1 refused, or there is no undo: nothing was changed; 2 wrong usage.")]
pub(super) struct Redo {
    /// The last undo of this agent [default: of any]
    agent: Option<String>,
    #[command(flatten)]
    how: UndoOptions,
}

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
struct UndoOptions {
    /// Show what would change, as a diff, and what is in the way
    #[arg(long)]
    dry_run: bool,
    /// Give files that clash the content from before the agent's change; leave those that can't be
    /// restored
    #[arg(long)]
    force: bool,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichJournal,
}

impl Undo {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let Self { agent, session, turn, since, outside, how } = self;
        how.run(global, Aim::Agent { agent, session, turn, since }, outside).await
    }
}

impl Redo {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        self.how.run(global, Aim::LastUndo { agent: self.agent }, true).await
    }
}

/// The site of an undo: a running team, or the workspace of one that is gone.
enum Site {
    Running(Box<Connection>),
    Gone { team: String, journal: PathBuf, workspace: PathBuf },
}

impl UndoOptions {
    async fn run(&self, global: &Global, aim: Aim, outside: bool) -> Result<u8, Failure> {
        let mut site = self.site(global).await?;
        let force = self.force;
        let request =
            |dry_run| UndoRequest { aim: aim.clone(), force, dry_run, outside, rewind: None };
        let asks = io::stdin().is_terminal() && io::stdout().is_terminal();
        let asks = asks && !self.yes && !self.json && !self.dry_run;
        if self.dry_run || asks {
            let (answer, diff) = site.run(request(true)).await?;
            let preview = answer.read().map_err(failed)?;
            if self.json {
                print(answer)?;
            } else {
                show(&preview, &diff)?;
            }
            if let Some(why) = &preview.refused {
                return Err(Failure::Run(anyhow!("{why}")));
            }
            if self.dry_run || preview.paths.is_empty() || !confirmed(&preview, &aim)? {
                return Ok(0);
            }
        }
        let (outcome, _) = site.run(request(false)).await?;
        if self.json {
            print(outcome)?;
        } else {
            report(&outcome.read().map_err(failed)?, &aim)?;
        }
        Ok(0)
    }

    async fn site(&self, global: &Global) -> Result<Site, Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let journal = self.which.path(global)?;
        let team = self.which.team(global, &eisen_dir)?;
        let environment = environment(global, &eisen_dir);
        if !self.which.is_file()
            && let Ok(target) = Target::find(&environment, &eisen_dir, Some(&team), global.port)
        {
            let connection = Connection::open(&target).await.map_err(failed)?;
            return Ok(Site::Running(Box::new(connection)));
        }
        let workspace = workspace(global, &team)?;
        Ok(Site::Gone { team, journal, workspace })
    }
}

impl Site {
    /// The result, and the bytes of its diff.
    async fn run(
        &mut self,
        request: UndoRequest,
    ) -> Result<(MethodAnswer<wire::Undo>, Vec<u8>), Failure> {
        match self {
            Self::Running(team) => {
                let UndoRequest { dry_run, force, outside, .. } = request;
                let outcome: Result<MethodAnswer<wire::Undo>, _> = match request.aim {
                    Aim::LastUndo { agent: agent_id } => {
                        let params =
                            RedoParams { agent_id: agent_id.map(Into::into), dry_run, force };
                        // Its result is that of an undo.
                        team.ask::<wire::Redo>(&params).await.map(|it| MethodAnswer::new(it.json))
                    }
                    Aim::Agent { agent: agent_id, session: session_id, turn, since } => {
                        let params = UndoParams {
                            agent_id: agent_id.into(),
                            session_id,
                            turn,
                            since,
                            dry_run,
                            force,
                            outside,
                        };
                        team.ask(&params).await
                    }
                    Aim::Events { .. } => return Err(Failure::Run(anyhow!("not over the port"))),
                };
                let outcome = outcome.map_err(failed)?;
                let diff = outcome.read().map_err(failed)?.diff.unwrap_or_default().into();
                Ok((outcome, diff))
            }
            Self::Gone { team, journal, workspace } => {
                let outcome = alone(team, journal, workspace, request).await;
                let outcome = outcome.map_err(|error| Failure::Run(error.into()))?;
                let diff = outcome.diff.clone().unwrap_or_default();
                Ok((MethodAnswer::new(json!(outcome)), diff))
            }
        }
    }
}

/// The workspace of a team that does not run.
pub(super) fn workspace(global: &Global, team: &str) -> Result<PathBuf, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let noted = || home::workspace_of(&eisen_dir, team);
    global.cwd.clone().or_else(noted).ok_or_else(|| {
        let why = "it is not known where the team's workspace is: name it with --cwd";
        Failure::Run(anyhow!(why))
    })
}

/// Works on the journal of a team that does not run.
pub(super) async fn alone(
    team: &str,
    path: &Path,
    workspace: &Path,
    request: UndoRequest,
) -> Result<undo::Outcome, UndoError> {
    let keep = Store::open(path)?.keep()?;
    if request.dry_run {
        let (path, workspace) = (path.to_owned(), workspace.to_owned());
        let preview = move || undo::preview(&path, &workspace, keep, &request);
        let shown = task::spawn_blocking(preview).await;
        return shown.unwrap_or_else(|error| Err(UndoError::Busy(error.to_string())));
    }
    let settings = Settings { team: team.to_owned(), path: path.to_owned(), keep, quotas: None };
    let journal = journal::open(settings).await.map_err(UndoError::Journal)?;
    let outcome = Undoer::alone(journal.clone(), workspace).run(request).await;
    journal.close().await;
    outcome
}

fn show(preview: &Undone, diff: &[u8]) -> Result<(), Failure> {
    if is_terminal() {
        for line in String::from_utf8_lossy(diff).lines() {
            let color = match line.as_bytes().first() {
                Some(b'+') => AnsiColor::Green.on_default(),
                Some(b'-') => AnsiColor::Red.on_default(),
                Some(b'@') => AnsiColor::Cyan.on_default(),
                _ => Style::new(),
            };
            print(format_args!("{color}{}{color:#}", escape_controls(line)))?;
        }
    } else {
        write(diff)?;
    }
    for change in &preview.not_in_diff {
        note(format_args!("not in the diff: {}", plain(change)));
    }
    mention(preview);
    if preview.paths.is_empty() && preview.refused.is_none() {
        note("nothing to do");
    }
    Ok(())
}

/// Prints the changes that stay and the obstacles to standard error.
fn mention(outcome: &Undone) {
    for obstacle in outcome.obstacles.iter().take(MOST_LISTED) {
        let (path, why) = (plain(&obstacle.path), plain(&obstacle.why));
        match (obstacle.forced, &*obstacle.kind) {
            (true, _) => note(format_args!("{path}: {why}; it is set back all the same")),
            (_, "clash") => note(format_args!("{path}: {why}")),
            _ => note(format_args!("{path}: {why}; it stays as it is")),
        }
    }
    for folder in outcome.staying.iter().take(MOST_LISTED) {
        let folder = plain(folder);
        note(format_args!("{folder}: the folder stays, since others have files in it"));
    }
    if outcome.of_git > 0 {
        let count = counted(outcome.of_git as u64, "change");
        note(format_args!("{count} in .git stay as they are"));
    }
    if outcome.outside > 0 {
        let count = counted(outcome.outside as u64, "change");
        note(format_args!("{count} outside the workspace stay as they are: see --outside"));
    }
}

fn confirmed(preview: &Undone, aim: &Aim) -> Result<bool, Failure> {
    let verb = if matches!(aim, Aim::LastUndo { .. }) { "Redo" } else { "Undo" };
    let files = counted(preview.paths.len() as u64, "path");
    let mut answer = String::new();
    let asked = write!(io::stderr(), "{verb} {files}? [y/N] ")
        .and_then(|()| io::stdin().lock().read_line(&mut answer));
    asked.map_err(|error| Failure::Run(error.into()))?;
    let is_yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !is_yes {
        note("nothing was changed");
    }
    Ok(is_yes)
}

fn report(outcome: &Undone, aim: &Aim) -> Result<(), Failure> {
    let done = &outcome.paths;
    for path in done.iter().take(MOST_LISTED) {
        let what = match (path.before.is_none(), path.after.is_none()) {
            (true, _) => "made    ",
            (_, true) => "removed ",
            _ => "restored",
        };
        print(format_args!("{what}  {}", plain(&path.path)))?;
    }
    if done.len() > MOST_LISTED {
        print(format_args!("… and {} more", done.len() - MOST_LISTED))?;
    }
    mention(outcome);
    if done.is_empty() {
        let agent = plain(outcome.agent_id.as_deref().unwrap_or("the agent"));
        let what = if matches!(aim, Aim::LastUndo { .. }) { "redo" } else { "undo" };
        note(format_args!("nothing to {what}: the files are as they were before {agent}"));
    }
    Ok(())
}
