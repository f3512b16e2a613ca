//! The typed line: its keys, and the request that it becomes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Screen;
use crate::cli::output::plain;
use crate::cli::top::wish::{Asking, Input, StatusLine, TeamCall, Wish};
use crate::serve::client::PreparedCall;
use crate::wire::{DecisionParam, PromptAgent, PromptParams};

/// Bytes of typed text.
const LONGEST_INPUT: usize = 64 * 1024;

impl Screen {
    /// Takes pasted text, which is never keys.
    pub(in crate::cli::top) fn pasted(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            let room = LONGEST_INPUT.saturating_sub(input.text.len());
            input.text += &text[..text.floor_char_boundary(room)];
        }
    }

    pub(super) fn typed(&mut self, mut input: Input, key: KeyEvent) -> Option<Wish> {
        match (key.code, &input.asking) {
            (KeyCode::Char('y'), Asking::Sure(order, agent)) => {
                let what = format!("{}: {agent}", order.name());
                return Some(Wish::Call(TeamCall { call: order.of(agent), what, card: None }));
            }
            (KeyCode::Esc, _) | (_, Asking::Sure(..)) => return None,
            (KeyCode::Enter, _) if input.text.trim().is_empty() => return None,
            (KeyCode::Enter, asking) => return self.entered(asking, &input.text),
            (KeyCode::Backspace, _) => drop(input.text.pop()),
            (KeyCode::Char('u'), _) if key.modifiers.contains(KeyModifiers::CONTROL) => {
                input.text.clear();
            }
            (KeyCode::Char(typed), _) if input.text.len() < LONGEST_INPUT => input.text.push(typed),
            _ => {}
        }
        self.input = Some(input);
        None
    }

    fn entered(&mut self, asking: &Asking, text: &str) -> Option<Wish> {
        let call = match asking {
            Asking::Sure(..) => return None,
            Asking::Prompt(agent) => {
                self.activity.prompted(agent, text);
                let call = PreparedCall::of::<PromptAgent>(&PromptParams {
                    agent_id: agent.clone().into(),
                    session_id: None,
                    text: Some(text.to_owned()),
                    blocks: None,
                    stream: None,
                });
                TeamCall { call, what: format!("the turn of {agent} ended"), card: None }
            }
            Asking::Answer(card) => {
                let content = text.to_owned();
                let answer = DecisionParam::Answer { content, even_denied: false };
                self.inbox.decide(card, "answered", answer)
            }
            Asking::Denial(card) => {
                let deny = DecisionParam::Deny { message: Some(text.to_owned()) };
                self.inbox.decide(card, "denied", deny)
            }
            Asking::Pattern(card, span) => {
                let allow = span.allowing(Some(text.trim().to_owned()));
                self.inbox.decide(card, &format!("{} allowed {}", plain(text), span.name()), allow)
            }
            Asking::Total(card, unit) => match self.inbox.raise(card, unit, text) {
                Ok(call) => call,
                Err(why) => {
                    self.notice = Some(StatusLine::error(why));
                    return None;
                }
            },
        };
        Some(Wish::Call(call))
    }
}
