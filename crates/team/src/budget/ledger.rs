//! One budget: its limits, what was used of it, and how it stands. Pure.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::underway::Underway;
use super::window::{Amounts, Window};
use crate::model::{
    AgentId, BudgetLimits, BudgetReport, BudgetState, Cost, EarlierUse, FigureSum, OnExceed,
    Spending, TokenKind, Used, now_ms,
};

/// The share of a limit that is reserved for a turn while nothing is known of what turns take.
const UNKNOWN_TURN: u64 = 10;

const MINUTE: Duration = Duration::from_mins(1);

/// A budget of the configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    pub limits: BudgetLimits,
    pub currency: Arc<str>,
    /// None: the run.
    pub window: Option<Duration>,
    /// The share after which it warns.
    pub warn_at: f64,
    pub on_exceed: OnExceed,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: BudgetLimits::default(),
            currency: "USD".into(),
            window: None,
            warn_at: 0.8,
            on_exceed: OnExceed::Pause,
        }
    }
}

#[derive(Debug)]
pub(super) struct Ledger {
    /// None: the team's.
    agent: Option<AgentId>,
    /// As the configuration has it.
    configured: Settings,
    settings: Settings,
    window: Window,
    tokens: FigureSum,
    has_cost: bool,
    cost_unknown: u64,
    largest: Amounts,
    state: BudgetState,
    reason: Option<Arc<str>>,
    /// Something changed since the last report.
    pub(super) is_dirty: bool,
}

/// Why a prompt is not sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum NoRoom {
    /// Turns that run may use what is left.
    Wait,
    Exceeded(Arc<str>),
}

impl Ledger {
    pub(super) fn new(agent: Option<AgentId>, settings: Settings) -> Self {
        Self {
            agent,
            window: Window::new(settings.window),
            configured: settings.clone(),
            settings,
            tokens: FigureSum::default(),
            has_cost: false,
            cost_unknown: 0,
            largest: Amounts::default(),
            state: BudgetState::Open,
            reason: None,
            is_dirty: false,
        }
    }

    /// Takes the settings of a changed configuration. Totals that were raised stay unless the
    /// configuration's differ from those before.
    pub(super) fn configure(&mut self, settings: Settings) {
        if self.configured == settings {
            return;
        }
        let raised = self.settings.limits;
        let keeps = self.configured.limits == settings.limits;
        self.window.set_span(settings.window);
        self.configured = settings.clone();
        self.settings = settings;
        if keeps {
            self.settings.limits = raised;
        }
        self.stand_anew();
    }

    /// Has the next update find out how it stands, and why.
    fn stand_anew(&mut self) {
        (self.state, self.reason, self.is_dirty) = (BudgetState::Open, None, true);
    }

    /// Sets new totals; those that are None stay.
    pub(super) fn raise(&mut self, totals: BudgetLimits) {
        let limits = &mut self.settings.limits;
        limits.tokens = totals.tokens.or(limits.tokens);
        limits.cost = totals.cost.or(limits.cost);
        limits.turns = totals.turns.or(limits.turns);
        limits.minutes = totals.minutes.or(limits.minutes);
        self.stand_anew();
    }

    /// Counts what was used before this process was started, if it is of this run or window.
    pub(super) fn count_earlier(&mut self, now: Instant, age: Duration, earlier: &EarlierUse) {
        // A time before the machine's start may not be known: then it counts for longer.
        let at = now.checked_sub(age).unwrap_or(now);
        if !self.settings.window.map_or(earlier.is_of_run, |window| age < window) {
            return;
        }
        match &earlier.used {
            Used::Spent(report) => drop(self.spend(at, report)),
            Used::Turn => self.add(at, Amounts { turns: 1, ..Amounts::default() }),
            Used::Time(time) => self.add(at, Amounts { time: *time, ..Amounts::default() }),
            Used::Helper(_) | Used::Totals { .. } => {}
        }
    }

