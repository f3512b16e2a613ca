//! `blame`: the author of each line of a file, with its turn and prompt.

mod repository;

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anstyle::Style;
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use self::repository::Repository;
use super::Global;
use super::diff::{Out, unreadable};
use super::journal::WhichJournal;
use super::output::{note, plain, print};
use crate::changes::{self, AuthorshipNote, Blame, Provenance, Traced};
use crate::home;
use crate::journal::Store;
use crate::model::{now_ms, rfc3339, turn_name};
use crate::program::Failure;
use crate::tree::Worktrees;

/// Columns of a call and of a prompt.
const CALL: usize = 20;
const PROMPT: usize = 32;

/// Show who wrote each line of a file
///
/// For each line: the agent, the turn, the tool call and the prompt that it came from; `-` if it was
/// there before the journal's first change, `outside` if nobody of the team wrote it, `unknown` if
/// that can't be known, and `contested` if several agents wrote the file at once. Lines are followed
/// by content, through renames, undo and what git does. What is on the disk and in no event is
/// `outside`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core blame src/ui/app.ts
  eisen-core blame src/ui/app.ts --json | jq '.lines[] | select(.agent_id == \"ui\") | .line'
  eisen-core blame src/ui/app.ts --format agent-trace
  eisen-core blame . --format git-ai | git notes --ref=ai add -f -F - HEAD

`git-ai` prints the note of a commit, for all files below PATH that it changed. It depends on the
lines that the commit has, so print it again for what a rebase, squash, amend or cherry-pick made.

Exit codes: 0 done, 1 no such file or journal, or nothing is known of it, 2 wrong usage.")]
pub(super) struct BlameArgs {
    /// The file, from the working directory or from the workspace; with `git-ai` also a folder
    path: PathBuf,
    /// Print one JSON object, with `lines`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Print it in a format of others
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<Format>,
    /// The commit that `git-ai` is for
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    commit: String,
    #[command(flatten)]
    which: WhichJournal,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Debug)]
enum Format {
    /// A record of Agent Trace, as JSON
    AgentTrace,
    /// The note of a commit under refs/notes/ai
    GitAi,
}

/// The requested file.
struct Place {
    team: String,
    workspace: PathBuf,
    /// The workspace is the temporary copy that the team works on, or worked on.
    is_copy: bool,
    /// The file's name in the journal.
    name: PathBuf,
}

impl BlameArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let store = self.which.open_settled(global).await?;
        let place = self.place(global, &store)?;
        if self.format == Some(Format::GitAi) {
            return note_of(&store, &place, &self.commit);
        }
        let content = place.content()?;
        let history = changes::follow(&store, &place.name).map_err(unreadable)?;
        let blame = changes::blame(&place.name, &history, &store, content);
        let blame = blame.map_err(|error| Failure::Run(error.into()))?;
        let names = changes::provenance(&store, &blame).map_err(no_journal)?;
        if history.skipped > 0 {
            note(format_args!("note: {} changes could not be read", history.skipped));
        }
        if self.format == Some(Format::AgentTrace) {
            return print(format_args!("{:#}", place.trace(&store, &blame, &names)?));
        }
        if self.json {
            return print(as_json(&place.name, &blame, &names));
        }
        show(&blame, &names)
    }

    fn place(&self, global: &Global, store: &Store) -> Result<Place, Failure> {
        let team = store.meta("team").map_err(no_journal)?.unwrap_or_default();
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let written = home::workspace_of(&eisen_dir, &team);
        let worked = store.meta("workspace").map_err(no_journal)?.map(PathBuf::from);
        let copy =
            worked.filter(|worked| home::is_copy(worked) && written.as_ref() != Some(worked));
        let here = std::env::current_dir().map_err(|error| Failure::Run(error.into()))?;
        let here = here.join(global.cwd.clone().unwrap_or_default());
        let written = real(written.unwrap_or_else(|| here.clone()));
        let from_here = clean(&real(here).join(&self.path));
        let is_copy = copy.is_some();
        let workspace = copy.map_or_else(|| written.clone(), real);
        // From the working directory if that is in the workspace, else from the workspace.
        let below = |root: &Path| from_here.strip_prefix(root).ok().map(Path::to_owned);
        let name = below(&workspace).or_else(|| below(&written));
        // The journal has the whole paths of files in worktrees of agents.
        let in_tree =
            || Some(from_here.clone()).filter(|it| Worktrees::new(&eisen_dir).around(it).is_some());
        let name = name.or_else(in_tree);
        let name = name.unwrap_or_else(|| clean(&self.path));
        Ok(Place { team, workspace, is_copy, name })
    }
}

