//! `pin`: keeps a session or an event from being deleted.

use anyhow::{anyhow, bail};
use clap::Args;

use super::Global;
use super::journal::WhichJournal;
use super::output::{note, plain, print};
use crate::journal::{self, PinKind, Store};
use crate::program::Failure;

/// Keep a session, or an event with its session, from being deleted
///
/// Pinned sessions and events stay in spite of `keep_days`, `max_mb` and `journal gc`. Without a name the
/// pins are listed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core journal pin ui/s1              the session s1 of the agent ui
  eisen-core journal pin 0192f3a1 --remove  a session or an event by the beginning of its id
  eisen-core journal pin                    list what is pinned

Exit codes: 0 done, 1 no such session or event, 2 wrong usage.")]
pub(super) struct PinArgs {
    /// A session (its id in the journal, the beginning of one, or AGENT/SESSION of the wire), or an
    /// event (its id, or the beginning of one)
    #[arg(value_name = "SESSION|EVENT")]
    name: Option<String>,
    /// Remove the pin
    #[arg(long, requires = "name")]
    remove: bool,
    #[command(flatten)]
    which: WhichJournal,
}

impl PinArgs {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let path = self.which.path(global)?;
        let store = Store::open(&path).map_err(|error| Failure::Run(error.into()))?;
        let Some(name) = &self.name else {
            let pins = store.pins().map_err(|error| Failure::Run(error.into()))?;
            return pins
                .iter()
                .try_for_each(|pin| print(format_args!("{} {}", pin.kind, plain(&pin.id))));
        };
        let (kind, id) = find(&store, name).map_err(Failure::Run)?;
        drop(store);
        let change = if self.remove { journal::unpin } else { journal::pin };
        let changed = change(&path, kind, &id).map_err(|error| Failure::Run(error.into()))?;
        let what = match (self.remove, changed) {
            (false, true) => "is pinned",
            (false, false) => "was pinned already",
            (true, true) => "is no longer pinned",
            (true, false) => "was not pinned",
        };
        note(format_args!("the {} {} {what}", kind.as_str(), plain(&id)));
        Ok(())
    }
}

/// The session or event that a name means.
fn find(store: &Store, name: &str) -> anyhow::Result<(PinKind, String)> {
    // Also finds pinned sessions and events that do not exist any more.
    let pinned = store.pins()?.into_iter().find(|pin| pin.id == name);
    if let Some(pin) = pinned {
        let kind = if pin.kind == "event" { PinKind::Event } else { PinKind::Session };
        return Ok((kind, pin.id));
    }
    if name.is_empty() {
        bail!("the name is empty");
    }
    let sessions = store.sessions_named(name)?.into_iter().map(|it| (PinKind::Session, it.id));
    let events = store.events_like(name, 20)?.into_iter().map(|it| (PinKind::Event, it.id));
    let mut found: Vec<_> = sessions.chain(events).collect();
    if found.len() > 1 {
        let some = found.iter().take(5).map(|(kind, id)| format!("{} {id}", kind.as_str()));
        let some = some.collect::<Vec<_>>().join(", ");
        bail!("several begin with `{name}`: {some}");
    }
    found.pop().ok_or_else(|| anyhow!("there is no session and no event `{name}`"))
}
