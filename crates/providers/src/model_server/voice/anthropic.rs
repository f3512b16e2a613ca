//! Anthropic's `messages`.

use serde_json::{Value, json};

use super::super::answer::{Input, Piece, Pieces, PlayedAnswer, ToolCall};
use super::super::api::ModelApi;
use super::super::frames::Frames;
use super::super::script::StopReason;
use super::super::troubles::ModelRefusal;
use super::super::usage::ModelTokens;
use super::Speech;

/// The signature of each thought; clients send it back as it is.
const SIGNATURE: &str = "bW9kZWwtc2VydmVy";

pub(super) struct Voice<'a> {
    answer: &'a PlayedAnswer,
    model: &'a str,
    /// The number of the next block.
    index: usize,
}

impl<'a> Voice<'a> {
    pub(super) fn new(speech: &'a Speech<'_>) -> Self {
        Self { answer: speech.answer, model: speech.model, index: 0 }
    }

    fn start(&self, out: &mut Frames, block: &Value) {
        let data =
            json!({ "type": "content_block_start", "index": self.index, "content_block": block });
        out.event(Some("content_block_start"), &data, None);
    }

    fn delta(&self, out: &mut Frames, delta: &Value) {
        let data = json!({ "type": "content_block_delta", "index": self.index, "delta": delta });
        out.event(Some("content_block_delta"), &data, None);
    }

    fn stop(&mut self, out: &mut Frames) {
        let data = json!({ "type": "content_block_stop", "index": self.index });
        out.event(Some("content_block_stop"), &data, None);
        self.index += 1;
    }
}

impl super::Voice for Voice<'_> {
    fn open(&mut self, out: &mut Frames) {
        // The beginning reports the prompt, and the first token of the answer.
        let tokens = self.answer.tokens;
        let reported = ModelTokens { output: tokens.answer().min(1), ..tokens.of_prompt() };
        let mut message = message(self.answer, self.model);
        extend(&mut message, json!({ "content": [], "stop_reason": null, "stop_sequence": null }));
        extend(&mut message, json!({ "usage": reported.anthropic() }));
        let data = json!({ "type": "message_start", "message": message });
        out.event(Some("message_start"), &data, Some(reported));
    }

    fn say(&mut self, out: &mut Frames, pieces: &Pieces) {
        self.start(out, &json!({ "type": "text", "text": "" }));
        for text in &pieces.texts {
            self.delta(out, &json!({ "type": "text_delta", "text": text }));
            out.wait(pieces.delay);
        }
        self.stop(out);
    }

    fn think(&mut self, out: &mut Frames, pieces: &Pieces) {
        self.start(out, &json!({ "type": "thinking", "thinking": "", "signature": "" }));
        for text in &pieces.texts {
            self.delta(out, &json!({ "type": "thinking_delta", "thinking": text }));
            out.wait(pieces.delay);
        }
        self.delta(out, &json!({ "type": "signature_delta", "signature": SIGNATURE }));
        self.stop(out);
    }

    fn call(&mut self, out: &mut Frames, call: &ToolCall, is_closed: bool) {
        self.start(out, &block(call, &json!({})));
        let text = match &call.input {
            Input::Json(_) => call.text(),
            Input::Text(_) => call.json().to_string(),
        };
        self.delta(out, &json!({ "type": "input_json_delta", "partial_json": text }));
        if is_closed {
            self.stop(out);
        }
    }

    fn fail(&mut self, out: &mut Frames, refusal: &ModelRefusal) {
        let data = refusal.body(ModelApi::Anthropic, self.answer.n);
        out.event(Some("error"), &data, None);
    }

    fn close(&mut self, out: &mut Frames) {
        let tokens = self.answer.tokens;
        let data = json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_reason(self.answer), "stop_sequence": null },
            "usage": tokens.anthropic(),
        });
        out.event(Some("message_delta"), &data, Some(tokens));
        out.event(Some("message_stop"), &json!({ "type": "message_stop" }), None);
    }

    fn ping(&mut self, out: &mut Frames) {
        out.event(Some("ping"), &json!({ "type": "ping" }), None);
    }
}

pub(super) fn whole(speech: &Speech<'_>) -> Value {
    let answer = speech.answer;
    let blocks = answer.pieces.iter().filter_map(|piece| match piece {
        Piece::Say(pieces) => Some(json!({ "type": "text", "text": pieces.whole() })),
        Piece::Think(pieces) => Some(json!({
            "type": "thinking", "thinking": pieces.whole(), "signature": SIGNATURE,
        })),
        Piece::Call(call) => Some(block(call, &call.json())),
        _ => None,
    });
    let mut whole = message(answer, speech.model);
    extend(
        &mut whole,
        json!({
            "content": blocks.collect::<Vec<_>>(),
            "stop_reason": stop_reason(answer),
            "stop_sequence": null,
            "usage": answer.tokens.anthropic(),
        }),
    );
    whole
}

fn message(answer: &PlayedAnswer, model: &str) -> Value {
    let id = format!("msg_{:06}", answer.n);
    json!({ "id": id, "type": "message", "role": "assistant", "model": model })
}

fn block(call: &ToolCall, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
}

fn stop_reason(answer: &PlayedAnswer) -> &'static str {
    match answer.stop {
        StopReason::End if answer.has_calls() => "tool_use",
        StopReason::End => "end_turn",
        StopReason::MaxTokens => "max_tokens",
        StopReason::ModelRefusal => "refusal",
    }
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
