//! The registry: which sessions there are, over all teams and editors of a user, and what clients
//! keep with them. Owns its file, `core_sessions.json`; knows neither tracker nor sockets.
//!
//! [`Registry`] is the file's content as a value, and pure. [`RegistryHandle`] speaks to the
//! tasks of this process that go to the disk, one to read and one to change. Other processes write the same file: nothing of it
//! is held between two requests.

mod file;
mod format;
mod registry;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::model::{SessionKey, now_ms};
use file::{Peeked, RegistryFile};

pub use registry::{Answer, Listed, Raw, Registry, RegistryRequest, Session, Upsert};

/// How long a request waits for a living process that holds the lock. Clients wait 5 s for an
/// answer.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// Requests that wait for the disk; past that whoever asks waits.
const MAILBOX: usize = 64;

/// Requests that are served with one reading and one writing of the file.
const BATCH: usize = 64;

#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("the registry has no session `{}` of agent `{}`", .0.session, .0.agent)]
    Unknown(SessionKey),
    #[error("the session would have {bytes} bytes in the registry, and may have {most}")]
    TooLarge { bytes: usize, most: usize },
    #[error("{} would have {bytes} bytes, and may have {most}: close sessions first", .path.display())]
    Full { path: PathBuf, bytes: usize, most: usize },
    #[error("another process keeps {} locked", .path.display())]
    Locked { path: PathBuf },
    #[error("cannot {doing} {}: {cause}", .path.display())]
    Io { doing: &'static str, path: PathBuf, cause: Arc<std::io::Error> },
    #[error("the registry is closed: the program is stopping")]
    Stopping,
}

/// Speaks to the registry's tasks; cheap to clone.
#[derive(Clone, Debug)]
pub struct RegistryHandle {
    changes: mpsc::Sender<Asked>,
    /// Of their own: nobody who holds the lock keeps a reader waiting.
    reads: mpsc::Sender<Asked>,
    file: Arc<RegistryFile>,
    peeked: Arc<Peeked>,
}

#[derive(Debug)]
struct Asked {
    request: RegistryRequest,
    deadline: Instant,
    reply: oneshot::Sender<Result<Answer, RegistryError>>,
}

impl RegistryHandle {
    /// Opens the registry in `eisen_dir`; nothing is read or made before the first request. It
    /// ends with `cancel`, after the requests that are being served.
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
        (Self { changes, reads, file, peeked: Arc::default() }, serving)
    }

    /// Asks for one thing; changes are on the disk when the answer comes. They are made in the
    /// order of the futures' first polls.
    pub async fn ask(&self, request: RegistryRequest) -> Result<Answer, RegistryError> {
        self.ask_by(request, Instant::now() + PATIENCE).await
    }

    /// Asks for one thing, and waits for another process that holds the lock until `deadline`.
    pub async fn ask_by(
        &self,
        request: RegistryRequest,
        deadline: Instant,
    ) -> Result<Answer, RegistryError> {
        let (reply, answer) = oneshot::channel();
        let mailbox = if request.only_reads() { &self.reads } else { &self.changes };
        let asked = Asked { request, deadline, reply };
        mailbox.send(asked).await.map_err(|_| RegistryError::Stopping)?;
        answer.await.unwrap_or(Err(RegistryError::Stopping))
    }

    /// The active session; None also if the file cannot be read. Waits for no other process, and
    /// reads a file that did not change only once.
    pub async fn active(&self) -> Option<SessionKey> {
        let (file, peeked) = (Arc::clone(&self.file), Arc::clone(&self.peeked));
        tokio::task::spawn_blocking(move || peeked.active(&file)).await.ok().flatten()
    }
}

async fn serve(
    file: Arc<RegistryFile>,
    mut requests: mpsc::Receiver<Asked>,
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
        let served = tokio::task::spawn_blocking(move || serve_batch(&file, batch)).await;
        if let Err(error) = served {
            tracing::error!(%error, "requests to the registry were dropped");
        }
    }
}

/// Serves requests in their order, all on one reading of the file. Nobody is answered before the
/// changes are on the disk.
fn serve_batch(file: &RegistryFile, batch: Vec<Asked>) {
    // Who asked first has waited longest, maybe for the lock already.
    let Some(deadline) = batch.iter().map(|asked| asked.deadline).min() else { return };
    let (requests, replies): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|asked| (asked.request, asked.reply)).unzip();
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
        // Who asked may have gone.
        Ok(answers) => replies.into_iter().zip(answers).for_each(|(reply, answer)| {
            let _ = reply.send(answer);
        }),
        Err(error) => replies.into_iter().for_each(|reply| {
            let _ = reply.send(Err(error.clone()));
        }),
    }
}
