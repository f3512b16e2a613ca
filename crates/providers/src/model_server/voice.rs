//! The form that each API gives an answer, streamed or whole.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

use super::answer::{Piece, Pieces, PlayedAnswer, ToolCall};
use super::api::ModelApi;
use super::frames::{Form, Frame, Frames};
use super::script::ChatUsage;
use super::troubles::ModelRefusal;

/// One answer in the form of one API.
trait Voice {
    fn open(&mut self, out: &mut Frames);
    fn say(&mut self, out: &mut Frames, pieces: &Pieces);
    fn think(&mut self, out: &mut Frames, pieces: &Pieces);
    /// A call of a tool; without `is_closed` the stream breaks within it.
    fn call(&mut self, out: &mut Frames, call: &ToolCall, is_closed: bool);
    /// An error in the middle of the stream, which ends with it.
    fn fail(&mut self, out: &mut Frames, refusal: &ModelRefusal);
    fn close(&mut self, out: &mut Frames);

    fn ping(&mut self, out: &mut Frames) {
        out.comment();
    }
}

/// An answer, with all that its form depends on.
pub(super) struct Speech<'a> {
    pub(super) api: ModelApi,
    pub(super) answer: &'a PlayedAnswer,
    pub(super) model: &'a str,
    /// Whether the request asks for the usage of a stream of `chat/completions`.
    pub(super) wants_usage: bool,
    pub(super) chat_usage: ChatUsage,
}

impl Speech<'_> {
    pub(super) fn streamed(&self, form: Form) -> Vec<Frame> {
        match self.api {
            ModelApi::Anthropic => play(&mut anthropic::Voice::new(self), self.answer, form),
            ModelApi::OpenAiChat => play(&mut chat::Voice::new(self), self.answer, form),
            ModelApi::OpenAiResponses => play(&mut responses::Voice::new(self), self.answer, form),
            ModelApi::Gemini => play(&mut gemini::Voice::new(self), self.answer, form),
        }
    }

    /// The whole answer, which reports all of its tokens.
    pub(super) fn whole(&self) -> Value {
        match self.api {
            ModelApi::Anthropic => anthropic::whole(self),
            ModelApi::OpenAiChat => chat::whole(self),
            ModelApi::OpenAiResponses => responses::whole(self),
            ModelApi::Gemini => gemini::whole(self),
        }
    }
}

fn play(voice: &mut dyn Voice, answer: &PlayedAnswer, form: Form) -> Vec<Frame> {
    let mut out = Frames::new(form);
    voice.open(&mut out);
    let mut pieces = answer.pieces.iter().peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::Say(said) => voice.say(&mut out, said),
            Piece::Think(thought) => voice.think(&mut out, thought),
            Piece::Call(call) => {
                let breaks = matches!(pieces.peek(), Some(Piece::Cut | Piece::Hang));
                voice.call(&mut out, call, !(call.half && breaks));
            }
            Piece::Wait(time) => out.wait(*time),
            Piece::Ping => voice.ping(&mut out),
            Piece::Raw(text) => out.raw(text),
            Piece::Fail(refusal) => {
                voice.fail(&mut out, refusal);
                out.end();
                return out.into_frames();
            }
            Piece::Cut => {
                out.cut();
                return out.into_frames();
            }
            Piece::Hang => {
                out.hang();
                return out.into_frames();
            }
        }
    }
    voice.close(&mut out);
    out.end();
    out.into_frames()
}

#[cfg(test)]
mod tests;
