//! The model calls of an agent that go by the endpoint of its team: which turn each of them is of, and what the last
//! one of a turn came to. The agent's relay and the endpoint share it. Pure but for a lock.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::vitals::Vitals;
use crate::model::{Figure, OpenCalls, SessionId, Spending, TokenKind};

/// Turns of an agent that are told apart; beyond this the oldest is forgotten.
const MOST_TURNS: usize = 256;

/// Models of a turn whose last calls are told apart; those of further ones are passed over.
const MOST_MODELS: usize = 16;

/// Reports of calls that came before the first session; of further ones nothing is known.
const MOST_EARLY: usize = 256;

/// The outcome of a call, for the turn that it is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallOutcome {
    /// The provider answered.
    Served,
    /// The call was not sent, or the provider does not serve, and why.
    Refused(Arc<str>),
    /// Neither: the agent went away, or its request was wrong.
    Unclear,
}

/// The outcome of a turn's calls.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct CallsOfTurn {
    /// Why the last call of one of its models was refused.
    pub(crate) refused: Option<Arc<str>>,
    /// The last call of each model was. Else it may be a helper's alone, which the turn does without.
    pub(crate) by_all: bool,
    /// The tokens that the agent reports and those that were counted, if they differ for the first time.
    pub(crate) differs: Option<(u64, u64)>,
}

/// The model calls of one agent.
pub struct ModelCalls {
    /// The name of the provider.
    provider: Arc<str>,
    state: Mutex<CallState>,
    /// Calls that run.
    open: watch::Sender<OpenCalls>,
}

#[derive(Default)]
struct CallState {
    /// In the order in which they began.
    turns: Vec<CountedTurn>,
    /// The session that a call without a turn is of.
    last: Option<SessionId>,
    early: Vec<Spending>,
    /// A difference was told.
    is_told: bool,
    /// The vitals of the running process.
    vitals: Option<Arc<Vitals>>,
}

/// A model as its agent names it, and why its last call was refused, if it was.
type CalledModel = (Option<Arc<str>>, Option<Arc<str>>);

struct CountedTurn {
    session: SessionId,
    /// Prompts of the session that overlap.
    prompts: usize,
    /// The tokens that were counted, at least and at most.
    counted: (u64, u64),
    /// The tokens that the agent reports; None: it reports none.
    reported: Option<u64>,
    /// The models that were called, the last one behind the others.
    models: Vec<CalledModel>,
}

impl ModelCalls {
    /// The calls of an agent to a provider, of which there were none.
    pub fn new(provider: Arc<str>) -> Self {
        Self { provider, state: Mutex::default(), open: watch::Sender::default() }
    }

    /// The name of the provider.
    pub fn provider(&self) -> &Arc<str> {
        &self.provider
    }

    /// The calls that run.
    pub fn open(&self) -> OpenCalls {
        *self.open.borrow()
    }

    /// Begins a call, which takes so many tokens at most; returns its session: the one whose turn began last, else the
    /// last one that had a turn. None: there is no session yet.
    pub fn begin(&self, most: Option<u64>) -> Option<SessionId> {
        self.open.send_modify(|open| open.begin(most));
        let state = self.state.lock();
        let running = state.turns.last().map(|turn| turn.session.clone());
        running.or_else(|| state.last.clone())
    }

    /// Ends a call that was begun. Returns what is to be counted, and for which session.
    pub fn end(
        &self,
        session: Option<SessionId>,
        model: Option<Arc<str>>,
        spent: Option<Spending>,
        outcome: CallOutcome,
    ) -> Option<(SessionId, Spending)> {
        let mut state = self.state.lock();
        let session = session.or_else(|| state.turns.last().map(|turn| turn.session.clone()));
        let session = session.or_else(|| state.last.clone());
        if let Some(vitals) = &state.vitals {
            match &outcome {
                CallOutcome::Served => vitals.record_activity(),
                CallOutcome::Refused(why) => vitals.troubled(why),
                CallOutcome::Unclear => {}
            }
        }
        if let Some(turn) = session.as_ref().and_then(|session| state.turn(session)) {
            turn.add(spent.as_ref());
            match outcome {
                CallOutcome::Served => turn.ended(model, None),
                CallOutcome::Refused(why) => turn.ended(model, Some(why)),
                CallOutcome::Unclear => {}
            }
        }
        match (session, spent) {
            (Some(session), Some(spent)) => Some((session, spent)),
            (None, Some(spent)) => {
                if state.early.len() < MOST_EARLY {
                    state.early.push(spent);
                }
                None
            }
            (_, None) => None,
        }
    }

