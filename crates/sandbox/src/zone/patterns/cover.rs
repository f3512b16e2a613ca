//! Finds whether patterns are within others: all that they match, the others match, too.

use globset::Error;

use super::glob::{self, Glob};

/// The first pattern of `narrow` that may match what no pattern of `wide` does; None if all are
/// within. In doubt a pattern is not within.
pub fn uncovered<'a>(wide: &[String], narrow: &'a [String]) -> Result<Option<&'a str>, Error> {
    let wide = Glob::parse_all(wide)?;
    for pattern in narrow {
        let alternatives = Glob::parse_all(std::slice::from_ref(pattern))?;
        let is_within = |narrow: &Glob| wide.iter().any(|wide| covers(wide, narrow));
        if alternatives.is_empty() || !alternatives.iter().all(is_within) {
            return Ok(Some(pattern));
        }
    }
    Ok(None)
}

/// Cuts `asked` to `own`. The first list has the patterns of `asked` that are within `own`, and the
/// patterns of `own` that are within one that reaches further. The second list has the patterns of
/// `asked` that reach further.
pub fn cut(own: &[String], asked: &[String]) -> Result<(Vec<String>, Vec<String>), Error> {
    let is_within = |wide: &String, narrow: &String| {
        let found = uncovered(std::slice::from_ref(wide), std::slice::from_ref(narrow))?;
        Ok::<_, Error>(found.is_none())
    };
    let (mut kept, mut further) = (Vec::new(), Vec::new());
    for pattern in asked {
        if uncovered(own, std::slice::from_ref(pattern))?.is_none() {
            kept.push(pattern.clone());
            continue;
        }
        further.push(pattern.clone());
        for narrower in own {
            if is_within(pattern, narrower)? {
                kept.push(narrower.clone());
            }
        }
    }
    let mut known = std::collections::BTreeSet::new();
    kept.retain(|pattern| known.insert(pattern.clone()));
    Ok((kept, further))
}

fn covers(wide: &Glob, narrow: &Glob) -> bool {
    if wide.climbs() || narrow.climbs() || wide.is_absolute() != narrow.is_absolute() {
        return false;
    }
    let (wide, narrow): (Vec<_>, Vec<_>) = (wide.parts().collect(), narrow.parts().collect());
    // For each end of `narrow`, from the last one, whether the rest of `wide` covers it.
    let mut covered: Vec<bool> = (0..=narrow.len()).map(|at| at == narrow.len()).collect();
    for (from_end, part) in wide.iter().rev().enumerate() {
        let is_last = from_end == 0;
        let mut next = vec![false; narrow.len() + 1];
        for at in (0..=narrow.len()).rev() {
            let rest = narrow.get(at..).unwrap_or_default();
            next[at] = match (*part, rest.first()) {
                // At the end of a pattern it stands for what is below a folder, not for the folder.
                ("**", Some(_)) => is_last || covered[at] || next[at + 1],
                ("**", None) => !is_last && covered[at],
                (part, Some(name)) => matches(part, name) && covered[at + 1],
                (_, None) => false,
            };
        }
        covered = next;
    }
    covered[0]
}

