use std::path::{Component, Path, PathBuf};

/// Returns the path as the wire shows it: relative to the workspace with forward slashes (`.` for
/// the workspace itself), absolute if outside. A relative `path` is taken against `cwd`, and `.`
/// and `..` are folded by name alone. Bytes that are no UTF-8 become U+FFFD.
pub fn wire_path(workspace: &Path, cwd: &Path, path: &Path) -> String {
    let folded = fold(&cwd.join(path));
    match folded.strip_prefix(workspace) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => folded.to_string_lossy().into_owned(),
    }
}

/// Folds `.` and `..` by name, as an editor would, without asking the disk.
pub fn fold(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_workspace_or_absolute() {
        let wire =
            |cwd: &str, path: &str| wire_path(Path::new("/w"), Path::new(cwd), Path::new(path));
        assert_eq!(wire("/w", "a/b.rs"), "a/b.rs");
        assert_eq!(wire("/w/a", "../b.rs"), "b.rs");
        assert_eq!(wire("/w", "/w/./a/../b"), "b");
        assert_eq!(wire("/w", "/w"), ".");
        assert_eq!(wire("/w", "../x"), "/x");
        assert_eq!(wire("/w", "/../../etc/passwd"), "/etc/passwd");
    }
}
