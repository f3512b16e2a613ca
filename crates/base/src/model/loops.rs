//! Repetitions of an agent: its steps, and the loops among them.

use std::sync::Arc;

use super::named::named;
use super::{SessionKey, SessionMode, TimestampMs};

named! {
    /// The reaction to an agent that goes in a loop.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub enum OnLoop {
        #[default]
        Report = "report",
        /// Its next prompt says what repeats.
        Nudge = "nudge",
        /// Its turn is cancelled.
        Cancel = "cancel",
        /// The agent is stopped.
        Stop = "stop",
        /// Nothing is looked for.
        Off = "off",
    }
}

/// One step of a session; equal steps have equal hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionStep {
    /// The agent was prompted.
    Asked(u64),
    /// A tool call ended: what was called, and what came of it.
    Called {
        /// The hash of the kind and the input.
        call: u64,
        /// The hash of the result, and of whether the call completed.
        result: u64,
        /// The title for people, at most 200 bytes.
        title: Arc<str>,
    },
    /// A tool call ended whose result is not known.
    CalledUnseen,
    /// The agent said a message.
    Said(u64),
}

named! {
    /// The steps that repeat.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum LoopKind {
        /// One tool call, with one result.
        Call = "call",
        /// Several, in the same order.
        Cycle = "cycle",
        Message = "message",
    }
}

/// A loop of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// Whether one call, a cycle of calls or a message repeats.
    pub kind: LoopKind,
    /// How often it came.
    pub times: u64,
    /// Titles of the calls; empty for a message.
    pub calls: Vec<Arc<str>>,
    /// The reaction; None: it was only noted.
    pub action: Option<OnLoop>,
}

impl Loop {
    /// In one sentence without its end.
    pub fn describe(&self) -> String {
        let times = self.times;
        let calls: Vec<_> = self.calls.iter().map(|title| format!("`{title}`")).collect();
        match self.kind {
            LoopKind::Call => {
                format!(
                    "the same tool call with the same result, {times} times: {}",
                    calls.concat()
                )
            }
            LoopKind::Cycle => format!(
                "the same {} tool calls with the same results, {times} times over: {}",
                calls.len(),
                calls.join(", ")
            ),
            LoopKind::Message => format!("the same message, {times} times"),
        }
    }
}

/// A loop as it is published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopReport {
    /// The session that goes in the loop.
    pub key: SessionKey,
    /// The mode of the session, for the filters of clients.
    pub mode: SessionMode,
    /// The loop, with the reaction to it.
    pub found: Loop,
    /// The time when it was found.
    pub timestamp_ms: TimestampMs,
}
