//! Where lines go. Blocks its thread.

use super::batch::{PAGE, StreamLine};
use super::file::RotatingFile;
use super::health::Failure;
use super::nats::Nats;
use super::otlp::Otlp;
use super::webhook::Webhook;
use crate::model::StreamTarget;

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each stream")]
pub(super) enum Sink {
    File(RotatingFile),
    Webhook(Webhook),
    Nats(Nats),
    Otlp(Otlp),
}

impl Sink {
    pub(super) fn new(target: &StreamTarget, team: &str, stream: &str) -> Self {
        match target {
            StreamTarget::File(file) => {
                Self::File(RotatingFile::new(file.path.clone(), file.max_bytes, file.keep))
            }
            StreamTarget::Webhook(target) => {
                Self::Webhook(Webhook::new(target.clone(), team, stream))
            }
            StreamTarget::Nats(target) => Self::Nats(Nats::new(target.clone(), team, stream)),
            StreamTarget::Otlp(target) => Self::Otlp(Otlp::new(target.clone(), team)),
        }
    }

    /// Events that are delivered at once.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::File(_) | Self::Otlp(_) => PAGE,
            Self::Nats(_) => Nats::most(),
            Self::Webhook(webhook) => webhook.most(),
        }
    }

    /// Delivers lines in their order; after a failure some of them may have been.
    pub(super) fn deliver(&mut self, lines: &[StreamLine]) -> Result<(), Failure> {
        match self {
            Self::File(file) => {
                file.append(lines.iter().map(|line| &*line.json)).map_err(Failure::new)
            }
            Self::Webhook(webhook) => webhook.deliver(lines),
            Self::Nats(nats) => nats.deliver(lines),
            Self::Otlp(otlp) => otlp.deliver(lines),
        }
    }
}
