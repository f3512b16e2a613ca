//! Answers the endpoint's questions: whose request it is, and whether the agent's budget has room for it. Counts what
//! a call took as usage of the agent's turn.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::leases::{Lease, Leases};
use super::peer;
use crate::counting::{CallEnd, CallReport, ProviderSetback, ProviderTrouble, RecordedCall};
use crate::endpoint::{AgentConnection, CallRefusal, Callers, ProviderCall};
use crate::extract::Trouble;
use crate::model::{
    Activity, ActivityKind, AgentId, KeptCall, Record, SessionId, TimestampMs, now_ms,
};
use crate::proxy::{CallOutcome, CallPlace};
use crate::tracker::TrackerHandle;
use eisen_base::task;

/// Connections whose process is remembered; beyond this all are looked up again.
const MOST_CONNECTIONS: usize = 8192;

/// The longest time for which an agent is left to wait by itself where its provider says to.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(60);

/// The endpoint's way to the agents.
pub(super) struct EndpointCallers {
    leases: Leases,
    tracker: TrackerHandle,
    /// Whose process has the other end of a connection, by the connection's number.
    known: Mutex<HashMap<u64, AgentId>>,
}

/// A call that was admitted.
pub(super) struct CallTicket {
    lease: Arc<Lease>,
    place: Option<CallPlace>,
    began: TimestampMs,
    /// Tokens that the call takes at most.
    most: Option<u64>,
}

impl EndpointCallers {
    pub(super) fn new(leases: Leases, tracker: TrackerHandle) -> Self {
        Self { leases, tracker, known: Mutex::default() }
    }

    /// Whether a process of the agent has the other end.
    async fn is_of(&self, agent: &AgentId, from: &AgentConnection) -> bool {
        if self.known.lock().get(&from.id) == Some(agent) {
            return true;
        }
        let Some(family) = self.leases.family(agent) else { return false };
        let from = *from;
        let looked = task::spawn_blocking(move || peer::is_of(&family, &from)).await;
        let is_of = looked.unwrap_or(false);
        if is_of {
            let mut known = self.known.lock();
            if known.len() >= MOST_CONNECTIONS {
                known.clear();
            }
            known.insert(from.id, agent.clone());
        }
        is_of
    }

    /// Has a call with its bodies kept in the journal. They are masked in a thread that serves nobody.
    fn keep(
        &self,
        lease: &Lease,
        (session, began): (SessionId, TimestampMs),
        record: RecordedCall,
        report: &CallReport,
    ) {
        let (agent, tracker) = (lease.agent.clone(), self.tracker.clone());
        let kept = KeptCall {
            began,
            provider: Arc::clone(&report.provider),
            model: report.asked_model.clone(),
            status: report.status,
            end: end(report.end),
            first_byte: report.times.first_byte,
            took: report.times.whole,
            request: String::new(),
            answer: String::new(),
            is_cut: record.request_is_cut || record.answer_is_cut,
        };
        let hidden = self.leases.hidden();
        task::spawn_blocking(move || {
            let known: Vec<&str> = hidden.iter().map(|text| text.as_str()).collect();
            let (request, answer) = (record.request(&known), record.answer(&known));
            let kept = KeptCall { request, answer, ..kept };
            let kind = ActivityKind::Record(Record::ModelCall(Arc::new(kept)));
            tracker.record_all(&agent, std::iter::once(Activity { session, kind }));
        });
    }
}

impl Callers for EndpointCallers {
    type Caller = Arc<Lease>;
    type Ticket = CallTicket;

    async fn caller(
        &self,
        token: &str,
        from: &AgentConnection,
        provider: &str,
    ) -> Option<Arc<Lease>> {
        let lease = self.leases.find(token, provider)?;
        if self.is_of(&lease.agent, from).await {
            return Some(lease);
        }
        let agent = &lease.agent;
        tracing::warn!(%agent, "a process that is not the agent's showed the agent's token to the endpoint: refused");
        None
    }

    async fn admit(
        &self,
        lease: Arc<Lease>,
        call: &ProviderCall,
    ) -> Result<CallTicket, CallRefusal> {
        if let Some(why) = lease.account.refusal() {
            lease.calls().refused(call.model.clone(), Arc::clone(&why));
            return Err(CallRefusal { why: why.to_string(), retry_after: None });
        }
        let most = call.sizes.most_output.map(|most| most.saturating_add(call.sizes.body));
        let (place, began) = (lease.calls().begin(most), now_ms());
        Ok(CallTicket { lease, place, began, most })
    }

