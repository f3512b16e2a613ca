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

/// Refusals of one model in a row, in one turn, after which waiting is no answer any more.
const REFUSALS_IN_A_ROW: u64 = 2;

/// The place of a call among the turns of its agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallPlace {
    /// The session of the call.
    session: SessionId,
    /// The number of the turn in which the call began; None: it began outside of turns.
    turn: Option<u64>,
    /// How many calls had ended when it began.
    ended_before: u64,
}

impl CallPlace {
    /// The session of the call.
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

/// The outcome of a call, for the turn that it is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallOutcome {
    /// The provider answered.
    Served,
    /// The call was not sent, and why: its provider may well serve.
    Unsent(Arc<str>),
    /// The provider does not serve.
    Refused {
        /// Why.
        why: Arc<str>,
        /// The same call would be refused again for a long while, however often its agent tries.
        is_lasting: bool,
    },
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
    /// No call of it spent anything, none runs, and its agent reports none. It may have made some that were refused, or
    /// failed.
    pub(crate) took_nothing: bool,
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
    /// The number of the next turn.
    next_turn: u64,
    /// The session that a call without a turn is of.
    last: Option<SessionId>,
    /// Calls that began and have not ended, of any turn or none.
    running: u64,
    /// Calls that have ended.
    ended: u64,
    early: Vec<Spending>,
    /// A difference was told.
    is_told: bool,
    /// The vitals of the running process.
    vitals: Option<Arc<Vitals>>,
}

/// A model that was called in a turn.
struct CalledModel {
    /// The name that its agent has for it.
    name: Option<Arc<str>>,
    /// Why its last call was refused, if it was.
    refused: Option<Arc<str>>,
    /// Calls in a row that were refused, each of which began behind the refusal of the one before.
    refusals: u64,
    /// How many calls had ended with the last of these.
    refused_at: u64,
}

struct CountedTurn {
    number: u64,
    session: SessionId,
    /// Prompts of the session that overlap.
    prompts: usize,
    /// Calls that began in it and run.
    open: u64,
    /// A call of it was counted since a prompt of it ended.
    is_counted: bool,
    /// All calls that may be in the agent's report are counted, each by its provider's answer.
    is_whole: bool,
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

    /// Begins a call, which takes so many tokens at most; returns its place: in the turn that began last, else in the
    /// last session that had one. None: there is no session yet.
    pub fn begin(&self, most: Option<u64>) -> Option<CallPlace> {
        self.open.send_modify(|open| open.begin(most));
        let mut state = self.state.lock();
        state.running += 1;
        let ended_before = state.ended;
        if let Some(turn) = state.turns.last_mut() {
            turn.open += 1;
            let (session, turn) = (turn.session.clone(), Some(turn.number));
            return Some(CallPlace { session, turn, ended_before });
        }
        state.last.clone().map(|session| CallPlace { session, turn: None, ended_before })
    }

