//! Folders that builds create, and files that package managers write.

/// Folders that build systems and package managers create and own. Their content can be
/// regenerated.
const BUILT: [&str; 21] = [
    "target",
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
    ".tox",
    ".turbo",
    ".next",
    ".nx",
    ".parcel-cache",
    ".gradle",
    ".pnpm-store",
    ".yarn",
    "dist",
    "build",
    "out",
    "coverage",
    "_build",
];

/// Whether builds create a folder of this name.
pub(super) fn is_built(name: &str) -> bool {
    BUILT.contains(&name)
}

/// Lock files of package managers.
const LOCKS: [&str; 14] = [
    "Cargo.lock",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "go.sum",
    "go.work.sum",
    "gradle.lockfile",
    "Gemfile.lock",
    "composer.lock",
];

/// Whether builds write a file of this name.
pub(super) fn is_lock(name: &str) -> bool {
    LOCKS.contains(&name)
}
