//! Sessions as lists of events; a forked one below its branch point.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use anstyle::{AnsiColor, Style};

use super::fold::{FoldedFiles, is_of_file};
use super::summary::summary;
use super::{each, time, unreadable};
use crate::cli::output::{failure, plain};
use crate::journal::{Event, Filter, OpenError, Session, Store};
use crate::model::turn_name;
use crate::program::Failure;

/// Forks within forks that are indented; deeper ones stand beside each other.
const DEEPEST: usize = 20;

pub(super) struct Tree<'a, W> {
    store: &'a Store,
    filter: Filter,
    out: W,
    /// The forked sessions by their branch points.
    forks: HashMap<String, Vec<Session>>,
    shown: HashSet<String>,
    /// Whether changes of files that follow one another are one line.
    folds: bool,
}

impl<'a, W: Write> Tree<'a, W> {
    pub(super) fn new(
        store: &'a Store,
        filter: Filter,
        folds: bool,
        out: W,
    ) -> Result<Self, OpenError> {
        let mut forks: HashMap<_, Vec<_>> = HashMap::new();
        for (point, session) in store.forks()? {
            forks.entry(point).or_default().push(session);
        }
        Ok(Self { store, filter, out, forks, shown: HashSet::new(), folds })
    }

    /// Shows the sessions of an agent or of all, and events of no session.
    pub(super) fn team(&mut self, agent: Option<&str>) -> Result<(), Failure> {
        let mine = |session: &Session| agent.is_none_or(|agent| session.agent_id == agent);
        let sessions = self.store.sessions().map_err(unreadable)?;
        let (forked, roots): (Vec<_>, Vec<_>) =
            sessions.into_iter().filter(mine).partition(|it| it.forked_from.is_some());
        // A fork stands for itself if its origin is gone or belongs to another agent.
        for session in roots.iter().chain(&forked) {
            self.session(session)?;
        }
        let filter =
            Filter { outside: true, agent_id: agent.map(str::to_owned), ..self.filter.clone() };
        let mut is_first = true;
        let (store, out, folds) = (self.store, &mut self.out, self.folds);
        let mut files = FoldedFiles::default();
        each(store, &filter, &mut |event| {
            if std::mem::take(&mut is_first) {
                heading(out, "outside sessions")?;
            }
            if folds && is_of_file(event) {
                files.add(event);
                return Ok(());
            }
            folded(out, &mut files, "  ", false)?;
            line(out, event, "  ", false)
        })?;
        folded(&mut self.out, &mut files, "  ", false)
    }

    pub(super) fn session(&mut self, session: &Session) -> Result<(), Failure> {
        self.branch(session, 0)
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.out.flush().map_err(failure)
    }

    fn branch(&mut self, session: &Session, depth: usize) -> Result<(), Failure> {
        if !self.shown.insert(session.id.clone()) {
            return Ok(());
        }
        let indent = "  │ ".repeat(depth.min(DEEPEST));
        let filter = Filter { session_id: Some(session.id.clone()), ..self.filter.clone() };
        let left_behind = self.left_behind(session)?;
        let mut filter = Filter { limit: 1_000, ..filter };
        let mut is_first = true;
        let (mut files, mut are_left) = (FoldedFiles::default(), false);
        let inner = format!("{indent}  ");
        loop {
            let page = self.store.events(&filter).map_err(unreadable)?;
            for event in &page.events {
                if std::mem::take(&mut is_first) {
                    let wire = session.wire_session_id.as_deref().unwrap_or("-");
                    let (agent, id) = (plain(&session.agent_id), &session.id);
                    let how = if session.forked_from.is_some() { "fork" } else { "session" };
                    let title = format!("{how} {id}  {agent}/{}  {}", plain(wire), session.status);
                    heading(&mut self.out, &format!("{indent}{title}"))?;
                }
                let is_left = left_behind.contains(&event.id);
                let has_forks = self.forks.contains_key(&event.id);
                let is_folded = self.folds && is_of_file(event) && !has_forks;
                if !is_folded || is_left != are_left {
                    folded(&mut self.out, &mut files, &inner, are_left)?;
                }
                are_left = is_left;
                if is_folded {
                    files.add(event);
                    continue;
                }
                line(&mut self.out, event, &inner, is_left)?;
                for fork in self.forks.get(&event.id).cloned().unwrap_or_default() {
                    self.branch(&fork, depth + 1)?;
                }
            }
            let Some(next) = page.next else { break };
            filter.after = Some(next);
        }
        folded(&mut self.out, &mut files, &inner, are_left)?;
        // Forks with a branch point that is not among the shown events.
        let is_mine = |fork: &&Session| fork.forked_from.as_ref() == Some(&session.id);
        let mut forks: Vec<_> = self.forks.values().flatten().filter(is_mine).cloned().collect();
        forks.sort_by(|a, b| a.id.cmp(&b.id));
        forks.iter().try_for_each(|fork| self.branch(fork, depth + 1))
    }

