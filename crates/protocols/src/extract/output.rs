//! Finds the files in a program's output: paths with line and column, quoted paths, paths after
//! `error in`.
//!
//! Output also holds prose and code, so only files that exist in the workspace count.

use std::path::{Path, PathBuf};

use super::{Entry, Workspace};
use crate::model::fold;

/// Bytes of one output to read: the last ones, where errors are.
const MOST_BYTES: usize = 256 * 1024;
/// Candidates of one output to look up on disk; the rest is ignored.
const MOST_LOOKUPS: usize = 512;
const LONGEST_PATH: usize = 1024;

/// Returns the files of the workspace in `text`, the output of a program in `cwd`, each once.
pub(crate) fn files(text: &str, cwd: &Path, workspace: &dyn Workspace) -> Vec<PathBuf> {
    let from = text.ceil_char_boundary(text.len().saturating_sub(MOST_BYTES));
    let mut files: Vec<PathBuf> = Vec::new();
    let candidates = text[from..].lines().flat_map(candidates);
    for candidate in candidates.filter(|candidate| is_pathlike(candidate)).take(MOST_LOOKUPS) {
        let path = fold(&cwd.join(candidate));
        if path.starts_with(workspace.root())
            && !files.contains(&path)
            && workspace.entry(&path) == Some(Entry::File)
        {
            files.push(path);
        }
    }
    files
}

/// The quoted paths in a text, in order.
pub(crate) fn quoted(text: &str) -> Vec<&str> {
    text.lines().flat_map(quoted_in_line).filter(|path| is_pathlike(path)).collect()
}

fn candidates(line: &str) -> Vec<&str> {
    let mut found: Vec<&str> = words(line).filter_map(before_line_and_column).collect();
    found.extend(quoted_in_line(line));
    found.extend(behind_error_in(line));
    found
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let around = |c: char| c.is_whitespace() || "()[]{}<>\"'`,;".contains(c);
    line.split(around).filter(|word| !word.is_empty())
}

/// `PATH:LINE:COLUMN`, with or without more after it.
fn before_line_and_column(word: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mut parts = word.split(':');
    let path = parts.next()?;
    let (line, column) = (parts.next()?, parts.next()?);
    // After the column, compilers print a colon or nothing.
    (is_number(line) && is_number(column)).then_some(path)
}

fn quoted_in_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let (before, from) = rest.split_at(at);
        let (quote, behind) = from.split_at(1);
        // Within a word it is an apostrophe.
        let opens = !before.ends_with(char::is_alphanumeric);
        match behind.find(quote).filter(|_| opens) {
            Some(end) => {
                found.push(&behind[..end]);
                rest = &behind[end + 1..];
            }
            None => rest = behind,
        }
    }
    found
}

/// `error in FILE`, in any case.
fn behind_error_in(line: &str) -> Option<&str> {
    const MARKER: &[u8] = b"error in ";
    let at = line.as_bytes().windows(MARKER.len()).position(|w| w.eq_ignore_ascii_case(MARKER))?;
    let word = words(line.get(at + MARKER.len()..)?).next()?;
    Some(word.split(':').next().unwrap_or(word).trim_end_matches('.'))
}

fn is_pathlike(text: &str) -> bool {
    let fits = (1..=LONGEST_PATH).contains(&text.len()) && !text.contains('\0');
    fits && text.contains(['/', '.']) && !super::uri::is_uri(text) && text.trim() == text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::testing::Sample;

    #[test]
    fn compilers_and_tracebacks_name_their_files() {
        let workspace = Sample::new(&["src/a.rs", "src/b c.py", "lib/x.ts", "Makefile", "d.js"]);
        let text = "error[E0308]: mismatched types\n  --> src/a.rs:10:5\n\
                    File \"src/b c.py\", line 3, in f\n\
                    it's in 'lib/x.ts'\n\
                    Error in d.js: bad\n\
                    ./src/../src/a.rs:1:2: again\n\
                    /w/lib/x.ts(1,2)\n";
        assert_eq!(
            files(text, Path::new("/w"), &workspace),
            ["/w/src/a.rs", "/w/src/b c.py", "/w/lib/x.ts", "/w/d.js"].map(PathBuf::from)
        );
    }

    #[test]
    fn what_is_no_mention_is_left_out() {
        let workspace = Sample::new(&["src/a.rs", "ui/app.tsx"]);
        for text in [
            "src/none.rs:1:2",
            "./ui/app.tsx:2:export const App",
            "see src/a.rs for more",
            "\"src\"",
            "'.'",
            "/etc/passwd:1:2",
            "\"/etc/passwd\"",
            "12:34:56",
        ] {
            assert!(files(text, Path::new("/w"), &workspace).is_empty(), "{text}");
        }
        assert_eq!(files("a.rs:1:1", Path::new("/w/src"), &workspace).len(), 1);
    }

    #[test]
    fn only_the_end_of_much_output_is_looked_at() {
        let workspace = Sample::new(&["a.rs", "b.rs"]);
        let text = format!("a.rs:1:1\n{}\nb.rs:1:1", "é".repeat(MOST_BYTES));
        assert_eq!(files(&text, Path::new("/w"), &workspace), [PathBuf::from("/w/b.rs")]);
    }
}
