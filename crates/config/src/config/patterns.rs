//! Patterns of zones: checks each, and converts it to the form that zones match.

use std::path::Path;

use globset::GlobSetBuilder;

use super::errors::quoted;
use super::fault::Fault;
use super::read::{Table, Text};
use crate::zone::compile_glob;

/// Checks a pattern as in a list of the file, and returns it in the form that zones match. `denying` names what
/// takes patterns that deny. The error has the mistake and the correction.
pub fn zone_pattern(written: &str, workspace: &Path, denying: &str) -> Result<String, String> {
    let checked = pattern_beside(written, workspace, denying);
    checked.map_err(|(message, help)| format!("{message}: {help}"))
}

/// Returns the patterns of a list, each checked; None if the list is missing. A mistake refuses the
/// file, so that no list becomes wider than intended.
pub(super) fn patterns(
    table: &Table<'_>,
    key: &'static str,
    workspace: &Path,
) -> Option<Vec<String>> {
    checked(table, key, |written| pattern(written, workspace))
}

pub(super) fn checked(
    table: &Table<'_>,
    key: &'static str,
    check: impl Fn(&str) -> Result<String, (String, String)>,
) -> Option<Vec<String>> {
    let texts = table.texts(key)?;
    let checked = |text: &Text| match check(&text.value) {
        Ok(pattern) => Some(pattern),
        Err((message, help)) => {
            table.fault(Fault::new(text.span.clone(), message).help(help));
            None
        }
    };
    Some(texts.iter().filter_map(checked).collect())
}

/// Converts a pattern to the form that zones match: relative to the workspace if it lies inside.
/// The error has the mistake and the correction.
pub(super) fn pattern(written: &str, workspace: &Path) -> Result<String, (String, String)> {
    pattern_beside(written, workspace, "`denied`")
}

fn pattern_beside(
    written: &str,
    workspace: &Path,
    denying: &str,
) -> Result<String, (String, String)> {
    let mut pattern = written;
    while let Some(rest) = pattern.strip_prefix("./") {
        pattern = rest.trim_start_matches('/');
    }
    if let Some(inside) = workspace.to_str().and_then(|root| pattern.strip_prefix(root)) {
        pattern = inside.strip_prefix('/').unwrap_or(pattern);
    }
    let wrong =
        |what: &str, help: String| Err((format!("the pattern {} {what}", quoted(written)), help));
    if written.is_empty() {
        return wrong("is empty", "write \"**\" for everything, or leave it out".to_owned());
    }
    if pattern.is_empty() || pattern == "." {
        return wrong(
            "names the workspace itself",
            "write \"**\" for all that is in it".to_owned(),
        );
    }
    if let Some(rest) = pattern.strip_prefix('!') {
        let help = format!(
            "write {} into {denying}; of a name that begins so write {}",
            quoted(rest),
            quoted(&format!("\\{pattern}"))
        );
        return wrong("starts with `!`, which takes nothing out", help);
    }
    if pattern.starts_with("~/") || pattern == "~" {
        let help = format!("write {}", quoted(&pattern.replacen('~', "${HOME}", 1)));
        return wrong("starts with `~`, which only a shell knows", help);
    }
    if pattern.split('/').any(|component| component == "..") {
        let help = "write it relative to the workspace without `..`; a place outside has an absolute pattern";
        return wrong("contains `..`", help.to_owned());
    }
    if pattern.split('/').any(|component| component == ".")
        || pattern.rfind("//").is_some_and(|at| at > 0)
    {
        let names = pattern.split('/').enumerate();
        let plain = names.filter(|(at, name)| *name != "." && (*at == 0 || !name.is_empty()));
        let plain: Vec<_> = plain.map(|(_, name)| name).collect();
        let help = format!("write {}, without `/./` and `//`", quoted(&plain.join("/")));
        return wrong("is no plain path", help);
    }
    if let Some(folder) = pattern.strip_suffix('/') {
        let help =
            format!("write {} for all that is in the folder", quoted(&format!("{folder}/**")));
        return wrong("ends with `/`, so it matches no file", help);
    }
    // Only the set compiles the translated glob, and can find it too large.
    compile_glob(pattern)
        .and_then(|glob| GlobSetBuilder::new().add(glob).build())
        .map(|_| pattern.to_owned())
        .or_else(|error| {
            let help = "the special characters are `*`, `**`, `?`, `[ab]`, `[!ab]`, `{a,b}`; `\\` before one makes it literal";
            wrong(&format!("can't be read: {}", error.kind()), help.to_owned())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_come_out_relative_to_the_workspace() {
        for (written, wanted) in [
            ("src/**", "src/**"),
            ("./src/**", "src/**"),
            ("././/a", "a"),
            ("**", "**"),
            ("/w/src/**", "src/**"),
            ("/w2/src", "/w2/src"),
            ("/etc/hosts", "/etc/hosts"),
            ("ä/**", "ä/**"),
            ("a..b/..c/d..", "a..b/..c/d.."),
            ("{a,b}/[cd]/*.rs", "{a,b}/[cd]/*.rs"),
        ] {
            assert_eq!(pattern(written, Path::new("/w")).as_deref(), Ok(wanted), "{written}");
        }
    }

    #[test]
    fn a_path_with_needless_parts_is_corrected() {
        for (written, wanted) in [
            ("src//ui//**", "src/ui/**"),
            ("src/./a", "src/a"),
            ("/etc/.//hosts", "/etc/hosts"),
            ("ä//b", "ä/b"),
        ] {
            let help = pattern(written, Path::new("/w")).err().map(|(_, help)| help);
            assert_eq!(help, Some(format!("write {wanted:?}, without `/./` and `//`")));
        }
    }

    #[test]
    fn patterns_that_would_never_match_are_refused() {
        for written in [
            "", ".", "./", "/w/", "..", "../x", "a/../b", "a/..", "~/x", "~", "src/", "a//b",
            "a/./b", "[a", "{a", "a]b}", "[z-a]", "a\\", "/", "!a", "!src/**", "./!a",
        ] {
            let outcome = pattern(written, Path::new("/w"));
            assert!(outcome.is_err(), "{written} → {outcome:?}");
        }
        let huge = "{a,b,c,d,e,f}*?[!x-z]**".repeat(20_000);
        assert!(pattern(&huge, Path::new("/w")).is_err());
    }
}
