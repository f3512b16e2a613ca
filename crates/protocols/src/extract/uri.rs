//! Converts file names from agents and clients, as paths or `file://` URIs, to paths.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// Bytes of the longest path that the kernel accepts.
const PATH_MAX: usize = 4096;

/// Returns the path of a path or `file:` URI; None for other URIs and for impossible paths.
pub(crate) fn path_of(text: &str) -> Option<PathBuf> {
    let path = match file_uri(text) {
        // The rest names a position in the file.
        Some(rest) => decoded(rest.split(['?', '#']).next().unwrap_or(rest))?,
        None if is_uri(text) => return None,
        None => text.to_owned(),
    };
    plausible(path)
}

/// Like [`path_of`], for the gate: None also for a `file:` URI that readers could take for
/// different paths (a query, a fragment, a foreign host). A text with another scheme is a relative
/// path, as for a reader that knows no URIs.
pub(crate) fn exact_path_of(text: &str) -> Option<PathBuf> {
    let path = match file_uri(text) {
        Some(rest) if rest.contains(['?', '#']) => return None,
        Some(rest) => decoded(rest)?,
        None => text.to_owned(),
    };
    plausible(path)
}

/// Whether the text is a URI of any scheme.
pub(crate) fn is_uri(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

/// The part after the scheme and a local authority of a `file:` URI.
fn file_uri(text: &str) -> Option<&str> {
    let scheme = text.get(..5)?;
    let rest = &text[5..];
    if !scheme.eq_ignore_ascii_case("file:") || !rest.starts_with('/') {
        return None;
    }
    let Some(authority) = rest.strip_prefix("//") else { return Some(rest) };
    Some(authority.strip_prefix("localhost").unwrap_or(authority))
}

fn decoded(path: &str) -> Option<String> {
    path.starts_with('/').then_some(())?;
    Some(percent_decode_str(path).decode_utf8().ok()?.into_owned())
}

fn plausible(path: String) -> Option<PathBuf> {
    let fits = !path.is_empty() && path.len() <= PATH_MAX && !path.contains('\0');
    fits.then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_file_uris_are_paths() {
        let cases = [
            ("src/a.rs", Some("src/a.rs")),
            ("/w/a b", Some("/w/a b")),
            ("file:///w/a%20b", Some("/w/a b")),
            ("FILE:///w/%2e%2e/x", Some("/w/../x")),
            ("file://localhost/w/x", Some("/w/x")),
            ("file:///w/x#L10", Some("/w/x")),
            ("file:///w/x%23y", Some("/w/x#y")),
            ("file:/w/x", Some("/w/x")),
            ("file:x", Some("file:x")),
            ("file://w", None),
            ("file://host/w/x", None),
            ("https://example.org/x", None),
            ("", None),
            ("a\0b", None),
            ("file:///a%00b", None),
            ("file:///%ff", None),
        ];
        for (text, path) in cases {
            assert_eq!(path_of(text).as_deref(), path.map(std::path::Path::new), "{text}");
        }
        assert_eq!(path_of(&"x".repeat(5000)), None);
    }

    #[test]
    fn what_could_be_misread_is_no_exact_path() {
        assert_eq!(exact_path_of("file:///w/a?/../../x"), None);
        assert_eq!(exact_path_of("file:///w/a#/../../x"), None);
        assert_eq!(exact_path_of("file://host/w"), None);
        assert_eq!(exact_path_of("file:///w/a%20b"), Some(PathBuf::from("/w/a b")));
        assert_eq!(exact_path_of("http://x/../y"), Some(PathBuf::from("http://x/../y")));
    }
}