    /// Ends a call that was begun. Returns what is to be counted, and for which session.
    pub fn end(
        &self,
        place: Option<CallPlace>,
        model: Option<Arc<str>>,
        spent: Option<Spending>,
        outcome: CallOutcome,
    ) -> Option<(SessionId, Spending)> {
        let mut state = self.state.lock();
        let CallState { turns, last, running, ended, early, vitals, .. } = &mut *state;
        *running = running.saturating_sub(1);
        *ended += 1;
        let since = (place.as_ref().map_or(0, |place| place.ended_before), *ended);
        let is_of_turn = place.is_some();
        let (session, turn) = match place {
            Some(CallPlace { session, turn, .. }) => {
                let turn = turn.and_then(|number| turns.iter().position(|it| it.number == number));
                (Some(session), turn)
            }
            // It is of the first turn.
            None => match turns.len().checked_sub(1) {
                Some(at) => (Some(turns[at].session.clone()), Some(at)),
                None => (last.clone(), None),
            },
        };
        if let Some(vitals) = vitals
            && outcome == CallOutcome::Served
        {
            vitals.record_activity();
        }
        match turn {
            Some(at) => {
                // Whom another turn or call may serve is not set back: the whole agent would be.
                let is_alone = turns.len() == 1 && *running == 0;
                let turn = &mut turns[at];
                // One from before the first session was not counted there when it began.
                turn.open = turn.open.saturating_sub(u64::from(is_of_turn));
                turn.add(spent.as_ref());
                let met = turn.ended(model, outcome, since);
                if let Some((vitals, met)) = vitals.as_ref().zip(met) {
                    if met.is_over && is_alone {
                        vitals.set_back(met.why);
                    } else {
                        vitals.troubled(met.why);
                    }
                }
            }
            // A turn that runs may have it in its agent's report.
            None => turns.iter_mut().for_each(|turn| turn.is_whole = false),
        }
        match (session, spent) {
            (Some(session), Some(spent)) => Some((session, spent)),
            (None, Some(spent)) => {
                if early.len() < MOST_EARLY {
                    early.push(spent);
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
        let place = self.begin(None);
        let _ = self.end(place, model, None, CallOutcome::Unsent(why));
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
            // Which of several turns a call is of is not certain.
            state.turns.iter_mut().for_each(|turn| turn.is_whole = false);
            let is_whole = state.turns.is_empty() && self.open().calls == 0;
            let number = state.next_turn;
            state.next_turn += 1;
            state.turns.push(CountedTurn {
                number,
                session: session.clone(),
                prompts: 1,
                open: 0,
                is_counted: false,
                is_whole,
                counted: (0, 0),
                reported: None,
                models: Vec::new(),
            });
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
        let is_counted = std::mem::take(&mut turn.is_counted);
        let took_nothing = !is_counted && turn.open == 0 && turn.reported.is_none();
        if turn.prompts > 0 {
            return CallsOfTurn { took_nothing, ..CallsOfTurn::default() };
        }
        let turn = state.turns.remove(at);
        let (least, most) = turn.counted;
        // What still runs is not in it.
        let is_whole = turn.is_whole && turn.open == 0 && !state.is_told;
        let differs = turn.reported.filter(|it| is_whole && !(least..=most).contains(it));
        state.is_told |= differs.is_some();
        let by_all = turn.are_all_refused();
        let refused = turn.models.into_iter().rev().find_map(|model| model.refused);
        CallsOfTurn {
            refused,
            by_all,
            differs: differs.map(|reported| (reported, most)),
            took_nothing,
        }
    }
}

/// A refusal that a turn met, and whether it is no use to wait for more in that turn.
struct MetRefusal {
    why: Arc<str>,
    is_over: bool,
}

impl CallState {
    fn turn(&mut self, session: &SessionId) -> Option<&mut CountedTurn> {
        self.turns.iter_mut().find(|turn| turn.session == *session)
    }
}

impl CountedTurn {
    fn add(&mut self, spent: Option<&Spending>) {
        // One that was refused, or failed, may be in the agent's report or not.
        self.is_whole &= spent.is_some();
        self.is_counted |= spent.is_some();
        let total = spent.and_then(|spent| Some(spent.tokens.as_ref()?.get(TokenKind::Total)));
        let total = total.unwrap_or(Figure::Unknown);
        let (least, most) = self.counted;
        let (least_more, most_more) = (total.least(), total.known().unwrap_or(0));
        self.counted = (least.saturating_add(least_more), most.saturating_add(most_more));
    }

    /// Whether the last call of each model was refused; so it is without any.
    fn are_all_refused(&self) -> bool {
        self.models.iter().all(|model| model.refused.is_some())
    }

    /// Notes how a call of a model ended, which comes behind the others. `began` and `now` say how many calls had ended.
    fn ended(
        &mut self,
        model: Option<Arc<str>>,
        outcome: CallOutcome,
        (began, now): (u64, u64),
    ) -> Option<MetRefusal> {
        let (refused, by_provider) = match outcome {
            CallOutcome::Served => (None, None),
            CallOutcome::Unsent(why) => (Some(why), None),
            CallOutcome::Refused { why, is_lasting } => (Some(why), Some(is_lasting)),
            CallOutcome::Unclear => return None,
        };
        let known = self.models.iter().position(|known| known.name == model);
        let known = known.map(|at| self.models.remove(at));
        let known = known.map_or((0, 0), |known| (known.refusals, known.refused_at));
        let (refusals, refused_at) = match by_provider {
            None => (0, 0),
            // It was under way when the one before was refused.
            Some(_) if known.0 > 0 && began < known.1 => known,
            Some(_) => (known.0 + 1, now),
        };
        if self.models.len() < MOST_MODELS {
            let refused = refused.clone();
            self.models.push(CalledModel { name: model, refused, refusals, refused_at });
        }
        let is_lasting = by_provider == Some(true) || refusals >= REFUSALS_IN_A_ROW;
        // A model that was served may be the agent's own, and the refused one a helper's.
        let is_over = is_lasting && self.are_all_refused();
        refused.map(|why| MetRefusal { why, is_over })
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
mod tests;
