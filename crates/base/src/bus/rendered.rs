//! A value with a cache for its encoded line. Knows no encoding.

use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

/// A value that is encoded once for all clients.
#[derive(Debug)]
pub struct Rendered<T> {
    value: T,
    line: OnceLock<Bytes>,
}

impl<T> Rendered<T> {
    /// Wraps a value whose line is not encoded yet.
    pub fn new(value: T) -> Self {
        Self { value, line: OnceLock::new() }
    }

    /// Returns the cached line; the first call encodes it.
    pub fn line(&self, encode: impl FnOnce(&T) -> Bytes) -> &Bytes {
        self.line.get_or_init(|| encode(&self.value))
    }
}

impl<T> Deref for Rendered<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
