//! What a grammar cannot read though people write it, written as it can.

use std::borrow::Cow;

use crate::graph::facts::Language;

/// On a type parameter of this name.
const CONDITION: &[u8] = b"(type extends ";

/// Returns a text in which what matters stands where it did, each byte of it. None: there is nothing
/// to mend.
///
/// A type parameter may be called `type`. Behind a parenthesis the grammar takes that for the word:
///
/// ```text
/// type Fee<type> = (type extends 'legacy' ? A : B);
/// ```
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
        for at in memchr::memmem::find_iter(line, CONDITION) {
            mended.to_mut()[start + at + 1] = b'T';
        }
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
