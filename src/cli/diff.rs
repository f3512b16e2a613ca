//! `diff`: the changes of files by an agent, session or turn, as a patch that `git apply` takes.

use std::io::{self, BufWriter, Write as _};

use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::Global;
use super::journal::WhichJournal;
use super::output::{escape_controls, failure, is_terminal, note, plain, print};
use crate::changes::{
    self, AskError, Asked, ChangeSet, FilePatch, LeftOut, Net, PatchLine, SelectError, StatLine,
};
use crate::journal::Store;
use crate::program::Failure;

/// Columns of `--stat` without a terminal.
const COLUMNS: usize = 80;

/// Files that a note on standard error names.
const MOST_NAMED: usize = 1_000;

/// Show what agents changed in files, as a patch
///
/// The patch has only the changes of that agent, session or turn, also where others changed the same files
/// in between. `git apply` takes it. Changes that were undone since are left out. Changes that a patch can't
/// carry (empty folders, contents that were not kept) are named on standard error. A running team records
/// first what its agents wrote until now.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core diff                         what all agents changed
  eisen-core diff ui                      what `ui` changed
  eisen-core diff ui --turn 3             in the fourth turn of its first session
  eisen-core diff --session ui/s2 --stat  in a session of the wire, as a summary
  eisen-core diff ui --since 0192f3a1     behind this event
  eisen-core diff --json --stat | jq -r '.files[].path'
  eisen-core diff ui | git apply -R       take it back (`undo` does that with more care)

Exit codes: 0 done, 1 no such journal, agent, session, turn or event, 2 wrong usage.")]
pub(super) struct DiffArgs {
    /// Id of the agent [default: all agents]
    agent: Option<String>,
    /// Only in this session: its id in the journal, the beginning of one, or AGENT/SESSION of the
    /// wire
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Only in this turn, of the agent's first session since the team's last start unless --session names
    /// another; turns count from 0: `--turn 3` is the fourth turn
    #[arg(long, value_name = "N", conflicts_with = "since")]
    turn: Option<u64>,
    /// Only behind the event with this id, or the beginning of one
    #[arg(long, value_name = "EVENT")]
    since: Option<String>,
    /// Show a summary: the files, and how many lines were added and removed
    #[arg(long)]
    stat: bool,
    /// Also show files that git ignores
    #[arg(long)]
    ignored: bool,
    /// Print a JSON object: `files`, each with its `patch` (not with --stat), and what is left out
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: WhichJournal,
}

impl DiffArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let store = self.which.open_settled(global).await?;
        let Self { agent, session, turn, since, .. } = &self;
        let asked = Asked {
            agent: agent.clone(),
            session: session.clone(),
            turn: *turn,
            since: since.clone(),
        };
        let scope = asked.scope(&store).map_err(|error| no_scope(&error))?;
        let changes = changes::select(&store, &scope).map_err(unreadable)?;
        let mut net = changes::net(&changes, &store);
        let ignored = if self.ignored { 0 } else { net.leave_ignored_out() };
        if self.json {
            let value = json(&net, &store, !self.stat);
            let (undone, skipped) = (changes.undone, changes.skipped);
            let counts = json!({ "ignored": ignored, "undone": undone, "skipped": skipped });
            return print(with(value, counts));
        }
        let shown = if self.stat { summary(&net, &store) } else { show(&net, &store) };
        let left_out = shown?;
        Notes { changes: &changes, net: &net, left_out, ignored }.show();
        Ok(())
    }
}

/// The changes as an object. A patch that is no UTF-8 is made so, and can't be applied then.
fn json(net: &Net, store: &Store, has_patches: bool) -> Value {
    let (mut files, mut left_out) = (Vec::new(), changes::not_in_patch(net));
    for file in &net.files {
        match changes::patch(file, store) {
            Ok(patch) => {
                let text = String::from_utf8_lossy(patch.lines.bytes());
                files.push(json!({
                    "path": patch.path,
                    "from": patch.from,
                    "added": patch.added,
                    "removed": patch.removed,
                    "is_binary": patch.binary.is_some(),
                    "contested": file.contested,
                    "note": patch.note,
                    "patch": has_patches.then_some(text),
                }));
            }
            Err(_) if file.is_folder() => {}
            Err(why) => left_out.push(why),
        }
    }
    let (outside, left_out): (Vec<_>, Vec<_>) =
        left_out.into_iter().partition(|left_out| left_out.path.is_absolute());
    let left_out = left_out.iter().map(|it| json!({ "path": it.path, "why": it.why }));
    json!({
        "files": files,
        "not_in_patch": left_out.collect::<Vec<_>>(),
        "outside": outside.len(),
    })
}

/// An object with the members of another one.
fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

fn summary(net: &Net, store: &Store) -> Result<Vec<LeftOut>, Failure> {
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let (mut patches, mut left_out) = (Vec::new(), Vec::new());
    for file in net.files.iter().filter(|file| !file.is_folder()) {
        match changes::patch(file, store) {
            // The summary needs no lines.
            Ok(patch) => patches.push(FilePatch { lines: changes::PatchLines::default(), ..patch }),
            Err(why) => left_out.push(why),
        }
    }
    let mut out = Out::new();
    for StatLine { text, added, removed } in changes::stat(&patches, width.unwrap_or(COLUMNS)) {
        out.part(Style::new(), text.as_bytes())?;
        out.part(AnsiColor::Green.on_default(), added.as_bytes())?;
        out.part(AnsiColor::Red.on_default(), removed.as_bytes())?;
        out.part(Style::new(), b"\n")?;
    }
    out.finish()?;
    Ok(left_out)
}

