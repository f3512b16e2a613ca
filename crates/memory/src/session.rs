//! The registry of sessions over all teams and editors of a user, with the data that clients store
//! with them. Owns the file `core_sessions.json`; does not know the tracker or sockets.
//!
//! [`Registry`] is the file's content, and pure. [`RegistryHandle`] sends requests to two tasks
//! that access the disk, one to read and one to change. Other processes write the same file, so it
//! is read again for each batch of requests.

mod file;
mod format;
mod registry;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use eisen_base::task;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::model::{KeptFiles, KeptForm, SessionKey, now_ms};
use file::{ActiveCache, RegistryFile};

pub use registry::{Answer, Listed, Raw, Registry, RegistryRequest, Session, Upsert};

/// The registry. What was set aside as corrupt may be no JSON.
pub const KEPT: [KeptFiles; 2] = [
    KeptFiles::new("sessions", KeptForm::Json, &["core_sessions.json"])
        .locked_by("core_sessions.lock"),
    KeptFiles::new(
        "registry of sessions",
        KeptForm::Fixed,
        &["core_sessions.lock", "core_sessions.tmp", "core_sessions.corrupt-*"],
    ),
];

/// How long a request waits for the lock. Clients wait 5 s for an answer.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// Queued requests; over it senders wait.
const MAILBOX: usize = 64;

/// Requests served with one read and one write of the file.
const BATCH: usize = 64;

/// Why the registry did not carry out a request.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistryError {
    /// The registry has no session with this key.
    #[error("the registry has no session `{}` of agent `{}`", .0.session, .0.agent)]
    Unknown(SessionKey),
    /// The change would make a session larger than it may be.
    #[error("the session would have {bytes} bytes in the registry, and may have {most}")]
    TooLarge {
        /// The size that the session would have, in bytes.
        bytes: usize,
        /// Maximum bytes of a session: 16 MiB.
        most: usize,
    },
    /// The change would make the file larger than it may be.
    #[error("{} would have {bytes} bytes, and may have {most}: close sessions first", .path.display())]
    Full {
        /// The registry's file.
        path: PathBuf,
        /// The size that the file would have, in bytes.
        bytes: usize,
        /// Maximum bytes of the file: 64 MiB.
        most: usize,
    },
    /// Another process held the lock until the request's deadline.
    #[error("another process keeps {} locked", .path.display())]
    Locked {
        /// The file that is locked, `core_sessions.lock`.
        path: PathBuf,
    },
    /// A system call on the registry's files failed. The registry is as it was.
    #[error("cannot {doing} {}: {cause}", .path.display())]
    Io {
        /// The verb of the message: `lock`, `read`, `move` or `replace`.
        doing: &'static str,
        /// The file that it was about.
        path: PathBuf,
        /// The error as the system reports it.
        cause: Arc<std::io::Error>,
    },
    /// The registry's tasks have ended, or end now.
    #[error("the registry is closed: the program is stopping")]
    Stopping,
}

/// Sends requests to the registry's tasks; cheap to clone.
#[derive(Clone, Debug)]
pub struct RegistryHandle {
    changes: mpsc::Sender<RegistryMsg>,
    /// A separate queue: reads never wait for the lock.
    reads: mpsc::Sender<RegistryMsg>,
    file: Arc<RegistryFile>,
    active: Arc<ActiveCache>,
}

#[derive(Debug)]
struct RegistryMsg {
    request: RegistryRequest,
    deadline: Instant,
    reply: oneshot::Sender<Result<Answer, RegistryError>>,
}

impl RegistryHandle {
    /// Opens the registry in `eisen_dir`, without disk access before the first request. The future
    /// ends after `cancel` and the running batch.
    pub fn spawn(
        eisen_dir: &Path,
        cancel: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (changes, to_change) = mpsc::channel(MAILBOX);
        let (reads, to_read) = mpsc::channel(MAILBOX);
        let file = Arc::new(RegistryFile::new(eisen_dir));
        let reading = serve(Arc::clone(&file), to_read, cancel.clone());
        let changing = serve(Arc::clone(&file), to_change, cancel);
        let serving = async {
            tokio::join!(reading, changing);
        };
        (Self { changes, reads, file, active: Arc::default() }, serving)
    }

    /// Serves one request; a change is on the disk when the answer comes. Changes are applied in
    /// the order of the futures' first polls.
    pub async fn ask(&self, request: RegistryRequest) -> Result<Answer, RegistryError> {
        self.ask_by(request, Instant::now() + PATIENCE).await
    }

    /// Like [`Self::ask`], and waits for the lock until `deadline`.
    pub async fn ask_by(
        &self,
        request: RegistryRequest,
        deadline: Instant,
    ) -> Result<Answer, RegistryError> {
        let (reply, answer) = oneshot::channel();
        let mailbox = if request.only_reads() { &self.reads } else { &self.changes };
        let message = RegistryMsg { request, deadline, reply };
        mailbox.send(message).await.map_err(|_| RegistryError::Stopping)?;
        answer.await.unwrap_or(Err(RegistryError::Stopping))
    }

    /// The active session; None also if the file cannot be read. Never waits for the lock, and
    /// reads an unchanged file only once.
    pub async fn active(&self) -> Option<SessionKey> {
        let (file, cache) = (Arc::clone(&self.file), Arc::clone(&self.active));
        task::spawn_blocking(move || cache.active(&file)).await.ok().flatten()
    }
}

async fn serve(
    file: Arc<RegistryFile>,
    mut requests: mpsc::Receiver<RegistryMsg>,
    cancel: CancellationToken,
) {
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            taken = requests.recv_many(&mut batch, BATCH) => if taken == 0 { return },
        }
        let file = Arc::clone(&file);
        let served = task::spawn_blocking(move || serve_batch(&file, batch)).await;
        if let Err(error) = served {
            tracing::error!(%error, "requests to the registry were dropped");
        }
    }
}

/// Serves requests in order, with one read of the file; answers after the changes are on disk.
fn serve_batch(file: &RegistryFile, batch: Vec<RegistryMsg>) {
    let Some(deadline) = batch.iter().map(|message| message.deadline).min() else { return };
    let (requests, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|message| (message.request, message.reply)).unzip();
    let only_reads = requests.iter().all(RegistryRequest::only_reads);
    let answer = |registry: &mut Registry| -> Vec<_> {
        requests.into_iter().map(|request| registry.answer(request, now_ms())).collect()
    };
    let served = if only_reads {
        file.read(deadline).map(|mut registry| answer(&mut registry))
    } else {
        file.update(deadline, answer)
    };
    match served {
        // Receivers may be gone.
        Ok(answers) => replies.into_iter().zip(answers).for_each(|(reply, answer)| {
            let _ = reply.send(answer);
        }),
        Err(error) => replies.into_iter().for_each(|reply| {
            let _ = reply.send(Err(error.clone()));
        }),
    }
}