/// Whether a component's pattern matches all that another one does.
fn matches(wide: &str, narrow: &str) -> bool {
    if wide == narrow {
        return true;
    }
    // Braces that were not expanded may hold slashes.
    if narrow.contains("**") || narrow.contains('{') {
        return false;
    }
    wide == "*"
        || glob::literal(narrow).is_some_and(|name| {
            glob::compile(wide).is_ok_and(|wide| wide.compile_matcher().is_match(name))
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn is_within(wide: &[&str], narrow: &str) -> bool {
        let wide: Vec<_> = wide.iter().map(|&it| it.to_owned()).collect();
        uncovered(&wide, &[narrow.to_owned()]).unwrap().is_none()
    }

    #[test]
    fn a_zone_is_cut_to_another_one() {
        let texts = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        for (own, asked, kept, further) in [
            (
                &["src/ui/**", "docs/a.md"][..],
                &["src/ui/cart/**"][..],
                &["src/ui/cart/**"][..],
                &[][..],
            ),
            (&["src/ui/**", "docs/a.md"], &["**"], &["src/ui/**", "docs/a.md"], &["**"]),
            (
                &["src/ui/**", "docs/a.md"],
                &["src/**", "src/ui/*"],
                &["src/ui/**", "src/ui/*"],
                &["src/**"],
            ),
            (&["src/ui/**"], &["src/api/**"], &[], &["src/api/**"]),
            (&["src/ui/**"], &["/etc/**", "src/ui/**"], &["src/ui/**"], &["/etc/**"]),
            // Neither is within the other: in doubt nothing.
            (&["src/ui/**"], &["src/*/a.rs"], &[], &["src/*/a.rs"]),
            (&["src/**"], &["**", "**"], &["src/**"], &["**", "**"]),
        ] {
            let found = cut(&texts(own), &texts(asked)).unwrap();
            assert_eq!(found, (texts(kept), texts(further)), "{asked:?} in {own:?}");
            assert!(uncovered(&texts(own), &found.0).unwrap().is_none());
        }
    }

    #[test]
    fn a_pattern_is_within_a_wider_one() {
        for (wide, narrow) in [
            ("**", "src/**"),
            ("**", "**/*.rs"),
            ("src/**", "src/ui/**"),
            ("src/**", "src/{ui,api}/*.rs"),
            ("src/*/a.rs", "src/ui/a.rs"),
            ("src/*", "src/?i"),
            ("src/*.rs", "src/main.rs"),
            ("**/tests/**", "src/tests/**"),
            ("**/tests/**", "a/b/tests/c/*"),
            ("{src,docs}/**", "docs/a"),
            ("/data/**", "/data/x/*"),
            ("src/[ab]/*", "src/a/*"),
            (r"src/\[a\]", r"src/\[a\]"),
        ] {
            assert!(is_within(&[wide], narrow), "{narrow} within {wide}");
        }
        assert!(is_within(&["src/**", "docs/**"], "{src,docs}/a/**"));
    }

    #[test]
    fn a_pattern_that_reaches_further_is_not_within() {
        for (wide, narrow) in [
            ("src/**", "**"),
            ("src/**", "src"),
            ("src/**", "srcs/a"),
            ("src/*", "src/**"),
            ("src/*", "src/a/b"),
            ("src/*.rs", "src/*"),
            ("src/**", "{src,docs}/a"),
            ("src/ui/**", "src/*/a"),
            ("**/tests/**", "tests"),
            ("**", "/etc/passwd"),
            ("/data/**", "data/a"),
            ("src/**", "src/../docs"),
            ("src/**", "../src/a"),
            ("src/[!a]/*", "src/?/*"),
        ] {
            assert!(!is_within(&[wide], narrow), "{narrow} within {wide}");
        }
        assert!(!is_within(&[], "a"));
    }

    proptest! {
        /// If a pattern is within others, the others match each of its paths.
        #[test]
        fn nothing_gets_out(
            wide in "(\\*\\*|[ab*?]{1,2}|\\{a,b\\})(/(\\*\\*|[ab*?]{1,2})){0,3}",
            narrow in "(\\*\\*|[ab*?]{1,2}|\\{a,b\\})(/(\\*\\*|[ab*?]{1,2})){0,3}",
            paths in proptest::collection::vec("[ab]{1,2}(/[ab]{1,2}){0,4}", 50),
        ) {
            if is_within(&[&wide], &narrow) {
                let [wide, narrow] =
                    [&wide, &narrow].map(|it| glob::compile(it).unwrap().compile_matcher());
                for path in paths {
                    prop_assert!(!narrow.is_match(&path) || wide.is_match(&path), "{path}");
                }
            }
        }
    }
}
