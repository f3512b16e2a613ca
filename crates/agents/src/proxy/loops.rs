//! Finds loops in the steps of a session. Pure; bounded for each session and for all of them.

use std::collections::VecDeque;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::model::{Loop, LoopKind, SessionId, SessionStep};

/// Sessions that are looked at; beyond this the oldest is forgotten.
const MOST_SESSIONS: usize = 64;

/// The longest cycle, of calls.
const LONGEST_CYCLE: usize = 4;

/// How often one call is noted, and acted on; and all else is acted on.
const NOTED: usize = 3;
const ACTED: usize = 5;
const OVER: usize = 3;

/// Calls of a session that are remembered: as many as make a cycle, and one call acted on.
const MOST_CALLS: usize = LONGEST_CYCLE * OVER;

/// The loops of one agent's sessions.
#[derive(Default, Debug)]
pub(super) struct Loops {
    sessions: IndexMap<SessionId, Steps>,
}

#[derive(Default, Debug)]
struct Steps {
    asked: Option<u64>,
    calls: VecDeque<(u64, u64, Arc<str>)>,
    /// The times of the last call in a row.
    in_a_row: usize,
    /// The last message, and how often it came since something new was called.
    said: Option<(u64, usize)>,
    /// A cycle was found, and goes on.
    is_cycling: bool,
}

impl Loops {
    /// Adds a step; returns a loop when it is noted, and whether it is to be acted on.
    pub(super) fn step(&mut self, session: &SessionId, step: &SessionStep) -> Option<(Loop, bool)> {
        if !self.sessions.contains_key(session) {
            if self.sessions.len() >= MOST_SESSIONS {
                self.sessions.shift_remove_index(0);
            }
            self.sessions.insert(session.clone(), Steps::default());
        }
        let steps = self.sessions.get_mut(session)?;
        match step {
            SessionStep::Asked(prompt) => {
                // Another prompt is another task; the same one is the same loop.
                if steps.asked != Some(*prompt) {
                    *steps = Steps { asked: Some(*prompt), ..Steps::default() };
                }
                None
            }
            SessionStep::Called { call, result, title } => steps.called(*call, *result, title),
            SessionStep::CalledUnseen => {
                // It can have returned something new.
                *steps = Steps { asked: steps.asked, ..Steps::default() };
                None
            }
            SessionStep::Said(message) => steps.said(*message),
        }
    }
}

impl Steps {
    fn called(&mut self, call: u64, result: u64, title: &Arc<str>) -> Option<(Loop, bool)> {
        let is_like = |other: &(u64, u64, Arc<str>)| (other.0, other.1) == (call, result);
        if !self.calls.iter().any(is_like) {
            // Something new is read or written.
            self.said = None;
        }
        let repeats = self.calls.back().is_some_and(is_like);
        self.in_a_row = if repeats { self.in_a_row + 1 } else { 1 };
        if self.calls.len() == MOST_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back((call, result, Arc::clone(title)));
        if matches!(self.in_a_row, NOTED | ACTED) {
            let found = Loop {
                kind: LoopKind::Call,
                times: self.in_a_row as u64,
                calls: vec![Arc::clone(title)],
                action: None,
            };
            return Some((found, self.in_a_row == ACTED));
        }
        let cycle = (2..=LONGEST_CYCLE).find(|length| self.in_a_row == 1 && self.is_cycle(*length));
        let went_on = std::mem::replace(&mut self.is_cycling, cycle.is_some());
        let length = cycle.filter(|_| !went_on)?;
        let first = self.calls.len() - length;
        let calls = self.calls.iter().skip(first).map(|(_, _, title)| Arc::clone(title)).collect();
        Some((Loop { kind: LoopKind::Cycle, times: OVER as u64, calls, action: None }, true))
    }

    /// Whether the last calls are the same ones, three times over.
    fn is_cycle(&self, length: usize) -> bool {
        let Some(first) = self.calls.len().checked_sub(length * OVER) else { return false };
        let id = |at: usize| self.calls.get(at).map(|(call, result, _)| (call, result));
        (first..self.calls.len() - length).all(|at| id(at) == id(at + length))
    }

