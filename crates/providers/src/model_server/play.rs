//! Chooses the rule for a request, and makes its answer.

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::answer::{Input, Piece, Pieces, PlayedAnswer, ToolCall};
use super::api::ModelApi;
use super::asked::{ModelAsk, Tool, ToolForm};
use super::script::{CallStep, ModelScript, PlayedRule, PlayedStep, StopReason, Texts};
use super::troubles::{ModelRefusal, ModelTrouble};
use super::{ids, schema};
use crate::script::{Captures, Vars};

/// Bytes of the texts of one answer: a text may be repeated, and names in it may stand for long ones.
const LONGEST_ANSWER: usize = 64 << 20;

/// A script, and how often its rules have matched.
pub(super) struct Play {
    script: ModelScript,
    matched: Mutex<Vec<u64>>,
}

impl Play {
    pub(super) fn new(script: ModelScript) -> Self {
        let matched = Mutex::new(vec![0; script.rules.len()]);
        Self { script, matched }
    }

    pub(super) fn script(&self) -> &ModelScript {
        &self.script
    }

    /// The answer to the call of number `n`.
    pub(super) fn answer(&self, api: ModelApi, asked: &ModelAsk, n: u64) -> PlayedAnswer {
        let Some((at, groups)) = self.rule(api, asked, n) else {
            return self.built_in(asked, n);
        };
        let rule = &self.script.rules[at];
        let tokens = rule.tokens.unwrap_or(self.script.server.tokens);
        let Some(steps) = steps_of(rule, asked.round) else {
            let answer = self.built_in(asked, n);
            return PlayedAnswer { rule: Some(at + 1), tokens, ..answer };
        };
        let mut vars = Vars::default();
        vars.set("prompt", &asked.prompt);
        vars.set("result", &asked.result);
        vars.set("model", &asked.model);
        vars.set("n", n.to_string());
        vars.extend(groups);
        let mut made = Made {
            answer: PlayedAnswer {
                n,
                rule: Some(at + 1),
                pieces: Vec::new(),
                tokens,
                stop: StopReason::End,
                cut_after: None,
            },
            asked,
            vars,
            length: 0,
            calls: 0,
        };
        for step in steps {
            if let Err(refusal) = made.step(step) {
                made.answer.pieces = vec![Piece::Fail(refusal)];
                break;
            }
        }
        made.answer
    }

    /// The first rule that matches, with the groups of its pattern.
    fn rule(&self, api: ModelApi, asked: &ModelAsk, n: u64) -> Option<(usize, Captures)> {
        let mut matched = self.matched.lock();
        self.script.rules.iter().zip(matched.iter_mut()).enumerate().find_map(
            |(at, (rule, times))| {
                let when = &rule.when;
                let is_wanted = when.api.is_none_or(|it| it == api)
                    && when.call.is_none_or(|it| it == n)
                    && when.times.is_none_or(|most| *times < most)
                    && when.tools.is_none_or(|it| it != asked.tools.is_empty())
                    && when.json == asked.json.is_some()
                    && when.model.as_ref().is_none_or(|it| it.first(&asked.model).is_some());
                if !is_wanted {
                    return None;
                }
                let groups = match &when.prompt {
                    Some(pattern) => pattern.first(&asked.prompt)?,
                    None => Captures::new(),
                };
                *times += 1;
                Some((at, groups))
            },
        )
    }

    /// The answer that ends whatever was asked: JSON of the schema, the call that is forced, or "done".
    fn built_in(&self, asked: &ModelAsk, n: u64) -> PlayedAnswer {
        let say = |text: String| Piece::Say(Pieces { texts: vec![text], delay: Duration::ZERO });
        let forced = asked.forced.as_ref();
        let forced = forced.and_then(|name| asked.tools.iter().find(|tool| tool.name == *name));
        let piece = match (&asked.json, forced) {
            (Some(Value::Null), _) => say("{}".to_owned()),
            (Some(schema), _) => say(schema::least(schema).to_string()),
            (None, Some(tool)) if asked.round == 0 => Piece::Call(ToolCall {
                id: ids::call(n, 0),
                name: tool.name.clone(),
                namespace: tool.namespace.clone(),
                input: match &tool.takes {
                    ToolForm::Json(schema) => Input::Json(schema::fit(&json!({}), schema)),
                    ToolForm::Text => Input::Text(self.script.server.done.clone()),
                },
                half: false,
            }),
            (None, _) => say(self.script.server.done.clone()),
        };
        PlayedAnswer {
            n,
            rule: None,
            pieces: vec![piece],
            tokens: self.script.server.tokens,
            stop: StopReason::End,
            cut_after: None,
        }
    }
}