    /// Takes totals that were raised in this run, unless the configuration's differ from those before.
    pub(super) fn raised_earlier(&mut self, limits: BudgetLimits, configured: BudgetLimits) {
        let own = self.configured.limits;
        self.settings.limits = if configured == own { limits } else { own };
    }

    pub(super) fn is_limited(&self) -> bool {
        self.settings.limits.are_set()
    }

    pub(super) fn on_exceed(&self) -> OnExceed {
        self.settings.on_exceed
    }

    pub(super) fn reason(&self) -> Option<&Arc<str>> {
        self.reason.as_ref()
    }

    /// Adds a report; returns what it comes to here.
    pub(super) fn spend(&mut self, now: Instant, report: &Spending) -> Amounts {
        let counts = |cost: &Cost| cost.currency == self.settings.currency;
        let amounts = Amounts::of(report, counts);
        if let Some(tokens) = &report.tokens {
            self.tokens.add(tokens.get(TokenKind::Total));
        }
        if let Some(charge) = &report.cost {
            let is_known = charge.known().is_some_and(counts);
            self.cost_unknown += u64::from(!is_known);
            self.has_cost |= is_known;
        }
        self.largest.tokens = self.largest.tokens.max(amounts.tokens);
        self.largest.cost = self.largest.cost.max(amounts.cost);
        self.add(now, amounts);
        amounts
    }

    pub(super) fn add(&mut self, now: Instant, amounts: Amounts) {
        self.window.add(now, amounts);
        self.is_dirty = true;
    }

    /// The expected use of a turn; `known` is the use of the largest one.
    pub(super) fn expected(&self, known: Option<Amounts>) -> Amounts {
        let limits = &self.settings.limits;
        #[expect(clippy::cast_precision_loss, reason = "a tenth of money")]
        let guess = || Amounts {
            tokens: limits.tokens.unwrap_or(0) / UNKNOWN_TURN,
            cost: limits.cost.unwrap_or(0.0) / UNKNOWN_TURN as f64,
            ..Amounts::default()
        };
        known.unwrap_or_else(guess)
    }

    /// Whether one more turn may begin, beside those under way.
    pub(super) fn admits(
        &mut self,
        now: Instant,
        expected: Amounts,
        underway: Underway,
    ) -> Result<(), NoRoom> {
        if !self.is_limited() {
            return Ok(());
        }
        let used = self.window.sum(now).and(underway.foreseen);
        if let Some(reason) = self.exceeded(used) {
            return Err(NoRoom::Exceeded(reason));
        }
        let limits = &self.settings.limits;
        let turns_fit = limits.turns.is_none_or(|limit| used.turns + underway.waiting < limit);
        // The first may always begin: otherwise what is left could never be used.
        let is_first = underway.count == 0;
        let tokens = used.tokens.saturating_add(underway.reserved.tokens);
        let tokens_fit =
            limits.tokens.is_none_or(|limit| tokens.saturating_add(expected.tokens) <= limit);
        let cost = used.cost + underway.reserved.cost;
        let cost_fits = limits.cost.is_none_or(|limit| cost + expected.cost <= limit);
        if turns_fit && (is_first || tokens_fit && cost_fits) { Ok(()) } else { Err(NoRoom::Wait) }
    }

    /// Finds out how it stands; true if that changed.
    pub(super) fn update(&mut self, now: Instant, underway: Underway) -> bool {
        let used = self.window.sum(now).and(underway.foreseen);
        let reason = self.exceeded(used);
        let state = match () {
            () if reason.is_some() => BudgetState::Exceeded,
            () if self.share(used) >= self.settings.warn_at => BudgetState::Warned,
            () => BudgetState::Open,
        };
        let is_new = state != self.state || reason.is_some() != self.reason.is_some();
        self.state = state;
        if is_new {
            self.reason = reason;
        }
        is_new
    }

    /// Whether turns that run are to end: the last one of a number may go on, and an estimate ends none
    /// by what it may have too many.
    pub(super) fn cuts(&mut self, now: Instant, underway: Underway) -> bool {
        let used = self.window.sum(now).and(underway.foreseen).least();
        self.exceeded(Amounts { turns: 0, ..used }).is_some()
    }

