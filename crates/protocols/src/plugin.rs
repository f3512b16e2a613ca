//! Extractor plugins, by which agents that don't speak ACP join a team. This room loads their
//! shared libraries, contains their faults and presents each agent as an ACP agent to the rooms
//! behind it. The interface is `eisen_plugin.h`.

mod approval;
mod blame;
mod child;
mod child_process;
mod confinement;
mod consulted;
mod extractor_host;
mod frame;
mod host;
mod library;
mod load_error;
mod overdue;
mod reader;
mod source;
mod translation;
mod translator;
mod trial;

/// Libraries of plugins, and which are approved.
pub const KEPT: [KeptFiles; 1] =
    [KeptFiles::new("plugins", KeptForm::Fixed, &["trusted_plugins.*", "plugins/**"])];

/// The version of the interface.
pub const INTERFACE: u32 = eisen_plugin::abi::ABI;

use crate::model::{KeptFiles, KeptForm};
pub use approval::{Approval, ApprovalError, Approvals, Approved};
pub use extractor_host::{AgentInfo, ExtractorHost, News, PluginExtractor};
pub use host::serve_if_asked;
pub use library::{Description, Library};
pub use load_error::LoadError;
pub use reader::{CallError, CallOutput, InstanceCall, RecordReader};
pub use source::{Hosting, PluginSource};
pub use translation::Conversation;
pub use translator::Translator;
pub use trial::{Checked, check, describe, try_out};
