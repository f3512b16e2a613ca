//! Contents as `GIT binary patch` has them: deflated, in git's base 85.

use std::fmt::Write as _;
use std::io::Write as _;

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use flate2::Compression;
use flate2::write::ZlibEncoder;

const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Bytes of a line before they are encoded.
const LINE: usize = 52;

/// git's id of a content.
pub(super) fn blob_id(content: &[u8]) -> String {
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(format!("blob {}\0", content.len()).as_bytes());
    hash.update(content);
    hex(hash.finish().as_ref())
}

pub(in crate::changes) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The lines of a `literal` part, without the empty last one.
pub(super) fn literal(content: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = vec![format!("literal {}\n", content.len()).into_bytes()];
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory doesn't fail.
    let deflated = encoder.write_all(content).and_then(|()| encoder.finish()).unwrap_or_default();
    lines.extend(deflated.chunks(LINE).map(line));
    lines
}

/// The number of bytes as a letter, and each four of them as five digits.
fn line(bytes: &[u8]) -> Vec<u8> {
    // At most 52.
    let length = u8::try_from(bytes.len()).unwrap_or(0);
    let mut line = vec![if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }];
    for four in bytes.chunks(4) {
        let mut padded = [0; 4];
        padded[..four.len()].copy_from_slice(four);
        let mut value = u32::from_be_bytes(padded);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(value % 85) as usize];
            value /= 85;
        }
        line.extend(digits);
    }
    line.push(b'\n');
    line
}
