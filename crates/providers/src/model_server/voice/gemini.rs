//! Gemini's `generateContent` and `streamGenerateContent`. A call of a tool has no parts: of a half one the
//! arguments are missing.

use serde_json::{Value, json};

use super::super::answer::{Piece, Pieces, PlayedAnswer, ToolCall};
use super::super::api::ModelApi;
use super::super::frames::Frames;
use super::super::script::StopReason;
use super::super::troubles::ModelRefusal;
use super::super::usage::ModelTokens;
use super::Speech;

/// The signature of each call; clients send it back as it is.
const SIGNATURE: &str = "bW9kZWwtc2VydmVy";

pub(super) struct Voice<'a> {
    answer: &'a PlayedAnswer,
    model: &'a str,
}

impl<'a> Voice<'a> {
    pub(super) fn new(speech: &'a Speech<'_>) -> Self {
        Self { answer: speech.answer, model: speech.model }
    }

    /// A chunk; all but the last report the prompt alone.
    fn chunk(&self, out: &mut Frames, part: Value) {
        let tokens = self.answer.tokens.of_prompt();
        let data = response(self.answer, self.model, &[part], None, tokens);
        out.event(None, &data, Some(tokens));
    }
}

impl super::Voice for Voice<'_> {
    fn open(&mut self, _out: &mut Frames) {}

    fn say(&mut self, out: &mut Frames, pieces: &Pieces) {
        for text in &pieces.texts {
            self.chunk(out, json!({ "text": text }));
            out.wait(pieces.delay);
        }
    }

    fn think(&mut self, out: &mut Frames, pieces: &Pieces) {
        for text in &pieces.texts {
            self.chunk(out, json!({ "text": text, "thought": true }));
            out.wait(pieces.delay);
        }
    }

    fn call(&mut self, out: &mut Frames, call: &ToolCall, _is_closed: bool) {
        self.chunk(out, called(call));
    }

    fn fail(&mut self, out: &mut Frames, refusal: &ModelRefusal) {
        out.event(None, &refusal.body(ModelApi::Gemini, self.answer.n), None);
    }

    fn close(&mut self, out: &mut Frames) {
        let (parts, finish) = ([json!({ "text": "" })], finish_reason(self.answer));
        let tokens = self.answer.tokens;
        let data = response(self.answer, self.model, &parts, Some(finish), tokens);
        out.event(None, &data, Some(tokens));
    }
}

pub(super) fn whole(speech: &Speech<'_>) -> Value {
    let answer = speech.answer;
    let parts = answer.pieces.iter().filter_map(|piece| match piece {
        Piece::Say(pieces) => Some(json!({ "text": pieces.whole() })),
        Piece::Think(pieces) => Some(json!({ "text": pieces.whole(), "thought": true })),
        Piece::Call(call) => Some(called(call)),
        _ => None,
    });
    let (parts, finish) = (parts.collect::<Vec<_>>(), finish_reason(answer));
    response(answer, speech.model, &parts, Some(finish), answer.tokens)
}

fn response(
    answer: &PlayedAnswer,
    model: &str,
    parts: &[Value],
    finish: Option<&str>,
    tokens: ModelTokens,
) -> Value {
    let content = json!({ "parts": parts, "role": "model" });
    let candidate = match finish {
        Some(finish) => json!({ "content": content, "finishReason": finish, "index": 0 }),
        None => json!({ "content": content, "index": 0 }),
    };
    json!({
        "candidates": [candidate],
        "usageMetadata": tokens.gemini(),
        "modelVersion": model,
        "responseId": format!("resp_{:06}", answer.n),
    })
}

fn called(call: &ToolCall) -> Value {
    json!({
        "functionCall": { "name": call.name, "args": call.json() },
        "thoughtSignature": SIGNATURE,
    })
}

fn finish_reason(answer: &PlayedAnswer) -> &'static str {
    match answer.stop {
        StopReason::End if answer.calls().any(|call| call.half) => "MALFORMED_FUNCTION_CALL",
        StopReason::End => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::ModelRefusal => "SAFETY",
    }
}
