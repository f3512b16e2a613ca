//! The files that a patch names: in the format of `apply_patch`, or a unified diff.

/// Returns the paths that applying the patch would write, as written in it.
pub(crate) fn files(patch: &str) -> Vec<&str> {
    let mut files = Vec::new();
    let mut lines = patch.lines().peekable();
    let mut of_git = false;
    while let Some(line) = lines.next() {
        of_git |= line.starts_with("diff --git ");
        let renamed = ["rename from ", "rename to ", "copy to "];
        let renamed = renamed.iter().find_map(|marker| line.strip_prefix(marker));
        let header = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "]
            .iter()
            .find_map(|marker| line.strip_prefix(marker));
        if let Some(path) = header {
            files.push(path.trim());
        } else if let Some(path) = renamed.filter(|_| of_git) {
            files.push(path.trim());
        } else if let Some(old) = line.strip_prefix("--- ")
            && let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ "))
        {
            files.extend([old, new].into_iter().filter_map(unified));
        }
    }
    files.retain(|path| !path.is_empty());
    files.dedup();
    files
}

/// Whether a text is a patch in the format of `apply_patch`.
pub(crate) fn is_patch(text: &str) -> bool {
    text.trim_start().starts_with("*** Begin Patch")
}

/// Whether a text is a unified diff, or one in a fence.
pub(crate) fn is_unified(text: &str) -> bool {
    let text = text.trim_start();
    let text = text
        .strip_prefix("```")
        .map_or(text, |fenced| fenced.split_once('\n').map_or("", |(_, text)| text));
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    ["diff --git ", "Index: "].iter().any(|head| first.starts_with(head))
        || first.starts_with("--- ") && lines.next().is_some_and(|next| next.starts_with("+++ "))
}

/// The path in a header line of a unified diff: without a time, without git's `a/` and `b/`.
fn unified(header: &str) -> Option<&str> {
    let path = header.split('\t').next()?.trim();
    let path = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path);
    (path != "/dev/null").then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: a b.rs\n*** Move to: c.rs\n@@\n-x\n+*** y\n*** Delete File: d\n*** End Patch";
        assert!(is_patch(patch));
        assert_eq!(files(patch), ["a b.rs", "c.rs", "d"]);
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- no header\n-- \n--- /dev/null\n+++ b/new\t2026-01-01";
        assert_eq!(files(diff), ["x", "new"]);
        assert!(files("").is_empty());
    }
}
