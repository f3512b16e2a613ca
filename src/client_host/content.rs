//! The content of a prompt, which may be made only when its turn has come.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

/// What a prompt says, in ACP content blocks.
pub enum Content {
    Now(Vec<Value>),
    /// Made when the prompt's turn has come; None withdraws it.
    Later(BoxFuture<'static, Option<Vec<Value>>>),
}

impl Content {
    pub fn later(content: impl Future<Output = Option<Vec<Value>>> + Send + 'static) -> Self {
        Self::Later(content.boxed())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now(_) => "Now(…)",
            Self::Later(_) => "Later(…)",
        })
    }
}
