//! The budgets of a team: the team's own and each agent's, and the turns under way. Pure.

mod reports;
mod standing;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub use self::standing::BudgetStanding;
use super::ledger::{Ledger, NoRoom, Settings};
use super::underway::{TurnUnderway, Underway};
use super::window::Amounts;
use crate::model::{AgentId, BudgetLimits, BudgetReport, EarlierUse, SessionId, Spending, Used};

/// The budget of one agent.
#[derive(Debug)]
pub struct AgentSettings {
    pub agent: AgentId,
    /// The agent for which this one's use counts, too. Without circles.
    pub parent: Option<AgentId>,
    pub settings: Settings,
}

/// Identifies a turn under way.
pub(super) type TurnNumber = u64;

#[derive(Debug)]
pub(super) struct TeamBudgets {
    team: Ledger,
    agents: HashMap<AgentId, AgentBudget>,
    turns: HashMap<TurnNumber, TurnUnderway>,
    next_turn: TurnNumber,
    /// The parents of helpers, for which the helpers' use counts, too.
    parents: HashMap<AgentId, AgentId>,
    /// The orchestrator agent.
    lead: Option<AgentId>,
    /// Whether any budget has limits.
    is_limited: bool,
    /// Until when the time of running turns is counted.
    counted_until: Option<Instant>,
}

#[derive(Debug)]
struct AgentBudget {
    ledger: Ledger,
    standing: watch::Sender<BudgetStanding>,
    /// The most that one of its turns used.
    largest_turn: Option<Amounts>,
}

impl TeamBudgets {
    pub(super) fn new() -> Self {
        Self {
            team: Ledger::new(None, Settings::default()),
            agents: HashMap::new(),
            turns: HashMap::new(),
            next_turn: 0,
            parents: HashMap::new(),
            lead: None,
            is_limited: false,
            counted_until: None,
        }
    }

    pub(super) fn configure(
        &mut self,
        now: Instant,
        lead: Option<AgentId>,
        team: Settings,
        agents: impl IntoIterator<Item = AgentSettings>,
    ) -> Vec<BudgetReport> {
        self.team.configure(team);
        self.parents.clear();
        let mut configured = HashSet::new();
        for AgentSettings { agent, parent, settings } in agents {
            self.agent(&agent).ledger.configure(settings);
            self.parents.extend(parent.map(|parent| (agent.clone(), parent)));
            configured.insert(agent);
        }
        self.agents.retain(|agent, _| configured.contains(agent));
        self.lead = lead;
        self.find_limits();
        self.settle(now)
    }

    pub(super) fn agent_is_known(&self, agent: &AgentId) -> bool {
        self.agents.contains_key(agent)
    }

    pub(super) fn is_helper(&self, agent: &AgentId) -> bool {
        self.parents.contains_key(agent)
    }

    pub(super) fn standing(&mut self, agent: &AgentId) -> watch::Receiver<BudgetStanding> {
        self.agent(agent).standing.subscribe()
    }

    pub(super) fn refusal(&mut self, agent: &AgentId) -> Option<Arc<str>> {
        self.agent(agent).standing.borrow().refusal.clone()
    }

    /// Sets new totals; the budget as it stands then comes with what else changed.
    pub(super) fn raise(
        &mut self,
        now: Instant,
        agent: Option<&AgentId>,
        totals: BudgetLimits,
    ) -> Vec<BudgetReport> {
        match agent {
            Some(agent) => self.agent(agent).ledger.raise(totals),
            None => self.team.raise(totals),
        }
        self.find_limits();
        let mut changed = self.settle(now);
        if changed.iter().all(|report| report.agent.as_ref() != agent) {
            changed.extend(self.report(now, agent));
        }
        changed
    }

    /// Reserves what a turn is expected to use. What turns of the lead reserved does not stand in the
    /// way of a prompt that it makes, nor what turns of an agent's parents did: they wait for this one.
    pub(super) fn reserve(
        &mut self,
        now: Instant,
        agent: &AgentId,
        by_lead: bool,
    ) -> Result<TurnNumber, NoRoom> {
        self.count_time(now);
        let asking: Vec<_> =
            self.above(agent).into_iter().chain(self.lead.clone().filter(|_| by_lead)).collect();
        let expected = self.expected(agent);
        let of_team = self.underway(None, &asking);
        self.team.admits(now, expected[0], of_team)?;
        for (of, expected) in self.chain(agent).iter().zip(&expected[1..]) {
            let underway = self.underway(Some(of), &asking);
            self.agent(of).ledger.admits(now, *expected, underway)?;
        }
        Ok(self.add_turn(agent, expected))
    }

