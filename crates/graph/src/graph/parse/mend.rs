//! Rewrites valid code that a grammar cannot parse.

use std::borrow::Cow;

use crate::graph::facts::Language;

/// A condition on a type parameter named `type`.
const CONDITION: &[u8] = b"(type extends ";

/// Returns a text in which all names keep their positions. None: there is nothing to rewrite.
///
/// A type parameter may be named `type`. Behind a parenthesis the grammar takes it for the keyword:
///
/// ```text
/// type Fee<type> = (type extends 'legacy' ? A : B);
/// ```
///
/// Members of a type need no semicolon at the end of a line. The grammar of TypeScript takes the type
/// parameters of the next line for type arguments of the type before:
///
/// ```text
/// const f: {
///   (): A
///   <B extends C>(): B
/// }
/// ```
pub(super) fn mended(language: Language, text: &[u8]) -> Option<Vec<u8>> {
    // In TSX, a line of JSX begins the same way.
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
