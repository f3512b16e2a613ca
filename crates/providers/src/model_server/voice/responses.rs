//! OpenAI's `responses`.

use serde_json::{Value, json};

use super::super::answer::{Input, Piece, Pieces, PlayedAnswer, ToolCall};
use super::super::frames::Frames;
use super::super::ids;
use super::super::script::StopReason;
use super::super::troubles::ModelRefusal;
use super::super::usage::ModelTokens;
use super::Speech;

pub(super) struct Voice<'a> {
    answer: &'a PlayedAnswer,
    model: &'a str,
    /// The number of the next event.
    sequence: u64,
    /// The items that are complete.
    items: Vec<Value>,
}

impl<'a> Voice<'a> {
    pub(super) fn new(speech: &'a Speech<'_>) -> Self {
        Self { answer: speech.answer, model: speech.model, sequence: 0, items: Vec::new() }
    }

    fn event(&mut self, out: &mut Frames, name: &str, more: Value, reported: Option<ModelTokens>) {
        let mut data = json!({ "type": name, "sequence_number": self.sequence });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        out.event(Some(name), &data, reported);
        self.sequence += 1;
    }

    /// An event about the item that is being made.
    fn of_item(&mut self, out: &mut Frames, name: &str, id: &str, more: Value) {
        let mut data = json!({ "item_id": id, "output_index": self.items.len() });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        self.event(out, name, data, None);
    }

    fn added(&mut self, out: &mut Frames, item: &Value) {
        let data = json!({ "output_index": self.items.len(), "item": item });
        self.event(out, "response.output_item.added", data, None);
    }

    fn done(&mut self, out: &mut Frames, item: Value) {
        let data = json!({ "output_index": self.items.len(), "item": item });
        self.event(out, "response.output_item.done", data, None);
        self.items.push(item);
    }

    fn response(&self, status: &str) -> Value {
        response(self.answer, self.model, status, &self.items, None)
    }
}

impl super::Voice for Voice<'_> {
    fn open(&mut self, out: &mut Frames) {
        for name in ["response.created", "response.in_progress"] {
            let data = json!({ "response": self.response("in_progress") });
            self.event(out, name, data, None);
        }
    }

    fn say(&mut self, out: &mut Frames, pieces: &Pieces) {
        let (at, whole) = (self.items.len(), pieces.whole());
        let id = item_id("msg", self.answer, at);
        self.added(out, &message(self.answer, at, "in_progress", &[]));
        let part = json!({ "content_index": 0, "part": text_part("") });
        self.of_item(out, "response.content_part.added", &id, part);
        for text in &pieces.texts {
            let delta = json!({ "content_index": 0, "delta": text, "logprobs": [] });
            self.of_item(out, "response.output_text.delta", &id, delta);
            out.wait(pieces.delay);
        }
        let done = json!({ "content_index": 0, "text": whole, "logprobs": [] });
        self.of_item(out, "response.output_text.done", &id, done);
        let part = json!({ "content_index": 0, "part": text_part(&whole) });
        self.of_item(out, "response.content_part.done", &id, part);
        self.done(out, message(self.answer, at, "completed", &[text_part(&whole)]));
    }

    fn think(&mut self, out: &mut Frames, pieces: &Pieces) {
        let (at, whole) = (self.items.len(), pieces.whole());
        let id = item_id("rs", self.answer, at);
        self.added(out, &reasoning(self.answer, at, &[]));
        let part = json!({ "summary_index": 0, "part": summary_part("") });
        self.of_item(out, "response.reasoning_summary_part.added", &id, part);
        for text in &pieces.texts {
            let delta = json!({ "summary_index": 0, "delta": text });
            self.of_item(out, "response.reasoning_summary_text.delta", &id, delta);
            out.wait(pieces.delay);
        }
        let done = json!({ "summary_index": 0, "text": whole });
        self.of_item(out, "response.reasoning_summary_text.done", &id, done);
        let part = json!({ "summary_index": 0, "part": summary_part(&whole) });
        self.of_item(out, "response.reasoning_summary_part.done", &id, part);
        self.done(out, reasoning(self.answer, at, &[summary_part(&whole)]));
    }

    fn call(&mut self, out: &mut Frames, call: &ToolCall, is_closed: bool) {
        let at = self.items.len();
        let id = call_id(call, self.answer, at);
        let (name, member) = match call.input {
            Input::Json(_) => ("response.function_call_arguments", "arguments"),
            Input::Text(_) => ("response.custom_tool_call_input", "input"),
        };
        self.added(out, &called(call, self.answer, at, "in_progress", ""));
        self.of_item(out, &format!("{name}.delta"), &id, json!({ "delta": call.text() }));
        if !is_closed {
            return;
        }
        self.of_item(out, &format!("{name}.done"), &id, json!({ member: call.text() }));
        self.done(out, finished(call, self.answer, at));
    }

    fn fail(&mut self, out: &mut Frames, refusal: &ModelRefusal) {
        let mut response = self.response("failed");
        if let Value::Object(response) = &mut response {
            response.insert("error".to_owned(), refusal.failed());
        }
        self.event(out, "response.failed", json!({ "response": response }), None);
    }

    fn close(&mut self, out: &mut Frames) {
        let (name, status) = match self.answer.stop {
            StopReason::End => ("response.completed", "completed"),
            _ => ("response.incomplete", "incomplete"),
        };
        let tokens = self.answer.tokens;
        let response = response(self.answer, self.model, status, &self.items, Some(tokens));
        self.event(out, name, json!({ "response": response }), Some(tokens));
    }
}

