//! Tests which events a filter passes.

use super::samples::{self, key};
use crate::model::{BlockedAccess, BlockedStatus, Event, SessionId, SessionMode, UsageReport};
use crate::wire::request::Filter;

fn session(name: &str) -> Filter {
    Filter::Session(SessionId::new(name))
}

#[test]
fn each_kind_has_its_own_rule() {
    let (single, orchestrator) =
        (Filter::Mode(SessionMode::SingleAgent), Filter::Mode(SessionMode::Orchestrator));
    let lead = UsageReport {
        key: key("lead", "s-lead"),
        mode: SessionMode::Orchestrator,
        ..samples::usage()
    };
    let (ui, s_lead, other) = (session("s-ui"), session("s-lead"), session("s-x"));
    let filters = [&Filter::All, &ui, &s_lead, &other, &single, &orchestrator];
    let unrouted = BlockedAccess { orchestrator: None, ..samples::blocked(BlockedStatus::Denied) };
    for (event, passes) in [
        (Event::Snapshot(samples::snapshot()), "10100 1"),
        (Event::Delta(samples::delta()), "1100 10"),
        (Event::Usage(samples::usage()), "1100 10"),
        (Event::Usage(lead), "10100 1"),
        (Event::Turn(samples::turn(None)), "1100 10"),
        (Event::Loop(samples::looped()), "1100 10"),
        (samples::update(), "1100 10"),
        (Event::Overlap(samples::overlap()), "1100 11"),
        (Event::Blocked(samples::blocked(BlockedStatus::Pending)), "1110 11"),
        (Event::Blocked(unrouted), "1100 11"),
        (Event::Agent(samples::agent("ui")), "1111 11"),
        (Event::Budget(samples::budget()), "1111 11"),
        (Event::Chosen(samples::chosen()), "1111 11"),
    ] {
        let passed = filters.map(|filter| if filter.passes(&event) { '1' } else { '0' });
        assert_eq!(passed.iter().collect::<String>(), passes.replace(' ', ""), "{event:?}");
    }
}