    /// Says that a call that was ended is counted. `most` is that of its beginning.
    pub fn counted(&self, most: Option<u64>) {
        self.open.send_modify(|open| open.end(most));
    }

    /// Notes a call that was refused before it was sent.
    pub fn refused(&self, model: Option<Arc<str>>, why: Arc<str>) {
        let session = self.begin(None);
        let _ = self.end(session, model, None, CallOutcome::Refused(why));
        self.counted(None);
    }

    /// Returns once no call runs.
    pub(crate) async fn idle(&self) {
        let _ = self.open.subscribe().wait_for(|open| open.calls == 0).await;
    }

    /// A new process of the agent has these vitals.
    pub(crate) fn follow(&self, vitals: Arc<Vitals>) {
        let mut state = self.state.lock();
        state.turns.clear();
        state.vitals = Some(vitals);
    }

    /// A session is there.
    pub(crate) fn opened(&self, session: &SessionId) {
        self.state.lock().last.get_or_insert_with(|| session.clone());
    }

    /// A turn began. Returns what came before the first one.
    pub(crate) fn turn_began(&self, session: &SessionId) -> Vec<Spending> {
        let mut state = self.state.lock();
        state.last = Some(session.clone());
        if let Some(turn) = state.turn(session) {
            turn.prompts += 1;
        } else {
            if state.turns.len() >= MOST_TURNS {
                state.turns.remove(0);
            }
            let (session, counted) = (session.clone(), (0, 0));
            let (prompts, reported, models) = (1, None, Vec::new());
            state.turns.push(CountedTurn { session, prompts, counted, reported, models });
        }
        let early = std::mem::take(&mut state.early);
        if let Some(turn) = state.turn(session) {
            for spent in &early {
                turn.add(Some(spent));
            }
        }
        early
    }

    /// Takes what the agent itself reports. It is not counted.
    pub(crate) fn reported(&self, session: &SessionId, report: &Spending) {
        let total = report.tokens.as_ref().and_then(|it| it.get(TokenKind::Total).known());
        let mut state = self.state.lock();
        if let Some((turn, total)) = state.turn(session).zip(total.filter(|total| *total > 0)) {
            turn.reported = Some(turn.reported.unwrap_or(0).saturating_add(total));
        }
    }

    /// A turn ended.
    pub(crate) fn turn_ended(&self, session: &SessionId) -> CallsOfTurn {
        let mut state = self.state.lock();
        let Some(at) = state.turns.iter().position(|turn| turn.session == *session) else {
            return CallsOfTurn::default();
        };
        let turn = &mut state.turns[at];
        turn.prompts -= 1;
        if turn.prompts > 0 {
            return CallsOfTurn::default();
        }
        let turn = state.turns.remove(at);
        let (least, most) = turn.counted;
        // What still runs is not in it.
        let is_whole = self.open().calls == 0 && !state.is_told;
        let differs = turn.reported.filter(|it| is_whole && !(least..=most).contains(it));
        state.is_told |= differs.is_some();
        let by_all = turn.models.iter().all(|(_, refused)| refused.is_some());
        let refused = turn.models.into_iter().rev().find_map(|(_, refused)| refused);
        CallsOfTurn { refused, by_all, differs: differs.map(|reported| (reported, most)) }
    }
}

impl CallState {
    fn turn(&mut self, session: &SessionId) -> Option<&mut CountedTurn> {
        self.turns.iter_mut().find(|turn| turn.session == *session)
    }
}

