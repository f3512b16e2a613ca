//! Owns the calls of a plugin instance, and the instances that run in this process.

use std::sync::Arc;

use eisen_plugin::{Record, records};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::library::{Description, Instance, Library};
use super::overdue;
use crate::line::{content, lines};

/// Bytes of records after which the rest of a block is left to the next call: each line may yield
/// as many bytes as one call may.
const ENOUGH: usize = 1024 * 1024;

/// A call of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum InstanceCall<'a> {
    /// Gate and observe each whole line of the agent, newlines included. A failure of one line is a
    /// record, and the next line is read. A long output ends the call early: [`CallOutput::read`]
    /// counts the bytes read.
    Read {
        #[serde(with = "serde_bytes")]
        block: &'a [u8],
    },
    /// Observe a line that was sent to the agent.
    Sent {
        #[serde(with = "serde_bytes")]
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
    /// The plugin's function that answers the call.
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

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
pub struct CallOutput {
    /// Records.
    #[serde(with = "serde_bytes")]
    pub output: Vec<u8>,
    /// Bytes of the block that were read.
    pub read: usize,
    /// `gate` failed on a line, so it is unknown what the line asks for.
    pub ungated: bool,
}

/// Why a call failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The plugin's own error.
    #[error("{0}")]
    Failed(String),
    /// How its process died. The plugin may be called again, but has lost its state.
    #[error("{0}")]
    Died(String),
    /// Any other loss of the process. Also loses the state, and the call may be its cause.
    #[error("{0}")]
    Lost(String),
}

impl CallError {
    /// Whether the next call reaches a new instance.
    pub(super) fn is_loss(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

impl From<CallError> for String {
    fn from(error: CallError) -> Self {
        error.to_string()
    }
}

/// An instance, which turns bytes into records.
pub trait RecordReader: Send {
    /// Makes the call.
    fn call<'a>(
        &'a mut self,
        call: InstanceCall<'a>,
    ) -> BoxFuture<'a, Result<CallOutput, CallError>>;
}

/// An instance in this process.
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

    /// Makes the call, and returns its records at once.
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
            // An agent that can't be prompted has nothing to start.
            InstanceCall::Start { .. } if !self.description.drives => Ok(()),
            InstanceCall::Start { settings } => instance.start(settings, &mut output),
            InstanceCall::Prompt { text } => instance.prompt(text, &mut output),
            InstanceCall::Cancel => instance.cancel(&mut output),
            InstanceCall::Allow { id } => instance.allow(id, &mut output),
        }?;
        Ok(CallOutput { output, read, ungated })
    }
}

/// An instance in this process, with its calls under the watchdog.
pub(super) struct Watched {
    /// None while it is destroyed.
    plugin: Option<InProcess>,
    name: Arc<str>,
}

impl Watched {
    /// `name` is the plugin's name in the configuration.
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

/// Makes a call for one line, and replaces its records by an error record if it fails or a record
/// is malformed, which would corrupt those of the following lines. Returns whether it succeeded.
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
