//! The content of a prompt, which can be created as late as the start of its turn.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

/// The content of a prompt as ACP content blocks.
pub enum Content {
    Now(Vec<Value>),
    /// Created when the prompt's turn begins; None withdraws the prompt.
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
