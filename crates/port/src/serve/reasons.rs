//! Explains to whoever decides accesses why agents want them, by what the journal and the processes say.

use std::sync::Weak;

use futures_util::future::BoxFuture;

use super::rpc;
use super::shared::Shared;
use crate::model::{AgentId, BlockedAccess};
use crate::routing::{AccessReason, Explain};

/// Explains as long as the port is there.
pub(super) struct ExplainByJournal(pub(super) Weak<Shared>);

impl std::fmt::Debug for ExplainByJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExplainByJournal")
    }
}

impl Explain for ExplainByJournal {
    fn explain(
        &self,
        access: BlockedAccess,
        caller: Option<u32>,
        reader: Option<AgentId>,
    ) -> BoxFuture<'static, AccessReason> {
        let shared = self.0.clone();
        Box::pin(async move {
            let Some(shared) = shared.upgrade() else { return AccessReason::default() };
            rpc::reason(&shared, &access, caller, reader.as_ref()).await
        })
    }
}