impl Place {
    /// The content on the disk; None if the workspace is gone.
    fn content(&self) -> Result<Option<Vec<u8>>, Failure> {
        let what = if self.is_copy { "the copy that the team worked on" } else { "the workspace" };
        if !self.workspace.is_dir() {
            note(format_args!(
                "note: {what} is gone: these are the lines that the journal knew last"
            ));
            return Ok(None);
        }
        let path = self.workspace.join(&self.name);
        if self.is_copy {
            let path = plain(&path.to_string_lossy());
            note(format_args!("note: the team works on a copy: these are the lines of {path}"));
        }
        let failed = |why: String| Failure::Run(anyhow!("{why}"));
        match std::fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(failed(format!("{} is no file with lines", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(failed(format!("there is no file {}", path.display())));
            }
            Err(error) => return Err(failed(format!("cannot read {}: {error}", path.display()))),
        }
        let read = std::fs::read(&path);
        read.map(Some).map_err(|error| failed(format!("cannot read {}: {error}", path.display())))
    }

    fn trace(&self, store: &Store, blame: &Blame, names: &[Provenance]) -> Result<Value, Failure> {
        let repository = Repository::of(&self.workspace).ok();
        // Line numbers are those of a commit only if it has exactly these lines.
        let committed = repository.and_then(|repository| {
            let full = self.workspace.join(&self.name);
            let path = full.strip_prefix(&repository.root).ok()?.to_owned();
            let commit = repository.commit("HEAD").ok()?;
            let is_same = repository.content(&commit, &path)? == blame.content;
            Some((path, is_same.then_some(commit)))
        });
        let (path, revision) = committed.unwrap_or((self.name.clone(), None));
        let (id, now) = (uuid::Uuid::now_v7().to_string(), rfc3339(now_ms() / 1000));
        let traced = Traced {
            team: &self.team,
            path: &path.to_string_lossy(),
            revision: revision.as_deref(),
            id: &id,
            timestamp: &now,
        };
        changes::agent_trace(store, blame, names, &traced).map_err(no_journal)
    }
}

/// Prints the note of a commit.
fn note_of(store: &Store, place: &Place, revision: &str) -> Result<(), Failure> {
    let workspace = &place.workspace;
    if !workspace.is_dir() {
        return Err(Failure::Run(anyhow!("the workspace is gone")));
    }
    let repository = Repository::of(workspace).map_err(Failure::Run)?;
    let commit = repository.commit(revision).map_err(Failure::Run)?;
    let full = clean(&workspace.join(&place.name));
    let below = full.strip_prefix(&repository.root).map(Path::to_owned);
    let below = below.map_err(|_| {
        let (full, root) = (full.display(), repository.root.display());
        Failure::Run(anyhow!("{full} is not in the repository {root}"))
    })?;
    let mut authorship = AuthorshipNote::default();
    for file in repository.changed(&commit, &below).map_err(Failure::Run)? {
        let full = repository.root.join(&file.path);
        let name = full.strip_prefix(workspace).map_or(full.clone(), Path::to_owned);
        let history = changes::follow(store, &name).map_err(unreadable)?;
        let added: Vec<Vec<bool>> =
            file.parents.iter().map(|old| changes::added_lines(old, &file.content)).collect();
        let is_new = |line: usize| added.iter().all(|added| added.get(line - 1) == Some(&true));
        // A binary file has no lines to attest.
        let Ok(blame) = changes::blame(&name, &history, store, Some(file.content)) else {
            continue;
        };
        let names = changes::provenance(store, &blame).map_err(no_journal)?;
        authorship.add(store, &file.path, &blame, &names, &is_new).map_err(no_journal)?;
    }
    if authorship.is_empty() {
        note(format_args!("note: no line of {commit} is known to be from an agent"));
    }
    super::output::write(authorship.text(&commit).as_bytes())
}

#[derive(Serialize)]
struct BlamedText<'a> {
    line: usize,
    #[serde(flatten)]
    by: &'a Provenance,
    text: &'a str,
}

fn as_json(path: &Path, blame: &Blame, names: &[Provenance]) -> Value {
    let line = |(at, ((text, _), origin)): (usize, ((&[u8], _), &usize))| {
        json!(BlamedText {
            line: at + 1,
            by: &names[*origin],
            text: String::from_utf8_lossy(text).trim_end_matches(['\n', '\r']),
        })
    };
    let lines: Vec<_> = blame.iter().zip(&blame.lines).enumerate().map(line).collect();
    json!({ "path": path.to_string_lossy(), "lines": lines })
}

fn show(blame: &Blame, names: &[Provenance]) -> Result<(), Failure> {
    let columns: Vec<[String; 4]> = names.iter().map(columns).collect();
    let width = |at: usize| columns.iter().map(|it| it[at].width()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let digits = blame.lines.len().to_string().len();
    let mut out = Out::new();
    for (at, ((text, _), origin)) in blame.iter().zip(&blame.lines).enumerate() {
        let mut head = String::new();
        for (cell, width) in columns[*origin].iter().zip(widths) {
            if width > 0 {
                head += cell;
                head += &" ".repeat(width - cell.width() + 2);
            }
        }
        let _ = write!(head, "{:>digits$}) ", at + 1);
        let style = if names[*origin].by == "agent" { Style::new() } else { Style::new().dimmed() };
        out.part(style, head.as_bytes())?;
        out.part(Style::new(), text)?;
        if !text.ends_with(b"\n") {
            out.part(Style::new(), b"\n")?;
        }
    }
    out.finish()
}

/// The columns of the author, the turn, the call and the prompt.
fn columns(name: &Provenance) -> [String; 4] {
    let who = match name.by {
        "before" => "-".to_owned(),
        "agent" if name.contested.is_empty() => name.agent_id.clone().unwrap_or_default(),
        "agent" => {
            let others = name.contested.join("+");
            format!("contested {}+{others}", name.agent_id.as_deref().unwrap_or_default())
        }
        "undo" | "redo" => format!("{} {}", name.by, name.agent_id.as_deref().unwrap_or_default()),
        other => other.to_owned(),
    };
    let turn = name.turn.map(turn_name).unwrap_or_default();
    let call = name.title.as_ref().or(name.tool_call_id.as_ref());
    let call = call.map(|call| cut(&plain(call), CALL)).unwrap_or_default();
    let prompt = name.prompt.as_ref().map(|it| format!("\"{}\"", cut(&plain(it), PROMPT)));
    [plain(&who), turn, call, prompt.unwrap_or_default()]
}

fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if cut.width() + 2 > columns {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

/// The path without `.` and `..`; it need not exist.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

fn no_journal(error: crate::journal::OpenError) -> Failure {
    Failure::Run(error.into())
}
