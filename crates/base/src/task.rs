//! How tasks are started: with their future, or their work, behind a pointer.
//!
//! Tokio compiles what keeps a task once for each type of future, and twice where that may be large. Here it is compiled
//! once for each type of output.

use std::ops::{Deref, DerefMut};
use std::pin::Pin;

use tokio::task::{AbortHandle, JoinHandle, JoinSet};

/// A future behind a pointer.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts a task, like [`tokio::spawn`].
#[track_caller]
pub fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let task: Boxed<T> = Box::pin(task);
    tokio::spawn(task)
}

/// Does work that blocks beside the tasks, like [`tokio::task::spawn_blocking`].
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}

/// Tasks that end with their owner: a [`JoinSet`].
#[derive(Debug)]
pub struct TaskSet<T = ()>(JoinSet<T>);

impl<T: Send + 'static> TaskSet<T> {
    /// Starts a task of the set.
    #[track_caller]
    pub fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) -> AbortHandle {
        let task: Boxed<T> = Box::pin(task);
        self.0.spawn(task)
    }

    /// Waits until all have ended.
    pub async fn join_all(self) -> Vec<T> {
        self.0.join_all().await
    }
}

impl<T> Default for TaskSet<T> {
    fn default() -> Self {
        Self(JoinSet::default())
    }
}

impl<T> Deref for TaskSet<T> {
    type Target = JoinSet<T>;

    fn deref(&self) -> &JoinSet<T> {
        &self.0
    }
}

impl<T> DerefMut for TaskSet<T> {
    fn deref_mut(&mut self) -> &mut JoinSet<T> {
        &mut self.0
    }
}
