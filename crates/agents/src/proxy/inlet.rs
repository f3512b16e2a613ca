//! The reading end of one direction of a relay: collects bytes into whole lines.

use bytes::{Bytes, BytesMut};

use super::ProxyError;
use crate::line::{Framer, MAX_LINE};

/// The reading end of one direction.
pub(super) struct Inlet {
    /// The side's name in error messages.
    side: &'static str,
    framer: Framer,
    is_open: bool,
}

impl Inlet {
    pub(super) fn new(side: &'static str) -> Self {
        Self { side, framer: Framer::new(MAX_LINE), is_open: true }
    }

    /// False once the stream has ended or failed.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Bytes of a line whose end was not read yet.
    pub(super) fn torn(&self) -> usize {
        self.framer.torn()
    }

    /// The buffer for the next read.
    pub(super) fn space(&mut self) -> &mut BytesMut {
        self.framer.space()
    }

    /// Returns the whole lines after a read; at the end of the stream also an unfinished one.
    pub(super) fn whole_lines(
        &mut self,
        read: std::io::Result<usize>,
    ) -> Result<Option<Bytes>, ProxyError> {
        let side = self.side;
        self.is_open = read.as_ref().is_ok_and(|read| *read > 0);
        match read {
            Ok(0) => Ok(self.framer.rest()),
            Ok(_) => self.framer.block().map_err(|source| ProxyError::Line { side, source }),
            Err(source) => Err(ProxyError::Read { side, source }),
        }
    }
}
