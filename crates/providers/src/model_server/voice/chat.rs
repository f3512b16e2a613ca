//! OpenAI's `chat/completions`. Thoughts are `reasoning_content`, as servers beside OpenAI's send them.

use serde_json::{Map, Value, json};

use super::super::answer::{Input, Pieces, PlayedAnswer, ToolCall};
use super::super::api::ModelApi;
use super::super::frames::Frames;
use super::super::ids;
use super::super::script::{ChatUsage, StopReason};
use super::super::troubles::ModelRefusal;
use super::Speech;

pub(super) struct Voice<'a> {
    answer: &'a PlayedAnswer,
    model: &'a str,
    has_usage: bool,
    /// The number of the next call of a tool.
    calls: usize,
}

impl<'a> Voice<'a> {
    pub(super) fn new(speech: &'a Speech<'_>) -> Self {
        let has_usage = match speech.chat_usage {
            ChatUsage::Asked => speech.wants_usage,
            ChatUsage::Always => true,
            ChatUsage::Never => false,
        };
        Self { answer: speech.answer, model: speech.model, has_usage, calls: 0 }
    }

    fn chunk(&self, choices: Value) -> Map<String, Value> {
        let mut chunk = head(self.answer, self.model, "chat.completion.chunk");
        chunk.insert("choices".to_owned(), choices);
        if self.has_usage {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        chunk
    }

    fn delta(&self, out: &mut Frames, delta: &Value, finish: Option<&str>) {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        out.event(None, &Value::Object(self.chunk(json!([choice]))), None);
    }

    fn texts(&self, out: &mut Frames, member: &str, pieces: &Pieces) {
        for text in &pieces.texts {
            self.delta(out, &json!({ member: text }), None);
            out.wait(pieces.delay);
        }
    }
}

impl super::Voice for Voice<'_> {
    fn open(&mut self, out: &mut Frames) {
        self.delta(out, &json!({ "role": "assistant", "content": "" }), None);
    }

    fn say(&mut self, out: &mut Frames, pieces: &Pieces) {
        self.texts(out, "content", pieces);
    }

    fn think(&mut self, out: &mut Frames, pieces: &Pieces) {
        self.texts(out, "reasoning_content", pieces);
    }

    fn call(&mut self, out: &mut Frames, call: &ToolCall, _is_closed: bool) {
        let mut begun = called(call, "");
        begun.insert("index".to_owned(), self.calls.into());
        self.delta(out, &json!({ "tool_calls": [begun] }), None);
        let (kind, member) = form(call);
        let more = json!({ "index": self.calls, kind: { member: call.text() } });
        self.delta(out, &json!({ "tool_calls": [more] }), None);
        self.calls += 1;
    }

    fn fail(&mut self, out: &mut Frames, refusal: &ModelRefusal) {
        out.event(None, &refusal.body(ModelApi::OpenAiChat, self.answer.n), None);
    }

    fn close(&mut self, out: &mut Frames) {
        self.delta(out, &json!({}), Some(finish_reason(self.answer)));
        if self.has_usage {
            let mut chunk = self.chunk(json!([]));
            chunk.insert("usage".to_owned(), self.answer.tokens.chat());
            out.event(None, &Value::Object(chunk), Some(self.answer.tokens));
        }
        out.raw("data: [DONE]\n\n");
    }
}

pub(super) fn whole(speech: &Speech<'_>) -> Value {
    let answer = speech.answer;
    let calls: Vec<_> = answer.calls().map(|call| called(call, &call.text())).collect();
    let (said, thought) = (answer.said(), answer.thought());
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let content = if said.is_empty() && !calls.is_empty() { Value::Null } else { said.into() };
    message.insert("content".to_owned(), content);
    message.insert("refusal".to_owned(), Value::Null);
    if !thought.is_empty() {
        message.insert("reasoning_content".to_owned(), thought.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), json!(calls));
    }
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer),
    });
    let mut whole = head(answer, speech.model, "chat.completion");
    whole.insert("choices".to_owned(), json!([choice]));
    whole.insert("usage".to_owned(), answer.tokens.chat());
    Value::Object(whole)
}

fn head(answer: &PlayedAnswer, model: &str, object: &str) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("id".to_owned(), format!("chatcmpl-{:06}", answer.n).into());
    head.insert("object".to_owned(), object.into());
    head.insert("created".to_owned(), ids::CREATED.into());
    head.insert("model".to_owned(), model.into());
    head
}

/// A call, as a member of `tool_calls`, with this text as its input.
fn called(call: &ToolCall, text: &str) -> Map<String, Value> {
    let (kind, member) = form(call);
    let mut called = Map::new();
    called.insert("id".to_owned(), call.id.clone().into());
    called.insert("type".to_owned(), kind.into());
    called.insert(kind.to_owned(), json!({ "name": call.name, member: text }));
    called
}

/// The kind of a call, and the member that has its input.
fn form(call: &ToolCall) -> (&'static str, &'static str) {
    match call.input {
        Input::Json(_) => ("function", "arguments"),
        Input::Text(_) => ("custom", "input"),
    }
}

fn finish_reason(answer: &PlayedAnswer) -> &'static str {
    match answer.stop {
        StopReason::End if answer.has_calls() => "tool_calls",
        StopReason::End => "stop",
        StopReason::MaxTokens => "length",
        StopReason::ModelRefusal => "content_filter",
    }
}