/// The steps of a round: behind the last ones these again, unless they call tools.
fn steps_of(rule: &PlayedRule, round: usize) -> Option<&[PlayedStep]> {
    let last = rule.answers.last()?;
    let again = || (!last.iter().any(calls)).then_some(last);
    rule.answers.get(round).or_else(again).map(Vec::as_slice)
}

fn calls(step: &PlayedStep) -> bool {
    matches!(step, PlayedStep::Call(_) | PlayedStep::OneOf(_))
}

/// An answer that is being made.
struct Made<'a> {
    answer: PlayedAnswer,
    asked: &'a ModelAsk,
    vars: Vars,
    /// Bytes of its texts.
    length: usize,
    calls: usize,
}

impl Made<'_> {
    fn step(&mut self, step: &PlayedStep) -> Result<(), ModelRefusal> {
        let piece = match step {
            PlayedStep::Say(texts) => Piece::Say(self.texts(texts)?),
            PlayedStep::Think(texts) => Piece::Think(self.texts(texts)?),
            PlayedStep::Call(call) => match self.call(std::slice::from_ref(call))? {
                Some(call) => Piece::Call(call),
                None => return Ok(()),
            },
            PlayedStep::OneOf(calls) => match self.call(calls)? {
                Some(call) => Piece::Call(call),
                None => return Ok(()),
            },
            PlayedStep::Usage(tokens) => {
                self.answer.tokens = *tokens;
                return Ok(());
            }
            PlayedStep::Stop(reason) => {
                self.answer.stop = *reason;
                return Ok(());
            }
            PlayedStep::CutAfter(bytes) => {
                self.answer.cut_after = Some(*bytes);
                return Ok(());
            }
            PlayedStep::Error(refusal) => Piece::Fail(ModelRefusal {
                message: refusal.message.as_ref().map(|text| self.vars.expand(text)),
                ..refusal.clone()
            }),
            PlayedStep::Wait(time) => Piece::Wait(*time),
            PlayedStep::Ping => Piece::Ping,
            PlayedStep::Raw(text) => Piece::Raw(self.expand(text)?),
            PlayedStep::Cut => Piece::Cut,
            PlayedStep::Hang => Piece::Hang,
        };
        self.answer.pieces.push(piece);
        Ok(())
    }

    fn texts(&mut self, texts: &Texts) -> Result<Pieces, ModelRefusal> {
        let mut pieces = Vec::new();
        for _ in 0..texts.repeat {
            for piece in &texts.pieces {
                pieces.push(self.expand(piece)?);
            }
        }
        Ok(Pieces { texts: pieces, delay: texts.delay })
    }

    fn expand(&mut self, text: &str) -> Result<String, ModelRefusal> {
        let text = self.vars.expand(text);
        self.length += text.len();
        if self.length > LONGEST_ANSWER {
            let most = LONGEST_ANSWER >> 20;
            let message = format!("model server: an answer of the script has over {most} MiB");
            return Err(ModelRefusal::new(ModelTrouble::Server, message));
        }
        Ok(text)
    }

    /// The first of the calls whose tool is offered.
    fn call(&mut self, steps: &[CallStep]) -> Result<Option<ToolCall>, ModelRefusal> {
        let asked = self.asked;
        let found = steps.iter().find_map(|step| Some((step, tool_of(&asked.tools, step)?)));
        let Some((step, tool)) = found else {
            if steps.iter().all(|step| step.optional) {
                return Ok(None);
            }
            return Err(self.no_tool(steps));
        };
        let input = match (&tool.takes, &step.input) {
            (ToolForm::Text, Some(input)) => Input::Text(self.vars.expand(input)),
            (ToolForm::Text, None) => Input::Text(self.vars.expand_json(&step.args).to_string()),
            (ToolForm::Json(schema), _) => {
                Input::Json(schema::fit(&self.vars.expand_json(&step.args), schema))
            }
        };
        let id = ids::call(self.answer.n, self.calls);
        self.calls += 1;
        let (name, namespace) = (tool.name.clone(), tool.namespace.clone());
        Ok(Some(ToolCall { id, name, namespace, input, half: step.half }))
    }

    fn no_tool(&self, steps: &[CallStep]) -> ModelRefusal {
        let wanted = steps.iter().flat_map(|step| &step.names).map(|name| name.written.as_str());
        let offered = self.asked.tools.iter().map(|tool| tool.name.as_str());
        let message = format!(
            "model server: the script calls one of `{}`, and the request offers `{}`",
            wanted.collect::<Vec<_>>().join("`, `"),
            offered.collect::<Vec<_>>().join("`, `"),
        );
        ModelRefusal::new(ModelTrouble::Invalid, message)
    }
}

/// The offered tool that a step names: names that stand first come first.
fn tool_of<'a>(tools: &'a [Tool], step: &CallStep) -> Option<&'a Tool> {
    step.names
        .iter()
        .find_map(|name| tools.iter().find(|tool| name.pattern.first(&tool.name).is_some()))
}
