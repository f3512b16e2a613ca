//! Owns the last turn of each agent, from the stream and from the journal, and what the journal is to be asked of it.
//! Knows no terminal and no connection.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::turn::{ChangedLines, LastTurn, first_line};
use crate::acp::{self, CallUpdate, ContentBlock};
use crate::line::lenient;
use crate::wire::{Diff, Event, GetDiffParams, ListEventsParams, TurnLine};

/// Agents whose turns are kept.
const MOST_AGENTS: usize = 1000;

/// Agents, from the first that is shown, whose tasks and changes are asked for.
const MOST_ASKED: usize = 50;

/// How often the journal is asked for the prompt of a turn that it does not have yet.
const MOST_TRIES: u8 = 5;

/// Milliseconds between two questions about one turn.
const BETWEEN: u64 = 2000;

/// The last turns, by agent.
#[derive(Default)]
pub(super) struct Activity {
    turns: HashMap<String, LastTurn>,
    /// The team has no journal.
    is_alone: bool,
}

/// The part of an `update` of ACP that says what an agent does, tool calls aside.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StepUpdate {
    #[serde(rename = "sessionUpdate", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    content: ContentBlock,
}

/// An agent as it is shown, and whether a turn of it runs.
pub(super) type AgentRow = (String, bool);

impl Activity {
    pub(super) fn of(&self, agent: &str) -> Option<&LastTurn> {
        self.turns.get(agent)
    }

    fn turn_mut(&mut self, agent: &str) -> Option<&mut LastTurn> {
        if self.turns.len() >= MOST_AGENTS && !self.turns.contains_key(agent) {
            return None;
        }
        Some(self.turns.entry(agent.to_owned()).or_default())
    }

    /// The turn that goes on; a new one, if the last has ended. True if it is told of for the first time.
    fn running(&mut self, agent: &str) -> Option<(&mut LastTurn, bool)> {
        let turn = self.turn_mut(agent)?;
        if turn.outcome.is_some() {
            *turn = std::mem::take(turn).next();
        }
        let is_first = !std::mem::replace(&mut turn.is_live, true);
        Some((turn, is_first))
    }

    /// Takes the text of a prompt that was sent from here.
    pub(super) fn prompted(&mut self, agent: &str, text: &str) {
        if self.of(agent).is_none_or(|turn| turn.step().is_none())
            && let Some((turn, _)) = self.running(agent)
        {
            turn.task = first_line(text);
        }
    }

