//! What `fs/*` requests tell, and their answers: a read is one once its client answered it.

use std::path::Path;

use super::frame::Frame;
use super::pending::OfAgent;
use super::{Acp, lines};
use crate::extract::json::{Members, text};
use crate::model::{Activity, ActivityKind, Lines, SessionId, Source, Touch, fold, wire_real};

impl Acp {
    /// Takes in the access to a file that the agent asks its client for.
    pub(super) fn file(
        &mut self,
        session: &SessionId,
        path: &Path,
        writes: bool,
        frame: &Frame<'_>,
        activities: &mut Vec<Activity>,
    ) {
        let params = Members::of(frame.params());
        if !writes {
            if let Some(id) = frame.id {
                let lines = params.as_ref().map(lines::of_read).unwrap_or_default();
                let (session, path) = (session.clone(), path.to_owned());
                self.of_agent.ask(id, OfAgent::Read { session, path, lines });
            }
            return;
        }
        let path = fold(&self.sessions.cwd(session).join(path));
        let content = params.as_ref().and_then(|params| params.get("content"));
        let lines = self.overwritten(&path, content);
        let is_on_map =
            self.touched(session, &path, Touch::Write, Source::Request, lines, activities);
        if let Some(id) = frame.id.filter(|_| is_on_map) {
            self.of_agent.ask(id, OfAgent::Write { session: session.clone(), path });
        }
    }

    /// Tells that the client wrote what it was asked to.
    pub(super) fn written(&self, session: &SessionId, path: &Path, activities: &mut Vec<Activity>) {
        let path = wire_real(self.workspace.root(), path).into();
        activities
            .push(Activity { session: session.clone(), kind: ActivityKind::Written { path } });
    }

    /// The lines that change where a whole file is written.
    fn overwritten(&self, path: &Path, content: Option<&str>) -> Lines {
        let content = content.filter(|content| content.len() <= lines::LONGEST_TEXT).and_then(text);
        let Some(content) = content else { return Lines::default() };
        let disk = self.workspace.text(path, lines::LONGEST_TEXT);
        lines::of_change(disk.as_deref(), None, &content)
    }
}
