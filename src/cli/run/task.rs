//! A task of a batch as the options of a run.

use toml::{Table, Value};

use super::RunArgs;
use crate::config::batch::BatchTask;

impl RunArgs {
    /// The options that say the same.
    pub(in crate::cli) fn of_task(task: &BatchTask) -> Self {
        let agent = task.agent.clone();
        let count =
            |count: Option<u64>| count.map(|it| i64::try_from(it).unwrap_or(i64::MAX).into());
        let budget: [(&str, Option<Value>); 4] = [
            ("tokens", count(agent.budget.tokens)),
            ("cost", agent.budget.cost.map(Value::from)),
            ("turns", count(agent.budget.turns)),
            ("minutes", count(agent.budget.minutes)),
        ];
        let budget = budget.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Self {
            profile: agent.profile,
            tier: agent.tier,
            model: agent.model,
            zone: agent.zone,
            deny: agent.deny,
            timeout: agent.timeout_s,
            budget: vec![budget.collect::<Table>()],
            ..Self::default()
        }
    }
}
