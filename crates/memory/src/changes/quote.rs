//! Names as git writes them: quoted with octal escapes where they have more than printable ASCII.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The name behind a prefix, as in `a/NAME`.
pub(super) fn quoted(prefix: &str, path: &Path) -> Vec<u8> {
    let bytes = [prefix.as_bytes(), path.as_os_str().as_bytes()].concat();
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte) && *byte != b'"' && *byte != b'\\';
    if bytes.iter().all(is_plain) {
        return bytes;
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        let escape = match byte {
            b'"' | b'\\' => byte,
            0x07 => b'a',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0b => b'v',
            0x0c => b'f',
            b'\r' => b'r',
            byte if is_plain(&byte) => {
                quoted.push(byte);
                continue;
            }
            byte => {
                quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes());
                continue;
            }
        };
        quoted.extend([b'\\', escape]);
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn names_are_quoted_as_by_git() {
        for (name, shown) in [
            (&b"src/a b.rs"[..], &br#"a/src/a b.rs"#[..]),
            (b"\xc3\xa9", br#""a/\303\251""#),
            (b"a\tb\"c\\d\x01\x7f", br#""a/a\tb\"c\\d\001\177""#),
        ] {
            assert_eq!(quoted("a/", Path::new(OsStr::from_bytes(name))), shown);
        }
    }
}
