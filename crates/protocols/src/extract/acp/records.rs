//! Records of messages for the journal alone: prompts, permissions and loads of sessions; and prompts for
//! those who watch.

use agent_client_protocol_schema::v1::{Annotations, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Acp;
use super::frame::Frame;
use super::update::typed;
use crate::extract::json::elements;
use crate::model::{ActivityKind, Record, SessionId, TeamUpdate, UpdateDetail};

/// Blocks of a prompt that are shown to those who watch.
const MOST_SHOWN: usize = 100;

/// A block of a prompt; other fields of it may be long, and are not read.
#[derive(Deserialize)]
struct PromptBlock {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    annotations: Option<Annotations>,
}

impl Acp {
    /// Observes the client's response to any request.
    pub(super) fn request_answered(&mut self, frame: &Frame<'_>) {
        let Some(answered) = frame.id.and_then(|id| self.unanswered.remove(id)) else { return };
        if let (Some(id), Some(session)) = (answered.permission, answered.session) {
            let id = id.get().into();
            let result = frame.result.map(|result| result.get().into());
            self.record(&session, Record::PermissionAnswered { id, result });
        }
    }

    /// Adds a record for the journal, if there is one.
    pub(super) fn record(&mut self, session: &SessionId, record: Record) {
        if self.updates != UpdateDetail::None {
            self.reported.add(session, ActivityKind::Record(record));
        }
    }

    /// Shows a prompt to those who watch: the journal has its record, and needs no update.
    pub(super) fn show_prompt(&mut self, session: &SessionId, blocks: &str) {
        if self.updates != UpdateDetail::Each {
            return;
        }
        let blocks = elements(blocks).unwrap_or_default().into_iter().take(MOST_SHOWN);
        let blocks = blocks.filter_map(typed::<PromptBlock>).filter(|block| !block.is_for_agent());
        let shown = blocks.map(
            |PromptBlock { kind, text, .. }| {
                if kind == "text" { text } else { format!("[{kind}]") }
            },
        );
        let text = shown.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            let update = TeamUpdate::prompt(&text).to_json();
            self.reported.add(session, ActivityKind::Update(update));
        }
    }

    pub(super) fn permission_asked(
        &mut self,
        session: &SessionId,
        id: &RawValue,
        frame: &Frame<'_>,
    ) {
        let (id, params) = (id.get().into(), frame.params().into());
        self.record(session, Record::PermissionAsked { id, params });
    }
}

impl PromptBlock {
    /// Whether no person wrote it, as what the team adds to a prompt.
    fn is_for_agent(&self) -> bool {
        let audience = self.annotations.as_ref().and_then(|it| it.audience.as_ref());
        audience.is_some_and(|all| all.contains(&Role::Assistant) && !all.contains(&Role::User))
    }
}