    /// The events that a rewind left behind.
    fn left_behind(&self, session: &Session) -> Result<HashSet<String>, Failure> {
        let rewinds = Filter {
            session_id: Some(session.id.clone()),
            types: vec!["session.rewind".to_owned()],
            limit: 1,
            ..Filter::default()
        };
        let mut left = HashSet::new();
        if self.store.events(&rewinds).map_err(unreadable)?.events.is_empty() {
            return Ok(left);
        }
        let line = self.store.lineage(&session.head_event_id).map_err(unreadable)?;
        let line: HashSet<_> = line.into_iter().map(|event| event.id).collect();
        let all = Filter { session_id: Some(session.id.clone()), ..Filter::default() };
        each(self.store, &all, &mut |event| {
            if !line.contains(&event.id) {
                left.insert(event.id.clone());
            }
            Ok(())
        })?;
        Ok(left)
    }
}

fn heading(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    let bold = Style::new().bold();
    writeln!(out, "{bold}{text}{bold:#}").map_err(failure)
}

/// Writes the line of the files that are folded, if there are any.
fn folded(
    out: &mut impl Write,
    files: &mut FoldedFiles,
    indent: &str,
    is_left: bool,
) -> Result<(), Failure> {
    let Some((last, said)) = files.take() else { return Ok(()) };
    let said = plain(&said);
    write_line(out, &last, indent, is_left, ("files", &said))
}

fn line(out: &mut impl Write, event: &Event, indent: &str, is_left: bool) -> Result<(), Failure> {
    let (kind, words) = (plain(&event.kind), summary(event));
    write_line(out, event, indent, is_left, (&kind, &words))
}

fn write_line(
    out: &mut impl Write,
    event: &Event,
    indent: &str,
    is_left: bool,
    (kind, words): (&str, &str),
) -> Result<(), Failure> {
    let (dim, color) = (Style::new().dimmed(), style(&event.kind));
    let mark = if is_left { '~' } else { ' ' };
    let place = match (&event.session_id, event.turn, &event.agent_id) {
        (Some(_), Some(turn), _) => turn_name(turn),
        (None, _, Some(agent)) => plain(agent),
        _ => String::new(),
    };
    let (time, id) = (time(event.timestamp), &event.id);
    let text = format!(
        "{indent}{mark}{dim}{id} {time}{dim:#}  {place:<11} {color}{kind:<17}{color:#} {words}"
    );
    writeln!(out, "{}", text.trim_end()).map_err(failure)
}

fn style(kind: &str) -> Style {
    match kind {
        "turn.failed" | "blocked" | "gap" => AnsiColor::Red.on_default(),
        "message.user" => AnsiColor::Cyan.on_default(),
        "undo" | "redo" | "session.rewind" | "session.fork" => AnsiColor::Yellow.on_default(),
        _ => Style::new(),
    }
}
