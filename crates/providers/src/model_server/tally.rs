//! The count of what the server did: each call of a model with the usage that it reported, and the sums.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Serialize, Serializer};

use super::api::ModelApi;
use super::usage::ModelTokens;
use crate::model::named;

/// Calls that are listed one by one; of earlier ones only the sums are left.
const MOST_CALLS: usize = 10_000;

/// Models that have a sum of their own, and other paths that are counted by their names.
const MOST_NAMES: usize = 256;

/// The name of all that has no sum of its own.
const OTHERS: &str = "…";

named! {
    /// How a call ended.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum PlayedEnd {
        /// The answer is not sent whole yet.
        Open = "open",
        Whole = "whole",
        /// The server closed the connection, as the script says.
        Cut = "cut",
        /// The answer is an error.
        Refused = "refused",
        /// The client left before the end.
        Left = "left",
    }
}

impl Serialize for PlayedEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One call of a model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CountedCall {
    /// The number of the call, from 1: ids in its answer have it.
    pub n: u64,
    pub api: ModelApi,
    pub model: String,
    pub stream: bool,
    /// Which `[[on]]` of the script was played.
    pub rule: Option<usize>,
    /// The status of the answer; 0 before it has one.
    pub status: u16,
    pub end: PlayedEnd,
    /// The usage that was reported last; none if none was.
    pub usage: Option<ModelTokens>,
}

/// The sum of the calls of one model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ModelSum {
    pub api: ModelApi,
    pub model: String,
    pub calls: u64,
    pub usage: ModelTokens,
}

/// The count of all that the server did.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ModelCount {
    pub calls: u64,
    /// The usage that all answers reported.
    pub usage: ModelTokens,
    pub models: Vec<ModelSum>,
    /// The last calls, oldest first.
    pub list: Vec<CountedCall>,
    /// Requests that were no calls of a model, by method and path.
    pub others: BTreeMap<String, u64>,
}

/// The running count.
#[derive(Default)]
pub(super) struct Tally(Mutex<Sums>);

#[derive(Default)]
struct Sums {
    calls: u64,
    usage: ModelTokens,
    models: BTreeMap<(ModelApi, String), (u64, ModelTokens)>,
    list: VecDeque<CountedCall>,
    others: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts a call that begins; returns its number.
    pub(super) fn begin(&self, api: ModelApi, model: &str, stream: bool) -> u64 {
        let mut counted = self.0.lock();
        counted.calls += 1;
        let n = counted.calls;
        if counted.list.len() == MOST_CALLS {
            counted.list.pop_front();
        }
        counted.list.push_back(CountedCall {
            n,
            api,
            model: model.to_owned(),
            stream,
            rule: None,
            status: 0,
            end: PlayedEnd::Open,
            usage: None,
        });
        counted.sum(api, model).0 += 1;
        n
    }

    /// Notes what is answered.
    pub(super) fn answers(&self, n: u64, rule: Option<usize>, status: u16) {
        self.0.lock().change(n, |call| {
            call.rule = rule;
            call.status = status;
        });
    }

    /// Notes the usage that a call reports by now, in place of what it reported before.
    pub(super) fn reports(
        &self,
        n: u64,
        api: ModelApi,
        model: &str,
        before: ModelTokens,
        now: ModelTokens,
    ) {
        let mut counted = self.0.lock();
        counted.change(n, |call| call.usage = Some(now));
        counted.usage = counted.usage.less(before).plus(now);
        let sum = &mut counted.sum(api, model).1;
        *sum = sum.less(before).plus(now);
    }

    pub(super) fn end(&self, n: u64, end: PlayedEnd) {
        self.0.lock().change(n, |call| call.end = end);
    }

    pub(super) fn other(&self, name: String) {
        let mut counted = self.0.lock();
        let is_full = counted.others.len() >= MOST_NAMES && !counted.others.contains_key(&name);
        let name = if is_full { OTHERS.to_owned() } else { name };
        *counted.others.entry(name).or_default() += 1;
    }

    pub(super) fn count(&self) -> ModelCount {
        let counted = self.0.lock();
        let models = counted.models.iter().map(|((api, model), (calls, usage))| ModelSum {
            api: *api,
            model: model.clone(),
            calls: *calls,
            usage: *usage,
        });
        ModelCount {
            calls: counted.calls,
            usage: counted.usage,
            models: models.collect(),
            list: counted.list.iter().cloned().collect(),
            others: counted.others.clone(),
        }
    }
}

impl Sums {
    fn change(&mut self, n: u64, change: impl FnOnce(&mut CountedCall)) {
        let first = self.list.front().map_or(n, |call| call.n);
        let at = n.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(call) = at.and_then(|at| self.list.get_mut(at)) {
            change(call);
        }
    }

    fn sum(&mut self, api: ModelApi, model: &str) -> &mut (u64, ModelTokens) {
        let key = (api, model.to_owned());
        let is_full = self.models.len() >= MOST_NAMES && !self.models.contains_key(&key);
        self.models.entry(if is_full { (api, OTHERS.to_owned()) } else { key }).or_default()
    }
}

/// A call that is being answered; dropped before its end, the client has left.
pub(super) struct RunningCall {
    tally: Arc<Tally>,
    pub(super) n: u64,
    api: ModelApi,
    model: String,
    reported: ModelTokens,
    is_over: bool,
}

impl RunningCall {
    pub(super) fn begin(tally: Arc<Tally>, api: ModelApi, model: &str, stream: bool) -> Self {
        let n = tally.begin(api, model, stream);
        let (reported, model) = (ModelTokens::default(), model.to_owned());
        Self { tally, n, api, model, reported, is_over: false }
    }

    pub(super) fn answers(&self, rule: Option<usize>, status: u16) {
        self.tally.answers(self.n, rule, status);
    }

    pub(super) fn reports(&mut self, tokens: ModelTokens) {
        self.tally.reports(self.n, self.api, &self.model, self.reported, tokens);
        self.reported = tokens;
    }

    pub(super) fn end(&mut self, end: PlayedEnd) {
        self.tally.end(self.n, end);
        self.is_over = true;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.is_over {
            self.tally.end(self.n, PlayedEnd::Left);
        }
    }
}
