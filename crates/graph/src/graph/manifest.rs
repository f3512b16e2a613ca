//! The name of a package's library from its manifest: modules are found by paths otherwise.

use std::path::Path;

use serde::Deserialize;

pub(super) const FILE: &str = "Cargo.toml";

/// The largest manifest that is parsed; parsing takes eighty times as much memory.
const LARGEST: usize = 256 << 10;

#[derive(Deserialize)]
struct Manifest {
    package: PackageName,
    lib: Option<Library>,
}

#[derive(Deserialize)]
struct PackageName {
    name: Box<str>,
}

#[derive(Deserialize)]
struct Library {
    name: Option<Box<str>>,
}

pub(super) fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FILE)
}

/// Returns the name of the package's library in code. None: no manifest, or an invalid one.
pub(super) fn package(path: &Path, text: &[u8]) -> Option<Box<str>> {
    if !is_manifest(path) || text.len() > LARGEST {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let Manifest { package, lib } = toml::from_str(text).ok()?;
    let name = lib.and_then(|lib| lib.name).unwrap_or(package.name);
    Some(name.replace('-', "_").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_the_name_that_its_manifest_gives_it() {
        for (path, text, expected) in [
            ("a/Cargo.toml", "package.name = \"town-hall\"", Some("town_hall")),
            ("Cargo.toml", "[lib] # all\nname='hall'\n[package]\nname=\"town-hall\"", Some("hall")),
            ("Cargo.toml", "[package]\nname = \"town\"\n[lib]\npath = \"lib.rs\"", Some("town")),
            ("Cargo.toml", "[workspace]\nmembers = []", None),
            ("Cargo.toml", "[package]\nname = \"town", None),
            ("Cargo.toml", "[package]\nname = 1", None),
            ("town.toml", "package.name = \"town\"", None),
        ] {
            assert_eq!(package(Path::new(path), text.as_bytes()).as_deref(), expected, "{text}");
        }
        assert_eq!(package(Path::new(FILE), b"package.name = \"\xff\""), None);
        let deep = format!("a = {}", "[".repeat(LARGEST - 4));
        assert_eq!(package(Path::new(FILE), deep.as_bytes()), None);
        let large = format!("package.name = \"town\" # {}", "a".repeat(LARGEST));
        assert_eq!(package(Path::new(FILE), large.as_bytes()), None);
    }
}
