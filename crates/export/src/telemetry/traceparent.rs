//! Trace contexts as W3C's `traceparent` has them: which trace, which span in it.

use std::fmt;

/// A span of a trace; neither number is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traceparent {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) flags: u8,
    /// The context came from another process.
    pub(super) is_remote: bool,
}

/// The flag of a trace that is recorded.
pub(super) const SAMPLED: u8 = 1;

impl Traceparent {
    /// Another span of the same trace.
    pub(super) fn with_span(self, span: u64) -> Self {
        Self { span, is_remote: false, ..self }
    }

    /// Reads the text of a header or variable; None if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let version = hex(parts.next()?, 2)?;
        let (trace, span) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
        let flags = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        // Later versions may add parts.
        let is_whole = version != 0xff && (version != 0 || parts.next().is_none());
        let span = u64::try_from(span).ok()?;
        (is_whole && trace != 0 && span != 0).then_some(Self {
            trace,
            span,
            flags,
            is_remote: true,
        })
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_malformed_is_refused() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(Traceparent::parse(good).map(|it| it.to_string()).as_deref(), Some(good));
        assert!(Traceparent::parse(&good.replacen("00", "cc", 1)).is_some());
        assert!(Traceparent::parse(&format!("{}-more", good.replacen("00", "cc", 1))).is_some());
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(Traceparent::parse(bad), None, "{bad}");
        }
    }
}
