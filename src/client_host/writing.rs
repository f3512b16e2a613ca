//! `fs/write_text_file`: writes the file that a permit names, and no other, merged with what others
//! wrote where that is configured.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{Error, WriteTextFileRequest, WriteTextFileResponse};
use serde_json::json;
use serde_json::value::RawValue;

use super::files::{FileResult, blocking, explain};
use super::rpc;
use crate::capture::RunFiles;
use crate::conflicts::{AgentConflicts, MergeBase, Refused, WriteGate};
use crate::model::code;
use crate::model::{ConflictStrategy, SessionId, SessionKey};
use crate::showing::Wanted;
use crate::zone::Permit;

/// Bytes of a file that a write is merged with.
const MOST_MERGED: u64 = 16 << 20;

/// Answers `fs/write_text_file`. Decodes the params inside the task, since they may be large.
pub(super) async fn write(
    params: Box<RawValue>,
    permit: Permit,
    files: Option<RunFiles>,
    conflicts: Option<AgentConflicts>,
) -> FileResult {
    let merging = conflicts.filter(|it| it.team().strategy() == ConflictStrategy::Merge);
    match (merging, files) {
        (Some(conflicts), Some(files)) => {
            Merging { conflicts, files, permit: Arc::new(permit) }.write(params).await
        }
        (_, files) => blocking(move || replace(&rpc::decode(Some(&params))?, &permit, files)).await,
    }
}

fn replace(request: &WriteTextFileRequest, permit: &Permit, files: Option<RunFiles>) -> FileResult {
    put(request, request.content.as_bytes(), permit, files)
}

/// Puts a content in the place of the file that a request names.
fn put(
    request: &WriteTextFileRequest,
    content: &[u8],
    permit: &Permit,
    files: Option<RunFiles>,
) -> FileResult {
    let replace = || permit.replace(content);
    let replaced = match files {
        Some(files) => {
            if let Some(loss) = files.loss(&permit.real) {
                return Err(lossy(&loss.what));
            }
            let session = SessionId::new(&*request.session_id.0);
            files.replaces(&session, &permit.real, replace)
        }
        None => replace(),
    };
    replaced.map_err(|error| explain("write", &request.path, &error))?;
    rpc::encode(&WriteTextFileResponse::new())
}

/// A write that may be merged.
struct Merging {
    conflicts: AgentConflicts,
    files: RunFiles,
    permit: Arc<Permit>,
}

impl Merging {
    async fn write(self, params: Box<RawValue>) -> FileResult {
        let request: WriteTextFileRequest = rpc::decode(Some(&params))?;
        let request = Arc::new(request);
        let key = self.conflicts.key(&SessionId::new(&*request.session_id.0));
        let path = self.files.name(&self.permit.real);
        let team = self.conflicts.team();
        loop {
            {
                let _one_at_a_time = team.merging().await;
                // What others wrote until now.
                self.files.settle_team().await;
                let Some(base) = team.merge_base(&key, &path).await else {
                    return self.put_last(&request, &key, &path).await;
                };
                if let Some(written) = self.merge(&request, &key, &path, base).await {
                    return written;
                }
            }
            match team.hold_unmerged(&key, &path) {
                // Nobody works on it any more. What is lost by the write is found after it.
                WriteGate::Passes => return self.put_last(&request, &key, &path).await,
                WriteGate::Refused(refused) => return Err(refusal(refused)),
                WriteGate::Waits(wait) => {
                    wait.wants(Wanted::new(&request.content));
                    wait.settled().await.map_err(refusal)?;
                }
            }
        }
    }

    /// Merges the write with what is there, and writes that; None if both changed the same lines.
    async fn merge(
        &self,
        request: &Arc<WriteTextFileRequest>,
        key: &SessionKey,
        path: &Arc<str>,
        base: MergeBase,
    ) -> Option<FileResult> {
        let team = self.conflicts.team();
        let (permit, written) = (Arc::clone(&self.permit), Arc::clone(request));
        // Later writes of others than this are no part of it.
        let begun = team.file_time(path);
        let merging = tokio::task::spawn_blocking(move || {
            let present = permit.present(MOST_MERGED).ok()?;
            let merged = base.merge(written.content.as_bytes(), &present)?;
            Some((merged, base))
        });
        let (merged, base) = merging.await.ok()??;
        let is_merged = merged != request.content.as_bytes();
        team.read_at(key, path, begun);
        let written = self.put(request, Some(merged)).await;
        if written.is_ok() {
            team.wrote_last(key, path);
            if is_merged {
                team.merged(key, path, &base);
            }
        }
        Some(written)
    }

    /// Writes what the agent sent.
    async fn put_last(
        &self,
        request: &Arc<WriteTextFileRequest>,
        key: &SessionKey,
        path: &Arc<str>,
    ) -> FileResult {
        let written = self.put(request, None).await;
        if written.is_ok() {
            self.conflicts.team().wrote_last(key, path);
        }
        written
    }

    async fn put(
        &self,
        request: &Arc<WriteTextFileRequest>,
        merged: Option<Vec<u8>>,
    ) -> FileResult {
        let (permit, request) = (Arc::clone(&self.permit), Arc::clone(request));
        let files = self.files.clone();
        blocking(move || {
            let content = merged.as_deref().unwrap_or(request.content.as_bytes());
            put(&request, content, &permit, Some(files))
        })
        .await
    }
}

/// The answer to a write that would destroy what can't be kept, where that is to be decided: nobody
/// decides writes of the client.
fn lossy(what: &str) -> Error {
    let message = format!("Refused: {what}, and `on_full` is \"hold\"");
    rpc::failure(code::INTERNAL_ERROR, message)
}

fn refusal(refused: Refused) -> Error {
    let Refused { id, path, holder, message } = refused;
    rpc::failure(code::OUTSIDE_ZONE, format!("Locked by another agent: {message}")).data(json!({
        "conflict_id": id.as_str(),
        "path": path,
        "holder": holder.as_str(),
    }))
}
