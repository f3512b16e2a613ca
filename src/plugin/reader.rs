//! One instance of a plugin, wherever it runs.

use std::sync::Arc;

use eisen_plugin::{Record, records};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::library::{Description, Instance, Library};
use super::overdue;
use crate::line::{content, lines};

/// Bytes of records after which the rest of a block waits for the next call: lines are short, and
/// each may put as much as one call may.
const ENOUGH: usize = 1024 * 1024;

/// What is asked of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstanceCall<'a> {
    /// Whole lines that the agent said, newlines included: each is gated, then observed. What went
    /// wrong with one is a record of its own, and the next is read all the same. Where they put
    /// much, only the first of them are read: [`CallOutput::read`] says how far.
    Read {
        block: &'a [u8],
    },
    /// A line that was sent to the agent.
    Sent {
        line: &'a [u8],
    },
    Deny {
        id: &'a str,
        why: &'a str,
    },
    Start {
        settings: &'a str,
    },
    Prompt {
        text: &'a str,
    },
    Cancel,
    Allow {
        id: &'a str,
    },
}

impl InstanceCall<'_> {
    /// The function of the plugin that answers it.
    fn name(self) -> &'static str {
        match self {
            Self::Read { .. } | Self::Sent { .. } => "observe",
            Self::Deny { .. } => "deny",
            Self::Start { .. } => "start",
            Self::Prompt { .. } => "prompt",
            Self::Cancel => "cancel",
            Self::Allow { .. } => "allow",
        }
    }
}

/// What comes of a call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CallOutput {
    /// Records.
    pub output: Vec<u8>,
    /// Bytes of the block that were read.
    pub read: usize,
    /// What one of its lines asks for is not known: `gate` failed.
    pub ungated: bool,
}

/// Why a call came to nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// What the plugin says of it.
    #[error("{0}")]
    Failed(String),
    /// Of what its process died. The plugin may be called again, and has forgotten what was.
    #[error("{0}")]
    Died(String),
    /// How else it was lost: the same goes for it, but what was asked may well be why.
    #[error("{0}")]
    Lost(String),
}

impl CallError {
    /// Whether the next call is one of a new instance.
    pub(super) fn is_loss(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

impl From<CallError> for String {
    fn from(error: CallError) -> Self {
        error.to_string()
    }
}

/// An instance: bytes in, records out.
pub trait RecordReader: Send {
    /// Makes the call.
    fn call<'a>(
        &'a mut self,
        call: InstanceCall<'a>,
    ) -> BoxFuture<'a, Result<CallOutput, CallError>>;
}

/// An instance in this very process.
pub(super) struct InProcess {
    instance: Instance,
    description: Description,
}

impl InProcess {
    /// `config` is a JSON object.
    pub(super) fn new(library: &Library, config: &str) -> Result<Self, String> {
        let description = library.description().clone();
        Ok(Self { instance: library.instance(config)?, description })
    }

    /// Makes the call; what it puts is returned at once.
    pub(super) fn answer(&mut self, call: InstanceCall<'_>) -> Result<CallOutput, String> {
        let (instance, mut output) = (&mut self.instance, Vec::new());
        let (mut read, mut ungated) = (0, false);
        match call {
            InstanceCall::Read { block } => {
                for whole in lines(block) {
                    let line = content(whole);
                    if self.description.gates {
                        ungated |= !note(&mut output, |output| instance.gate(line, output));
                    }
                    note(&mut output, |output| instance.observe(true, line, output));
                    read += whole.len();
                    if output.len() >= ENOUGH {
                        break;
                    }
                }
                Ok(())
            }
            InstanceCall::Sent { line } => instance.observe(false, line, &mut output),
            InstanceCall::Deny { id, why } => instance.deny(id, why, &mut output),
            // An agent that nobody prompts has nothing to begin with.
            InstanceCall::Start { .. } if !self.description.drives => Ok(()),
            InstanceCall::Start { settings } => instance.start(settings, &mut output),
            InstanceCall::Prompt { text } => instance.prompt(text, &mut output),
            InstanceCall::Cancel => instance.cancel(&mut output),
            InstanceCall::Allow { id } => instance.allow(id, &mut output),
        }?;
        Ok(CallOutput { output, read, ungated })
    }
}

/// One in the supervisor's process, of which it is told what does not return.
pub(super) struct Watched {
    /// Until it is destroyed.
    plugin: Option<InProcess>,
    name: Arc<str>,
}

impl Watched {
    /// `name` is the plugin's in the configuration.
    pub(super) fn new(library: &Library, name: &str, config: &str) -> Result<Self, String> {
        let name = name.into();
        let plugin = overdue::during(&name, "create", || InProcess::new(library, config))?;
        Ok(Self { plugin: Some(plugin), name })
    }
}

impl RecordReader for Watched {
    fn call<'a>(
        &'a mut self,
        call: InstanceCall<'a>,
    ) -> BoxFuture<'a, Result<CallOutput, CallError>> {
        let Self { plugin, name } = self;
        let answer = plugin.as_mut().map_or_else(
            || Err("it is destroyed".to_owned()),
            |plugin| overdue::during(name, call.name(), || plugin.answer(call)),
        );
        std::future::ready(answer.map_err(CallError::Failed)).boxed()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let plugin = self.plugin.take();
        overdue::during(&self.name, "destroy", || drop(plugin));
    }
}

/// Puts what went wrong with one line among the records of all: what it put that is no record would
/// take those of the lines behind it along. Returns whether all went well.
fn note(output: &mut Vec<u8>, call: impl FnOnce(&mut Vec<u8>) -> Result<(), String>) -> bool {
    let start = output.len();
    let mut outcome = call(output);
    let malformed = records(&output[start..]).find_map(Result::err);
    if let Some(malformed) = malformed {
        output.truncate(start);
        outcome = Err(malformed.to_string());
    }
    outcome.map_err(|why| Record::Error { body: why.into() }.write(output)).is_ok()
}