    /// Gives back what was reserved for a prompt that was not sent.
    pub(super) fn withdraw(&mut self, turn: TurnNumber) {
        self.turns.retain(|number, underway| *number != turn || underway.session.is_some());
    }

    pub(super) fn turn_began(
        &mut self,
        now: Instant,
        agent: &AgentId,
        session: &SessionId,
    ) -> Vec<BudgetReport> {
        self.count_time(now);
        let of_agent =
            self.turns.iter().filter(|(_, turn)| turn.agent == *agent && turn.session.is_none());
        let oldest = of_agent.map(|(number, _)| *number).min();
        // A prompt of an editor has no reservation.
        let number = oldest.unwrap_or_else(|| {
            let expected = self.expected(agent);
            self.add_turn(agent, expected)
        });
        if let Some(turn) = self.turns.get_mut(&number) {
            turn.session = Some(session.clone());
        }
        let one = Amounts { turns: 1, ..Amounts::default() };
        self.add(now, agent, one);
        self.settle(now)
    }

    pub(super) fn turn_ended(
        &mut self,
        now: Instant,
        agent: &AgentId,
        session: &SessionId,
    ) -> Vec<BudgetReport> {
        self.count_time(now);
        let Some(number) = self.turn_of(agent, session) else { return Vec::new() };
        if let Some(turn) = self.turns.remove(&number) {
            let largest = &mut self.agent(agent).largest_turn;
            let before = largest.unwrap_or_default();
            *largest = Some(Amounts {
                tokens: before.tokens.max(turn.used.tokens),
                cost: before.cost.max(turn.used.cost),
                ..Amounts::default()
            });
        }
        self.team.is_dirty = true;
        for of in self.chain(agent) {
            self.agent(&of).ledger.is_dirty = true;
        }
        self.settle(now)
    }

    /// Counts a report of an agent's session.
    pub(super) fn spend(
        &mut self,
        now: Instant,
        agent: &AgentId,
        session: &SessionId,
        report: &Spending,
    ) -> Vec<BudgetReport> {
        self.count_time(now);
        let of_team = self.team.spend(now, report);
        let of_agent = self.agent(agent).ledger.spend(now, report);
        for parent in self.above(agent) {
            self.agent(&parent).ledger.spend(now, report);
        }
        if let Some(turn) = self.turn_of(agent, session).and_then(|it| self.turns.get_mut(&it)) {
            let costs_more = of_team.cost > of_agent.cost;
            turn.used = turn.used.and(if costs_more { of_team } else { of_agent });
        }
        self.settle(now)
    }

    /// Notes what a running turn used by an estimate, before it is reported.
    pub(super) fn foresee(
        &mut self,
        now: Instant,
        agent: &AgentId,
        session: &SessionId,
        report: &Spending,
    ) -> Vec<BudgetReport> {
        self.count_time(now);
        let Some(number) = self.turn_of(agent, session) else { return Vec::new() };
        if let Some(turn) = self.turns.get_mut(&number) {
            turn.foreseen = Amounts::of(report, |_| true);
        }
        self.settle(now)
    }

    /// Counts what was used `age` ago, before this process was started.
    pub(super) fn count_earlier(&mut self, now: Instant, age: Duration, earlier: &EarlierUse) {
        let agent = earlier.agent.as_ref();
        if let Used::Totals { limits, configured } = earlier.used {
            let own = agent.and_then(|agent| self.agents.get_mut(agent)).map(|own| &mut own.ledger);
            let team = agent.is_none().then_some(&mut self.team);
            if let Some(ledger) = own.or(team)
                && earlier.is_of_run
            {
                ledger.raised_earlier(limits, configured);
            }
            return self.find_limits();
        }
        if let (Used::Helper(helper), Some(parent)) = (&earlier.used, agent) {
            // It is gone by now: what it used is its parent's. No journal may make a circle.
            if !self.parents.contains_key(helper) && !self.chain(parent).contains(helper) {
                self.parents.insert(helper.clone(), parent.clone());
            }
            return;
        }
        self.team.count_earlier(now, age, earlier);
        for of in agent.map(|agent| self.chain(agent)).unwrap_or_default() {
            if let Some(own) = self.agents.get_mut(&of) {
                own.ledger.count_earlier(now, age, earlier);
            }
        }
    }