    fn counted(&self, ticket: CallTicket, report: CallReport) {
        let CallTicket { lease, place, began, most } = ticket;
        let outcome = outcome(&report);
        let calls = lease.calls();
        let mut report = report;
        if let Some((record, place)) = report.record.take().zip(place.as_ref()) {
            self.keep(&lease, (place.session().clone(), began), record, &report);
        }
        let counted = calls.end(place, report.asked_model, report.spending, outcome);
        if let Some((session, mut spending)) = counted {
            lease.account.spend(&session, &mut spending);
            self.tracker.spent(&lease.agent, session, spending, began);
        }
        calls.counted(most);
    }
}

fn end(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Whole => "whole",
        CallEnd::CutByAgent => "left",
        CallEnd::CutByProvider => "cut",
        CallEnd::Unanswered => "unanswered",
        CallEnd::Unsent => "unsent",
    }
}

fn outcome(report: &CallReport) -> CallOutcome {
    match (&report.setback, report.end, report.status) {
        (Some(setback), ..) => {
            let why = reason(setback, report).into();
            let is_long = setback.retry_after.is_some_and(|wait| wait > LONGEST_BACK_OFF);
            match setback.trouble {
                ProviderTrouble::Away => CallOutcome::Unsent(why),
                ProviderTrouble::NoCredit | ProviderTrouble::KeyRefused => {
                    CallOutcome::Refused { why, is_lasting: true }
                }
                ProviderTrouble::RateLimited | ProviderTrouble::Overloaded => {
                    CallOutcome::Refused { why, is_lasting: is_long }
                }
            }
        }
        (None, CallEnd::Whole, Some(200..300)) => CallOutcome::Served,
        _ => CallOutcome::Unclear,
    }
}

/// Says why a provider does not serve, in words that are known as a trouble.
fn reason(setback: &ProviderSetback, report: &CallReport) -> String {
    let provider = &report.provider;
    let status = report.status.map(|status| format!(" ({status})")).unwrap_or_default();
    let wait = setback.retry_after.map(|wait| format!(", retry after {} s", wait.as_secs().max(1)));
    let wait = wait.unwrap_or_default();
    let said = match setback.trouble {
        ProviderTrouble::RateLimited => {
            format!("too many requests for the provider {provider}{status}{wait}")
        }
        ProviderTrouble::Overloaded => {
            format!("the provider {provider} is overloaded{status}{wait}")
        }
        ProviderTrouble::NoCredit => {
            format!("the provider {provider} says that the credit balance is too low{status}")
        }
        ProviderTrouble::KeyRefused => {
            format!("the provider {provider} refuses its key: invalid api key{status}")
        }
        ProviderTrouble::Away => format!("connection failed: the provider {provider} is away"),
    };
    match Trouble::of(&said) {
        Some(trouble) => format!("{trouble}: {said}"),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::counting::CallTimes;
    use crate::tiers::Setback;

    #[test]
    fn a_setback_of_a_provider_is_one_for_tiers() {
        for (trouble, what) in [
            (ProviderTrouble::RateLimited, Some("rate limited")),
            (ProviderTrouble::Overloaded, Some("overloaded")),
            (ProviderTrouble::NoCredit, Some("no credit")),
            (ProviderTrouble::KeyRefused, Some("not authenticated")),
            (ProviderTrouble::Away, None),
        ] {
            let setback = ProviderSetback { trouble, retry_after: Some(Duration::from_secs(20)) };
            let report = CallReport {
                provider: "main".into(),
                asked_model: None,
                spending: None,
                end: CallEnd::Whole,
                status: Some(429),
                setback: None,
                times: CallTimes::default(),
                record: None,
            };
            let reason = reason(&setback, &report);
            let found = Setback::of(&reason, 0);
            assert_eq!(found.as_ref().map(|it| it.what), what, "{reason}");
            if trouble == ProviderTrouble::RateLimited {
                assert_eq!(found.and_then(|it| it.again_at), Some(20_000), "{reason}");
            }
        }
    }
}