    fn said(&mut self, message: u64) -> Option<(Loop, bool)> {
        let times = match self.said {
            Some((last, times)) if last == message => times + 1,
            _ => 1,
        };
        self.said = Some((message, times));
        (times == OVER).then(|| {
            let times = times as u64;
            (Loop { kind: LoopKind::Message, times, calls: Vec::new(), action: None }, true)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::extract::{Acp, DiskWorkspace, Extractor};
    use crate::line::Direction;
    use crate::model::ActivityKind;

    /// Steps, one letter each: a call `a` to `z`, with another result in capitals; a dot is one
    /// whose result is not known, a digit a message, `?` and `!` are prompts. Returns where loops were found.
    fn found(steps: &str) -> String {
        let mut loops = Loops::default();
        let mut found = Vec::new();
        for (at, letter) in steps.chars().enumerate() {
            let code = u64::from(u32::from(letter.to_ascii_lowercase()));
            let result = u64::from(letter.is_ascii_uppercase());
            let step = match letter {
                '?' | '!' => SessionStep::Asked(code),
                '.' => SessionStep::CalledUnseen,
                '0'..='9' => SessionStep::Said(code),
                _ => SessionStep::Called { call: code, result, title: letter.to_string().into() },
            };
            if let Some((it, acted)) = loops.step(&SessionId::new("s"), &step) {
                let calls = it.calls.concat();
                let mark = if acted { "!" } else { "" };
                found.push(format!("{at}:{} {calls}x{}{mark}", it.kind.as_str(), it.times));
            }
        }
        found.join(", ")
    }

    #[test]
    fn one_call_is_noted_and_then_acted_on() {
        assert_eq!(found("aa"), "");
        assert_eq!(found("baaaaaaaaaa"), "3:call ax3, 5:call ax5!");
        // Another result is another thing: a poll that gets on.
        assert_eq!(found("aaAaaAaa"), "");
        assert_eq!(found("aabaabaac"), "");
        assert_eq!(found("........."), "");
        assert_eq!(found("aa.aa.aa."), "");
    }

    #[test]
    fn calls_in_a_cycle_are_acted_on_once() {
        assert_eq!(found("abab"), "");
        assert_eq!(found("xababab"), "6:cycle abx3!");
        assert_eq!(found("abababababab"), "5:cycle abx3!");
        assert_eq!(found("abcabcabc"), "8:cycle abcx3!");
        assert_eq!(found("aabaabaab"), "8:cycle aabx3!");
        assert_eq!(found("abcdabcdabcd"), "11:cycle abcdx3!");
        assert_eq!(found("abcdeabcdeabcdeabcde"), "", "five are none");
        // An edit between tests is new each time.
        assert_eq!(found("taTbtcTdteTf"), "");
        // It begins again.
        assert_eq!(found("ababaxababab"), "11:cycle abx3!");
    }

    #[test]
    fn messages_count_while_nothing_new_is_called() {
        assert_eq!(found("111"), "2:message x3!");
        assert_eq!(found("1a1a1a1"), "5:call ax3, 6:message x3!");
        assert_eq!(found("1a1b1c1"), "");
        assert_eq!(found("12121"), "");
    }

    #[test]
    fn another_prompt_is_another_task() {
        assert_eq!(found("?a?a?a?a?a"), "5:call ax3, 9:call ax5!");
        assert_eq!(found("?a!a?a!a?a"), "");
        assert_eq!(found("?1?1?1"), "5:message x3!");
        assert_eq!(found("?1!1?1"), "");
    }

    /// Agents that toured a workspace five turns long did nothing over and over.
    #[test]
    fn recorded_traffic_has_no_loops() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/recordings");
        let (mut steps, mut recordings) = (0, 0);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "ndjson") {
                continue;
            }
            recordings += 1;
            let workspace = Arc::new(DiskWorkspace::new("/workspace".into()));
            let mut acp = Acp::new(workspace, "/workspace".into()).finding_loops(true);
            let (mut loops, mut activities) = (Loops::default(), Vec::new());
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let is_up = line["dir"] == "up";
                let direction = if is_up { Direction::ToAgent } else { Direction::ToClient };
                acp.observe(direction, line["line"].as_str().unwrap().as_bytes(), &mut activities);
            }
            for activity in &activities {
                if let ActivityKind::Step(step) = &activity.kind {
                    steps += 1;
                    let found = loops.step(&activity.session, step);
                    assert_eq!(found, None, "{}", path.display());
                }
            }
        }
        assert!(recordings >= 10 && steps > 100, "{steps} steps of {recordings} recordings");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut loops = Loops::default();
        for n in 0..10_000_u64 {
            let session = SessionId::new(format!("s{}", n % 1_000));
            let step = SessionStep::Called { call: n, result: n, title: "t".into() };
            assert!(loops.step(&session, &step).is_none());
        }
        assert_eq!(loops.sessions.len(), MOST_SESSIONS);
        assert!(loops.sessions.values().all(|steps| steps.calls.len() <= MOST_CALLS));
    }
}
