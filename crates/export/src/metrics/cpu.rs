//! CPU times that only grow: a restarted agent begins at zero again, and helpers leave.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::catalog::Metric;
use super::figures::{AgentFigures, label};
use super::labels::HELPERS;
use super::series::Series;
use crate::model::AgentId;

#[derive(Default, Debug)]
pub(super) struct CpuClock {
    /// The process id of each agent's run, and the CPU milliseconds that it had used at the last scrape.
    runs: HashMap<AgentId, (Option<u32>, u64)>,
    /// In milliseconds, by label.
    sums: BTreeMap<String, u64>,
}

impl CpuClock {
    /// Adds what was used since the last time. Agents that left are forgotten, and the sum of the
    /// helpers stays.
    pub(super) fn measure(&mut self, agents: &[AgentFigures]) {
        let before = std::mem::take(&mut self.runs);
        let mut sums = std::mem::take(&mut self.sums);
        self.sums.extend(sums.remove_entry(HELPERS));
        for (at, agent) in agents.iter().enumerate() {
            let label = label(at, agent);
            let known = before.get(&agent.agent).copied();
            let run = match (agent.cpu_ms, known) {
                (Some(now), _) => (agent.pid, now),
                (None, Some(known)) => known,
                (None, None) => continue,
            };
            let earlier = known.filter(|(pid, used)| *pid == run.0 && *used <= run.1);
            let more = run.1 - earlier.map_or(0, |(_, used)| used);
            if let Some(sum) = sums.remove(&label) {
                self.sums.insert(label.clone(), sum);
            }
            let sum = self.sums.entry(label).or_default();
            *sum = sum.saturating_add(more);
            self.runs.insert(agent.agent.clone(), run);
        }
    }

    pub(super) fn add_to(&self, series: &mut Series) {
        for (label, ms) in &self.sums {
            let seconds = Duration::from_millis(*ms).as_secs_f64();
            series.add_real(Metric::AgentCpu, [label.clone().into()], seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AgentState;

    fn agent(id: &str, is_helper: bool, pid: u32, cpu_ms: Option<u64>) -> AgentFigures {
        AgentFigures {
            agent: AgentId::new(id),
            is_helper,
            state: AgentState::Ready,
            pid: cpu_ms.map(|_| pid),
            queued: 0,
            memory_bytes: None,
            cpu_ms,
        }
    }

    #[test]
    fn a_sum_never_falls_and_ends_with_its_agent() {
        let mut clock = CpuClock::default();
        let mut sums = |agents: &[AgentFigures]| {
            clock.measure(agents);
            let sums = clock.sums.iter().map(|(label, ms)| format!("{label}={ms}"));
            sums.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sums(&[agent("ui", false, 1, Some(500))]), "ui=500");
        assert_eq!(sums(&[agent("ui", false, 1, Some(700))]), "ui=700");
        // Restarted, and faster than before.
        assert_eq!(sums(&[agent("ui", false, 2, Some(900))]), "ui=1600");
        // Down for now.
        assert_eq!(sums(&[agent("ui", false, 2, None)]), "ui=1600");
        let helper = agent("ui-h1", true, 3, Some(40));
        let ui = agent("ui", false, 4, Some(1));
        assert_eq!(sums(&[ui.clone(), helper]), "(helpers)=40 ui=1601");
        assert_eq!(sums(&[ui, agent("ui-h2", true, 5, Some(2))]), "(helpers)=42 ui=1601");
        assert_eq!(sums(&[]), "(helpers)=42");
    }
}
