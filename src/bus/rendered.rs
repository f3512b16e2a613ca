use std::ops::Deref;
use std::sync::OnceLock;

use bytes::Bytes;

/// A value with a place where the border keeps its encoding, so that it is serialised once for
/// all who are shown it.
#[derive(Debug)]
pub struct Rendered<T> {
    value: T,
    line: OnceLock<Bytes>,
}

impl<T> Rendered<T> {
    pub fn new(value: T) -> Self {
        Self { value, line: OnceLock::new() }
    }

    /// Returns what `encode` made of the value for whoever came first.
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
