//! Connects `[budget]` of the configuration with the room `budget`, and with what the journal has of
//! an earlier run.

use std::time::Duration;

use crate::app::rooms::Wiring;
use crate::budget::{AgentSettings, Budgets, PriceList, Settings};
use crate::config::{self, Config};
use crate::journal::{Journal, OpenError, Store, first_run};
use crate::model::now_ms;
use eisen_base::task;

/// Starts the budgets of a team, with what a run that was killed has used of them.
pub(super) async fn start(config: &Config, wiring: &mut Wiring) -> Budgets {
    let budgets = Budgets::new(PriceList::new(config.shared.prices.clone()), wiring.bus.clone());
    configure(&budgets, config);
    match &wiring.journal {
        None => {}
        // While its file is being made, the team goes on.
        Some(journal) if journal.is_new() => {
            journal.note_run(Some(first_run()));
            budgets.resumed();
        }
        Some(journal) => resume(&budgets, journal, longest_window(config)).await,
    }
    wiring.tasks.spawn(budgets.clone().run(wiring.cancel.clone()));
    budgets
}

/// Takes the budgets of a configuration.
pub(super) fn configure(budgets: &Budgets, config: &Config) {
    let agents = config.agents.iter().map(|agent| AgentSettings {
        agent: agent.id.clone(),
        parent: agent.parent.clone(),
        settings: settings(&agent.budget),
    });
    budgets.configure(config.orchestrator.agent.clone(), settings(&config.budget), agents);
}

fn longest_window(config: &Config) -> Option<Duration> {
    let budgets = config.agents.iter().map(|agent| &agent.budget).chain([&config.budget]);
    budgets.filter_map(|budget| budget.window).max()
}

/// Counts what the journal has of a run that was killed, and of the window. A run that ended begins
/// anew.
async fn resume(budgets: &Budgets, journal: &Journal, window: Option<Duration>) {
    // One that can't be written may be readable.
    let _ = journal.opened().await;
    let (counting, journal) = (budgets.clone(), journal.clone());
    let read = move || -> Result<(), OpenError> {
        let store = Store::open(&journal.settings().path)?;
        let killed = store.killed_run()?;
        if killed.is_none() {
            journal.note_run(Some(store.new_run()?));
        }
        let since = window.and_then(|window| {
            let window = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
            now_ms().checked_sub(window)
        });
        store.used_earlier(killed.as_deref(), since, |earlier| counting.count_earlier(&earlier))
    };
    match task::spawn_blocking(read).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::warn!(
            %error,
            "budgets begin with nothing used: what the team used before can't be read"
        ),
    }
    budgets.resumed();
}

fn settings(budget: &config::Budget) -> Settings {
    Settings {
        limits: budget.limits,
        currency: budget.currency.clone(),
        window: budget.window,
        warn_at: budget.warn_at,
        on_exceed: budget.on_exceed,
    }
}
