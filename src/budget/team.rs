//! The budgets of a team: the team's own and each agent's, and the turns under way. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::ledger::{Ledger, NoRoom, Settings};
use super::underway::{TurnUnderway, Underway};
use super::window::Amounts;
use crate::model::{AgentId, BudgetLimits, BudgetReport, OnExceed, SessionId, Spending};

/// How an agent stands with its budget and the team's.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BudgetStanding {
    /// Why its prompts are refused.
    pub refusal: Option<Arc<str>>,
    /// What its running turns are to do, if anything.
    pub cut: Option<OnExceed>,
}

/// Identifies a turn under way.
pub(super) type TurnNumber = u64;

#[derive(Debug)]
pub(super) struct TeamBudgets {
    team: Ledger,
    agents: HashMap<AgentId, AgentBudget>,
    turns: HashMap<TurnNumber, TurnUnderway>,
    next_turn: TurnNumber,
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
        agents: impl IntoIterator<Item = (AgentId, Settings)>,
    ) -> Vec<BudgetReport> {
        self.team.configure(team);
        let mut configured = HashSet::new();
        for (agent, settings) in agents {
            self.agent(&agent).ledger.configure(settings);
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
    /// way of a prompt that it makes: they wait for this one.
    pub(super) fn reserve(
        &mut self,
        now: Instant,
        agent: &AgentId,
        by_lead: bool,
    ) -> Result<TurnNumber, NoRoom> {
        self.count_time(now);
        let lead = self.lead.clone().filter(|_| by_lead);
        let asking = lead.as_ref();
        let known = self.agent(agent).largest_turn;
        let (of_team, of_agent) = (self.underway(None, asking), self.underway(Some(agent), asking));
        let expected = [self.team.expected(known), self.agent(agent).ledger.expected(known)];
        self.team.admits(now, expected[0], of_team)?;
        self.agent(agent).ledger.admits(now, expected[1], of_agent)?;
        Ok(self.add_turn(agent, None, expected))
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
            let known = self.agent(agent).largest_turn;
            let expected = [self.team.expected(known), self.agent(agent).ledger.expected(known)];
            self.add_turn(agent, None, expected)
        });
        if let Some(turn) = self.turns.get_mut(&number) {
            turn.session = Some(session.clone());
        }
        let one = Amounts { turns: 1, ..Amounts::default() };
        self.team.add(now, one);
        self.agent(agent).ledger.add(now, one);
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
        self.agent(agent).ledger.is_dirty = true;
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
        if let Some(turn) = self.turn_of(agent, session).and_then(|it| self.turns.get_mut(&it)) {
            let cost = of_team.cost.max(of_agent.cost);
            turn.used = turn.used.and(Amounts { cost, ..of_agent });
        }
        self.settle(now)
    }

    /// Notes what a running turn used by an estimate, before it is reported.
    pub(super) fn foresee(
        &mut self,
        now: Instant,
        agent: &AgentId,
        session: &SessionId,
        tokens: u64,
        cost: f64,
    ) -> Vec<BudgetReport> {
        self.count_time(now);
        let Some(number) = self.turn_of(agent, session) else { return Vec::new() };
        if let Some(turn) = self.turns.get_mut(&number) {
            turn.foreseen = Amounts { tokens, cost, ..Amounts::default() };
        }
        self.settle(now)
    }

    /// Looks at all budgets after time has passed.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<BudgetReport> {
        self.count_time(now);
        let mut changed = Vec::new();
        if !self.is_limited {
            return changed;
        }
        let underway = self.underway(None, None);
        let is_new = self.team.update(now, underway);
        if is_new {
            changed.extend(self.report(now, None));
        }
        let team = self.team.is_limited().then(|| self.team.reason().cloned()).flatten();
        let team_cuts = self.team.cuts(now, underway).then(|| self.team.on_exceed());
        let mut by_agent: HashMap<AgentId, Underway> = HashMap::new();
        for turn in self.turns.values() {
            by_agent.entry(turn.agent.clone()).or_default().add(turn, 1, false);
        }
        let agents: Vec<_> = self.agents.keys().cloned().collect();
        for agent in agents {
            let underway = by_agent.get(&agent).copied().unwrap_or_default();
            let of_agent = self.agent(&agent);
            let is_new = of_agent.ledger.update(now, underway);
            let cuts = of_agent.ledger.cuts(now, underway).then(|| of_agent.ledger.on_exceed());
            let refusal = of_agent.ledger.reason().or(team.as_ref()).cloned();
            let standing = BudgetStanding { refusal, cut: cuts.max(team_cuts) };
            of_agent.standing.send_if_modified(|known| {
                let is_new = *known != standing;
                *known = standing;
                is_new
            });
            if is_new {
                changed.extend(self.report(now, Some(&agent)));
            }
        }
        changed
    }

    /// The budgets that changed since they were last reported.
    pub(super) fn dirty(&mut self, now: Instant) -> Vec<BudgetReport> {
        let agents = self.agents.iter().filter(|(_, it)| it.ledger.is_dirty);
        let agents: Vec<_> = agents.map(|(agent, _)| agent.clone()).collect();
        let team = self.team.is_dirty.then(|| self.report(now, None)).flatten();
        let agents = agents.iter().filter_map(|agent| self.report(now, Some(agent)));
        let agents: Vec<_> = agents.collect();
        team.into_iter().chain(agents).collect()
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.team.is_dirty && self.team.is_limited()
            || self.agents.values().any(|it| it.ledger.is_dirty && it.ledger.is_limited())
    }

    /// All budgets that have limits, the team's first.
    pub(super) fn reports(&mut self, now: Instant) -> Vec<BudgetReport> {
        self.count_time(now);
        let mut agents: Vec<_> = self.agents.keys().cloned().collect();
        agents.sort();
        let agents = agents.iter().map(Some);
        std::iter::once(None).chain(agents).filter_map(|of| self.report(now, of)).collect()
    }

    /// When a budget stands differently without another report.
    pub(super) fn next(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_limited {
            return None;
        }
        let running = |budgets: &Self, of: Option<&AgentId>| {
            u32::try_from(budgets.running(of)).unwrap_or(u32::MAX)
        };
        let all = running(self, None);
        let mut next = self.team.next(now, all);
        let agents: Vec<_> = self.agents.keys().cloned().collect();
        for agent in agents {
            let own = running(self, Some(&agent));
            next = [next, self.agent(&agent).ledger.next(now, own)].into_iter().flatten().min();
        }
        next
    }

    fn find_limits(&mut self) {
        // Once there were limits, what they led to may have to be taken back.
        self.is_limited |= self.team.is_limited();
        self.is_limited |= self.agents.values().any(|it| it.ledger.is_limited());
    }

    /// None for a budget without limits.
    fn report(&mut self, now: Instant, of: Option<&AgentId>) -> Option<BudgetReport> {
        let underway = self.underway(of, None);
        let ledger = match of {
            Some(agent) => &mut self.agents.get_mut(agent)?.ledger,
            None => &mut self.team,
        };
        ledger.is_dirty = false;
        ledger.is_limited().then(|| ledger.report(now, underway))
    }

    fn agent(&mut self, agent: &AgentId) -> &mut AgentBudget {
        // The agents are those of the configuration.
        self.agents.entry(agent.clone()).or_insert_with(|| AgentBudget {
            ledger: Ledger::new(Some(agent.clone()), Settings::default()),
            standing: watch::Sender::default(),
            largest_turn: None,
        })
    }

    fn add_turn(
        &mut self,
        agent: &AgentId,
        session: Option<SessionId>,
        reserved: [Amounts; 2],
    ) -> TurnNumber {
        let number = self.next_turn;
        self.next_turn += 1;
        let (used, foreseen) = (Amounts::default(), Amounts::default());
        let turn = TurnUnderway { agent: agent.clone(), session, reserved, used, foreseen };
        self.turns.insert(number, turn);
        number
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
        let own = self.turns.values().filter(|turn| of.is_none_or(|agent| turn.agent == *agent));
        own.filter(|turn| turn.session.is_some()).count()
    }

    /// The turns of an agent, or of all. Those of `without` reserve nothing.
    fn underway(&self, of: Option<&AgentId>, without: Option<&AgentId>) -> Underway {
        let at = usize::from(of.is_some());
        let own = self.turns.values().filter(|turn| of.is_none_or(|agent| turn.agent == *agent));
        let mut sum = Underway::default();
        own.for_each(|turn| sum.add(turn, at, without == Some(&turn.agent)));
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
            self.team.add(now, time(running));
            self.agent(&agent).ledger.add(now, time(running));
        }
    }
}
