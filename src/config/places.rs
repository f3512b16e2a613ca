//! Places that builds make, and files that they keep.

/// Folders that build systems and package managers make and own. What is in them can be made again.
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

/// Whether a folder of this name is made by builds.
pub(super) fn is_built(name: &str) -> bool {
    BUILT.contains(&name)
}

/// Files in which package managers keep what they resolved.
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

/// Whether a file of this name is written by builds.
pub(super) fn is_lock(name: &str) -> bool {
    LOCKS.contains(&name)
}
