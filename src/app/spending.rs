//! Connects `[budget]` of the configuration with the room `budget`.

use super::wiring::Wiring;
use crate::budget::{AgentSettings, Budgets, PriceList, Settings};
use crate::config::{self, Config};

/// Starts the budgets of a team.
pub(super) fn start(config: &Config, wiring: &mut Wiring) -> Budgets {
    let budgets = Budgets::new(PriceList::new(config.prices.clone()), wiring.bus.clone());
    configure(&budgets, config);
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

fn settings(budget: &config::Budget) -> Settings {
    Settings {
        limits: budget.limits,
        currency: budget.currency.clone(),
        window: budget.window,
        warn_at: budget.warn_at,
        on_exceed: budget.on_exceed,
    }
}
