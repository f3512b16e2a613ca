//! One attached editor: what it serves, and what it was asked.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::pipe::Pipe;
use crate::client_host::rpc;
use crate::model::SessionId;

/// Requests of the agent that one editor may have to answer; one more is answered with an error.
const MAX_ASKED: usize = 1024;

/// One attached editor.
#[derive(Debug)]
pub(super) struct Editor {
    pub(super) pipe: Pipe,
    /// It says nothing any more, and waits for the answers to what it asked before.
    pub(super) leaving: bool,
    /// What the agent asked of it, by the id that it was asked under.
    pub(super) asked: BTreeMap<u64, EditorRequest>,
    last_id: u64,
    capabilities: Capabilities,
}

/// A request of the agent that an editor has yet to answer.
#[derive(Debug)]
pub(in crate::client_host) struct EditorRequest {
    /// The agent's, as the JSON it came as.
    pub(in crate::client_host) id: Box<RawValue>,
    /// None: it is about a request of the editor.
    pub(in crate::client_host) session: Option<SessionId>,
    pub(in crate::client_host) is_permission: bool,
}

/// What an editor serves by itself; before it has said so, nothing.
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

    /// Takes in the params of its `initialize`: what is not plainly offered is lacking.
    pub(super) fn initialize(&mut self, params: Option<&RawValue>) {
        let params: Value = rpc::decode(params).unwrap_or_default();
        let offered = &params["clientCapabilities"];
        self.capabilities = Capabilities {
            reads: offered["fs"]["readTextFile"] == true,
            writes: offered["fs"]["writeTextFile"] == true,
            terminals: offered["terminal"] == true,
        };
    }

    /// Whether a request of the agent is its to answer; the host serves the others.
    pub(super) fn serves(&self, method: &str) -> bool {
        match method {
            "fs/read_text_file" => self.capabilities.reads,
            "fs/write_text_file" => self.capabilities.writes,
            _ if method.starts_with("terminal/") => self.capabilities.terminals,
            _ => true,
        }
    }

    /// Notes a request of the agent; returns the id to ask under. None: it has too many to answer.
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
