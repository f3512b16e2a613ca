//! `fs/write_text_file`: writes the file that a permit names, and no other, merged with what others
//! wrote where that is configured.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{Error, WriteTextFileRequest, WriteTextFileResponse};
use eisen_base::task;
use serde_json::json;
use serde_json::value::RawValue;

use super::files::{FileResult, blocking, explain};
use super::rpc;
use crate::capture::RunFiles;
use crate::conflicts::{AgentConflicts, MergeBase, Passage, PresentContent, Refused, WriteGate};
use crate::model::code;
use crate::model::{ConflictStrategy, SessionId, SessionKey};
use crate::preview::Wanted;
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
    match (conflicts, files) {
        (Some(conflicts), Some(files))
            if conflicts.team().strategy() == ConflictStrategy::Merge =>
        {
            let request: WriteTextFileRequest = rpc::decode(Some(&params))?;
            drop(params);
            let key = conflicts.key(&SessionId::new(&*request.session_id.0));
            let path = files.name(&permit.real);
            let (permit, request) = (Arc::new(permit), Arc::new(request));
            Merging { conflicts, files, permit, request, key, path }.write().await
        }
        (conflicts, files) => {
            blocking(move || {
                let request = rpc::decode(Some(&params))?;
                drop(params);
                put(&request, None, &permit, files.as_ref(), conflicts.as_ref())
            })
            .await
        }
    }
}

/// Puts what a request sends, or what it was merged to, in the place of the file that it names.
fn put(
    request: &WriteTextFileRequest,
    merged: Option<&[u8]>,
    permit: &Permit,
    files: Option<&RunFiles>,
    conflicts: Option<&AgentConflicts>,
) -> FileResult {
    let session = SessionId::new(&*request.session_id.0);
    let (sent, content) =
        (request.content.as_bytes(), merged.unwrap_or(request.content.as_bytes()));
    let replace = || permit.replace(content);
    let replaced = match files {
        Some(files) => {
            if let Some(loss) = files.loss(&permit.real) {
                return Err(lossy(&loss.what));
            }
            let known = conflicts.map(|it| (it.team(), it.key(&session), files.name(&permit.real)));
            if let Some((team, key, path)) = &known {
                team.puts(key, path, content);
            }
            let replaced = files.replaces(&session, &permit.real, replace);
            if let (Some((team, key, path)), Ok(())) = (&known, &replaced) {
                team.has_put(key, path, sent, content != sent);
            }
            replaced
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
    request: Arc<WriteTextFileRequest>,
    key: SessionKey,
    path: Arc<str>,
}

impl Merging {
    async fn write(self) -> FileResult {
        let team = self.conflicts.team();
        loop {
            let base = {
                let _one_at_a_time = team.merging().await;
                let (version, present) = self.present().await;
                let Some(base) = self.base(&version).await else {
                    return self.put(None).await;
                };
                if let Some(merged) = self.merged(&base, present).await {
                    let is_merged = merged != self.request.content.as_bytes();
                    let written = self.put(Some(merged)).await;
                    if is_merged && written.is_ok() {
                        team.merged(&self.key, &self.path, &base);
                    }
                    return written;
                }
                base
            };
            match team.hold_unmerged(&self.key, &self.path) {
                WriteGate::Passes => {
                    let refused = team.deny_unmerged(&self.key, &self.path, &base);
                    return Err(refusal("Changed by another", refused));
                }
                WriteGate::Refused(refused) => return Err(locked(refused)),
                WriteGate::Waits(wait) => {
                    wait.wants(Wanted::new(&self.request.content));
                    match wait.settled().await.map_err(locked)? {
                        // What was in the way may be gone, or the session has read it meanwhile.
                        Passage::Freed => {}
                        // What is lost by it is found after it.
                        Passage::ByPerson => {
                            let _one_at_a_time = team.merging().await;
                            return self.put(None).await;
                        }
                    }
                }
            }
        }
    }

    /// The content that the write replaces; no content if it can't be read, or is too large.
    async fn present(&self) -> (PresentContent, Option<Vec<u8>>) {
        let permit = Arc::clone(&self.permit);
        let reading = task::spawn_blocking(move || permit.present(MOST_MERGED));
        match reading.await {
            Ok(Ok(found)) => {
                (PresentContent::of(found.as_deref()), Some(found.unwrap_or_default()))
            }
            Ok(Err(_)) | Err(_) => (PresentContent::unknown(), None),
        }
    }

    /// Returns the content that the session knew, if the file has another one now.
    async fn base(&self, present: &PresentContent) -> Option<MergeBase> {
        let team = self.conflicts.team();
        if team.is_known(&self.key, &self.path, present) {
            return None;
        }
        // What others wrote until now.
        self.files.settle_team().await;
        team.merge_base(&self.key, &self.path, present).await
    }

    /// The write with what is there; None if both changed the same lines.
    async fn merged(&self, base: &MergeBase, present: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let (base, request) = (base.clone(), Arc::clone(&self.request));
        let merging =
            task::spawn_blocking(move || base.merge(request.content.as_bytes(), &present?));
        merging.await.ok()?
    }

    /// Writes what the agent sent, or what that was merged to. The lock is the agent's then.
    async fn put(&self, merged: Option<Vec<u8>>) -> FileResult {
        let (permit, request) = (Arc::clone(&self.permit), Arc::clone(&self.request));
        let (files, conflicts) = (self.files.clone(), self.conflicts.clone());
        let putting = blocking(move || {
            put(&request, merged.as_deref(), &permit, Some(&files), Some(&conflicts))
        });
        let written = putting.await;
        if written.is_ok() {
            self.conflicts.team().wrote_last(&self.key, &self.path);
        }
        written
    }
}

/// The answer to a write that would destroy what can't be kept, where that is to be decided: nobody
/// decides writes of the client.
fn lossy(what: &str) -> Error {
    let message = format!("Refused: {what}, and `on_full` is \"hold\"");
    rpc::failure(code::INTERNAL_ERROR, message)
}

fn locked(refused: Refused) -> Error {
    refusal("Locked by another agent", refused)
}

fn refusal(why: &str, refused: Refused) -> Error {
    let Refused { id, path, holder, message } = refused;
    rpc::failure(code::OUTSIDE_ZONE, format!("{why}: {message}")).data(json!({
        "conflict_id": id.as_str(),
        "path": path,
        "holder": holder.as_str(),
    }))
}