pub(super) fn whole(speech: &Speech<'_>) -> Value {
    let answer = speech.answer;
    let mut items = Vec::new();
    for piece in &answer.pieces {
        let at = items.len();
        items.push(match piece {
            Piece::Say(pieces) => message(answer, at, "completed", &[text_part(&pieces.whole())]),
            Piece::Think(pieces) => reasoning(answer, at, &[summary_part(&pieces.whole())]),
            Piece::Call(call) => finished(call, answer, at),
            _ => continue,
        });
    }
    let status = if answer.stop == StopReason::End { "completed" } else { "incomplete" };
    response(answer, speech.model, status, &items, Some(answer.tokens))
}

fn response(
    answer: &PlayedAnswer,
    model: &str,
    status: &str,
    items: &[Value],
    tokens: Option<ModelTokens>,
) -> Value {
    let why = match answer.stop {
        _ if status != "incomplete" => Value::Null,
        StopReason::ModelRefusal => json!({ "reason": "content_filter" }),
        _ => json!({ "reason": "max_output_tokens" }),
    };
    json!({
        "id": format!("resp_{:06}", answer.n),
        "object": "response",
        "created_at": ids::CREATED,
        "status": status,
        "error": null,
        "incomplete_details": why,
        "instructions": null,
        "metadata": {},
        "model": model,
        "output": items,
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": tokens.map(ModelTokens::responses),
    })
}

fn item_id(kind: &str, answer: &PlayedAnswer, at: usize) -> String {
    format!("{kind}_{:06}_{at}", answer.n)
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

fn message(answer: &PlayedAnswer, at: usize, status: &str, content: &[Value]) -> Value {
    json!({
        "id": item_id("msg", answer, at), "type": "message", "status": status,
        "role": "assistant", "content": content,
    })
}

fn reasoning(answer: &PlayedAnswer, at: usize, summary: &[Value]) -> Value {
    json!({
        "id": item_id("rs", answer, at), "type": "reasoning", "summary": summary,
        "encrypted_content": null,
    })
}

fn call_id(call: &ToolCall, answer: &PlayedAnswer, at: usize) -> String {
    let kind = if matches!(call.input, Input::Json(_)) { "fc" } else { "ctc" };
    item_id(kind, answer, at)
}

fn finished(call: &ToolCall, answer: &PlayedAnswer, at: usize) -> Value {
    let status = if call.half { "incomplete" } else { "completed" };
    called(call, answer, at, status, &call.text())
}

/// A call, with this text as its input.
fn called(call: &ToolCall, answer: &PlayedAnswer, at: usize, status: &str, text: &str) -> Value {
    let (kind, member) = match call.input {
        Input::Json(_) => ("function_call", "arguments"),
        Input::Text(_) => ("custom_tool_call", "input"),
    };
    let mut item = json!({
        "id": call_id(call, answer, at), "type": kind, "status": status,
        "call_id": call.id, "name": call.name, member: text,
    });
    if let (Value::Object(item), Some(namespace)) = (&mut item, &call.namespace) {
        item.insert("namespace".to_owned(), namespace.clone().into());
    }
    item
}