    fn find_limits(&mut self) {
        // Once there were limits, what they led to may have to be taken back.
        self.is_limited |= self.team.is_limited();
        self.is_limited |= self.agents.values().any(|it| it.ledger.is_limited());
    }

    fn agent(&mut self, agent: &AgentId) -> &mut AgentBudget {
        // The agents are those of the configuration.
        self.agents.entry(agent.clone()).or_insert_with(|| AgentBudget {
            ledger: Ledger::new(Some(agent.clone()), Settings::default()),
            standing: watch::Sender::default(),
            largest_turn: None,
        })
    }

    fn add_turn(&mut self, agent: &AgentId, reserved: Vec<Amounts>) -> TurnNumber {
        let number = self.next_turn;
        self.next_turn += 1;
        let (used, foreseen) = <(Amounts, Amounts)>::default();
        let (agent, above) = (agent.clone(), self.above(agent));
        let turn = TurnUnderway { agent, above, session: None, reserved, used, foreseen };
        self.turns.insert(number, turn);
        number
    }

    /// The expected use of one more turn of an agent, for each budget that it counts against.
    fn expected(&mut self, agent: &AgentId) -> Vec<Amounts> {
        let known = self.agent(agent).largest_turn;
        let mut expected = vec![self.team.expected(known)];
        let chain = self.chain(agent).into_iter();
        expected.extend(chain.map(|of| self.agent(&of).ledger.expected(known)));
        expected
    }

    /// An agent and its parents, from the nearest one on.
    fn chain(&self, agent: &AgentId) -> Vec<AgentId> {
        std::iter::successors(Some(agent), |of| self.parents.get(*of)).cloned().collect()
    }

    fn above(&self, agent: &AgentId) -> Vec<AgentId> {
        self.chain(agent).split_off(1)
    }

    /// Adds to the team's budget, to an agent's, and to those of its parents.
    fn add(&mut self, now: Instant, agent: &AgentId, amounts: Amounts) {
        self.team.add(now, amounts);
        for of in self.chain(agent) {
            self.agent(&of).ledger.add(now, amounts);
        }
    }

    /// The oldest running turn of a session.
    fn turn_of(&self, agent: &AgentId, session: &SessionId) -> Option<TurnNumber> {
        let own = self
            .turns
            .iter()
            .filter(|(_, turn)| turn.agent == *agent && turn.session.as_ref() == Some(session));
        own.map(|(number, _)| *number).min()
    }

    fn running(&self, of: Option<&AgentId>) -> usize {
        let own = self.turns.values().filter(|turn| turn.place(of).is_some());
        own.filter(|turn| turn.session.is_some()).count()
    }

    /// The turns of an agent and its helpers, or of all. Those of `asking` reserve nothing.
    fn underway(&self, of: Option<&AgentId>, asking: &[AgentId]) -> Underway {
        let mut sum = Underway::default();
        for turn in self.turns.values() {
            if let Some(place) = turn.place(of) {
                sum.add(turn, place, asking.contains(&turn.agent));
            }
        }
        sum
    }

    /// Counts the time that running turns took since the last call.
    fn count_time(&mut self, now: Instant) {
        let passed = self.counted_until.replace(now).map_or(Duration::ZERO, |it| now - it);
        if passed.is_zero() || self.turns.is_empty() || !self.is_limited {
            return;
        }
        let time = |running: usize| Amounts {
            time: passed.saturating_mul(u32::try_from(running).unwrap_or(u32::MAX)),
            ..Amounts::default()
        };
        let mut by_agent: HashMap<AgentId, usize> = HashMap::new();
        for turn in self.turns.values().filter(|turn| turn.session.is_some()) {
            *by_agent.entry(turn.agent.clone()).or_default() += 1;
        }
        for (agent, running) in by_agent {
            self.add(now, &agent, time(running));
        }
    }
}
