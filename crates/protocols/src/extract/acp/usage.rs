//! Reads what agents report of their usage: the `usage_update`, and counts of tokens in `usage` and
//! `_meta`.

use agent_client_protocol_schema::v1::UsageUpdate;

use super::Acp;
use super::count::{Count, number};
use super::meter::has_total;
use super::update::typed;
use crate::extract::json::Members;
use crate::model::{ActivityKind, Cost, SessionId, Spending, Usage, UsageScope};

impl Acp {
    /// A `usage_update`: how full the context is, the cost of the session, and with some makers the
    /// tokens of the session.
    pub(super) fn usage_update(&mut self, session: &SessionId, raw: &str, update: &Members<'_>) {
        let Some(usage) = usage(raw, update) else { return };
        let counted = update.get("_meta").and_then(Count::of);
        let scope = self.usage_scope;
        let known = self.sessions.remember(session);
        // A fork may repeat its history before the answer that names it.
        let is_past = known.replays() || !known.announced;
        let running = known.is_running();
        let spent = if is_past {
            known.meter.learn_context(usage.used);
            known.meter.learn(usage.cost.as_ref(), counted);
            Vec::new()
        } else {
            // What comes before the first words of a model is an estimate of its agent; where counts are
            // reported, these say when a model was called.
            if !running {
                known.meter.learn_context(usage.used);
            } else if scope != UsageScope::Session && known.has_output() {
                known.meter.read_context(usage.used, scope);
            }
            known.meter.updated(usage.cost.as_ref(), counted, running)
        };
        let foreseen = known.meter.foreseen().filter(|_| scope == UsageScope::Context);
        let usage = known.usage_to_report(usage);
        self.reported.add_all(session, spent.into_iter().map(ActivityKind::Spent));
        let foreseen = foreseen.map(|(least, most)| ActivityKind::Foreseen { least, most });
        self.reported.add_all(session, foreseen);
        let usage = usage.map(|usage| ActivityKind::Usage { usage, is_past });
        self.reported.add_all(session, usage);
    }

    /// Reads the session's use up to now, which `OpenHands` says beside each update.
    pub(super) fn usage_beside(&mut self, session: &SessionId, params: &Members<'_>) {
        let fields = || Members::of(Members::of(params.get("_meta")?)?.get("field_meta")?);
        let Some(metrics) = fields().and_then(|fields| fields.get("openhands.dev/metrics")) else {
            return;
        };
        let cost = Members::of(metrics).and_then(|it| typed::<f64>(it.get("cost")?));
        let cost = cost.map(|amount| Cost { amount, currency: "USD".into() });
        let counted = Count::of_inclusive(metrics);
        let known = self.sessions.remember(session);
        let spent = if known.replays() || !known.announced {
            known.meter.learn(cost.as_ref(), counted);
            Vec::new()
        } else {
            known.meter.updated(cost.as_ref(), counted, known.is_running())
        };
        self.reported.add_all(session, spent.into_iter().map(ActivityKind::Spent));
    }

    /// A model call that a chunk reports in its `_meta`; false if it reports none.
    pub(super) fn usage_of_chunk(&mut self, session: &SessionId, update: &Members<'_>) -> bool {
        let usage = || Members::of(update.get("_meta")?)?.get("usage").and_then(Count::of);
        let Some(count) = usage() else { return false };
        if let Some(known) = self.sessions.get_mut(session).filter(|known| !known.replays()) {
            let spent = known.meter.called(&count);
            self.reported.add(session, ActivityKind::Spent(spent));
        }
        true
    }

    /// Reports what the turn that now ends took; `answer` has its `usage`, if anything has. Returns
    /// whether it had a tool call, or a model call was reported, or never is.
    pub(super) fn close_account(
        &mut self,
        session: &SessionId,
        answer: Option<&Members<'_>>,
    ) -> bool {
        let scope = self.usage_scope;
        let Some(known) = self.sessions.get_mut(session) else { return true };
        let mut did_work = known.meter.has_worked() || scope == UsageScope::Nothing;
        let usage = answer.and_then(|answer| answer.get("usage")).and_then(Count::of);
        let quota = answer.and_then(|answer| Members::of(answer.get("_meta")?));
        let quota = quota.and_then(|meta| meta.get("quota").and_then(Members::of));
        let by_model = quota.as_ref().and_then(Count::by_model);
        let sum = quota.and_then(|quota| quota.get("token_count").and_then(Count::of));
        let spent = known.meter.turn_ended(scope, usage.or(sum), by_model);
        let is_uncounted = known.is_uncounted;
        did_work |= spent.iter().filter_map(|report| report.tokens.as_ref()).any(has_total);
        self.reported.add_all(session, spent.into_iter().map(ActivityKind::Spent));
        if is_uncounted {
            self.reported.add(session, ActivityKind::Spent(Spending::uncounted()));
        }
        did_work
    }
}

/// A usage update by the protocol's type, or at least its numbers.
fn usage(raw: &str, members: &Members<'_>) -> Option<Usage> {
    let cost = |amount: f64, currency: &str| Cost { amount, currency: currency.into() };
    if let Some(usage) = typed::<UsageUpdate>(raw) {
        let cost = usage.cost.map(|given| cost(given.amount, &given.currency));
        return Some(Usage { used: usage.used, size: usage.size, cost });
    }
    let count = |key| members.get(key).and_then(number);
    Some(Usage { used: count("used")?, size: count("size").unwrap_or(0), cost: None })
}
