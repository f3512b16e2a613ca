//! The body of an answer, byte by byte: what is sent, what is waited for, where it breaks.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::usage::ModelTokens;

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Frame {
    /// Bytes. Once they are sent, this usage was reported.
    Send(Bytes, Option<ModelTokens>),
    Wait(Duration),
    /// The connection closes.
    Cut,
    /// Nothing more comes.
    Hang,
}

/// The form of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Server-sent events.
    Events,
    /// A JSON array, as Gemini streams without `alt=sse`.
    Array,
}

/// A body that is being made.
pub(super) struct Frames {
    form: Form,
    sent: Vec<Frame>,
    /// Elements of the array so far.
    elements: usize,
}

impl Frames {
    pub(super) fn new(form: Form) -> Self {
        Self { form, sent: Vec::new(), elements: 0 }
    }

    /// An event, with the usage that it reports.
    pub(super) fn event(
        &mut self,
        name: Option<&str>,
        data: &Value,
        reported: Option<ModelTokens>,
    ) {
        let text = match (self.form, name) {
            (Form::Events, Some(name)) => format!("event: {name}\ndata: {data}\n\n"),
            (Form::Events, None) => format!("data: {data}\n\n"),
            (Form::Array, _) if self.elements == 0 => format!("[{data}"),
            (Form::Array, _) => format!(",\r\n{data}"),
        };
        self.elements += 1;
        self.sent.push(Frame::Send(text.into(), reported));
    }

    pub(super) fn raw(&mut self, text: &str) {
        self.sent.push(Frame::Send(text.to_owned().into(), None));
    }

    /// A sign of life that readers pass over.
    pub(super) fn comment(&mut self) {
        self.raw(match self.form {
            Form::Events => ": ping\n\n",
            Form::Array => "\n",
        });
    }

    pub(super) fn wait(&mut self, time: Duration) {
        if !time.is_zero() {
            self.sent.push(Frame::Wait(time));
        }
    }

    pub(super) fn cut(&mut self) {
        self.sent.push(Frame::Cut);
    }

    pub(super) fn hang(&mut self) {
        self.sent.push(Frame::Hang);
    }

    /// The end of a stream that is whole.
    pub(super) fn end(&mut self) {
        if self.form == Form::Array {
            self.raw(if self.elements == 0 { "[]" } else { "]" });
        }
    }

    pub(super) fn into_frames(self) -> Vec<Frame> {
        self.sent
    }
}

/// Closes the connection after this number of bytes.
pub(super) fn cut_after(frames: Vec<Frame>, most: u64) -> Vec<Frame> {
    let mut left = usize::try_from(most).unwrap_or(usize::MAX);
    let mut kept = Vec::new();
    for frame in frames {
        match frame {
            Frame::Send(bytes, _) if bytes.len() > left => {
                kept.push(Frame::Send(bytes.slice(..left), None));
                kept.push(Frame::Cut);
                return kept;
            }
            Frame::Send(bytes, reported) => {
                left -= bytes.len();
                kept.push(Frame::Send(bytes, reported));
            }
            other => kept.push(other),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_cut_off_was_not_reported() {
        let tokens = ModelTokens { input: 5, ..ModelTokens::default() };
        let mut frames = Frames::new(Form::Events);
        frames.event(None, &json!({}), Some(tokens));
        frames.event(Some("end"), &json!(1), Some(tokens));
        let frames = frames.into_frames();
        let cut = cut_after(frames.clone(), 12);
        assert_eq!(
            cut,
            [
                Frame::Send("data: {}\n\n".into(), Some(tokens)),
                Frame::Send("ev".into(), None),
                Frame::Cut,
            ]
        );
        assert_eq!(cut_after(frames.clone(), 1000), frames);
    }
}