    /// When it stands differently without another report: time passes, and windows end.
    pub(super) fn next(&mut self, now: Instant, running: u32) -> Option<Instant> {
        if !self.is_limited() {
            return None;
        }
        let window = self.window.next();
        let limit = self.settings.limits.minutes.filter(|_| running > 0);
        let time = limit.map(|minutes| {
            let limit = minutes_of(minutes);
            let used = self.window.sum(now).time;
            let warn = limit.mul_f64(self.settings.warn_at);
            let next = if used < warn { warn } else { limit };
            // No earlier, however the division is rounded.
            now + next.saturating_sub(used) / running + Duration::from_millis(1)
        });
        let time = time.filter(|_| self.state != BudgetState::Exceeded);
        [window, time].into_iter().flatten().min()
    }

    pub(super) fn report(&mut self, now: Instant, underway: Underway) -> BudgetReport {
        let sum = self.window.sum(now);
        let Settings { limits, currency, on_exceed, window, .. } = self.settings.clone();
        let in_window = self.tokens.known.map(|_| sum.tokens);
        BudgetReport {
            agent: self.agent.clone(),
            state: self.state,
            limits,
            configured: self.configured.limits,
            currency,
            window_s: window.map(|window| window.as_secs()),
            on_exceed,
            tokens: FigureSum { known: in_window, ..self.tokens },
            cost: self.has_cost.then_some(sum.cost),
            cost_unknown: self.cost_unknown,
            turns: sum.turns,
            minutes: sum.time.as_secs_f64() / MINUTE.as_secs_f64(),
            running: underway.count,
            reserved_tokens: underway.reserved.tokens,
            reserved_cost: underway.reserved.cost,
            largest_tokens: self.largest.tokens,
            largest_cost: self.largest.cost,
            reason: self.reason.clone(),
            timestamp_ms: now_ms(),
        }
    }

    /// The first limit that is reached, as a sentence.
    fn exceeded(&self, used: Amounts) -> Option<Arc<str>> {
        let limits = &self.settings.limits;
        let what = if let Some(limit) = limits.tokens.filter(|limit| used.tokens >= *limit) {
            format!("{} of {limit} tokens are used", used.tokens)
        } else if let Some(limit) = limits.cost.filter(|limit| used.cost >= *limit) {
            let currency = &self.settings.currency;
            format!("{:.2} of {limit:.2} {currency} are spent", used.cost)
        } else if let Some(limit) = limits.turns.filter(|limit| used.turns >= *limit) {
            format!("{} of {limit} turns are used", used.turns)
        } else if let Some(limit) = limits.minutes.filter(|limit| used.time >= minutes_of(*limit)) {
            format!("{limit} of {limit} minutes are used")
        } else {
            return None;
        };
        let whose = self
            .agent
            .as_ref()
            .map_or("the team's budget".to_owned(), |agent| format!("the budget of `{agent}`"));
        let until = match self.settings.window {
            Some(window) => format!(
                "within {} s: prompts are refused until some of it is older, or `eisen-core team budget` raises it",
                window.as_secs()
            ),
            None => "prompts are refused until `eisen-core team budget` raises it".to_owned(),
        };
        let glue = if self.settings.window.is_some() { " " } else { "; " };
        Some(format!("{whose} is used up: {what}{glue}{until}").into())
    }

    /// The largest share of a limit that is used.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    fn share(&self, used: Amounts) -> f64 {
        let limits = &self.settings.limits;
        let minutes = used.time.as_secs_f64() / MINUTE.as_secs_f64();
        [
            limits.tokens.map(|limit| used.tokens as f64 / limit as f64),
            limits.cost.map(|limit| used.cost / limit),
            limits.turns.map(|limit| used.turns as f64 / limit as f64),
            limits.minutes.map(|limit| minutes / limit as f64),
        ]
        .into_iter()
        .flatten()
        .fold(0.0, f64::max)
    }
}

fn minutes_of(minutes: u64) -> Duration {
    Duration::from_secs(minutes.saturating_mul(60))
}
