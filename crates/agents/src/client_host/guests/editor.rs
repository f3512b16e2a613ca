//! One attached editor: the methods that it serves, and its open requests.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::pipe::Pipe;
use crate::acp::{self, ClientIntroduction};
use crate::client_host::rpc;
use crate::model::SessionId;

/// Open requests to one editor; one more is answered with an error.
const MAX_ASKED: usize = 1024;

/// One attached editor.
#[derive(Debug)]
pub(super) struct Editor {
    pub(super) pipe: Pipe,
    /// The editor sends nothing any more, and waits for the answers to its earlier requests.
    pub(super) leaving: bool,
    /// The agent's requests to it, by the id that the host gave each.
    pub(super) asked: BTreeMap<u64, EditorRequest>,
    last_id: u64,
    capabilities: Capabilities,
}

/// A request of the agent that an editor has not answered.
#[derive(Debug)]
pub(in crate::client_host) struct EditorRequest {
    /// The agent's id, as the JSON that it sent.
    pub(in crate::client_host) id: Box<RawValue>,
    /// None: it belongs to a request of the editor.
    pub(in crate::client_host) session: Option<SessionId>,
    pub(in crate::client_host) is_permission: bool,
}

/// The methods that an editor serves; none before its `initialize`.
#[derive(Clone, Copy, Default, Debug)]
struct Capabilities {
    reads: bool,
    writes: bool,
    terminals: bool,
}

impl Editor {
    pub(super) fn new(pipe: Pipe) -> Self {
        Self {
            pipe,
            leaving: false,
            asked: BTreeMap::new(),
            last_id: 0,
            capabilities: Capabilities::default(),
        }
    }

    /// Reads the params of its `initialize`; a capability that is not plainly offered is missing.
    pub(super) fn initialize(&mut self, params: Option<&RawValue>) {
        let params: Value = rpc::decode(params).unwrap_or_default();
        let ClientIntroduction { client_capabilities: offered } = acp::read(&params);
        self.capabilities = Capabilities {
            reads: offered.fs.read_text_file,
            writes: offered.fs.write_text_file,
            terminals: offered.terminal,
        };
    }

    /// Whether the editor answers this method of the agent; the host serves the others.
    pub(super) fn serves(&self, method: &str) -> bool {
        match method {
            "fs/read_text_file" => self.capabilities.reads,
            "fs/write_text_file" => self.capabilities.writes,
            _ if method.starts_with("terminal/") => self.capabilities.terminals,
            _ => true,
        }
    }

    /// Records a request of the agent; returns the id to send it under. None: the editor has too
    /// many open requests.
    pub(super) fn ask(&mut self, asked: EditorRequest) -> Option<u64> {
        if self.asked.len() >= MAX_ASKED {
            return None;
        }
        let id = self.last_id;
        self.last_id += 1;
        self.asked.insert(id, asked);
        Some(id)
    }
}
