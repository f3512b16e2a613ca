//! What a grammar cannot read though people write it, written as it can.

use std::borrow::Cow;

use crate::graph::facts::Language;

/// Returns a text that differs in white space only, each byte where it was. None: there is nothing
/// to mend.
///
/// Members of a type need no semicolon between lines. The grammar of TypeScript takes the type
/// parameters that one begins with for type arguments of what the one above ends with:
///
/// ```text
/// const f: {
///   (): A
///   <B extends C>(): B
/// }
/// ```
pub(super) fn mended(language: Language, text: &[u8]) -> Option<Vec<u8>> {
    // A line of JSX begins so, too.
    if language.name() != "typescript" {
        return None;
    }
    let mut mended = Cow::Borrowed(text);
    let (mut above, mut in_comment, mut end) = (&b""[..], false, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let start = end;
        end += line.len();
        let said = line.trim_ascii();
        if in_comment || said.starts_with(b"/*") {
            in_comment = !said.ends_with(b"*/");
            continue;
        }
        if said.is_empty() || said.starts_with(b"//") {
            continue;
        }
        let indent = line.len() - line.trim_ascii_start().len();
        if indent > 0 && said.starts_with(b"<") && ends_member(above) {
            mended.to_mut()[start + indent - 1] = b';';
        }
        above = said;
    }
    match mended {
        Cow::Owned(mended) => Some(mended),
        Cow::Borrowed(_) => None,
    }
}

fn ends_member(line: &[u8]) -> bool {
    !line.ends_with(b"=>")
        && line
            .last()
            .is_some_and(|last| last.is_ascii_alphanumeric() || b"_$>])}\"'`".contains(last))
}