    /// Takes an `update` of a session; true if a turn begins with it.
    pub(super) fn update(&mut self, agent: &str, update: &Value, now_ms: u64) -> bool {
        let StepUpdate { kind, content } = acp::read(update);
        let kind = kind.unwrap_or_default();
        let is_step = ["agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "plan"];
        if !is_step.contains(&&*kind) && !["tool_call", "tool_call_update"].contains(&&*kind) {
            return false;
        }
        let Some((turn, is_first)) = self.running(agent) else { return false };
        match &*kind {
            "agent_message_chunk" => turn.does("writes", now_ms),
            "agent_thought_chunk" | "plan" => turn.does("thinks", now_ms),
            "user_message_chunk" => {
                let text = content.text.unwrap_or_default();
                if turn.prompt.is_none() && is_first {
                    turn.task = first_line(&text);
                }
            }
            _ => {
                let CallUpdate { tool_call_id, title, kind, status, .. } = acp::read(update);
                let id = match tool_call_id {
                    Value::String(id) => id,
                    id => id.to_string(),
                };
                let status = status.unwrap_or_default();
                if matches!(&*status, "completed" | "failed" | "cancelled") {
                    turn.call_ended(&id, now_ms);
                } else {
                    turn.call(id, title.as_deref(), kind.as_deref(), now_ms);
                }
            }
        }
        is_first && &*kind != "user_message_chunk"
    }

    /// Takes a `turn` line: it has ended.
    pub(super) fn ended(&mut self, line: &TurnLine<'_>) {
        let Some((turn, _)) = self.running(&line.agent_id) else { return };
        turn.named = Some((line.session_id.to_string(), line.turn));
        turn.end(&line.stop_reason, line.reason.as_deref());
    }

    /// Takes events from before the view was opened, oldest first: what is known of later turns stays.
    pub(super) fn earlier(&mut self, events: &[Event<'_>]) {
        for (agent, found) in turns_of(events) {
            if let Some(turn) = self.turn_mut(&agent).filter(|turn| turn.prompt.is_none()) {
                turn.learn(found);
            }
        }
    }

    /// The next question for the prompt of an agent, of those that are shown.
    pub(super) fn wanted_prompt(
        &mut self,
        agents: &[AgentRow],
        now_ms: u64,
    ) -> Option<(String, ListEventsParams)> {
        if self.is_alone {
            return None;
        }
        let wanted = agents.iter().take(MOST_ASKED).find(|(agent, runs)| {
            let Some(turn) = self.turns.get(agent) else { return true };
            let is_known = turn.prompt.is_some() && turn.outcome.is_none() == *runs;
            let most = if *runs || turn.is_live { MOST_TRIES } else { 1 };
            !is_known && turn.tries < most && is_due(turn.prompt_asked, now_ms)
        });
        let agent = wanted?.0.clone();
        self.turn_mut(&agent)?.prompt_asked = Some(now_ms);
        let types = ["message.user", "turn"].map(str::to_owned).to_vec();
        let asked = ListEventsParams {
            agent_id: Some(agent.clone().into()),
            types: Some(types),
            last: true,
            limit: Some(4),
            ..ListEventsParams::default()
        };
        Some((agent, asked))
    }

    /// Takes the answer about an agent's prompt, None: there is no journal. True if it is that of the turn now.
    pub(super) fn take_prompt(&mut self, agent: &str, events: Option<&[Event<'_>]>) -> bool {
        let Some(events) = events else {
            self.is_alone = true;
            return false;
        };
        let found = turns_of(events).remove(agent);
        let Some(turn) = self.turn_mut(agent) else { return false };
        let is_known = found.is_some_and(|found| turn.learn(found));
        turn.tries += u8::from(!is_known);
        is_known
    }

    /// The next question for what a turn changed, of the agents that are shown.
    pub(super) fn wanted_changes(
        &mut self,
        agents: &[AgentRow],
        now_ms: u64,
    ) -> Option<(String, GetDiffParams)> {
        if self.is_alone {
            return None;
        }
        agents.iter().take(MOST_ASKED).find_map(|(agent, _)| {
            let turn = self.turns.get_mut(agent)?;
            if !turn.is_dirty || !is_due(turn.changes_asked, now_ms) {
                return None;
            }
            let params = turn.changes(agent)?;
            (turn.changes_asked, turn.is_dirty) = (Some(now_ms), false);
            Some((agent.clone(), params))
        })
    }

    /// Takes what the turn of this number changed; there may be a later one.
    pub(super) fn take_changes(&mut self, agent: &str, number: Option<u64>, diff: &Diff) {
        let Some(turn) = self.turns.get_mut(agent) else { return };
        if turn.named.as_ref().map(|(_, number)| *number) == number {
            turn.changed = Some(ChangedLines::of(diff));
        }
    }
}

/// The last turn of each agent in events, oldest first; only such whose prompt is among them.
fn turns_of(events: &[Event<'_>]) -> HashMap<String, LastTurn> {
    let mut turns: HashMap<String, LastTurn> = HashMap::new();
    for event in events {
        let Some(agent) = event.agent_id.as_deref() else { continue };
        let turn = turns.remove(agent).unwrap_or_default().event(event);
        turns.insert(agent.to_owned(), turn);
    }
    turns.retain(|_, turn| turn.prompt.is_some());
    turns
}

fn is_due(asked: Option<u64>, now_ms: u64) -> bool {
    asked.is_none_or(|asked| now_ms.saturating_sub(asked) >= BETWEEN)
}
