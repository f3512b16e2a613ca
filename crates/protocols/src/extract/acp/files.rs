//! The activities of `fs/*` requests and their responses: a read counts once the client answered it.

use std::path::Path;

use super::frame::Frame;
use super::pending::AgentRequest;
use super::{Acp, lines};
use crate::extract::json::{Members, text};
use crate::model::{ActivityKind, Lines, SessionId, Source, Touch, fold, wire_real};

impl Acp {
    /// Reports the file access that the agent requests from its client.
    pub(super) fn file_request(
        &mut self,
        session: &SessionId,
        path: &Path,
        writes: bool,
        frame: &Frame<'_>,
    ) {
        let params = Members::of(frame.params());
        if !writes {
            if let Some(id) = frame.id {
                let lines = params.as_ref().map(lines::of_read).unwrap_or_default();
                let (session, path) = (session.clone(), path.to_owned());
                self.agent_requests.insert(id, AgentRequest::Read { session, path, lines });
            }
            return;
        }
        let path = fold(&self.sessions.cwd(session).join(path));
        let content = params.as_ref().and_then(|params| params.get("content"));
        let lines = self.overwritten(&path, content);
        let is_on_map = self.push_touch(session, &path, Touch::Write, Source::Request, lines);
        if let Some(id) = frame.id.filter(|_| is_on_map) {
            let request = AgentRequest::Write { session: session.clone(), path };
            self.agent_requests.insert(id, request);
        }
    }

    /// Reports that the client wrote the file.
    pub(super) fn push_written(&mut self, session: &SessionId, path: &Path) {
        let path = wire_real(self.workspace.root(), path).into();
        self.reported.add(session, ActivityKind::Written { path });
    }

    /// The lines that a write of the whole file changes.
    fn overwritten(&self, path: &Path, content: Option<&str>) -> Lines {
        let content = content.filter(|content| content.len() <= lines::LONGEST_TEXT).and_then(text);
        let Some(content) = content else { return Lines::default() };
        let disk = self.workspace.text(path, lines::LONGEST_TEXT);
        lines::of_change(disk.as_deref(), None, &content)
    }
}