fn show(net: &Net, store: &Store) -> Result<Vec<LeftOut>, Failure> {
    let mut left_out = Vec::new();
    let mut out = Out::new();
    for file in &net.files {
        // A folder that became a file, or the reverse, has a part that a patch carries.
        match changes::patch(file, store) {
            Ok(patch) => {
                for (kind, line) in patch.lines.iter() {
                    out.part(style(kind), line)?;
                }
                let why = patch.note.into_iter();
                left_out.extend(why.map(|why| LeftOut { path: patch.path.clone(), why }));
            }
            Err(_) if file.is_folder() => {}
            Err(why) => left_out.push(why),
        }
    }
    out.finish()?;
    Ok(left_out)
}

fn style(kind: PatchLine) -> Style {
    match kind {
        PatchLine::Header => Style::new().bold(),
        PatchLine::Hunk => AnsiColor::Cyan.on_default(),
        PatchLine::Context => Style::new(),
        PatchLine::Removed => AnsiColor::Red.on_default(),
        PatchLine::Added => AnsiColor::Green.on_default(),
    }
}

/// Standard output: the bytes as they are, but on a terminal with colours and without control
/// characters.
pub(super) struct Out {
    stdout: BufWriter<io::StdoutLock<'static>>,
    is_terminal: bool,
    has_colors: bool,
}

impl Out {
    pub(super) fn new() -> Self {
        let choice = anstream::AutoStream::choice(&io::stdout());
        let is_terminal = is_terminal();
        let has_colors = is_terminal && choice != anstream::ColorChoice::Never;
        Self { stdout: BufWriter::new(io::stdout().lock()), is_terminal, has_colors }
    }

    pub(super) fn part(&mut self, style: Style, bytes: &[u8]) -> Result<(), Failure> {
        if !self.is_terminal {
            return self.stdout.write_all(bytes).map_err(failure);
        }
        let text = escape_controls(&String::from_utf8_lossy(bytes));
        let (line, end) = text.strip_suffix('\n').map_or((&text[..], ""), |line| (line, "\n"));
        let has_style = self.has_colors && !line.is_empty() && style != Style::new();
        let written = if has_style {
            write!(self.stdout, "{style}{line}{style:#}{end}")
        } else {
            write!(self.stdout, "{line}{end}")
        };
        written.map_err(failure)
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(failure)
    }
}

/// Notes about changes that the output leaves out.
struct Notes<'a> {
    changes: &'a ChangeSet,
    net: &'a Net,
    left_out: Vec<LeftOut>,
    ignored: usize,
}

impl Notes<'_> {
    fn show(self) {
        let mut named = changes::not_in_patch(self.net);
        named.extend(self.left_out);
        let s = |count: usize| if count == 1 { "" } else { "s" };
        // An agent's own state: often hundreds of files.
        let all = named.len();
        named.retain(|left_out| !left_out.path.is_absolute());
        let outside = all - named.len();
        if !named.is_empty() {
            note("not in the patch:");
        }
        for LeftOut { path, why } in named.iter().take(MOST_NAMED) {
            note(format_args!("  {}: {why}", plain(&path.to_string_lossy())));
        }
        if let Some(more) = named.len().checked_sub(MOST_NAMED + 1) {
            note(format_args!("  and {} more", more + 1));
        }
        for part in self.net.in_parts() {
            let path = plain(&part.to_string_lossy());
            note(format_args!(
                "note: others changed the same lines of {path} in between, so it is in several \
                 parts: each applies to the file as it was then"
            ));
        }
        for file in self.net.files.iter().filter(|file| !file.contested.is_empty()) {
            let (path, agents) = (plain(&file.to.to_string_lossy()), file.contested.join(", "));
            note(format_args!(
                "note: {} wrote {path} at the same time: what is whose is not certain",
                plain(&agents)
            ));
        }
        if outside > 0 {
            let s = s(outside);
            note(format_args!(
                "note: {outside} path{s} outside the workspace: `history --type file` shows them"
            ));
        }
        if self.ignored > 0 {
            let (count, s) = (self.ignored, s(self.ignored));
            note(format_args!("note: {count} file{s} that git ignores: --ignored shows them"));
        }
        if self.changes.undone > 0 {
            let (count, s) = (self.changes.undone, s(self.changes.undone));
            note(format_args!("note: {count} change{s} that were undone are left out"));
        }
        if self.changes.skipped > 0 {
            let (count, s) = (self.changes.skipped, s(self.changes.skipped));
            note(format_args!("note: {count} change{s} could not be read, and are left out"));
        }
        if self.net.is_empty() && self.ignored == 0 && is_terminal() {
            note("no changes");
        }
    }
}

fn no_scope(error: &AskError) -> Failure {
    Failure::Run(anyhow!("{error}"))
}

pub(super) fn unreadable(error: SelectError) -> Failure {
    Failure::Run(error.into())
}