impl CountedTurn {
    fn add(&mut self, spent: Option<&Spending>) {
        let total = spent.and_then(|spent| Some(spent.tokens.as_ref()?.get(TokenKind::Total)));
        let total = total.unwrap_or(Figure::Unknown);
        let (least, most) = self.counted;
        let (least_more, most_more) = (total.least(), total.known().unwrap_or(0));
        self.counted = (least.saturating_add(least_more), most.saturating_add(most_more));
    }

    /// Notes how the last call of a model ended, which comes behind the others.
    fn ended(&mut self, model: Option<Arc<str>>, refused: Option<Arc<str>>) {
        self.models.retain(|(known, _)| *known != model);
        if self.models.len() < MOST_MODELS {
            self.models.push((model, refused));
        }
    }
}

impl fmt::Debug for ModelCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCalls")
            .field("provider", &self.provider)
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::Tokens;

    fn spent(total: u64) -> Spending {
        let mut tokens = Tokens::default();
        tokens.set(TokenKind::Total, Figure::Measured(total));
        Spending { model: None, tokens: Some(tokens), cost: None }
    }

    fn session(id: &str) -> SessionId {
        SessionId::new(id)
    }

    fn call(calls: &ModelCalls, total: u64, outcome: CallOutcome) -> Option<(SessionId, Spending)> {
        let of = calls.begin(Some(5));
        let counted = calls.end(of, None, Some(spent(total)), outcome);
        calls.counted(Some(5));
        counted
    }

    #[test]
    fn a_call_is_of_the_turn_that_began_last_and_stays_so() {
        let calls = ModelCalls::new("main".into());
        assert_eq!(call(&calls, 3, CallOutcome::Served), None);
        calls.opened(&session("a"));
        assert_eq!(call(&calls, 4, CallOutcome::Served).unwrap().0, session("a"));
        // What came before any session is of the first turn.
        assert_eq!(calls.turn_began(&session("b")), [spent(3)]);
        assert!(calls.turn_began(&session("c")).is_empty());
        let of_c = calls.begin(None);
        calls.turn_ended(&session("c"));
        assert_eq!(calls.begin(None), Some(session("b")));
        let late = calls.end(of_c, None, Some(spent(1)), CallOutcome::Served);
        assert_eq!(late.unwrap().0, session("c"));
        calls.turn_ended(&session("b"));
        assert_eq!(calls.begin(None), Some(session("c")));
    }

    #[test]
    fn the_last_call_of_a_turn_says_why_it_ended() {
        let calls = ModelCalls::new("main".into());
        let a = session("a");
        let refused = || CallOutcome::Refused("429".into());
        for (outcomes, why) in [
            (vec![CallOutcome::Served, refused()], true),
            (vec![refused(), CallOutcome::Served], false),
            (vec![refused(), CallOutcome::Unclear], true),
        ] {
            calls.turn_began(&a);
            for outcome in outcomes {
                call(&calls, 0, outcome);
            }
            assert_eq!(calls.turn_ended(&a).refused.is_some(), why);
        }
        calls.turn_began(&a);
        call(&calls, 0, CallOutcome::Served);
        calls.refused(Some("m".into()), "no budget".into());
        let end = calls.turn_ended(&a);
        assert_eq!((end.refused, end.by_all), (Some("no budget".into()), false));
        assert_eq!(calls.open(), OpenCalls::default());
        calls.begin(Some(120));
        calls.begin(None);
        assert_eq!(calls.open(), OpenCalls { calls: 2, most: 120, unbounded: 1 });
    }

    #[test]
    fn a_difference_to_what_the_agent_reports_is_told_once() {
        let calls = ModelCalls::new("main".into());
        let a = session("a");
        let turn = |counted, reported| {
            calls.turn_began(&a);
            call(&calls, counted, CallOutcome::Served);
            if let Some(reported) = reported {
                calls.reported(&a, &spent(reported));
            }
            calls.turn_ended(&a).differs
        };
        assert_eq!(turn(10, None), None);
        assert_eq!(turn(10, Some(10)), None);
        assert_eq!(turn(10, Some(4)), Some((4, 10)));
        assert_eq!(turn(10, Some(4)), None);
    }
}
