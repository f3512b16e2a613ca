//! Connects `[[notify]]` of the configuration with the room `alert`.

use std::path::Path;

use eisen_base::task;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::agent::Surroundings;
use crate::alert::{self, Cause, Channel, Current, Notice, Way};
use crate::app::web_page::WebPage;
use crate::budget::Budgets;
use crate::config::{Config, Notify, NotifyBy, NotifyOn};
use crate::model::{BlockedStatus, ConflictStatus, one_line};
use crate::process::Launcher;
use crate::program::Failure;
use crate::supervisor::Roster;
use crate::turn::details;

/// Bytes of why an access waits, in a notice.
const LONGEST_WHY: usize = 1000;

/// Starts the notifications; the returned sender replaces their channels.
pub(super) fn start(
    config: &Config,
    surroundings: &Surroundings,
    roster: &Roster,
    budgets: &Budgets,
    page: &WebPage,
    cancel: &CancellationToken,
) -> watch::Sender<Vec<Channel>> {
    let (change, channels) = watch::channel(channels(config));
    let (routing, budgets) = (surroundings.routing.clone(), budgets.clone());
    let (roster, page) = (roster.clone(), page.clone());
    let (tracker, conflicts) = (surroundings.tracker.clone(), surroundings.conflicts.clone());
    let now: alert::Now = Box::new(move || {
        let (routing, roster, budgets) = (routing.clone(), roster.clone(), budgets.clone());
        let (tracker, conflicts) = (tracker.clone(), conflicts.clone());
        Box::pin(async move {
            let agents = details::of_supervised(roster.handles(), &tracker).await;
            let mut sessions = agents.iter().flat_map(|agent| &agent.sessions);
            Current {
                pending: routing.list(Some(BlockedStatus::Pending)).await,
                conflicts: conflicts
                    .map(|conflicts| conflicts.list(Some(ConflictStatus::Pending)))
                    .unwrap_or_default(),
                agents: roster.statuses(),
                budgets: budgets.reports(),
                is_idle: sessions.all(|session| !session.is_running && session.queued == 0),
            }
        })
    });
    let routing = surroundings.routing.clone();
    let why: alert::WhyWaits = Box::new(move |id| {
        let routing = routing.clone();
        Box::pin(async move {
            let reason = routing.reason(id, None).await;
            let parts = reason.parts().map(|(name, part)| format!("{name}: {}", one_line(part)));
            let why = parts.collect::<Vec<_>>().join("; ");
            let end = why.floor_char_boundary(LONGEST_WHY);
            (!why.is_empty()).then(|| why[..end].to_owned())
        })
    });
    let page: alert::PageOrigin = Box::new(move || page.origin());
    let sources = alert::AlertSources { now, why, page };
    let (team, launcher) = (config.team.name.clone(), surroundings.launcher.clone());
    let events = surroundings.bus.subscribe();
    task::spawn(alert::run(team, events, sources, channels, launcher, cancel.clone()));
    change
}

pub(super) fn channels(config: &Config) -> Vec<Channel> {
    config.notify.iter().map(channel).collect()
}

fn channel(notify: &Notify) -> Channel {
    let way = match &notify.by {
        NotifyBy::Command(command) => Way::Command(command.clone()),
        NotifyBy::Webhook(url) => Way::Webhook(url.clone()),
        NotifyBy::Ntfy(url) => Way::Ntfy(url.clone()),
        NotifyBy::Chat(chat) => Way::Chat(chat.clone()),
        NotifyBy::Desktop => Way::Desktop,
    };
    let cause = |event: &NotifyOn| match event {
        NotifyOn::Pending => Cause::Pending,
        NotifyOn::Stall => Cause::Stall,
        NotifyOn::Error => Cause::Error,
        NotifyOn::Budget => Cause::Budget,
        NotifyOn::Loop => Cause::Loop,
        NotifyOn::Done => Cause::Done,
    };
    let causes = notify.events.iter().map(cause).collect();
    Channel { way, after: notify.after, causes, quiet: notify.quiet.clone() }
}

/// Sends a test notice by each `[[notify]]` of a configuration; returns the description and the
/// result of each.
pub async fn try_notices(
    file: &Path,
    eisen_dir: &Path,
) -> Result<Vec<(String, Result<(), String>)>, Failure> {
    let config = crate::team_file::read(file, eisen_dir)?.config;
    if config.notify.is_empty() {
        let why = "this configuration has no `[[notify]]`; docs/configuration.md describes it";
        return Err(Failure::Usage(anyhow::anyhow!(why)));
    }
    let launcher = Launcher::this_program().map_err(|error| Failure::Run(error.into()))?;
    let page = config.web.as_ref().and_then(|web| web.origin.clone());
    let notice = Notice { page, ..Notice::test(&config.team.name) };
    let mut tried = Vec::new();
    for notify in &config.notify {
        let sent = alert::deliver(&channel(notify).way, &notice, &launcher).await;
        tried.push((notify.describe(), sent));
    }
    Ok(tried)
}
